# Runs COMMAND (a list), which must be refused: exit status 2, and one line on stderr.
execute_process(COMMAND ${COMMAND} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors)
message("${errors}")
if(NOT status EQUAL 2)
  message(FATAL_ERROR "exit status ${status}, expected 2")
endif()
if(NOT errors MATCHES "^[^\n]+\n$" OR NOT output STREQUAL "")
  message(FATAL_ERROR "expected exactly one line on stderr and nothing on stdout, which had: ${output}")
endif()
