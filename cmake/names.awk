# awk -f cmake/without_comments.awk -f cmake/names.awk FILE...: the names in the code of these files and in their strings,
# each once a folder: "src/tape att_add"; and the fields of structs: "att_tensor.dim".

FNR == 1 {
    in_comment = 0
    is_c = FILENAME ~ /\.(c|h|cpp)$/
    split(FILENAME, part, "/")
    folder = part[2] ~ /\.|^$/ ? part[1] : part[1] "/" part[2]
}

!is_c && /^[ \t]*#/ { next }

{
    line = is_c ? without_comments($0) : $0
    if (is_c && match(line, /^typedef struct [a-z0-9_]+ \{/)) {
        split(line, part, " ")
        struct = part[3]
    }
    n = split(line, word, /[^A-Za-z0-9_]+/)
    for (i = 1; i <= n; i++) {
        if (word[i] !~ /^[A-Za-z_]/) continue
        if (!((folder, word[i]) in seen)) print folder, word[i]
        seen[folder, word[i]] = 1
        if (struct ~ /^att_/) print "-", struct "." word[i]
    }
    if (line ~ /^}/) struct = ""
}
