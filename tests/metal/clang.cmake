# clang.cmake - a clang that compiles shaders as C++, and Python for the tool: WEFT_METAL_CLANG and WEFT_METAL_PYTHON, or neither.
# It must have half as a type of arguments: on x86_64 that is clang 15 and later.
find_program(WEFT_METAL_PYTHON NAMES python3)
foreach(name clang++-19 clang++-18 clang++-17 clang++-16 clang++-15 clang++)
  find_program(metal_clang_${name} NAMES ${name})
  mark_as_advanced(metal_clang_${name})
  if(metal_clang_${name} AND NOT WEFT_METAL_CLANG)
    file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/half.cpp
      "typedef _Float16 half4 __attribute__((ext_vector_type(4))); _Float16 f(half4 x) { return x.x; }\n#include <type_traits>\n")
    execute_process(COMMAND ${metal_clang_${name}} -std=c++17 -fsyntax-only ${CMAKE_CURRENT_BINARY_DIR}/half.cpp
      RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
    if(failed EQUAL 0)
      set(WEFT_METAL_CLANG ${metal_clang_${name}} CACHE FILEPATH "clang++ for shaders of Metal, in tests")
    endif()
  endif()
endforeach()
mark_as_advanced(WEFT_METAL_PYTHON WEFT_METAL_CLANG)
if(WEFT_SANITIZE OR WEFT_FUZZ)
  set(metal_why "not with sanitizers") # race mode has their functions
elseif(NOT WEFT_METAL_CLANG OR NOT WEFT_METAL_PYTHON)
  set(metal_why "no clang++ that has half, or no python3 (./dev setup metal)")
endif()
if(metal_why)
  unset(WEFT_METAL_CLANG)
  unset(WEFT_METAL_CLANG CACHE)
endif()
