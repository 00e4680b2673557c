#!/bin/sh
# The manual pages of the libraries, section 3, made from the headers (cmake/reference.awk): does all that these export have
# a page that shows it, is no word of a header lost, and are the pages without warnings? Those of libattend alone, too.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# pages FOLDER HEADER...
pages() {
    mkdir -p "$1/man3"
    folder=$1/man3
    shift
    awk -v folder="$folder" -f "$root/cmake/blocks.awk" -f "$root/cmake/narrow_code.awk" -f "$root/cmake/reference.awk" \
        "$root/LAYERS" "$@"
}

# complete FOLDER HEADER...: pages that it misses, and references to others that it misses
complete() {
    sed -nE 's/^ATT_API [^(]*[ *](att_[a-z0-9_]+)[(;].*/\1/p' $(echo "$@" | cut -d' ' -f2-) >declared
    awk -v folder="$1/man3/" '
        FILENAME == "declared" { declared[$1]; next }
        FNR == 1 {
            page = FILENAME
            sub(/.*\//, "", page)
            exists[page]
        }
        /^\.so / { shown_by[page] = substr($2, 6); next }
        /^\.SH / { synopsis = /SYNOPSIS/ }
        synopsis { text[page] = text[page] $0 "\n" }
        /^\.BR / { refers[$2 ".3"] }
        END {
            for (name in declared) {
                n++
                page = name ".3"
                if (page in shown_by) page = shown_by[page]
                if (text[page] !~ ("[ *]" name "[(;]")) bad = bad name " has no page that shows it\n"
            }
            for (page in shown_by) if (!(shown_by[page] in text)) bad = bad page " refers to " shown_by[page] ", which does not exist\n"
            for (page in refers) if (!(page in exists)) bad = bad "pages refer to " page ", which does not exist\n"
            printf "%s", bad
            if (!bad) print n " functions and stages have a page"
            exit bad != "" || !n
        }' declared "$1"/man3/*
}

core=$(sed -n 's/^\[libattend\] *//p' "$root/LAYERS" | sed "s#attend#$root/include/attend#g")
pages alone $core
complete alone $core
pages whole "$root"/include/*.h
complete whole "$root"/include/*.h

# Words of a header, outside of what is for the preprocessor and C++, and those of its pages
awk '
    function words(s, of, sign,    n, i, word) {
        gsub(/\\f[BIR]|\\[(][a-z][a-z]/, " ", s)
        gsub(/[^A-Za-z_]+/, " ", s)
        n = split(s, word, " ")
        for (i = 1; i <= n; i++) if (length(word[i]) > 3 && word[i] !~ /^ATT_(API|PRINTF)$/) left[of, word[i]] += sign
    }
    FILENAME ~ /\.h$/ {
        if (/^#(if |ifdef __cplusplus)/) skips = 1
        if (/^#/ || in_macro) in_macro = /\\$/
        else if (!skips) {
            header = FILENAME
            sub(/.*\//, "", header)
            words(FNR == 1 ? substr($0, index($0, " - ")) : $0, header, 1)
        }
        if (/^#(else|endif)/) skips = 0
        next
    }
    FNR == 1 { before = ""; within = header = "" }
    /^\.SH / { within = substr($0, 5); next }
    match($0, /#include <[a-z_.]+/) { header = substr($0, RSTART + 10, RLENGTH - 10); words(before, header, -1) }
    within == "NAME" { before = substr($0, index($0, "\\- ")) }
    within == "DESCRIPTION" && !/^\.SS/ { words($0, header, -1) }
    END {
        for (key in left) {
            n++
            if (left[key] > 0) {
                split(key, part, SUBSEP)
                print part[1] ": \"" part[2] "\" is " left[key] " times less in its pages"
                bad = 1
            }
        }
        if (!bad) print "none of " n " words of headers is lost"
        exit bad || !n
    }' "$root"/include/*.h whole/man3/attend*.3

if command -v groff >/dev/null; then
    groff -ww -man -Tascii -P-cbou -rLL=78n whole/man3/attend*.3 >text 2>warnings
    awk 'length > 78 { print "longer than a line of a terminal: " $0; bad = 1 } END { exit bad || NR < 1000 }' text
    cat warnings
    [ ! -s warnings ]
    echo "groff: no warnings"
else
    echo "groff is missing: skipped"
fi
if command -v mandoc >/dev/null; then # a date would change pages that are the same
    if mandoc -Tlint -Wwarning whole/man3/attend*.3 | grep -v 'missing date, using ""'; then exit 1; fi
    echo "mandoc: no warnings"
else
    echo "mandoc is missing: skipped"
fi
if man --version 2>/dev/null | grep -q '^man '; then
    for name in att_attention att_sentence_embed att_mask_causal att_tensor; do
        MANPATH=$work/whole man --warnings 3 $name >text 2>warnings
        grep -q "$name" text && [ ! -s warnings ] || { echo "man 3 $name:"; cat text warnings; exit 1; }
    done
    echo "man: finds functions, stages and structs"
else
    echo "man is missing: skipped"
fi

# A declaration that it does not know is an error.
printf '/* attend_new.h - new.\n */\n\nint (*unknown[3])(void);\n' >attend_new.h
if pages new "$root/include/attend.h" attend_new.h 2>warnings; then exit 1; fi
grep -q 'attend_new.h: what is declared here? int (\*unknown' warnings
