export CPLUS_INCLUDE_PATH=$PWD/.carry/cli WORKBOOK_COMMIT=ad859107262b NO_COLOR=1 PYTHONUNBUFFERED=1
R=common/results
pack() { cd $OUT; tar czf /tmp/all.tgz *; rm -rf $OUT/*; cp /tmp/all.tgz $OUT/; }
