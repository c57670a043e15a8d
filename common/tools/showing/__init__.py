"""What has been measured, for the eye: tables for the terminal, and the tables, numbers and pictures of the lessons."""

from tools.showing import beside_peers, book, book_check, book_pages, book_plots, counts, errors, experiments, ladder, lessons, pictures, walk
from tools.showing.tables import Tables
