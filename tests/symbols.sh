#!/bin/sh
# Does a shared library export what its header declares, and nothing else?
# usage: tests/symbols.sh LIBRARY.so HEADER
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sed -nE 's/^ATT_API [^(]*[ *](att_[a-z0-9_]+)[(;].*/\1/p' "$2" | sort >"$work/declared"
nm -D --defined-only "$1" | awk '{ print $3 }' | sort >"$work/exported"
[ -s "$work/declared" ] || { echo "no declarations found in $2"; exit 1; }
diff "$work/declared" "$work/exported" || { echo "<: only declared in $2; >: only exported by $1"; exit 1; }
wc -l <"$work/exported" | sed 's/$/ symbols, all public/'
