"""The machine code that nvcc makes of kernels, and how often each of its instructions is executed. Needs no GPU."""

from tools.machine_code.executed import add_instructions
