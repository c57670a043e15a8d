#error "wmma (nvcuda) is not part of the engine: use mma.sync in inline PTX"
