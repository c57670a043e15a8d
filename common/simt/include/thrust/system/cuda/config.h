#error \
    "Thrust's CUDA system is not part of the engine: its device system is the host (thrust::device, thrust::cuda::par)"
