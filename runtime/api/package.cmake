# What others link: libweft.so, libweft.a, and the files by which pkg-config and CMake find them. All of them
# are found from where they are installed, so --prefix and DESTDIR may be anything, and the tree may be moved.
include(CMakePackageConfigHelpers)
include(CheckLinkerFlag)

# Every library of ours that weft_api rests on, itself included, and every one of others.
set(own)
set(others)
set(next weft_api)
while(next)
  list(POP_FRONT next lib)
  if(NOT lib MATCHES "^weft_")
    list(APPEND others ${lib})
  elseif(NOT lib IN_LIST own AND NOT lib STREQUAL weft_flags)
    list(APPEND own ${lib})
    get_target_property(below ${lib} LINK_LIBRARIES)
    list(APPEND next ${below})
  endif()
endwhile()
list(REMOVE_DUPLICATES others)

# Those of others as pkg-config (modules and flags) and as CMake (names) know them.
set(pc_requires)
set(pc_libs)
set(names)
foreach(lib ${others})
  if(lib MATCHES "^PkgConfig::(.+)$")
    list(APPEND pc_requires ${${CMAKE_MATCH_1}_MODULE_NAME})
    list(APPEND names ${${CMAKE_MATCH_1}_LIBRARIES})
  elseif(lib STREQUAL Threads::Threads)
    list(APPEND pc_libs ${CMAKE_THREAD_LIBS_INIT})
    list(APPEND names ${CMAKE_THREAD_LIBS_INIT})
  else()
    list(APPEND pc_libs -l${lib})
    list(APPEND names ${lib})
  endif()
endforeach()
list(JOIN pc_requires " " pc_requires)
list(JOIN pc_libs " " pc_libs)

# ---- the shared library: symbols of weft.h, each with a version ----

check_linker_flag(C "-Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/weft.map" WEFT_VERSION_SCRIPT)
if(WEFT_VERSION_SCRIPT)
  target_link_options(weft_shared PRIVATE
    -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/weft.map)
  set_property(TARGET weft_shared APPEND PROPERTY LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/weft.map)
endif()

# ---- the static library: one object, in which the names of everything else are local ----

set(object ${CMAKE_CURRENT_BINARY_DIR}/weft_all.o)
if(CMAKE_OBJCOPY AND NOT APPLE)
  separate_arguments(flags UNIX_COMMAND "${CMAKE_C_FLAGS}")
  list(TRANSFORM own REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE archives)
  add_custom_command(OUTPUT ${object}
    COMMAND ${CMAKE_C_COMPILER} ${flags} -nostdlib -r -o ${object}
            -Wl,--whole-archive ${archives} -Wl,--no-whole-archive
    COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${object}
    DEPENDS ${own} VERBATIM COMMENT "Joining libweft.a")
  set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  add_library(weft_static STATIC ${object})
else()
  list(TRANSFORM own REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
  add_library(weft_static STATIC ${objects})
endif()
set_target_properties(weft_static PROPERTIES OUTPUT_NAME weft EXPORT_NAME weft_static
  LINKER_LANGUAGE C)
target_link_libraries(weft_static INTERFACE ${names})
target_include_directories(weft_static INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

# ---- files that find them ----

set(pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
set(pc_prefix ${CMAKE_INSTALL_PREFIX}) # an absolute libdir says nothing about the prefix
if(NOT IS_ABSOLUTE ${pc_dir})
  file(RELATIVE_PATH up /prefix/${pc_dir} /prefix)
  set(pc_prefix "\${pcfiledir}/${up}")
  string(REGEX REPLACE "/$" "" pc_prefix ${pc_prefix})
endif()
foreach(dir LIBDIR INCLUDEDIR)
  set(pc_${dir} ${CMAKE_INSTALL_${dir}})
  if(NOT IS_ABSOLUTE ${pc_${dir}})
    set(pc_${dir} "\${prefix}/${pc_${dir}}")
  endif()
endforeach()
configure_file(weft.pc.in ${CMAKE_CURRENT_BINARY_DIR}/weft.pc @ONLY)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/weft)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/weftConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(TARGETS weft_shared weft_static EXPORT weftTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT weftTargets FILE weftConfig.cmake NAMESPACE weft:: DESTINATION ${package})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/weftConfigVersion.cmake DESTINATION ${package})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/weft.pc DESTINATION ${pc_dir})
install(FILES ../weft.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
