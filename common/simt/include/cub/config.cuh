#error "the engine does not have this part of CUB"
