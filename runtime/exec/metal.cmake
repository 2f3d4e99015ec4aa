# weft_metal_id: the name of this build's Metal kernels, which program and libweft_metal have to share; and libweft_metal itself, where
# there is Metal. Nothing links it; it is found at run time.
#
# WEFT_METAL: AUTO builds it on macOS where Metal-cpp's headers are found, ON fails without, OFF does not look.
file(GLOB metal_sources RELATIVE ${CMAKE_SOURCE_DIR} CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/kernels/metal/*.metal
  ${CMAKE_SOURCE_DIR}/kernels/metal/*.msl ${CMAKE_SOURCE_DIR}/kernels/metal/*.h ${CMAKE_SOURCE_DIR}/kernels/metal/*.def)
# What shaders are made of: those, and the tables that they share with the host.
set(metal_texts ${metal_sources} kernels/kernel_ops.def kernels/kforms.def kernels/map.def runtime/base/dtype.def)
# What both sides have to agree on besides.
set(metal_hashed ${metal_texts} kernels/act.h kernels/kcell.h kernels/kernel_ops.h kernels/kernels.h kernels/kform.h
  kernels/kpolicy.h kernels/ksample.h kernels/lora.h kernels/page_form.h runtime/base/dtype.h runtime/exec/metal_driver.h)
list(TRANSFORM metal_hashed PREPEND ${CMAKE_SOURCE_DIR}/ OUTPUT_VARIABLE metal_depends)
list(JOIN metal_hashed " " metal_names)
set(metal_id ${CMAKE_CURRENT_BINARY_DIR}/metal_build_id.c)
add_custom_command(OUTPUT ${metal_id} DEPENDS ${metal_depends} ${CMAKE_SOURCE_DIR}/codegen/build_id.cmake
  COMMAND ${CMAKE_COMMAND} -DDIR=${CMAKE_SOURCE_DIR} -DVERSION=${PROJECT_VERSION} -DOUT=${metal_id} "-DFILES=${metal_names}"
          -DHEADER=runtime/exec/metal_driver.h -DFUNCTION=metal_build_id -P ${CMAKE_SOURCE_DIR}/codegen/build_id.cmake
  VERBATIM)
add_library(weft_metal_id STATIC ${metal_id})
target_link_libraries(weft_metal_id PUBLIC weft_flags)
set_target_properties(weft_metal_id PROPERTIES POSITION_INDEPENDENT_CODE ON)

# weft_metal_texts: the shaders as texts, for the compiler of Metal.
list(JOIN metal_texts " " metal_text_names)
set(metal_text_file ${CMAKE_CURRENT_BINARY_DIR}/metal_texts.c)
add_custom_command(OUTPUT ${metal_text_file} DEPENDS ${metal_depends} ${CMAKE_CURRENT_SOURCE_DIR}/metal_texts.cmake
  COMMAND ${CMAKE_COMMAND} -DDIR=${CMAKE_SOURCE_DIR} -DOUT=${metal_text_file} "-DFILES=${metal_text_names}"
          -P ${CMAKE_CURRENT_SOURCE_DIR}/metal_texts.cmake
  VERBATIM)
add_library(weft_metal_texts STATIC EXCLUDE_FROM_ALL ${metal_text_file})
target_link_libraries(weft_metal_texts PUBLIC weft_flags)
set_target_properties(weft_metal_texts PROPERTIES POSITION_INDEPENDENT_CODE ON)

set(weft_metal_cpp metal_calls.cpp metal_driver.cpp metal_shaders.cpp metal_text.cpp)
list(TRANSFORM weft_metal_cpp PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
set(weft_metal_cpp "${weft_metal_cpp}" PARENT_SCOPE) # tests run it too, on any machine

set(weft_metal_found "" PARENT_SCOPE)
if(NOT APPLE OR WEFT_METAL STREQUAL "OFF" OR WEFT_FUZZ OR WEFT_CORE_ONLY)
  return()
endif()
# The headers that `./dev setup metal` fetched.
set(fetched $ENV{XDG_CACHE_HOME})
if(NOT fetched)
  set(fetched $ENV{HOME}/.cache)
endif()
find_path(WEFT_METAL_CPP Metal/Metal.hpp HINTS ${fetched}/weft/metal/metal_cpp)
if(NOT WEFT_METAL_CPP)
  if(WEFT_METAL STREQUAL "ON")
    message(FATAL_ERROR "WEFT_METAL=ON: Metal-cpp is not here; `./dev setup metal` fetches it")
  endif()
  return()
endif()
set(weft_metal_found "${WEFT_METAL_CPP}" PARENT_SCOPE)
enable_language(CXX)
add_library(weft_metal SHARED ${weft_metal_cpp})
target_compile_features(weft_metal PRIVATE cxx_std_17)
target_compile_options(weft_metal PRIVATE -fno-exceptions -fno-rtti -fvisibility=hidden)
target_include_directories(weft_metal PRIVATE ${CMAKE_SOURCE_DIR})
target_include_directories(weft_metal SYSTEM PRIVATE ${WEFT_METAL_CPP})
target_link_libraries(weft_metal PRIVATE weft_metal_id weft_metal_texts "-framework Metal" "-framework Foundation"
  "-framework IOKit" "-framework CoreFoundation")
set_target_properties(weft_metal PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
install(TARGETS weft_metal LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/weft)
