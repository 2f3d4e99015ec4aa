# weft_cuda_id: the name of this build's CUDA kernels, which program and libweft_cuda have to share. A hash of what they agree on
# and of the kernels themselves; there whether anything compiles them or not.
set(cuda_hashed kernels/cuda/cuda_kernels.def kernels/cuda/cuda_light.def kernels/act.h kernels/ksample.h kernels/kcell.h
  kernels/kernel_ops.def kernels/kernel_ops.h kernels/kernels.h kernels/kform.h kernels/kforms.def kernels/lora.h kernels/map.def
  kernels/page_form.h kernels/kfn.h kernels/scratch.def kernels/variants.def kernels/kpolicy.h kernels/layout.h kernels/lora_rows.h
  kernels/c/attend_panels_size.h runtime/base/dtype.def runtime/base/dtype.h)
# What every compiler of them is told.
set(cuda_flags -std=c++17 -fmad=false)
set(cuda_version ${PROJECT_VERSION})
if(WEFT_CUDA_CHECK) # what racecheck follows, and names lines of; these images have ids of their own
  list(APPEND cuda_flags -DWEFT_CHECK -lineinfo)
  string(APPEND cuda_version -check)
endif()
file(GLOB cuda_sources RELATIVE ${CMAKE_SOURCE_DIR} CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.cu
  ${CMAKE_CURRENT_LIST_DIR}/*.cuh ${CMAKE_CURRENT_LIST_DIR}/*.h)
list(APPEND cuda_hashed ${cuda_sources})
list(TRANSFORM cuda_hashed PREPEND ${CMAKE_SOURCE_DIR}/ OUTPUT_VARIABLE cuda_depends)
list(JOIN cuda_hashed " " cuda_names)
set(cuda_id ${CMAKE_CURRENT_BINARY_DIR}/cuda_build_id.c)
add_custom_command(OUTPUT ${cuda_id} DEPENDS ${cuda_depends} ${CMAKE_SOURCE_DIR}/codegen/build_id.cmake
  COMMAND ${CMAKE_COMMAND} -DDIR=${CMAKE_SOURCE_DIR} -DVERSION=${cuda_version} -DOUT=${cuda_id} "-DFILES=${cuda_names}"
          -DHEADER=kernels/cuda/image.h -DFUNCTION=cuda_build_id -P ${CMAKE_SOURCE_DIR}/codegen/build_id.cmake
  VERBATIM)
add_library(weft_cuda_id STATIC ${cuda_id})
target_link_libraries(weft_cuda_id PUBLIC weft_flags)
