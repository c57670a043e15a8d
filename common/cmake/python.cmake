# The Python that `python3` starts. It may be a script that looks for it each time, as pyenv's: CMake would start that ten times,
# and each test once more.
if(NOT Python3_EXECUTABLE)
  execute_process(COMMAND python3 -c "import sys; print(sys.executable if sys.version_info >= (3, 9) else '')"
                  OUTPUT_VARIABLE Python3_EXECUTABLE OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT Python3_EXECUTABLE)
  unset(Python3_EXECUTABLE)
endif()
