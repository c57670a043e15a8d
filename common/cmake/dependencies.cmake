# The libraries the workbook stands on, from the system where it has them, else fetched and built.
include(FetchContent)
set(FETCHCONTENT_QUIET OFF)

FetchContent_Declare(Eigen3 GIT_REPOSITORY https://gitlab.com/libeigen/eigen.git GIT_TAG 3.4.0 GIT_SHALLOW ON
                     FIND_PACKAGE_ARGS 3.3)
FetchContent_Declare(GTest GIT_REPOSITORY https://github.com/google/googletest.git GIT_TAG v1.14.0 GIT_SHALLOW ON
                     FIND_PACKAGE_ARGS)
set(BENCHMARK_ENABLE_TESTING OFF)
FetchContent_Declare(benchmark GIT_REPOSITORY https://github.com/google/benchmark.git GIT_TAG v1.8.3 GIT_SHALLOW ON
                     FIND_PACKAGE_ARGS)
FetchContent_Declare(CLI11 GIT_REPOSITORY https://github.com/CLIUtils/CLI11.git GIT_TAG v2.4.1 GIT_SHALLOW ON
                     FIND_PACKAGE_ARGS)
if(NOT WORKBOOK_LIBRARY_ALONE)  # which stands on none of these
  FetchContent_MakeAvailable(Eigen3 GTest benchmark CLI11)
endif()

include(common/simt/package/simt-needs.cmake)
if(NOT WORKBOOK_CUDA AND SIMT_NEEDS_BOOST)
  set(BOOST_INCLUDE_LIBRARIES context)
  FetchContent_Declare(Boost
                       URL https://github.com/boostorg/boost/releases/download/boost-1.84.0/boost-1.84.0.tar.xz
                       DOWNLOAD_EXTRACT_TIMESTAMP ON
                       FIND_PACKAGE_ARGS 1.74 COMPONENTS context)
  FetchContent_MakeAvailable(Boost)
endif()
