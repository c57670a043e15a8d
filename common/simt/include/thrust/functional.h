#error "Thrust is not part of the engine: use cudaMalloc, cudaMemcpy and kernels"
