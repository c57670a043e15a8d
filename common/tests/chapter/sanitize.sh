#!/usr/bin/env bash
# sanitize.sh COMPUTE_SANITIZER TOOL passes|fails COMMAND...: runs the command under one of compute-sanitizer's tools,
# which must find nothing, or something. Exits 77 (skipped) where there is no compute-sanitizer or no GPU.
set -u
sanitizer=$1 tool=$2 expected=$3
shift 3
if [ ! -x "$sanitizer" ] || ! nvidia-smi -L >/dev/null 2>&1; then
  echo "NOT RUN: needs compute-sanitizer and a GPU"
  [ "${REQUIRE_GPU:-0}" = 1 ] && exit 1
  exit 77
fi
found=99  # an exit status that the command itself does not use
"$sanitizer" --tool "$tool" --error-exitcode $found "$@"
status=$?
if [ "$expected" = fails ]; then
  [ $status -eq $found ] && exit 0
  echo "$tool found nothing (exit status $status), and should have"
  exit 1
fi
exit $status
