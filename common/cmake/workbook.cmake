# What every preset shares: the compiler's settings, the dependencies, and workbook_chapter().

option(WORKBOOK_CUDA "Build the kernels with nvcc for a GPU; OFF builds them with g++ for the SIMT engine" OFF)
# .ci/run asks for it: a third of what compiling them takes. All instances are of the same templates, and what differs
# between the two types stands in common/device, whose tests have both.
option(WORKBOOK_FEW_INSTANCES "From chapter 06 on, kernels for the engine have no bf16, and traced ones no head dims above 64"
       "$ENV{WORKBOOK_FEW_INSTANCES}")
if(WORKBOOK_FEW_INSTANCES)  # for the little that runs
  set(SIMT_OPTIMIZATION -O1)
endif()

# As pip install does, and what a project wants that adds this one.
set(alone OFF)
if(NOT PROJECT_IS_TOP_LEVEL)
  set(alone ON)
endif()
option(WORKBOOK_LIBRARY_ALONE "Build the shared library of common/capi, without programs and tests" ${alone})

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)  # everything can go into the shared library of common/capi

if(WORKBOOK_CUDA)
  include(cuda_compiler)       # both before the language is enabled, which would choose for itself
  include(cuda_architectures)
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc has C++20 from 12.0 on
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  endif()
  if(WORKBOOK_ONE_ARCHITECTURE)  # only to see whether it compiles: the host's code need not be fast
    set(CMAKE_CXX_FLAGS_RELEASE -O0)
    set(CMAKE_CUDA_FLAGS_RELEASE -O0)
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  find_package(CUDAToolkit 12.4 REQUIRED)
endif()

# Ninety programs of 10 to 30 MB: lld links them in half of the time.
find_program(LLD ld.lld)
if(LLD AND NOT WORKBOOK_CUDA AND NOT WORKBOOK_LIBRARY_ALONE)
  add_link_options(-fuse-ld=lld)
endif()

# workbook_lowest_architecture(TARGET 80): its kernels need compute capability 8.0. Where an older GPU is asked for, they are
# compiled for the others, or for 8.0 if there are none: the program says so when it is run. 90a: for compute capability 9.0 and
# no other, whatever is asked for.
function(workbook_lowest_architecture target lowest)
  if(NOT WORKBOOK_CUDA)
    return()
  endif()
  if(lowest MATCHES "a$")
    set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES ${lowest}-real)
    return()
  endif()
  set(asked_for ${CMAKE_CUDA_ARCHITECTURES})
  list(TRANSFORM asked_for REPLACE "^native$" "${CMAKE_CUDA_ARCHITECTURES_NATIVE}")
  set(architectures "")
  foreach(architecture IN LISTS asked_for)
    string(REGEX MATCH "^[0-9]+" number "${architecture}")
    if(number STREQUAL "" OR number GREATER_EQUAL lowest)  # none: `all`, `all-major`
      list(APPEND architectures ${architecture})
    endif()
  endforeach()
  if(NOT architectures)
    set(architectures ${lowest})
  endif()
  set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES "${architectures}")
endfunction()

# workbook_refuse_spills(TARGET FILES..): a spill of registers fails the build, for the GPUs that the kernels were made for; and
# so do products of wgmma that wait for one another. Where nothing will run, of these FILES alone.
function(workbook_refuse_spills target)
  if(NOT WORKBOOK_CUDA)
    return()
  endif()
  get_target_property(others ${target} CUDA_ARCHITECTURES)
  list(FILTER others EXCLUDE REGEX "^[89]0")
  if(others OR (WORKBOOK_ONE_ARCHITECTURE AND NOT ARGN))
    return()
  endif()
  set(refuse -Xptxas=--warn-on-spills,--warning-as-error)
  if(WORKBOOK_ONE_ARCHITECTURE)
    get_target_property(unseen ${target} SOURCES)
    list(FILTER unseen INCLUDE REGEX "\\.cu$")
    list(REMOVE_ITEM unseen ${ARGN})
    set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS ${refuse})
    set_property(SOURCE ${unseen} APPEND PROPERTY COMPILE_OPTIONS $<$<COMPILE_LANGUAGE:CUDA>:${front_end_alone}>)
  else()
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:${refuse}>)
  endif()
  set(launcher ${PROJECT_SOURCE_DIR}/common/cmake/refuse_serialised.sh ${CMAKE_CUDA_COMPILER_LAUNCHER})
  set_target_properties(${target} PROPERTIES CUDA_COMPILER_LAUNCHER "${launcher}" MACHINE_CODE_IS_LOOKED_AT ON)
