/* Downloads of models from the Hugging Face Hub. */
#ifndef FETCH_HUB_H
#define FETCH_HUB_H

/* Downloads what attend needs of a model to the Hub's cache on this machine, and prints where it is. name:
 * OWNER/NAME[@REVISION]. gguf: a file of it, or NULL. Returns an exit code. */
int hub_fetch(const char *name, const char *gguf);

#endif
