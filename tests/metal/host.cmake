# host.cmake - code that is written with Metal-cpp, on any machine: stand-ins for Apple's headers, and weft_fake_metal, a library that has
# Objective-C's runtime and a Metal whose GPU runs shaders as lanes.c does. WEFT_METAL_CPP: where Metal-cpp is; `./dev setup metal`.
set(fetched $ENV{XDG_CACHE_HOME})
if(NOT fetched)
  set(fetched $ENV{HOME}/.cache)
endif()
find_path(WEFT_METAL_CPP Metal/Metal.hpp HINTS ${fetched}/weft/metal/metal_cpp NO_DEFAULT_PATH)
mark_as_advanced(WEFT_METAL_CPP)
include(CheckLanguage)
check_language(CXX)
if(NOT WEFT_METAL_CPP OR NOT CMAKE_CXX_COMPILER)
  metal_skip("no Metal-cpp (./dev setup metal), or no C++ compiler" test_metal_fake)
  return()
endif()
enable_language(CXX ASM)

add_library(weft_fake_metal SHARED objc.cpp objc_blocks.cpp objc_send.S metal_fake.cpp metal_fake_memory.cpp
  metal_fake_shaders.cpp metal_fake_commands.cpp)
target_compile_features(weft_fake_metal PRIVATE cxx_std_17)
target_include_directories(weft_fake_metal PRIVATE ${CMAKE_SOURCE_DIR})
list(JOIN metalc " " metalc_line)
target_compile_definitions(weft_fake_metal PRIVATE _GNU_SOURCE FAKE_METALC="${metalc_line}"
  FAKE_CACHE="${metal_cache}")
target_compile_options(weft_fake_metal PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra
  $<$<BOOL:${WEFT_WERROR}>:-Werror>>)
target_link_libraries(weft_fake_metal PRIVATE weft_lanes)

# weft_metal_objects(NAME SOURCES...): the objects of C++ that includes Metal-cpp, in NAME_objects. Made by clang, whatever else is
# made with: Metal-cpp has blocks.
set(metal_cxx ${WEFT_METAL_CLANG} -std=c++17 -O2 -g -fPIC -fblocks -Wall -Wextra -D_GNU_SOURCE -D__MAC_OS_X_VERSION_MIN_REQUIRED=150000
  -I${CMAKE_SOURCE_DIR} -I${CMAKE_CURRENT_SOURCE_DIR}/apple -isystem ${WEFT_METAL_CPP})
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  list(APPEND metal_cxx -D__arm64__=1) # what Apple calls it
endif()
if(WEFT_WERROR)
  list(APPEND metal_cxx -Werror)
endif()
function(weft_metal_objects name)
  set(objects "")
  foreach(source ${ARGN})
    get_filename_component(source ${source} ABSOLUTE)
    get_filename_component(base ${source} NAME)
    set(out ${CMAKE_CURRENT_BINARY_DIR}/${name}_${base}.o)
    add_custom_command(OUTPUT ${out} COMMAND ${metal_cxx} -MD -MF ${out}.d -MT ${out} -c ${source} -o ${out}
      DEPENDS ${source} DEPFILE ${out}.d COMMENT "clang++ ${name}_${base}")
    list(APPEND objects ${out})
  endforeach()
  set(${name}_objects ${objects} PARENT_SCOPE)
endfunction()

weft_metal_objects(test_metal_fake test_metal_fake.cpp)
weft_test(test_metal_fake "${test_metal_fake_objects}" weft_fake_metal weft_lanes)
set_target_properties(test_metal_fake PROPERTIES LINKER_LANGUAGE CXX)
set_tests_properties(test_metal_fake PROPERTIES COST 60)
