# mutants.sh OUT JOBS: every mutant that the GPU's table has not; a file each under OUT, kept as they come
D=$1; mkdir -p $D; P=build/cuda/common/tests/mutants/kill_matrix
$P list > $D/list.json
python3 - $D <<'X' > $D/names
import json, re, sys
have = set(re.findall(r"^\| `(\w+)`", open("common/tests/mutants/README.md").read().split("<!-- kills: gpu -->")[1], re.M))
for n in json.load(open(sys.argv[1] + "/list.json"))["mutants"]:
    if n not in have: print(n)
X
wc -l < $D/names
for n in $(cat $D/names); do echo "test -s $D/$n.tests || { timeout -k 2 150 $P run $n > $D/$n.part 2> $D/$n.err; echo status \$? >> $D/$n.part; mv $D/$n.part $D/$n.tests; }"; done > $D/todo
for n in $(cat $D/names); do for t in memcheck racecheck synccheck initcheck; do
echo "test -s $D/$n.$t || { timeout -k 2 100 compute-sanitizer --tool $t --error-exitcode=99 $P launch $n > $D/$n.part.$t 2>&1; s=\$?; tail -3 $D/$n.part.$t > $D/$n.p.$t; echo status \$s >> $D/$n.p.$t; rm $D/$n.part.$t; mv $D/$n.p.$t $D/$n.$t; }"; done; done >> $D/todo
xargs -d '\n' -P $2 -n 1 sh -c < $D/todo
