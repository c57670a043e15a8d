# CUDA C++ without a GPU, for a project of one's own:
#
#   simt_add_executable(mine mine.cu)        a program, as add_executable makes one, that runs on the engine
#   simt_trace_executable(mine_test test.cu) the same on the engine that counts accesses and looks for races: simt/testing.h
#
# Both make ordinary targets: target_link_libraries, target_include_directories and the rest work with them.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(Boost 1.74 COMPONENTS context)
get_filename_component(simt_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

foreach(variant cpu trace)
  include("${CMAKE_CURRENT_LIST_DIR}/simt-${variant}.cmake" OPTIONAL RESULT_VARIABLE found)
  if(NOT found OR TARGET simt::${variant})
    continue()
  endif()
  add_library(simt::${variant} STATIC IMPORTED)
  set_target_properties(simt::${variant} PROPERTIES
    IMPORTED_LOCATION "${simt_prefix}/lib/simt/${variant}/libsimt.a"
    INTERFACE_INCLUDE_DIRECTORIES "${simt_prefix}/include/simt/simt/include;${simt_prefix}/include/simt"
    INTERFACE_COMPILE_OPTIONS "${simt_${variant}_flags}"
    INTERFACE_COMPILE_FEATURES cxx_std_20
    INTERFACE_LINK_LIBRARIES "Boost::context;Threads::Threads")
endforeach()

function(simt_executable target variant)
  if(NOT TARGET simt::${variant})
    message(FATAL_ERROR "${target}: this engine is not installed; in the workbook: cmake --install build/${variant} --component simt --prefix ${simt_prefix}")
  endif()
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    message(FATAL_ERROR "${target}: needs g++, and the compiler is ${CMAKE_CXX_COMPILER_ID}")
  endif()
  add_executable(${target} ${ARGN})
  set(cuda ${ARGN})
  list(FILTER cuda INCLUDE REGEX "\\.cu$")
  set_source_files_properties(${cuda} PROPERTIES LANGUAGE CXX)
  # No system headers: simt-compile has to look into the engine's.
  set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "${simt_prefix}/bin/simt-compile" NO_SYSTEM_FROM_IMPORTED ON)
  target_link_libraries(${target} PRIVATE simt::${variant})
endfunction()

function(simt_add_executable target)
  simt_executable(${target} cpu ${ARGN})
endfunction()

function(simt_trace_executable target)
  simt_executable(${target} trace ${ARGN})
endfunction()
