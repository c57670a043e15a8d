"""The parts of ./workbook, by what they are for; each package imports only those below it, and only what its __init__ offers.

    cli         the command line: finds the commands
    commands    a file for each command: what the user may say, and which parts do it
    measuring   taking measurements         showing   putting what was measured before the eye
    teaching    handing exercises out, and grading what is handed in
    record      what has been measured      course    exercises, and whether they are right
    own         CUDA files of the user's own
    machine     this machine and what lies on it

Python's standard library only; everything they start is ordinary CMake and CTest.
"""
