# Peers for a GPU machine without a network, in parts that travel: run in the tree's root; SHARED/peers has the scripts.
# -> .carry/{fa4a,fa4b,cu0..cu3,fp8,cli,m,acc}; at most 64 MiB with the tree in one call
t=$(mktemp -d); c=.carry; mkdir -p $c/{cli,m,fa4a,fa4b,cu0,cu1,cu2,cu3,fp8,acc}
bash SHARED/peers/fa4_offline.sh pack $t/fa4; bash SHARED/peers/cudnn_offline.sh pack $t/cu; bash SHARED/peers/fp8_offline.sh pack $c/fp8
mkdir -p $t/dsl $t/cudnn; cat $t/fa4/a/*.part.aa $t/fa4/b/*.part.* > $t/dsl.whl; (cd $t/dsl && python3 -m zipfile -e ../dsl.whl .)
cat $t/cu/[0-3]/part > $t/cu.zip; (cd $t/cudnn && python3 -m zipfile -e ../cu.zip .)
(cd $t/dsl && tar c * | xz -T2 -5 > ../dsl.xz); (cd $t/cudnn && tar c * | xz -T2 -5 > ../cudnn.xz)  # two minutes, four
cp $t/fa4/a/*.whl $c/fa4a/; head -c 26000000 $t/dsl.xz > $c/fa4a/dsl.aa; tail -c +26000001 $t/dsl.xz > $c/fa4b/dsl.ab
split -n 4 $t/cudnn.xz $t/cudnn.; for i in 0 1 2 3; do cp $t/cudnn.a$(echo abcd | cut -c$((i + 1))) $c/cu$i/; done
cp -r /usr/include/CLI $c/cli/; cp lab/gpu/*.sh lab/gpu/pieces.py $c/m/; cp lab/gpu/45-accuracy.py $c/acc/accuracy.py
