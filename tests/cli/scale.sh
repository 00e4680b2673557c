#!/bin/sh
# Do the files of examples/scale do what they are for, and does a log of runs/actions.awk, of 10^5 actions, train a model whose
# lists are the same from parts as from one process? Slurm is not needed: the script is run with the variables that it sets.
# usage: tests/cli/scale.sh ATTEND
set -eu
PATH="$(dirname "$(realpath "$1")"):$PATH"
root=$PWD work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export ATTEND_MODELS="$root/models"
cd "$work"

seq 9 | sed 's/^/Gleis /' >lines.de
tasks=$(sed -n 's/^#SBATCH --array=1-//p' "$root/examples/scale/translate.sbatch")
for i in $(seq "$tasks"); do
    SLURM_ARRAY_TASK_ID=$i SLURM_ARRAY_TASK_COUNT=$tasks SLURM_CPUS_PER_TASK=1 \
        bash "$root/examples/scale/translate.sbatch" lines.de
done
attend translate lines.de >whole.en
cat part-*-of-"$tasks".en | cmp - whole.en

# The last pod's command line, from a shell that has its index
if python3 -c 'import yaml' 2>/dev/null; then
    python3 - "$root/examples/scale/embed-job.yaml" >pod.sh <<'END'
import sys, yaml
job = yaml.safe_load(open(sys.argv[1]))["spec"]
container = job["template"]["spec"]["containers"][0]
assert job["completionMode"] == "Indexed" and container["command"] == ["/bin/sh", "-c"]
print(job["completions"], container["args"][0], sep="\n")
END
    read -r pods <pod.sh
    mkdir bin
    printf '#!/bin/sh\necho "$@"\n' >bin/attend
    chmod +x bin/attend
    tail -n +2 pod.sh >command.sh
    PATH="$work/bin:$PATH" JOB_COMPLETION_INDEX=$((pods - 1)) sh command.sh >typed
    grep -q -- " --shard $pods/$pods " typed
fi

awk -v actions=100000 -v items=1000 -f "$root/runs/actions.awk" >log.tsv
[ "$(sort -u log.tsv | wc -l)" = 100000 ]
attend train recommend --quiet --data log.tsv --hidden 16 --layers 1 --max-positions 10 --loss sampled-softmax --negatives 32 \
    --batch 1024 --steps 3 --patience 0 --validate-candidates outside-history -o model
for i in 1 2 3; do
    attend recommend -m model --data log.tsv --all-users -k 3 --shard "$i/3" --resume -o 'lists-{shard}.tsv'
done
attend recommend -m model --data log.tsv --all-users -k 3 >lists
cat lists-*-of-3.tsv | cmp - lists

# The intervals of more than 100,000 users are not resampled, which would take most of a minute.
awk 'BEGIN {
    for (user = state = 1; user <= 100001; user++)
        for (k = 0; k < 4; k++) {
            state = state * 16807 % 2147483647
            print "u" user "\ti" (state % 7) * (state % 5) "\t" k
        }
}' >users.tsv
attend train recommend --quiet --arch popularity --data users.tsv -o popular
attend evaluate recommend -m popular --data users.tsv -k 3 >evaluation
grep -q 'interval of the normal distribution' evaluation
grep -q '^item neighbors *+0.[0-9]* +0.[0-9]* to +0.' evaluation
