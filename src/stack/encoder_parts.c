/* How parameters of text encoders stand in files: some are rows of one tensor, such as queries, keys and values. */
#include "stack/encoder.h"

#include <stdio.h>
#include <string.h>

/* The part that our parameter is of a whole tensor, and our name of that; NULL: it is none. */
static const att_encoder_part *whole_of(const att_encoder_part *parts, const char *ours,
                                        char whole[ATT_CHECKPOINT_NAME])
{
    for (const att_encoder_part *p = parts; p && p->ours; p++) {
        const char *at = strstr(ours, p->ours);
        if (at) {
            snprintf(whole, ATT_CHECKPOINT_NAME, "%.*s%s%s", (int)(at - ours), ours, p->whole, at + strlen(p->ours));
            return p;
        }
    }
    return NULL;
}

att_status att_encoder_load(void *model, const char *name, int rank, const int64_t *dim, att_tensor *out)
{
    const att_encoder *m = model;
    att_checkpoint *c = m->model.checkpoint;
    char whole[ATT_CHECKPOINT_NAME];
    const att_encoder_part *p = whole_of(att_encoder_architecture_of(m)->parts, name, whole);
    if (!p || att_checkpoint_has(c, name))
        return att_checkpoint_load(c, name, rank, dim, out);
    const att_checkpoint_part part = {.whole = p->parts * dim[0], .first = p->part * dim[0]};
    return att_checkpoint_load_part(c, whole, rank, dim, part, out);
}

void att_encoder_in_file(const void *encoder, const char *ours, att_file_tensor *out)
{
    const att_encoder_architecture *a = att_encoder_architecture_of(encoder);
    char whole[ATT_CHECKPOINT_NAME];
    att_checkpoint_translate(a->kind.names, "", whole_of(a->parts, ours, whole) ? whole : ours, out->name);
    if (a->change)
        a->change(ours, out);
}
