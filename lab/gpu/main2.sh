. .carry/m/common.sh
cp -r .carry/m /tmp/w/.carry/; cd /tmp/w; export CPLUS_INCLUDE_PATH=/tmp/w/.carry/cli
export PYTHONDONTWRITEBYTECODE=1 WORKBOOK_CUDNN=/tmp/cudnn/x/nvidia/cudnn/lib; touch /tmp/begin2; rm -f $R/nvidia-h200/none
python3 .carry/m/queue.py "$@"; date
find $R -newer /tmp/begin -type f | tar cf - -T - | tar xf - -C $OUT; find $R -newer /tmp/begin -name '*.json'
pack
