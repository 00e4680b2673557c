#!/bin/sh
# The site: README.md as its front page, the documents, the public headers and the commands of the tool, all linked.
# usage: site/make.sh ATTEND FOLDER: FOLDER/html/index.html is the front page, FOLDER/source what it is made of
set -eu
attend=$(realpath "$1") out=$2
cd "$(dirname "$0")/.."
rm -rf "$out"
mkdir -p "$out/source/reference" "$out/source/tool" "$out/man1" "$out/man3"

"$attend" help --man-folder "$out/man1"
awk -v folder="$out/man3" -f cmake/blocks.awk -f cmake/narrow_code.awk -f cmake/reference.awk LAYERS include/*.h
awk -v folder="$out/source" -f site/pages.awk "$out"/man1/*.1 "$out"/man3/*.3

for file in *.md docs examples LAYERS LICENSE Containerfile $(find models -name '*.md'); do
    mkdir -p "$out/source/$(dirname "$file")"
    cp -r "$file" "$out/source/$file"
done
mv "$out/source/README.md" "$out/source/index.md"
find "$out/source" -name '*.md' -exec sed -i -E 's/(\]\((\.\.\/)*)README\.md/\1index.md/g
    s/(\]\((\.\.\/)*)include\/(attend[a-z_]*)\.h\)/\1reference\/\3.md)/g' {} +
contents() { printf '\n```{toctree}\n:hidden:\n:glob:\n:titlesonly:\n:caption: %s\n\n%s\n```\n' "$1" "$2"; }
{
    contents Documents 'docs/*'
    contents Reference 'tool/attend
reference/index'
    contents Project '日本語 <README.ja>
*
models/README
models/*/README
models/*/*/README'
} >>"$out/source/index.md"

ATTEND_VERSION=$("$attend" --version | sed 's/^attend //') \
    sphinx-build -q -W --keep-going -j auto -c site "$out/source" "$out/html"

# What a browser would load from elsewhere. A link that a reader follows is none.
! grep -rnoE '<(script|img|iframe|link)[^>]*(src|href)="?(https?:)?//[^>]*|(url\(|@import) *["'\'']?(https?:)?//[^)]*' "$out/html" \
    --include='*.html' --include='*.css' | grep . || { echo "the site asks other machines, see above"; exit 1; }
