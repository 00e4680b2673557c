#!/bin/sh
# Do both libraries work from outside? Installs BUILD to a temporary prefix; there the examples are compiled
# against it, shared and static, by pkg-config and by CMake, and run. Of the examples two are enough: the one on
# libattend_model needs all that it is linked with.
# usage: tests/package.sh BUILD CC
set -eu
build=$1 cc=$2
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/usr" >"$work/log" || { cat "$work/log"; exit 1; }
pc=$(dirname "$(find "$work/usr" -name attend.pc)")
export PKG_CONFIG_PATH="$pc" LD_LIBRARY_PATH="${pc%/pkgconfig}"

# expect WHAT PROGRAM: attention's middle line is the published context vector; classify opens a folder that is not there.
expect() {
    what=$1 program=$2
    "$program" "$work/no-model" "image" >"$work/out" 2>&1 || true
    case $program in
    *attention*) grep -q '^0.3990 0.3854 0.8610$' "$work/out" ;;
    *classify*) grep -q "$work/no-model" "$work/out" ;;
    esac || { echo "$what: $program says:"; cat "$work/out"; exit 1; }
    echo "$what: works"
}

for header in "$work"/usr/include/*.h; do
    for language in c c++; do
        $cc -x $language -Wall -Wextra -Werror -fsyntax-only -include "$header" /dev/null
    done
done
echo "headers: each compiles alone, as C and as C++"

for name in att_attention att_sentence_embed; do
    grep -q "$name" "$work/usr/share/man/man3/$(sed 's/.*\///' "$work/usr/share/man/man3/$name.3")" ||
        { echo "$name has no manual page"; exit 1; }
done
[ -f "$work/usr/share/man/man1/attend-embed.1" ]
echo "manual pages: of functions and commands"

for name in attention:attend classify:attend_model; do
    library=${name#*:} name=${name%:*}
    # shellcheck disable=SC2046
    $cc "$root/examples/$name.c" $(pkg-config --cflags --libs "$library") -o "$work/$name"
    expect "$library, shared, pkg-config" "$work/$name"
    $cc "$root/examples/$name.c" -static $(pkg-config --static --cflags --libs "$library") -o "$work/$name-static"
    expect "$library, static, pkg-config" "$work/$name-static"
done

cmake -S "$root/examples" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/usr" -DCMAKE_C_COMPILER="$cc" >"$work/log" &&
    cmake --build "$work/build" --target example_attention example_attention_static example_classify example_classify_static \
        >>"$work/log" || { cat "$work/log"; exit 1; }
for name in attention attention_static classify classify_static; do
    expect "$name, CMake package" "$work/build/example_$name"
done

# The tool finds the models and the program that come with it, and that program the models, wherever the tree was moved to.
mv "$work/usr" "$work/moved"
echo "Guten Morgen!" | LD_LIBRARY_PATH= "$work/moved/bin/attend" translate >"$work/out"
grep -q '^Good morning' "$work/out" || { echo "the installed tool says:"; cat "$work/out"; exit 1; }
for chapter in simplified vit; do # one on vectors, and one on a model that comes with the tool
    LD_LIBRARY_PATH= "$work/moved/bin/attend" explain $chapter >"$work/out" 2>&1 &&
        cmp "$work/out" "$root/tests/golden/explain/$chapter.en.txt" || { echo "explain $chapter says:"; cat "$work/out"; exit 1; }
done
rm "$(find "$work/moved" -name attend-explain)"
! "$work/moved/bin/attend" explain >"$work/out" 2>&1 && grep -q "libexec/attend/attend-explain" "$work/out" ||
    { echo "explain, which is removed, says:"; cat "$work/out"; exit 1; }
echo "tool: translates and explains from where it was installed, and moved"
