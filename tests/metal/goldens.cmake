# goldens.cmake - recorded models, forms of state and adapters with --device metal: on the tests' Metal, and on a Mac on its own. `gpu`:
# the environment by which they find it. Emulation is slow: small cases, few of each.
set(small ${CMAKE_SOURCE_DIR}/tests/golden/data)
set(golden ${CMAKE_BINARY_DIR}/tests/golden_models --device metal)
add_test(NAME golden_metal_small COMMAND ${golden} ${small})
add_test(NAME golden_metal_tiers COMMAND ${golden} --kv "f16 last=8, q8 last=20, q4 rest" --skip gemma2,gpt_oss ${small})
add_test(NAME golden_metal_layers COMMAND ${golden} -ngl 2 --skip gemma2,gpt_oss ${small})
add_test(NAME golden_metal_lora COMMAND ${CMAKE_BINARY_DIR}/tests/adapters --device metal ${small}/llama-mha ${small}/lora-llama
  ${small}/lora-mix-b)
add_test(NAME walks_metal COMMAND ${CMAKE_BINARY_DIR}/tests/walks --device metal 8 ${small}/llama-mha)
add_test(NAME deterministic_metal COMMAND ${CMAKE_BINARY_DIR}/tests/deterministic --device metal ${small}/llama-mha)
set_tests_properties(golden_metal_small golden_metal_tiers golden_metal_layers golden_metal_lora walks_metal deterministic_metal
  PROPERTIES LABELS slow ENVIRONMENT "${gpu}")
