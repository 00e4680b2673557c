#!/bin/sh
# Do comments, strings and documents keep the rules of English that awk can check (cmake/english.awk, CONTRIBUTING.md)?
# And does it find each kind of them?
set -eu
cd "$(dirname "$0")/.."
# Folders whose comments begin as they should.
openings="include src app"
{
    find include src app python tests bench fuzz examples -name '*.[ch]'
    echo README.md CONTRIBUTING.md SECURITY.md
    ls docs/*.md models/*/README.md
} | xargs awk -v openings="$openings" -f cmake/english.awk

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/done"
cat >"$folder/done/bad.c" <<'END'
/* A folder is no file; there is no file, and it is no longer one. */
int a; /* a path that is
        * no file; the same of a
        * link, likewise */
/* Of a link */
/* The same, with a link */
int likewise; /* Of a link: not on a line of its own */
const char *text = "%s is no \"link\"", *other = "there are no " "likewise";
/* the same */ /* of a link */
END
cp "$folder/done/bad.c" "$folder/bad.c"
cat >"$folder/bad.md" <<'END'
A link is no `file`, and `is no file` is code.
It is 4, which is none.
```
likewise
```
These are no links, likewise.
END
cat >"$folder/expected" <<'END'
done/bad.c:1: "is no ...": "is not a ..."
done/bad.c:3: "is no ...": "is not a ..."
done/bad.c:3: "the same of": name what is meant
done/bad.c:4: "likewise": a verb of its own
done/bad.c:5: a comment that begins with "Of a": begin with a verb, or name it
done/bad.c:6: a comment that begins with "The same,": begin with a verb, or name it
done/bad.c:8: "is no ...": "is not a ..."
done/bad.c:8: "likewise": a verb of its own
END
sed -n '/begins with/!s,^done/,,p' "$folder/expected" >"$folder/more"
cat >>"$folder/more" <<'END'
bad.md:1: "is no ...": "is not a ..."
bad.md:2: "which is none": "which is not one of ..."
bad.md:6: "is no ...": "is not a ..."
bad.md:6: "likewise": a verb of its own
END
cat "$folder/more" >>"$folder/expected"
english=$PWD/cmake/english.awk
cd "$folder"
if awk -v openings=done -f "$english" done/bad.c bad.c bad.md >found; then
    echo "english.awk found nothing in a bad file"
    exit 1
fi
diff expected found
