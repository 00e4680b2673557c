/* Determines where the files of the model come from that the calling thread opens: from the disk, or from its caller's
 * memory. Readers of files ask here, so functions that open a model need no further argument. */
#ifndef ATT_IO_FILE_SOURCE_H
#define ATT_IO_FILE_SOURCE_H

#include "attend_model.h"

typedef struct att_file_source {
    const char *model; /* the path that was given for the model, to which names are relative */
    att_model_options options;
    bool begun; /* false: an outer source was begun and stays, because a model may consist of others */
} att_file_source;

/* Makes the files that this thread opens those of `model`, opened with these options (NULL: defaults), until
 * att_file_source_end. Error: that of the options; then nothing was begun, but ending is allowed. */
att_status att_file_source_begin(att_file_source *s, const char *model, const att_model_options *options);
void att_file_source_end(const att_file_source *s);

/* Returns whether files are read instead of mapped. */
bool att_file_source_copies(void);
/* Returns whether files are those of options.read. */
bool att_file_source_given(void);
/* Reads the file at `path` by options.read; *data NULL: there is none. Errors: the caller's. ctx or NULL. */
att_status att_file_source_read(att_ctx *ctx, const char *path, const void **data, size_t *bytes);

#endif
