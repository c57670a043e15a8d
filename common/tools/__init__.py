"""The parts of ./workbook, from the top down. Each package imports only those below it, and only what they offer.

    cli.py       the command line: finds the command, and turns every way of failing into one line
    simt.py      that of the engine by itself, installed without the rest: run and trace of CUDA files
    commands     a file for each command: its flags, and which of the parts below do its work

    handout      what students and instructors get         grading   what students hand in, judged in a sandbox
    measuring    takes measurements: times, profiles,      showing   puts them before the eye: tables, pictures,
                 peers, the engine's counts                          the lessons' numbers, the book, walks

    course       exercises, and whether an answer is right
    record       what has been measured, and every number that can be read out of it
    user_files   any CUDA file of the user's own: compiled for the engine, and run
    machine_code what nvcc makes of kernels, and how often each of its instructions is executed

    base         what all else stands on: paths, chapters, builds, packages, the GPU, processes, the terminal

Python's standard library only; everything they start is ordinary CMake and CTest.
"""
