#!/bin/sh
# refuse_serialised.sh NVCC ARGUMENTS...: compiles, and fails if ptxas has put behind a product of wgmma what should run beside it:
#   another product: it says so, but as no warning, so that no flag makes it an error: (C7508) to (C7519), "Potential Performance Loss";
#   exponentials, where the source says that they should: it says nothing, and tools/machine_code/order.py reads the machine code,
#   if that says which line it is of. (An installed library's does not, and is the same otherwise.)
# Of PTX alone there is nothing to look at.
case " $* " in *" -ptx "*) exec "$@" ;; esac
said=$(mktemp) || exit 1
trap 'rm -f "$said"' EXIT
"$@" > "$said" 2>&1
status=$?
cat "$said" >&2
[ "$status" -eq 0 ] || exit "$status"

# Those that the source includes and that lie beside it.
headers() {
  sed -n 's|^#include "\([^"/]*\)"$|\1|p' "$source" | sed "s|^|$(dirname "$source")/|"
}

before= source= object= lines=
for argument; do
  case $argument in *.cu) source=$argument ;; -lineinfo) lines=yes ;; esac
  case $before in -o) object=$argument ;; esac
  before=$argument
done
if grep -qE '\(C75(0[89]|1[0-9])\)' "$said"; then
  echo "wgmma is serialised: this fails the build (common/cmake/refuse_serialised.sh)" >&2
  status=1
elif [ "$lines" ] && [ -f "$source" ] && [ -f "$object" ] && grep -qs '// beside a product, in machine code too$' "$source" $(headers); then
  PYTHONPATH=$(dirname "$0")/.. python3 -B -m tools.machine_code.order "$source" "$object" >&2 || status=1
fi
[ "$status" -eq 0 ] || rm -f "$object" # or the next build would take it for good
exit "$status"
