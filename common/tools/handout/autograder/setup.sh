#!/usr/bin/env bash
# Gradescope runs this once, when it builds the image: installs what the engine needs, and builds what grading needs, so that
# little is left to do for each submission.
set -euo pipefail
source=/autograder/source
. $source/assignment.sh
. /etc/os-release

if [[ $ID != ubuntu || ${VERSION_ID%%.*} -lt 22 ]]; then
  echo "The base image is $PRETTY_NAME. Choose Ubuntu, 22.04 or later, and press Update Autograder." >&2
  exit 1
fi
tools=(ninja-build python3 bubblewrap util-linux binutils)
if [[ ${VERSION_ID%%.*} -lt 24 ]]; then  # its own CMake and compiler are too old
  tools+=(g++-12 python3-pip)
else
  tools+=(g++ cmake)
fi
apt-get update
apt-get install -y --no-install-recommends "${tools[@]}" "${libraries[@]}"
if [[ ${VERSION_ID%%.*} -lt 24 ]]; then
  python3 -m pip install 'cmake>=3.25,<5'
  ln -sf /usr/bin/gcc-12 /usr/local/bin/gcc
  ln -sf /usr/bin/g++-12 /usr/local/bin/g++
fi

cd $source/workbook
chmod -R o-rwx [0-9]* common/course
./workbook grade --prepare "${exercises[@]}"
