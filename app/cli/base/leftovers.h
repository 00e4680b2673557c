/* Removes the files that the libraries are writing when the process ends early. */
#ifndef CLI_LEFTOVERS_H
#define CLI_LEFTOVERS_H

/* Removes the files and the folder that this process writes under temporary names (src/io/atomic_write.c,
 * src/io/new_folder.c, src/io/install.c): NAME.unfinished-0, NAME.unfinished with its mark, model.unfinished of a
 * training. Allocates nothing; async-signal-safe. */
void cli_remove_leftovers(void);

#endif
