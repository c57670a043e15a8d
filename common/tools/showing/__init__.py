"""What has been measured, for the eye: tables for the terminal, and the tables, numbers and pictures of the lessons."""

from tools.showing import (
                           accuracy_tables,
                           book,
                           book_check,
                           book_pages,
                           book_paper,
                           book_plots,
                           ladder,
                           lesson_measures,
                           lesson_numbers,
                           lesson_pictures,
                           microbenchmark_tables,
                           peer_tables,
                           pictures,
                           timing_tables,
                           trace_report,
                           traced_files,
                           walk,
                           walk_picture,
)
from tools.showing.lesson_tables import Tables
