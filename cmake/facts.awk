# awk -f cmake/facts.awk README: what a translation of it must have in common, one fact a line, in the order of the page:
# levels of headings; fenced blocks, whole; then for each paragraph, item of a list and row of a table (with its number of
# cells) the names in backquotes, the targets of links, and the numbers, each sorted, as sentences have another order.
# What begins with ">" is for the readers of one language.

/^```/ {
    unit_end()
    fenced = !fenced
    print
    next
}
fenced {
    print
    next
}
/^>/ { next }
/^#+ / {
    unit_end()
    print $1
    next
}
/^$/ {
    unit_end()
    next
}
/^- / { unit_begin("item") }
/^\|/ { unit_begin("row of " gsub(/\|/, "|") - 1) }
{
    if (!in_unit) unit_begin("paragraph")
    unit = unit " " $0
}
END {
    unit_end()
    exit fenced || !n_units
}

function unit_begin(kind)
{
    unit_end()
    print kind
    in_unit = 1
    n_units++
}

function unit_end(    i)
{
    n_facts = 0
    gsub(/two cores/, "2", unit)
    gsub(/November/, "11", unit)
    gsub(/倍/, " x", unit)
    gsub(/README(\.ja)?\.md/, "README", unit)
    collect("name", "`[^`]*`")
    collect("link", "\\]\\([^)]*\\)")
    collect("number", "[0-9]+([.,][0-9]+)*( x)?")
    for (i = 1; i <= n_facts; i++) print fact[i]
    unit = ""
    in_unit = 0
}

# Takes what matches out of the unit, and adds it to the facts in order.
function collect(kind, pattern,    i, found)
{
    while (match(unit, pattern)) {
        found = "    " kind " " substr(unit, RSTART, RLENGTH)
        unit = substr(unit, 1, RSTART - 1) ";" substr(unit, RSTART + RLENGTH)
        for (i = ++n_facts; i > 1 && fact[i - 1] > found; i--) fact[i] = fact[i - 1]
        fact[i] = found
    }
}
