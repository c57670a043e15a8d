. .carry/m/common.sh
cp .carry/fa4/* /tmp/fa4/; touch /tmp/begin; date
site=$(mktemp -d); cat /tmp/fa4/dsl.a? | tar xJ -C $site
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --target $site /tmp/fa4/*.whl
printf '%s\n%s\n' "$site" "$site/nvidia_cutlass_dsl/dsl_packages" > "$(python3 -c 'import site; print(site.getsitepackages()[0])')/flash_attn_4.pth"
python3 -c 'from flash_attn.cute import flash_attn_func; print("FlashAttention-4 is there")'; date
( CUDA_VISIBLE_DEVICES=0 timeout 390 ./workbook dev measure models-backward-b2b models-forward-b2b sweep-fp16-backward-b2b --within 360 ) > $OUT/g0.txt 2>&1 &
( CUDA_VISIBLE_DEVICES=1 timeout 390 ./workbook dev measure sweep-bf16-forward sweep-fp16-forward sweep-fp16-forward-b2b --within 360 ) > $OUT/g1.txt 2>&1 &
wait
tail -25 $OUT/g0.txt; tail -25 $OUT/g1.txt
find $R -newer /tmp/begin -type f | tar czf $OUT/results.tgz -T -
find $R -newer /tmp/begin -type f; date
