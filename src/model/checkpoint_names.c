/* Names of tensors, ours and those of files. */
#include "model/checkpoint.h"

#include <stdio.h>
#include <string.h>

bool att_checkpoint_translate_row(const att_checkpoint_name *row, const char *prefix, const char *name,
                                  char theirs[ATT_CHECKPOINT_NAME])
{
    const char *star = strchr(row->ours, '*'), *theirs_star = strchr(row->theirs, '*');
    if (!star) {
        snprintf(theirs, ATT_CHECKPOINT_NAME, "%s%s", prefix, row->theirs);
        return !strcmp(name, row->ours);
    }
    const size_t before = (size_t)(star - row->ours);
    if (strncmp(name, row->ours, before) != 0)
        return false;
    const char *number = name + before;
    const size_t digits = strspn(number, "0123456789");
    snprintf(theirs, ATT_CHECKPOINT_NAME, "%s%.*s%.*s%s", prefix, (int)(theirs_star - row->theirs), row->theirs,
             (int)digits, number, theirs_star + 1);
    return digits > 0 && !strcmp(number + digits, star + 1);
}

bool att_checkpoint_translate(const att_checkpoint_name *names, const char *prefix, const char *name,
                              char theirs[ATT_CHECKPOINT_NAME])
{
    const att_checkpoint_name *row = names;
    while (row->ours && !att_checkpoint_translate_row(row, prefix, name, theirs))
        row++;
    return row->ours != NULL;
}
