unset CPLUS_INCLUDE_PATH WORKBOOK_CUDNN
timeout 110 ctest --preset cuda -j8 -R "^python\.(with_pytorch|variants|own_libstdcxx|pages|example)$|^capi\." --timeout 100 2>&1 | tail -40
