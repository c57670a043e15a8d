# On the GPU machine, in a checkout of s11-46; $PY has a PyTorch with CUDA and python3-dev.
export CMAKE_CXX_COMPILER_LAUNCHER=ccache CMAKE_CUDA_COMPILER_LAUNCHER=ccache
unset PYTHONPATH WORKBOOK_BUILD GLIBC_TUNABLES FLASH_ATTENTION_WORKBOOK_LIBRARY
cmake --preset cuda -DPython3_EXECUTABLE=${PY:-python3} && cmake --build build/cuda --target flash_attention_workbook operators_apart -j16
ctest --preset cuda -R "^python\.(with_pytorch|variants|pages|own_libstdcxx|without_pytorch)$" --output-on-failure --timeout 300
