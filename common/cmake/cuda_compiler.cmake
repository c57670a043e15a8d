# Which nvcc. The user's CMAKE_CUDA_COMPILER or CUDACXX wins; else the one on the PATH; else the toolkit's usual place,
# which its installer does not put on the PATH.
if(NOT DEFINED CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(nvcc nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin NO_CACHE)
  if(nvcc)
    set(CMAKE_CUDA_COMPILER ${nvcc})
  elseif(WORKBOOK_LIBRARY_ALONE)
    # CMake breaks lines that do not begin with a space.
    message(FATAL_ERROR " no nvcc on the PATH or in /usr/local/cuda: install the CUDA toolkit, 12.4 or later, or, for tensors of the "
                        "CPU, the SIMT engine: pip install . -C cmake.define.WORKBOOK_CUDA=OFF")
  endif()
endif()
