# Which GPUs to compile for. The user's CMAKE_CUDA_ARCHITECTURES wins; else the GPU of this machine; else A100 and
# H100 machine code with PTX for later ones. ("native" without a GPU is a hard error, and saying nothing means sm_75.)
option(WORKBOOK_ONE_ARCHITECTURE "Where nobody asks for more and no GPU answers, compile for H100 alone: to see whether it compiles"
       OFF)
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
  execute_process(COMMAND nvidia-smi -L OUTPUT_VARIABLE gpus ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed AND gpus MATCHES "GPU 0")
    set(CMAKE_CUDA_ARCHITECTURES native)
  elseif(WORKBOOK_ONE_ARCHITECTURE)
    set(CMAKE_CUDA_ARCHITECTURES 90-real)
  else()
    set(CMAKE_CUDA_ARCHITECTURES "80-real;90-real;90-virtual")
  endif()
endif()
