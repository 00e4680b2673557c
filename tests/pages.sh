#!/bin/bash
# Is what a page shows true? Its fenced blocks are of these kinds:
#   console      lines after "$ " are run, with lines after "> " that continue them, and print what stands below them
#                (on the scalar set, which computes the same bits on every machine)
#   sh           is run, and must succeed; what it prints is not compared
#   sh not-run   is not run: it takes long, changes the machine, or needs files of the reader's
#   python       is run by the system's Python with the package of the build folder, where ./dev test has built that
#   python torch is not run here: python/tests/test_transformers.py does, where torch and transformers are
#   c            is a program of examples/ from its first #include on, or a passage of one
# A block that names a model of `attend fetch`, or $ATTEND_DATA, is skipped if that is missing.
# usage: tests/pages.sh FOLDER_OF_ATTEND PAGE     UPDATE=1: writes what the commands print into the page
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD page=$2 python=$(realpath "$1")/python
export PATH="$(realpath "$1"):$PATH" ATTEND_DATA=${ATTEND_DATA:-$root/../shared/data}
unset COLUMNS LC_ALL LC_MESSAGES LANG
absent=$(attend fetch --json | sed -n 's/.*"name": "\([^"]*\)".*"folder": null.*/\1/p')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ln -s "$root/examples" "$root/models" "$root/tests" "$work"
cd "$work"
code=0 number=0 begin=0 kind='' text=''

report() { echo "$page:$begin: $1" >&2; }

# What the block needs that is missing, or nothing.
missing() {
    local model
    for model in $absent; do
        if [[ $text = *"$model"* ]]; then
            echo "$model"
            return
        fi
    done
    if [[ $text = *ATTEND_DATA* && ! -d $ATTEND_DATA ]]; then echo "$ATTEND_DATA"; fi
}

# Prints the block, with what its commands print now.
run_console() {
    local line lines command i
    mapfile -t lines <<<"${text%$'\n'}"
    for ((i = 0; i < ${#lines[@]}; i++)); do
        line=${lines[i]}
        [[ $line = '$ '* ]] || continue # printed by a command
        echo "$line"
        command=${line#'$ '}
        while [[ ${lines[i + 1]:-} = '> '* ]]; do
            echo "${lines[++i]}"
            command+=$'\n'${lines[i]#'> '}
        done
        ATTEND_ISA=scalar bash -c "$command" 2>&1 </dev/null || true # its message is compared
    done
}

is_in_examples() {
    local file
    for file in "$root"/examples/*.c; do
        case $text in
        '#include'*) if [[ $(sed -n '/^#include/,$p' "$file") = "${text%$'\n'}" ]]; then return; fi ;;
        *) if [[ $'\n'$(<"$file")$'\n' = *$'\n'"$text"* ]]; then return; fi ;;
        esac
    done
    return 1
}

# Prints the block, as it should be.
check_block() {
    local lacks=''
    case $kind in console | sh | python) lacks=$(missing) ;; esac
    if [ "$kind" = python ] && [ ! -d "$python" ]; then lacks=$python; fi
    if [ -n "$lacks" ]; then
        report "skipped: $lacks is missing"
        if [ "${ATTEND_REQUIRE_MODEL:-0}" = 1 ] && [ "$lacks" != "$ATTEND_DATA" ] && [ "$lacks" != "$python" ]; then code=1; fi
        if [ $code = 0 ]; then code=77; fi
    else
        case $kind in
        console)
            run_console
            return
            ;;
        sh) bash -euc "$text" >printed 2>&1 </dev/null || { report "fails: $(<printed)"; code=1; } ;;
        python)
            PYTHONPATH=$python PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -c "$text" >printed 2>&1 </dev/null ||
                { report "fails: $(<printed)"; code=1; }
            ;;
        c) is_in_examples || { report "is not in a program of examples/"; code=1; } ;;
        'sh not-run' | 'python torch') ;;
        'console '* | 'sh '* | 'c '* | bash* | shell* | python*)
            report "\"$kind\" is not a kind of block: console, sh, sh not-run, python, python torch, c"
            code=1
            ;;
        esac
    fi
    printf %s "$text"
}

while IFS= read -r line; do
    number=$((number + 1))
    if [[ $line != '```'* ]]; then
        if [ -n "$kind" ]; then text+=$line$'\n'; else echo "$line"; fi
        continue
    fi
    if [ -z "$kind" ]; then
        kind=${line#'```'} text='' begin=$number
        kind=${kind:-text}
    else
        check_block
        kind=''
    fi
    echo "$line"
done <"$root/$page" >shown
begin=$number
[ -z "$kind" ] || { report "a block is not closed"; code=1; }

if [ -n "${UPDATE:-}" ]; then cp shown "$root/$page"; fi
diff "$root/$page" shown || { echo "$page says: <, the commands print: > (UPDATE=1 tests/pages.sh writes it)"; code=1; }
exit $code
