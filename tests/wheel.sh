#!/bin/sh
# Does a wheel of the Python package keep its limits, and work where nothing else is installed? ./dev wheel runs this.
# usage: tests/wheel.sh WHEEL
set -eu
wheel=$(realpath "$1")
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "$wheel: $*"
    exit 1
}

# The oldest glibc on which it runs: 2.34 at most.
basename "$wheel" | grep -Eq "^attend-[0-9.]+-cp311-abi3-manylinux_2_(1[0-9]|2[0-9]|3[0-4])_$(uname -m).*[.]whl$" ||
    fail "is not named as a wheel for Python 3.11 and glibc 2.34, and later ones"
[ "$(stat -c %s "$wheel")" -lt 5000000 ] || fail "has $(stat -c %s "$wheel") bytes, 5,000,000 or more"

/usr/bin/python3 -m venv "$work/venv"
python=$work/venv/bin/python attend=$work/venv/bin/attend
"$python" -m pip install -q --no-index --disable-pip-version-check "$wheel"
cd "$work"
installed=$(du -sb "$work"/venv/lib/python3*/site-packages/attend* | awk '{ sum += $1 } END { print sum }')
[ "$installed" -lt 12000000 ] || fail "takes $installed bytes when installed, 12,000,000 or more"

library=$(echo venv/lib/python3*/site-packages/attend/_attend.abi3.so)
! readelf -d "$library" venv/lib/python3*/site-packages/attend.libs/* | grep -iE 'NEEDED.*lib(curl|heif|microhttpd|ssl)' ||
    fail "has a library in it that it must not have"
for file in venv/lib/python3*/site-packages/attend.libs/*; do
    name=$(basename "$file" | sed 's/[-.].*//; s/^lib//')
    ls venv/lib/python3*/site-packages/attend-*.dist-info/licenses | grep -q "$name" || fail "has no license of $name"
done

"$attend" explain softmax | cmp - "$root/tests/golden/explain/softmax.en.txt"
"$attend" explain vit | cmp - "$root/tests/golden/explain/vit.en.txt" # with the model that comes with the package
! "$attend" explain three-uses 2>"$work/err" && grep -q 'tatoeba-de-en is not installed: "./dev install"' "$work/err" ||
    fail "explain three-uses does not state where its model is: $(cat "$work/err")"
"$python" -m attend --version
"$python" - <<'PROGRAM'
import array, attend
q = memoryview(array.array("f", range(64))).cast("B").cast("f", (1, 1, 8, 8))
assert attend.scaled_dot_product_attention(q, q, q, is_causal=True).tolist()[0][0][0] == q.tolist()[0][0][0]
PROGRAM
echo "$(stat -c %s "$wheel") bytes, $installed installed; works in an environment of its own"
