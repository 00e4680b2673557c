/* Regular expressions of tokenizer.json, which are written for Oniguruma and matched by PCRE2 here. */
#ifndef ATT_REGEX_H
#define ATT_REGEX_H

#include "io/settings.h"

typedef struct att_regex att_regex;

/* Memory for matching in one text, by one thread; {0} at first, or with `time`. */
typedef struct att_regex_match {
    void *data, *limits;
    int64_t time;  /* limit of all searches, in nanoseconds of the thread; 0: att_regex_time of the first part */
    int64_t begun; /* the thread's time at the start */
    uint64_t tries;
    att_status status; /* the first error */
} att_regex_match;

/* Returns the time limit for a text: known expressions need less than a hundredth of it. */
int64_t att_regex_time(size_t bytes);

/* Compiles `pattern`, the value of `key` in s. Expressions that the two libraries read differently, or that PCRE2 does
 * not know, are refused. NULL: an error in s. */
att_regex *att_regex_new(att_settings *s, const char *key, const char *pattern);
void att_regex_free(att_regex *r);
/* Finds the first match in s [bytes], valid UTF-8, from `from` on: *begin, *end. False: there is none, or m has an
 * error: out of memory, or a text that takes the expression too many steps or too much time. */
bool att_regex_find(const att_regex *r, att_regex_match *m, const char *s, size_t bytes, size_t from, size_t *begin,
                    size_t *end);
void att_regex_match_free(att_regex_match *m);

#endif
