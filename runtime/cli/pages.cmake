# Completion scripts and man pages: the program prints them, so they are always those of its tables.
# Where it cannot run on this machine there are none.
if(CMAKE_CROSSCOMPILING OR WEFT_FUZZ)
  return()
endif()
set(share ${CMAKE_BINARY_DIR}/share)
set(bash bash-completion/completions/weft)
set(zsh zsh/site-functions/_weft)
set(help ${CMAKE_COMMAND} -E env ASAN_OPTIONS=detect_leaks=0 $<TARGET_FILE:weft> help)
set(pages ${share}/${bash} ${share}/${zsh} ${share}/man/man1/weft.1)
set(commands
  COMMAND ${CMAKE_COMMAND} -E make_directory ${share}/bash-completion/completions
          ${share}/zsh/site-functions ${share}/man/man1
  COMMAND ${help} --completion bash > ${share}/${bash}
  COMMAND ${help} --completion zsh > ${share}/${zsh}
  COMMAND ${help} --man > ${share}/man/man1/weft.1)

set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/verbs.def)
file(READ verbs.def table)
string(REGEX MATCHALL "\nVERB\\([a-z_]+" rows "${table}")
foreach(row ${rows})
  string(REGEX REPLACE ".*\\(" "" verb "${row}")
  list(APPEND pages ${share}/man/man1/weft-${verb}.1)
  list(APPEND commands COMMAND ${help} ${verb} --man > ${share}/man/man1/weft-${verb}.1)
endforeach()

add_custom_command(OUTPUT ${pages} ${commands} DEPENDS weft
  COMMENT "Writing completion scripts and man pages")
add_custom_target(weft_pages ALL DEPENDS ${pages})
install(DIRECTORY ${share}/ DESTINATION ${CMAKE_INSTALL_DATADIR})
