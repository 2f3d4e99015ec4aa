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

# The program and the tests of golden models find it as they would find the real one.
set(gpu WEFT_METAL=${fakes}/libweft_metal.so WEFT_METAL_MAPS=off) # shaders are compiled once
include(${CMAKE_CURRENT_SOURCE_DIR}/goldens.cmake)
add_test(NAME metal_verbs COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/verbs_metal.sh $<TARGET_FILE:weft> ${CMAKE_SOURCE_DIR}
  $<TARGET_FILE:metal_fake_driver>)
set_tests_properties(metal_verbs PROPERTIES LABELS cli)
