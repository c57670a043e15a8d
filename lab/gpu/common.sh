export CPLUS_INCLUDE_PATH=$PWD/.carry/cli WORKBOOK_COMMIT=48113ca1 NO_COLOR=1 PYTHONUNBUFFERED=1
R=common/results
pack() { cd $OUT; tar czf /tmp/all.tgz *; rm -rf $OUT/*; cp /tmp/all.tgz $OUT/; }
