export CPLUS_INCLUDE_PATH=$PWD/.carry/cli WORKBOOK_COMMIT=b4094c07 NO_COLOR=1 PYTHONUNBUFFERED=1
R=common/results
pack() { cd $OUT; tar czf /tmp/all.tgz *; rm -rf $OUT/*; cp /tmp/all.tgz $OUT/; }
