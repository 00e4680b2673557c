/* The known word nearest to a misspelt one. */
#include "cli.h"

#include <string.h>

/* Edit distance with transpositions (Damerau 1964) of words of up to 32 letters. */
static int distance(const char *a, const char *b)
{
    int n = (int)strlen(a), m = (int)strlen(b), d[33][33];
    if (n > 32 || m > 32)
        return 99;
    for (int i = 0; i <= n; i++) {
        for (int j = 0; j <= m; j++) {
            if (i == 0 || j == 0) {
                d[i][j] = i + j;
                continue;
            }
            int best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            best = d[i - 1][j] + 1 < best ? d[i - 1][j] + 1 : best;
            best = d[i][j - 1] + 1 < best ? d[i][j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < best)
                best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    }
    return d[n][m];
}

const char *cli_nearest(const char *word, const char *const *words, int n)
{
    const char *nearest = NULL;
    int min = (int)strlen(word) / 2 + 1; /* more than half of the letters wrong: not a misspelling */
    for (int i = 0; i < n; i++) {
        int d = strncmp(words[i], word, strlen(word)) == 0 && *word ? 1 : distance(word, words[i]);
        if (d < min) {
            min = d;
            nearest = words[i];
        }
    }
    return nearest;
}
