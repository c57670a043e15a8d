. .carry/m/common.sh
mkdir -p /tmp/fa4 /tmp/cudnn; for d in .carry/fa4* .carry/cu[0-9]; do test -d $d && case $d in *fa4*) cp $d/* /tmp/fa4/;; *) cp $d/* /tmp/cudnn/;; esac; done
if ! test -f /tmp/begun; then touch /tmp/begun; mkdir /tmp/w; tar c --exclude=./build --exclude='./.carry/fa4*' . | tar x -C /tmp/w; cd /tmp/w
( cd common/results/nvidia-h200; rm -f fp8.json fp8-b2b.json models-forward.json models-forward-b2b.json )
export CPLUS_INCLUDE_PATH=/tmp/w/.carry/cli; setsid bash -c 'cmake --preset cuda -DCMAKE_CUDA_ARCHITECTURES=90a -DPython3_EXECUTABLE="$(command -v python3)" > /tmp/cmake.log 2>&1; cmake --build build/cuda -j20 -- -k 0 > /tmp/build.log 2>&1; touch /tmp/built' < /dev/null > /dev/null 2>&1 & 
setsid python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --target /tmp/site-fa4 /tmp/fa4/*.whl < /dev/null > /tmp/pip.log 2>&1 & fi
ls /tmp/fa4 /tmp/cudnn | wc -l
