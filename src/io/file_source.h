/* Where the files of the model come from that the calling thread opens: from the disk, or from its caller's memory.
 * What reads files asks here, so that whatever opens a model needs no further argument. */
#ifndef ATT_IO_FILE_SOURCE_H
#define ATT_IO_FILE_SOURCE_H

#include "attend_model.h"

typedef struct att_file_source {
    const char *model; /* the path that was given for the model, to which names are relative */
    att_model_options options;
    bool begun; /* false: an outer one was, and stays: a model may consist of others */
} att_file_source;

/* Until the end, files that this thread opens are those of `model`, opened with these options (NULL: defaults). Error:
 * of the options; then there is nothing to end, but ending is allowed. */
att_status att_file_source_begin(att_file_source *s, const char *model, const att_model_options *options);
void att_file_source_end(const att_file_source *s);

/* Are files to be read instead of mapped? */
bool att_file_source_copies(void);
/* Are files those of options.read? */
bool att_file_source_given(void);
/* Then: the file at `path`, *data NULL: there is none. Errors: the caller's. ctx or NULL. */
att_status att_file_source_read(att_ctx *ctx, const char *path, const void **data, size_t *bytes);

#endif
