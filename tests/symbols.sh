#!/bin/sh
# Does a shared library export what its headers declare, and nothing else?
# usage: tests/symbols.sh LIBRARY.so HEADER...
set -eu
library=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sed -nE 's/^ATT_API [^(]*[ *](att_[a-z0-9_]+)[(;].*/\1/p' "$@" | sort >"$work/declared"
nm -D --defined-only "$library" | awk '{ print $3 }' | sort >"$work/exported"
[ -s "$work/declared" ] || { echo "no declarations found in $*"; exit 1; }
diff "$work/declared" "$work/exported" || { echo "<: only declared in $*; >: only exported by $library"; exit 1; }
wc -l <"$work/exported" | sed 's/$/ symbols, all public/'
