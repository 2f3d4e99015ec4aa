# The man page weft(3), made from weft.h, and a page of each function's name that shows it.
find_program(WEFT_AWK NAMES awk REQUIRED)
set(header ${CMAKE_CURRENT_SOURCE_DIR}/../weft.h)
set(man3 ${CMAKE_CURRENT_BINARY_DIR}/man3)
add_custom_command(OUTPUT ${man3}/weft.3
  COMMAND ${CMAKE_COMMAND} -E make_directory ${man3}
  COMMAND ${WEFT_AWK} -v version=${PROJECT_VERSION} -f ${CMAKE_CURRENT_SOURCE_DIR}/weft_3.awk
          ${header} > ${man3}/weft.3
  DEPENDS ${header} weft_3.awk VERBATIM COMMENT "Writing weft(3)")
add_custom_target(weft_3 ALL DEPENDS ${man3}/weft.3)

set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
file(READ ${header} text)
string(REGEX MATCHALL "WEFT_API[^;(]*[^;(a-z0-9_](weft_[a-z0-9_]+)\\(" calls "${text}")
foreach(call ${calls})
  string(REGEX REPLACE ".*[^a-z0-9_](weft_[a-z0-9_]+)\\($" "\\1" name "${call}")
  file(CONFIGURE OUTPUT ${man3}/${name}.3 CONTENT ".so man3/weft.3\n")
  list(APPEND pages ${man3}/${name}.3)
endforeach()
install(FILES ${man3}/weft.3 ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man3)
