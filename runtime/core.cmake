# weft_core: what programs that `weft build` makes are linked from, in one archive: the base, kernels, state, the executor,
# sampling, generation, text, the reader of plan files and the core of the API. Some objects in it need the readers of model
# files; nothing that a program calls pulls those in. tests/core links a program and looks.
set(parts weft_base weft_kernels_form weft_kernels_ref weft_kernels_c ${weft_kernels_isa} weft_kernels weft_peaks weft_formats_core
  weft_kv weft_exec weft_sample weft_engine weft_serve weft_text_core weft_plan weft_api_core weft_image)
list(TRANSFORM parts REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>")
add_library(weft_core STATIC ${parts})
# Where `weft build` looks for it: beside the program where that was built, and where it is installed.
string(REGEX REPLACE "^(arm64)$" "aarch64" machine "${CMAKE_SYSTEM_PROCESSOR}")
string(REGEX REPLACE "^(AMD64|amd64)$" "x86_64" machine "${machine}")
set_target_properties(weft_core PROPERTIES LINKER_LANGUAGE C
  ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/weft/${machine}-linux-gnu)
install(TARGETS weft_core ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/weft/${machine}-linux-gnu)

# weft_program: what a program is besides: its main, the command line, the interface of a shared library, and a table of the
# kernels and the parts of runtime/text that were linked into it, which stand in for those of weft_core.
add_library(weft_program STATIC runtime/program/program_main.c runtime/program/program_lib.c
  runtime/program/kernel_rows_used.c runtime/program/text_parts_used.c runtime/cli/line_edit_none.c runtime/cli/line_plain.c
  $<TARGET_OBJECTS:weft_program_model> $<TARGET_OBJECTS:weft_talk>)
target_link_libraries(weft_program PRIVATE weft_flags)
set_target_properties(weft_program PROPERTIES
  ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/weft/${machine}-linux-gnu)
install(TARGETS weft_program ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/weft/${machine}-linux-gnu)
add_dependencies(weft weft_core weft_program) # `weft build` links them: all of one build
