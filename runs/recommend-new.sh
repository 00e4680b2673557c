#!/bin/bash
# New items among others: 50 random movies of 20 ratings or more are taken out of MovieLens 100K, three times, and
# recommended by their titles, years and kinds. How often are they in lists of 10, with a share of the positions or
# without; how often with one that the user watched; and how many users find their last other movie? Three trainings of
# a minute.
. "$(dirname "$0")/lib.sh"
need sasrec/ml-100k/ml-100k.inter "MovieLens 100K in RecBole's format"
need sasrec/ml-100k/ml-100k.item "the titles"

texts=$out/titles.tsv sorted=$out/sorted.tsv
tail -n +2 "$data/sasrec/ml-100k/ml-100k.item" | awk -F '\t' '{ print $1 "\t" $2 " (" $3 "): " $4 }' >"$texts"
tail -n +2 "$data/sasrec/ml-100k/ml-100k.inter" | sort -s -k4,4n | awk '{ print $1 "\t" $2 "\t" $4 }' >"$sorted"

for seed in 1 2 3; do
    new=$out/new-$seed.txt log=$out/log-$seed.tsv before=$out/before-$seed.tsv last=$out/last-$seed.tsv
    cut -f 2 "$sorted" | sort -n | uniq -c | awk '$1 >= 20 { print $2 }' | awk -v x="$seed" '{ item[NR] = $1 }
        END {
            x *= 7919
            for (n = 0; n < 50;) {
                x = x * 16807 % 2147483647 # Park, Miller 1988
                i = 1 + x % NR
                if (!(i in drawn)) { drawn[i] = 1; print item[i]; n++ }
            }
        }' >"$new"
    awk -F '\t' 'FNR == NR { new[$1] = 1; next } !($2 in new)' "$new" "$sorted" >"$log"
    # each user's last action with another movie is the test
    awk -F '\t' '{ item[$1] = $2 } END { for (u in item) print u "\t" item[u] }' "$log" >"$last"
    awk -F '\t' 'FNR == NR { n[$1]++; next } --n[$1] > 0' "$log" "$log" >"$before"
    echo "== movies $seed"
    learn recommend "$out/model-$seed" --data "$log" --item-texts "$texts" --content add --minutes "${MINUTES:-3}"
    for share in 0 0.1 0.2 0.3; do
        "$attend" recommend -m "$out/model-$seed" --data "$before" --all-users --exclude-seen -k 10 --quiet \
            --new "$new" --new-share $share |
            awk -F '\t' -v share=$share '
                FILENAME == ARGV[1] { new[$1] = 1; next }
                FILENAME == ARGV[2] { if ($2 in new) { n_watched += !(($1, $2) in watched); n_has += !($1 in has); watched[$1, $2] = has[$1] = 1 }; next }
                FILENAME == ARGV[3] { last[$1] = $2; next }
                {
                    any = own = hit = 0
                    for (i = 2; i < NF; i += 2) {
                        any = any || $i in new
                        own = own || ($1, $i) in watched
                        hit = hit || $i == last[$1]
                    }
                    lists++; listed += any; known += hit
                    if ($1 in has) { users++; found += own }
                }
                END {
                    printf "share %s: a new movie in %.1f %% of %d lists; the last other one in %.4f; one of the new ones "\
                           "that the user watched in %.4f of %d, of a random new one %.4f\n",
                           share, 100 * listed / lists, lists, known / lists, found / users, users, n_watched / n_has / 50
                }' "$new" "$sorted" "$last" -
    done
done
