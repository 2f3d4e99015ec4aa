# models.cmake - whole models on the tests' Metal: libweft_metal as a Mac has it, over weft_fake_metal, and programs that find it.
set(units test_metal test_metal_choose test_metal_trouble test_metal_race)
if(NOT TARGET weft_fake_metal)
  metal_skip("no host side" ${units})
  return()
endif()
weft_metal_objects(metal_host ${weft_metal_cpp})
add_library(metal_fake_driver SHARED ${metal_host_objects})
target_link_libraries(metal_fake_driver PRIVATE weft_metal_texts weft_metal_id weft_fake_metal)
set(fakes ${CMAKE_BINARY_DIR}/tests/metal/fakes)
set_target_properties(metal_fake_driver PROPERTIES OUTPUT_NAME weft_metal LIBRARY_OUTPUT_DIRECTORY ${fakes} LINKER_LANGUAGE CXX)

foreach(unit ${units})
  weft_test(${unit} ${unit}.c weft_fake_metal weft_engine weft_compiler weft_exec)
  target_compile_definitions(${unit} PRIVATE WEFT_GOLDEN="${CMAKE_SOURCE_DIR}/tests/golden/data"
    WEFT_METAL_FILE="$<TARGET_FILE:metal_fake_driver>")
  add_dependencies(${unit} metal_fake_driver)
endforeach()
set_property(TEST ${units} APPEND PROPERTY ENVIRONMENT CK_TIMEOUT_MULTIPLIER=4) # the first to run compiles shaders

# The program and the tests of golden models find it as they would find the real one. Emulation is slow: small cases, few of each.
set(gpu WEFT_METAL=${fakes}/libweft_metal.so WEFT_METAL_MAPS=off) # shaders are compiled once
set(small ${CMAKE_SOURCE_DIR}/tests/golden/data)
set(golden ${CMAKE_BINARY_DIR}/tests/golden_models --device metal)
add_test(NAME golden_metal_small COMMAND ${golden} ${small})
add_test(NAME golden_metal_tiers COMMAND ${golden} --kv "f16 last=8, q8 last=20, q4 rest" --skip gemma2,gpt_oss ${small})
add_test(NAME golden_metal_layers COMMAND ${golden} -ngl 2 --skip gemma2,gpt_oss ${small})
add_test(NAME golden_metal_lora COMMAND ${CMAKE_BINARY_DIR}/tests/adapters --device metal ${small}/llama-mha ${small}/lora-llama
  ${small}/lora-mix-b)
add_test(NAME walks_metal COMMAND ${CMAKE_BINARY_DIR}/tests/walks --device metal 8 ${small}/llama-mha)
add_test(NAME deterministic_metal COMMAND ${CMAKE_BINARY_DIR}/tests/deterministic --device metal ${small}/llama-mha)
set(slow golden_metal_small golden_metal_tiers golden_metal_layers golden_metal_lora walks_metal deterministic_metal)
set_tests_properties(${slow} PROPERTIES LABELS slow ENVIRONMENT "${gpu}")
add_test(NAME metal_verbs COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/verbs_metal.sh $<TARGET_FILE:weft> ${CMAKE_SOURCE_DIR}
  $<TARGET_FILE:metal_fake_driver>)
set_tests_properties(metal_verbs PROPERTIES LABELS cli)
