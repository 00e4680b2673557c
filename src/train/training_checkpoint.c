/* A checkpoint in the folder of a training: its fields and tensors are saved, or checked and loaded. */
#include "io/safetensors.h"
#include "train/training_folder.h"
#include "util/shape.h"
#include "util/util.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- fields, which are stored as texts */

att_field *att_fields_add(att_fields *l, const char *name, att_field_kind kind, void *value)
{
    l->field[l->n] = (att_field){.name = name, .kind = kind, .value = value};
    return &l->field[l->n++];
}

att_field *att_fields_int(att_fields *l, const char *name, int64_t value)
{
    l->whole[l->n] = value;
    att_field *f = att_fields_add(l, name, ATT_FIELD_INT, &l->whole[l->n]);
    f->setting = true;
    return f;
}

att_field *att_fields_double(att_fields *l, const char *name, double value)
{
    l->number[l->n] = value;
    att_field *f = att_fields_add(l, name, ATT_FIELD_DOUBLE, &l->number[l->n]);
    f->setting = true;
    return f;
}

void att_fields_text(att_fields *l, const char *name, const char *value)
{
    att_fields_add(l, name, ATT_FIELD_TEXT, (char *)(uintptr_t)value)->setting = true; /* only read */
}

enum { FIELD_BYTES = 24 }; /* of a number as text */

static const char *fact_text(const att_field *f, char text[FIELD_BYTES])
{
    uint64_t bits;
    if (f->kind == ATT_FIELD_TEXT)
        return f->value;
    memcpy(&bits, f->value, sizeof bits);
    if (f->kind == ATT_FIELD_INT)
        snprintf(text, FIELD_BYTES, "%" PRId64, (int64_t)bits);
    else
        snprintf(text, FIELD_BYTES, "0x%016" PRIx64, bits);
    return text;
}

/* Parses the text of a number to its bits; false: invalid. */
static bool read_bits(const att_field *f, const char *text, uint64_t *bits)
{
    char *end, again[FIELD_BYTES];
    *bits = f->kind == ATT_FIELD_INT ? (uint64_t)strtoll(text, &end, 10) : strtoull(text, &end, 16);
    const att_field is = {.kind = f->kind, .value = bits};
    return *text && !*end && !strcmp(text, fact_text(&is, again));
}

/* Returns the value in readable form, for messages. */
static const char *show_field(const att_field *f, const char *text, char shown[64])
{
    uint64_t bits;
    double x;
    if (f->kind == ATT_FIELD_DOUBLE && read_bits(f, text, &bits)) {
        memcpy(&x, &bits, sizeof x);
        snprintf(shown, 64, "%.17g", x);
    } else {
        snprintf(shown, 64, f->kind == ATT_FIELD_TEXT ? "\"%.60s\"" : "%.60s", text);
    }
    return shown;
}

static att_status check_field(const att_run *run, const char *path, const att_safetensors *file, const att_field *f)
{
    char number[FIELD_BYTES], is[64], here[64];
    uint64_t bits;
    const char *text = att_safetensors_metadata(file, f->name);
    if (!text && f->optional)
        return ATT_OK;
    if (!text)
        return att_fail(run->ctx, ATT_ERR_FORMAT, "%s: there is no \"%s\"", path, f->name);
    const bool differs = f->setting && strcmp(text, fact_text(f, number)) != 0;
    if (differs && f->sum_of)
        return att_fail(run->ctx, ATT_ERR_FORMAT, "%s: is of a training with other %s", path, f->sum_of);
    if (differs)
        return att_fail(run->ctx, ATT_ERR_FORMAT, "%s: \"%s\" is %s but here it is %s", path, f->name,
                        show_field(f, text, is), show_field(f, fact_text(f, number), here));
    if (f->kind == ATT_FIELD_TEXT && !f->setting && strlen(text) >= f->room)
        return att_fail(run->ctx, ATT_ERR_FORMAT, "%s: \"%s\" has %zu bytes but here is room for %zu", path, f->name,
                        strlen(text), f->room - 1);
    if (f->kind != ATT_FIELD_TEXT && !read_bits(f, text, &bits))
        return att_fail(run->ctx, ATT_ERR_FORMAT, "%s: \"%s\" is \"%.60s\", which is not a number", path, f->name,
                        text);
    return ATT_OK;
}

static void read_field(const att_safetensors *file, const att_field *f)
{
    uint64_t bits;
    const char *text = att_safetensors_metadata(file, f->name);
    if (f->setting || !text)
        return;
    if (f->kind == ATT_FIELD_TEXT)
        memcpy(f->value, text, strlen(text) + 1);
    else if (read_bits(f, text, &bits))
        memcpy(f->value, &bits, sizeof bits);
}

/* ---- saving */

