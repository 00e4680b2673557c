# awk -v version=older|newer -f tests/versions/header.awk HEADER: the header as it may have been, or may become. Each
# struct that begins with its size, so that it can grow, has lost its last field (older), or has one more (newer).

/^(typedef )?struct .*\{$/ {
    head = $0
    body = ""
    while ((getline line) > 0 && line !~ /^}/) body = body line "\n"
    $0 = head "\n" changed(body) line
}
{ print }

function changed(body,    plain, at, n, member, i)
{
    plain = body
    while ((at = index(plain, "/*"))) plain = substr(plain, 1, at - 1) substr(plain, at + index(substr(plain, at), "*/") + 1)
    if (plain !~ /^[ \n]*size_t size;/) return body
    if (version == "newer") return body "    long long added[2];\n"
    n = split(plain, member, ";") - 1 # what follows the last one is white space
    body = ""
    for (i = 1; i < n; i++) body = body member[i] ";"
    return body "\n"
}
