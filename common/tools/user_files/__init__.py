"""Any CUDA file: what `run` and `trace` do with a FILE.cu of the user's, which is no chapter, on the SIMT engine."""

from tools.user_files.file_flags import (
    Asked,
    add_file_arguments,
    add_no_races,
    files_of,
    goes_to_a_compiler,
    in_one_word,
    refuse_without_files,
)
from tools.user_files.running import Ran, conclude_files, run_and_conclude, run_files