static att_status check_newest(const att_run *run, int64_t step)
{
    int64_t newest;
    const att_status s = att_run_newest(run, &newest);
    if (s || (step >= 0 && step >= newest))
        return s;
    return att_fail(run->ctx, ATT_ERR_ARGUMENT,
                    "%s: a checkpoint of step %" PRId64 " would not be the newest: there is one of step %" PRId64,
                    run->folder, step, att_max(newest, 0));
}

static att_status write_file(const att_run *run, const char *path, const att_run_state *state, const char **metadata,
                             char (*numbers)[FIELD_BYTES])
{
    for (int64_t i = 0; i < state->n_fields; i++) {
        metadata[2 * i] = state->fields[i].name;
        metadata[2 * i + 1] = fact_text(&state->fields[i], numbers[i]);
    }
    return att_safetensors_write_in_folder(
        run->ctx, path, state->n, state->names, state->tensors,
        ATT_OPTIONS(att_safetensors_options, .metadata = metadata, .n_metadata = state->n_fields));
}

att_status att_run_save(const att_run *run, int64_t step, bool pause, const att_run_state *state)
{
    char path[ATT_MAX_PATH];
    const char **metadata = att_alloc(run->ctx, 2 * (size_t)state->n_fields, sizeof *metadata);
    char(*numbers)[FIELD_BYTES] = att_alloc(run->ctx, (size_t)state->n_fields, sizeof *numbers);
    att_status s = metadata && numbers ? ATT_OK : ATT_ERR_MEMORY;
    s = s ? s : check_newest(run, step);
    s = s ? s : att_run_remove_old(run); /* checkpoints that a killed process has left */
    s = s ? s : att_run_new_path(run, step, pause, path);
    s = s ? s : write_file(run, path, state, metadata, numbers);
    s = s ? s : att_run_remove_old(run);
    att_free(run->ctx, numbers);
    att_free(run->ctx, metadata);
    return s;
}

/* ---- loading */

static att_status check_tensor(const att_run *run, const char *path, const att_safetensors *file, const char *name,
                               const att_tensor *here)
{
    att_tensor is;
    const att_status s = att_safetensors_get(file, name, &is);
    if (s)
        return s;
    if (is.dtype == here->dtype && is.rank == here->rank &&
        memcmp(is.dim, here->dim, (size_t)is.rank * sizeof *is.dim) == 0)
        return ATT_OK;
    return att_fail(run->ctx, ATT_ERR_SHAPE, "%s: tensor \"%.80s\" is %s %s but here it is %s %s", path, name,
                    att_dtype_name(is.dtype), att_shape_of(&is).text, att_dtype_name(here->dtype),
                    att_shape_of(here).text);
}

/* Checks that the file has no other tensors: all names are distinct, so counting suffices. */
static att_status check_all(const att_run *run, const char *path, const att_safetensors *file,
                            const att_run_state *state)
{
    att_status s = ATT_OK;
    for (int64_t i = 0; !s && i < state->n_fields; i++)
        s = check_field(run, path, file, &state->fields[i]);
    for (int64_t i = 0; !s && i < state->n; i++)
        s = check_tensor(run, path, file, state->names[i], &state->tensors[i]);
    if (!s && att_safetensors_count(file) != state->n)
        s = att_fail(run->ctx, ATT_ERR_FORMAT, "%s: has %" PRId64 " tensors but here are %" PRId64, path,
                     att_safetensors_count(file), state->n);
    return s;
}

static att_status copy_all(const att_run *run, const att_safetensors *file, const att_run_state *state)
{
    att_tensor from;
    att_status s = ATT_OK;
    for (int64_t i = 0; !s && i < state->n; i++) {
        s = att_safetensors_get(file, state->names[i], &from);
        s = s ? s : att_tensor_convert(run->ctx, &from, &state->tensors[i]);
    }
    for (int64_t i = 0; !s && i < state->n_fields; i++)
        read_field(file, &state->fields[i]);
    return s;
}

att_status att_run_load(const att_run *run, int64_t step, const att_run_state *state, int64_t *loaded)
{
    char path[ATT_MAX_PATH];
    att_safetensors *file = NULL;
    att_status s = step == ATT_RUN_NEWEST ? att_run_newest(run, &step) : ATT_OK;
    if (!s && step == ATT_NO_CHECKPOINT)
        s = att_fail(run->ctx, ATT_ERR_IO, "%s: there is no checkpoint", run->folder);
    s = s ? s : att_run_path(run, step, path);
    s = s ? s : att_run_checkpoint(run, step, &file);
    s = s ? s : check_all(run, path, file, state);
    s = s ? s : copy_all(run, file, state);
    att_safetensors_free(file);
    if (!s && loaded)
        *loaded = step;
    return s;
}
