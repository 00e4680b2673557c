#!/bin/sh
# Is there a circle of files that use each other's functions? And does cmake/circles.awk find each kind of them?
set -eu
cd "$(dirname "$0")/.."
find src app -name '*.[ch]' | xargs awk -f cmake/without_comments.awk -f cmake/circles.awk

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
awk=$PWD/cmake
cd "$folder"
cat >top.c <<'END'
#include "top.h"
static int same(int x) { return x; }
int top(int x)
{
    return same(middle(x)) + first->bottom(x);
}
END
cat >middle.c <<'END'
int middle(int x) { return 2 * bottom(x); }
static int helper(int x, /* a head of
                          * two lines */
                  int y)
{
    return run(x, y, loop);
}
END
cat >bottom.c <<'END'
int top(int x); /* top(1) */
const struct kind kind = {.top = top};
int bottom(int x)
{
    puts("top(x)"); /* top(x) */
    return same(x); // middle(x)
}
int same(int x) { return x; }
END
cat >loop.c <<'END'
int loop(int x)
{
    return x;
}
END
circles() { awk -f "$awk/without_comments.awk" -f "$awk/circles.awk" top.c middle.c bottom.c loop.c; }
circles # none: a prototype, a table, a comment, a text and a member are not uses, and a static function is the file's own

sed -i 's/return x;/return top(x);/' loop.c # through a function that is passed on
sed -i 's/return same(x);/return same(middle(x));/' bottom.c
cat >expected <<'END'
top.c uses middle of middle.c, which uses loop of loop.c, which uses top of top.c
bottom.c uses middle of middle.c, which uses bottom of bottom.c
END
if circles >found; then
    echo "circles.awk found nothing in two circles"
    exit 1
fi
diff expected found
