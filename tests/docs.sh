#!/bin/sh
# Does each file exist that the docs name in backquotes, at the path or in some folder?
set -eu
cd "$(dirname "$0")/.."
bad=0
for doc in README.md CONTRIBUTING.md docs/*.md; do
    for name in $(grep -oE '`[A-Za-z0-9_./-]+\.(c|h|cpp|sh|py|awk|cmake|txt|md)`' "$doc" | tr -d '`' | grep -v NAME | sort -u); do
        [ -e "$name" ] || [ -n "$(find src include app tests examples fuzz bench cmake docs -path "*/$name")" ] ||
            { echo "$doc names $name, which does not exist"; bad=1; }
    done
done
exit $bad
