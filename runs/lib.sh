# What the runs share: `. "$(dirname "$0")/lib.sh"` at their beginning. Not a program.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
attend=${ATTEND:-build/attend}
data=${ATTEND_DATA:-../shared/data}
out=${ATTEND_RUNS:-build/runs}/$(basename "$0" .sh)
[ -x "$attend" ] || { echo "$attend is not there: ./dev demo builds it" >&2; exit 1; }
mkdir -p "$out"

# need FILE WHAT: the data must be there.
need() { [ -e "$data/$1" ] || { echo "$data/$1 is not there: $2 (ATTEND_DATA names another folder)" >&2; exit 1; }; }

# learn WHAT FOLDER OPTION...: `attend train WHAT` there, or on from where it was stopped, unless it was done.
learn() {
    local what=$1 folder=$2 go_on=()
    shift 2
    [ ! -e "$folder/done" ] || return 0
    ! ls "$folder"/checkpoint-*.safetensors >/dev/null 2>&1 || go_on=(--resume)
    "$attend" train "$what" "$@" "${go_on[@]}" -o "$folder"
    : >"$folder/done"
}

# limit NAME MINUTES: how long that one learns. On a machine that does other work meanwhile minutes are not fair:
# STEPS="NAME=1800 OTHER=3000" gives so many steps instead.
limit() {
    local pair
    for pair in ${STEPS:-}; do [ "${pair%=*}" != "$1" ] || { echo "--steps ${pair#*=}"; return; }; done
    echo "--minutes ${MINUTES:-$2}"
}
