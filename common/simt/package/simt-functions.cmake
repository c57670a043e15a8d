# CUDA C++ without a GPU, for a project of one's own, which has found the engine (find_package(simt)) or added it
# (add_subdirectory):
#
#   simt_add_executable(mine mine.cu)        a program, as add_executable makes one, that runs on the engine
#   simt_trace_executable(mine_test test.cu) the same with kernels whose accesses are counted and searched for races:
#                                            simt/front/testing.h
#
# Both make ordinary targets: target_link_libraries, target_include_directories and the rest work with them.
function(simt_executable target variant)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    message(FATAL_ERROR "${target}: needs g++, and the compiler is ${CMAKE_CXX_COMPILER_ID}")
  endif()
  add_executable(${target} ${ARGN})
  set(cuda ${ARGN})
  list(FILTER cuda INCLUDE REGEX "\\.cu$")
  set_source_files_properties(${cuda} PROPERTIES LANGUAGE CXX)
  if(TARGET simt-compile)
    set(front ${simt_BINARY_DIR}/front/simt-compile)
    add_dependencies(${target} simt-compile)
  else()
    get_target_property(front simt::simt-compile LOCATION)
  endif()
  # No system headers: simt-compile has to look into the engine's.
  set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "${front}" NO_SYSTEM_FROM_IMPORTED ON)
  target_link_libraries(${target} PRIVATE simt::${variant})
endfunction()

function(simt_add_executable target)
  simt_executable(${target} plain ${ARGN})
endfunction()

function(simt_trace_executable target)
  simt_executable(${target} traced ${ARGN})
endfunction()
