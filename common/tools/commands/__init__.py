"""One file for each command of ./workbook."""
