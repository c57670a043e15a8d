#!/bin/sh
# refuse_serialised.sh NVCC ARGUMENTS...: compiles, and fails if ptxas says that it serialises the products of wgmma, which
# is no warning to it, so that no flag makes it an error: (C7508) to (C7519), "Potential Performance Loss".
said=$(mktemp) || exit 1
trap 'rm -f "$said"' EXIT
"$@" > "$said" 2>&1
status=$?
cat "$said" >&2
if [ "$status" -eq 0 ] && grep -qE '\(C75(0[89]|1[0-9])\)' "$said"; then
  echo "wgmma is serialised: this fails the build (common/cmake/refuse_serialised.sh)" >&2
  status=1
fi
exit "$status"
