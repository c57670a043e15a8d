# b.sh SECONDS PIECE=EXPECTED..
. .carry/m/common.sh
date; test -d .carry/fa4 && cp .carry/fa4/* /tmp/fa4/; test -d .carry/cudnn && cp .carry/cudnn/* /tmp/cudnn/
if ! test -f /tmp/site; then site=$(mktemp -d); echo $site > /tmp/site
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --target $site /tmp/fa4/*.whl
cat /tmp/fa4/dsl.a? | tar xJ -C $site
printf '%s\n%s\n' "$site" "$site/nvidia_cutlass_dsl/dsl_packages" > "$(python3 -c 'import site; print(site.getsitepackages()[0])')/flash_attn_4.pth"
python3 -c 'from flash_attn.cute import flash_attn_func; print("FlashAttention-4 is there")'; fi; date
if test -f /tmp/cudnn/cudnn.ac; then test -d /tmp/cudnn/nvidia || cat /tmp/cudnn/cudnn.a? | tar xJ -C /tmp/cudnn; export WORKBOOK_CUDNN=/tmp/cudnn/nvidia/cudnn/lib; ls $WORKBOOK_CUDNN | wc -l; fi; date
python3 .carry/m/queue.py "$@"; date
ls /tmp/mut | grep -c tests$; cp -r /tmp/mut $OUT/mut 2>/dev/null; rm -f $OUT/mut/*.part*
find $R -newer /tmp/begin -type f | tar cf - -T - | tar xf - -C $OUT; find $R -newer /tmp/begin -name '*.json'
pack