endfunction()

include(dependencies)

# Include paths start at common/: "attention/chapter.h", "device/cuda.h".
add_library(workbook_settings INTERFACE)
target_include_directories(workbook_settings INTERFACE ${PROJECT_SOURCE_DIR}/common)
target_compile_options(workbook_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wno-unknown-pragmas>)
if(WORKBOOK_CUDA)
  if(NOT WORKBOOK_LIBRARY_ALONE)  # what profilers show the source by would be three quarters of an installed library
    target_compile_options(workbook_settings INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:-lineinfo>)
  endif()
  # Code that nobody runs, and whose machine code nobody looks at, need not become any.
  if(WORKBOOK_ONE_ARCHITECTURE AND CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    set(front_end_alone -fdevice-syntax-only)
    set(looked_at $<BOOL:$<TARGET_PROPERTY:MACHINE_CODE_IS_LOOKED_AT>>)
    target_compile_options(workbook_settings INTERFACE $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<NOT:${looked_at}>>:${front_end_alone}>)
  endif()
  target_link_libraries(workbook_settings INTERFACE CUDA::cudart)
endif()

# workbook_kernel_sources(FILES..): sources of kernels, which are .cu for both compilers. g++ compiles them with the flags of
# common/simt/kernel_flags.cmake: for a target with the property SIMT_TRACED, so that the engine's observers see what they do.
include(${CMAKE_CURRENT_LIST_DIR}/../simt/kernel_flags.cmake)
# What the compiler would do once the calls for loads and stores are there: a quarter of its time, and of a run nothing.
set(traced_quickly -fno-tree-loop-optimize -fno-move-loop-invariants -fno-forward-propagate -fno-if-conversion -fno-if-conversion2 -fno-dse
    -fno-cprop-registers -fno-compare-elim -fira-region=one)
function(workbook_kernel_sources)
  if(NOT WORKBOOK_CUDA)
    set(traced $<BOOL:$<TARGET_PROPERTY:SIMT_TRACED>>)
    # -O1: these kernels are compiled more often than they run, for half as long, and run hardly longer
    set(level $<IF:$<BOOL:$<TARGET_PROPERTY:LONG_TO_COMPILE>>,-Og,-O1>)
    set_source_files_properties(${ARGN} PROPERTIES LANGUAGE CXX
                                COMPILE_OPTIONS "-xc++;$<${traced}:${simt_traced_flags};${traced_quickly}>;$<$<NOT:${traced}>:${simt_plain_flags}>;${level}")
  endif()
endfunction()

# workbook_traced(TARGET): its kernels are compiled so that the engine's observers see what they do.
function(workbook_traced target)
  set_target_properties(${target} PROPERTIES SIMT_TRACED ON POSITION_INDEPENDENT_CODE OFF)
endfunction()

# workbook_precompiled(TARGET [MAKER]): what nearly every kernel's file includes is read once for all of them; of a small file it is
# more than half of the compiler's time. With a MAKER, as that target has read it: both are traced, or neither is. Not behind a
# compiler launcher: ccache, as it comes, keeps nothing that was made so. The files have their own #includes as ever.
function(workbook_precompiled target)
  if(WORKBOOK_CUDA OR CMAKE_CXX_COMPILER_LAUNCHER)
    return()
  endif()
  if(ARGN)
    target_precompile_headers(${target} REUSE_FROM ${ARGN})
  else()
    get_target_property(traced ${target} SIMT_TRACED)
    if(traced)
      target_compile_options(${target} PRIVATE ${simt_traced_flags} ${traced_quickly} -O1)
    else()
      target_compile_options(${target} PRIVATE ${simt_plain_flags} -O1)
    endif()
    target_precompile_headers(${target} PRIVATE <algorithm> <cmath> <string> <vector> <attention/chapter.h> <device/math.h> <device/numeric.h>)
  endif()
  target_compile_options(${target} PRIVATE -fpch-deps)  # an object is made of these headers, too
endfunction()

# The one line of a chapter's CMakeLists.txt. The directory's name is the chapter's: it names the program, the
# tests and, without its number, the namespace of the kernels. Every .cu file of the directory belongs to it, and those of its
# folder wide, which are for head dims above 128.
#
# workbook_chapter([LOWEST_ARCHITECTURE 80]  what its kernels need of a GPU: 80 for tensor cores and cp.async, 90a for wgmma
#                  [FOR_HOPPER FILE..]       of its files those with wgmma: for 90a alone, whatever the others need
#                  [COMPARISONS]             for an exercise, traced kernels count what they compare
#                  [LONG_TO_COMPILE]         for the engine less optimized, for two thirds of the time; they run a tenth longer. Not where
#                                            they are traced: loads that nvcc would leave out would be counted
#                  [NO_SPILLS]               they live on the edge of the register file: a spill fails the build
#                  [NO_SPILLS_FOR_HOPPER]    in the files FOR_HOPPER alone: elsewhere a few registers spill, and the lesson says which
#                  [LOOKED_AT FILE..]        where nothing will run, the files that become machine code, in which a spill fails the build:
#                                            one or two that users call
#                  [LINKS OTHER..]           with the kernels of other chapters, for what this one starts from
#                  [TRACED_LATE]             traced kernels are built and tested in the second tier: their loops are another chapter's
#                  [FORWARD_ALONE TOOL..])   with these tools of compute-sanitizer, which cannot follow its backward
function(workbook_chapter)
  cmake_parse_arguments(PARSE_ARGV 0 arg "NO_SPILLS;NO_SPILLS_FOR_HOPPER;COMPARISONS;LONG_TO_COMPILE;TRACED_LATE" "LOWEST_ARCHITECTURE" "LINKS;FOR_HOPPER;LOOKED_AT;FORWARD_ALONE")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "workbook_chapter does not know ${arg_UNPARSED_ARGUMENTS}")
  endif()
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME chapter)
  string(REGEX REPLACE "^[0-9]+_" "" namespace ${chapter})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cu ${CMAKE_CURRENT_SOURCE_DIR}/wide/*.cu)
  workbook_kernel_sources(${sources})
  list(LENGTH sources files)
  if(WORKBOOK_CUDA AND files GREATER 1)  # rungs in files of their own: attention.cu lists them, which would take nvcc three times as long
    set_source_files_properties(attention.cu PROPERTIES LANGUAGE CXX COMPILE_OPTIONS -xc++)
  endif()
  set(lowest 75)
  if(arg_LOWEST_ARCHITECTURE MATCHES "^[0-9]+$")  # of 90a, rungs say themselves that they run there and nowhere else
    set(lowest ${arg_LOWEST_ARCHITECTURE})
  endif()
  set(bf16 true)
  if(WORKBOOK_FEW_INSTANCES AND NOT WORKBOOK_CUDA AND chapter MATCHES "^(0[6-9]|1.)_")
    set(bf16 false)
  endif()
  configure_file(${PROJECT_SOURCE_DIR}/common/cmake/the_chapter.cc.in the_chapter.cc @ONLY)

  list(TRANSFORM arg_LOOKED_AT PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  if(WORKBOOK_ONE_ARCHITECTURE OR NOT bf16)
    set_property(SOURCE ${sources} APPEND PROPERTY COMPILE_DEFINITIONS WORKBOOK_ONE_DTYPE)
  endif()
  if(WORKBOOK_CUDA AND arg_FOR_HOPPER)  # whoever links the others gets these with them
    list(TRANSFORM arg_FOR_HOPPER PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
    list(REMOVE_ITEM sources ${arg_FOR_HOPPER})
    add_library(${chapter}_hopper_kernels OBJECT ${arg_FOR_HOPPER})
    target_link_libraries(${chapter}_hopper_kernels PUBLIC attention_kernels)
    workbook_lowest_architecture(${chapter}_hopper_kernels 90a)
    if(arg_NO_SPILLS OR arg_NO_SPILLS_FOR_HOPPER)
      workbook_refuse_spills(${chapter}_hopper_kernels ${arg_LOOKED_AT})
    endif()
  endif()
  add_library(${chapter}_kernels OBJECT ${sources})
  set_target_properties(${chapter}_kernels PROPERTIES LONG_TO_COMPILE ${arg_LONG_TO_COMPILE})
  target_link_libraries(${chapter}_kernels PUBLIC attention_kernels)
  workbook_precompiled(${chapter}_kernels attention_kernels)
  if(TARGET ${chapter}_hopper_kernels)
    target_sources(${chapter}_kernels INTERFACE $<TARGET_OBJECTS:${chapter}_hopper_kernels>)
  endif()
  if(arg_LOWEST_ARCHITECTURE)
    workbook_lowest_architecture(${chapter}_kernels ${arg_LOWEST_ARCHITECTURE})
  endif()
  if(arg_NO_SPILLS AND NOT arg_FOR_HOPPER)
    workbook_refuse_spills(${chapter}_kernels ${arg_LOOKED_AT})
  elseif(arg_NO_SPILLS)
    workbook_refuse_spills(${chapter}_kernels)
  endif()

  set_property(GLOBAL APPEND PROPERTY WORKBOOK_CHAPTERS ${chapter})
  if(WORKBOOK_LIBRARY_ALONE)
    return()
  endif()

  set(kernels ${chapter} ${arg_LINKS})
  list(TRANSFORM kernels APPEND _kernels)
  add_executable(${chapter} ${CMAKE_CURRENT_BINARY_DIR}/the_chapter.cc)
  target_link_libraries(${chapter} PRIVATE ${kernels} harness_main)
  set(forward_alone ${arg_FORWARD_ALONE})  # for the tests
  workbook_chapter_tests(${chapter} ${kernels})  # from common/tests

  if(NOT WORKBOOK_CUDA)  # the same program with traced kernels
    add_library(${chapter}_traced_kernels OBJECT ${sources})
    target_link_libraries(${chapter}_traced_kernels PUBLIC attention_traced_kernels)
    workbook_traced(${chapter}_traced_kernels)
    if(NOT bf16)
      target_compile_definitions(${chapter}_traced_kernels PRIVATE WORKBOOK_HEAD_DIMS_TO_64)
    endif()
    if(arg_COMPARISONS)
      target_compile_options(${chapter}_traced_kernels PRIVATE -fsanitize-coverage=trace-cmp)
    else()
      workbook_precompiled(${chapter}_traced_kernels attention_traced_kernels)
    endif()
    list(TRANSFORM kernels REPLACE "_kernels$" "_traced_kernels")
    add_executable(${chapter}_traced ${CMAKE_CURRENT_BINARY_DIR}/the_chapter.cc)
    target_link_libraries(${chapter}_traced PRIVATE ${kernels} harness_main)
    workbook_chapter_trace_tests(${chapter} ${kernels})  # from common/tests/trace
    if(arg_TRACED_LATE)
      get_property(tests DIRECTORY PROPERTY TESTS)
      list(FILTER tests INCLUDE REGEX "^${chapter}\\.trace\\.")
      set_tests_properties(${tests} PROPERTIES LABELS slow)
      workbook_for_slow_tests(${chapter}_traced_kernels ${chapter}_traced)
    endif()
  endif()
endfunction()

# The one line of a directory of common/course: its kernels are exercises about what no chapter has. They are built as a
# chapter's, and the chapters' suite judges them, but they are no rung of the ladder. The directory's name is that of the
# program, the file and the namespace.
function(workbook_exercise)
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME chapter)
  set(namespace ${chapter})
  set(lowest 75)
  set(bf16 true)
  workbook_kernel_sources(${chapter}.cu)
  configure_file(${PROJECT_SOURCE_DIR}/common/cmake/the_chapter.cc.in the_chapter.cc @ONLY)
  add_library(${chapter}_kernels OBJECT ${chapter}.cu)
  target_link_libraries(${chapter}_kernels PUBLIC attention_kernels)
  workbook_precompiled(${chapter}_kernels attention_kernels)
  add_executable(${chapter} ${CMAKE_CURRENT_BINARY_DIR}/the_chapter.cc)
  target_link_libraries(${chapter} PRIVATE ${chapter}_kernels harness_main)
  add_executable(${chapter}_tests ${CMAKE_CURRENT_BINARY_DIR}/the_chapter.cc)
  target_link_libraries(${chapter}_tests PRIVATE ${chapter}_kernels chapter_tests test_main)
  if(WORKBOOK_CUDA)  # their programs are for ./workbook check --gpu alone
    set_target_properties(${chapter} ${chapter}_tests PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  workbook_for_slow_tests(${chapter}_kernels ${chapter} ${chapter}_tests)  # or for ./workbook check
  add_library(${chapter}_traced_kernels OBJECT ${chapter}.cu)
  target_link_libraries(${chapter}_traced_kernels PUBLIC attention_traced_kernels)
  workbook_traced(${chapter}_traced_kernels)
  workbook_precompiled(${chapter}_traced_kernels attention_traced_kernels)
  add_executable(${chapter}_traced ${CMAKE_CURRENT_BINARY_DIR}/the_chapter.cc)
  target_link_libraries(${chapter}_traced PRIVATE ${chapter}_traced_kernels harness_main)
  add_executable(${chapter}_traced_tests ${CMAKE_CURRENT_BINARY_DIR}/the_chapter.cc)
  target_link_libraries(${chapter}_traced_tests PRIVATE ${chapter}_traced_kernels chapter_tests test_main)
  add_test(NAME course.${chapter} COMMAND ${chapter}_traced_tests)  # all kinds, and races
endfunction()
