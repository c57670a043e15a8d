#error "CUB is not part of the engine: write the reduction, scan or sort as a kernel"
