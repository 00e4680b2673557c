#!/bin/sh
# Are models whose terms are restricted (models/TERMS) installed only when they are asked for, and does the tool then print
# how to get one? By CMake, from BUILD, and by ./dev install, with programs in place of CMake and ldconfig that note
# their arguments. And does docs/INSTALL.md have the packages?
# usage: tests/install.sh BUILD
set -eu
build=$1
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/none"
export ATTEND_MODELS="$work/none"

fail() {
    echo "$1"
    shift
    cat "$@" /dev/null
    exit 1
}

# installed TERMS: are these the models that are installed, by their terms?
installed() {
    sed -n -E "s/^([^#:]+): ($1): .*/\1/p" "$root/models/TERMS" | sort >"$work/expected"
    (cd "$work/usr/share/attend/models" && ls -d */ | tr -d / | sort) >"$work/found"
    diff "$work/expected" "$work/found" || fail "<: $1 in models/TERMS, >: installed"
}

cmake --install "$build" --prefix "$work/usr" >"$work/log" || fail "not installed:" "$work/log"
installed free
grep -q "Left out: flickr8k-captions (restricted: .*attend_restricted_models" "$work/log" ||
    fail "what is left out is not printed:" "$work/log"
photo=$root/models/flickr8k-captions/examples/astronaut.png
how='flickr8k-captions is not installed, as its terms are restricted (training data for research and education): "./dev install --all" in attend'"'"'s source tree installs it'
refused() {
    what=$1 message=$2
    shift 2
    code=0
    "$work/usr/bin/attend" "$@" >"$work/out" 2>"$work/err" || code=$?
    [ "$code" = 1 ] && [ ! -s "$work/out" ] && [ "$(cat "$work/err")" = "attend: $message" ] ||
        fail "$what exits with $code and prints:" "$work/out" "$work/err"
}
refused "caption" "$how, \"attend train caption\" trains another" caption "$photo"
refused "evaluate caption" "$how, \"attend train caption\" trains another" evaluate caption -d x -i x -l x
refused "explain captioning" "$how, \"attend train caption\" trains another" explain captioning
refused "info" "$how" info -m flickr8k-captions
cp -r "$root/models/flickr8k-captions" "$work/none/mine"
refused "caption, with a captioner" "$how, \"attend train caption\" trains another; there are: mine" caption "$photo"
"$work/usr/bin/attend" caption -m mine "$photo" >"$work/mine" || fail "a captioner in the models folder is not opened"
echo "without the captioner: the tool prints how to get one"

cmake --install "$build" --prefix "$work/usr" --component attend_restricted_models >"$work/log" ||
    fail "not installed:" "$work/log"
installed 'free|restricted'
"$work/usr/bin/attend" caption "$photo" >"$work/out" && cmp "$work/out" "$work/mine" || fail "caption, installed:" "$work/out"
echo "component attend_restricted_models: the captioner is installed, and describes a photo"

# A copy of ./dev in a folder of its own, where it finds all packages and builds nothing
mkdir -p "$work/tree/build" "$work/bin"
cp -r "$root/dev" "$root/scripts" "$work/tree"
for program in c++ cmake ninja pkg-config ldconfig; do
    printf '#!/bin/sh\necho "%s $*" >>"%s"\n' $program "$work/calls" >"$work/bin/$program"
    chmod +x "$work/bin/$program"
done
# dev_install ARGUMENT...: the calls of cmake --install; 0, or what ./dev exits with
dev_install() {
    code=0
    : >"$work/calls"
    PATH="$work/bin:$PATH" "$work/tree/dev" install "$@" >"$work/out" 2>&1 || code=$?
    grep -- '^cmake --install' "$work/calls" >"$work/found" || true
    return $code
}
dev_install
echo "cmake --install build --prefix /usr/local" | diff - "$work/found" || fail "./dev install:" "$work/out"
dev_install /opt/attend
echo "cmake --install build --prefix /opt/attend" | diff - "$work/found" || fail "./dev install PREFIX:" "$work/out"
dev_install --all /opt/attend
printf 'cmake --install build --prefix /opt/attend%s\n' '' ' --component attend_restricted_models' | diff - "$work/found" ||
    fail "./dev install --all PREFIX:" "$work/out"
for wrong in --al -x; do
    ! dev_install $wrong && grep -q -- "install: $wrong is not an option; --all is" "$work/out" && [ ! -s "$work/calls" ] ||
        fail "./dev install $wrong:" "$work/out" "$work/calls"
done
echo "./dev install: with --all, both"

# docs/INSTALL.md has the Debian package of all that ./dev installs to build and to test
packages=$(sed -n 's/^build_packages=(\(.*\))/\1/p; s/^test_packages=("[^"]*" \(.*\))/\1/p' "$root/scripts/packages.sh")
[ "$(echo "$packages" | wc -w)" -ge 13 ] || fail "./dev has no packages: $packages"
sed -n '/^## Packages/,/^- /s/^| [^|]* | \([^|]*\) |.*/ \1 /p' "$root/docs/INSTALL.md" >"$work/column"
for package in $packages; do
    grep -qF " $package " "$work/column" || fail "docs/INSTALL.md lacks $package in the column of Debian:" "$work/column"
done
echo "docs/INSTALL.md: has what ./dev installs"
