"""The parts of ./workbook. Python's standard library only; everything they start is ordinary CMake and CTest."""
