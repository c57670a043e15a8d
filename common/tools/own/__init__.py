"""CUDA files of the user's own, which are no chapter: rewritten, compiled and run on the SIMT engine."""

from tools.own.asked import Asked, add_file_arguments, files_of, refuse_without_files
from tools.own.running import Ran, conclude_files, run_files
