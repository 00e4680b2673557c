/* "did you mean": the known word nearest to a misspelled one. */
#include "command.h"

#include <string.h>

enum { MAX_LETTERS = 32 };

/* Returns the edit distance with transpositions (Damerau 1964) of words of up to MAX_LETTERS. */
static int edit_distance(const char *a, const char *b)
{
    int n = (int)strlen(a), m = (int)strlen(b), d[MAX_LETTERS + 1][MAX_LETTERS + 1];
    if (n > MAX_LETTERS || m > MAX_LETTERS)
        return n + m;
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

/* Returns whether `part` is the first or the last of words with hyphens between them: "batch" of "batch-size", "rate"
 * of "learning-rate". */
static bool is_end_part(const char *part, const char *of)
{
    const size_t n = strlen(part), all = strlen(of);
    return n > 0 && n < all &&
           ((strncmp(of, part, n) == 0 && of[n] == '-') || (strcmp(of + all - n, part) == 0 && of[all - n - 1] == '-'));
}

/* Returns the edit distance, but at most 1 if `known` begins with `given`, and at most 2 if one is a part of the
 * other. */
static int distance(const char *given, const char *known)
{
    const int d = edit_distance(given, known);
    const bool begins = *given && strncmp(known, given, strlen(given)) == 0;
    const int bound = begins ? 1 : is_end_part(known, given) || is_end_part(given, known) ? 2 : d;
    return d < bound ? d : bound;
}

const char *cli_did_you_mean(cli_hint *hint, const char *before, const char *given, const char *const *words, int n,
                             const char *otherwise)
{
    /* In words of up to three letters one may be wrong, then two, and in longer words a third of the letters. */
    const int length = (int)strlen(given), allowed = length <= 3 ? 1 : length <= 8 ? 2 : length / 3;
    const char *nearest = NULL;
    for (int i = 0, min = allowed + 1; i < n; i++) {
        const int d = distance(given, words[i]);
        if (d < min) {
            min = d;
            nearest = words[i];
        }
    }
    if (!nearest)
        return otherwise;
    snprintf(hint->text, sizeof hint->text, "; did you mean \"%s%s\"?", before, nearest);
    return hint->text;
}
