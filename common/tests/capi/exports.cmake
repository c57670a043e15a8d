# Fails unless the functions that LIBRARY shows are those of the header.
execute_process(COMMAND ${NM} -D --defined-only ${LIBRARY} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[A-Za-z] [^\n]+" shown "${symbols}")
list(TRANSFORM shown REPLACE "^[A-Za-z] " "")
file(READ ${CMAKE_CURRENT_LIST_DIR}/../../capi/flash_attention_workbook.h header)
string(REGEX MATCHALL "faw_[a-z0-9_]+\\(" declared "${header}")
list(TRANSFORM declared REPLACE "\\(" "")
list(REMOVE_DUPLICATES declared)  # comments name them too
list(SORT shown)
list(SORT declared)
if(NOT shown STREQUAL declared)
  message(FATAL_ERROR "shown: ${shown}\ndeclared: ${declared}")
endif()
