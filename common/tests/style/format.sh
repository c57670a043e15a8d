#!/usr/bin/env bash
# format.sh CLANG_FORMAT ITS_VERSION: every C++ file below this directory is as clang-format 14 would write it. Exits 77
# (skipped) where there is no such clang-format.
set -u
case "$2" in
  *" version 14."*) ;;
  *) echo "NOT RUN: needs clang-format 14 (the package clang-format-14), and there is ${2:-none}"; exit 77 ;;
esac
files=$(find [0-9][0-9]_* common -name '*.cc' -o -name '*.cu' -o -name '*.h' -o -name '*.c')
"$1" --dry-run -Werror $files && exit 0
echo "To format them: find [0-9][0-9]_* common -name '*.cc' -o -name '*.cu' -o -name '*.h' -o -name '*.c' | xargs $(basename "$1") -i"
exit 1
