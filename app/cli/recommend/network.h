/* The network of a new recommender, as options state it. */
#ifndef CLI_RECOMMEND_NETWORK_H
#define CLI_RECOMMEND_NETWORK_H

#include <attend_recommend.h>

/* Values of --arch. Those after BERT4REC count instead of being trained. */
typedef enum network_arch { SASREC, BERT4REC, NEIGHBORS, EASE, POPULARITY } network_arch;

typedef struct network_options {
    int arch, block;                                            /* network_arch, att_recommender_block; -1: not given */
    int64_t hidden, layers, heads, intermediate, max_positions; /* 0: not given */
} network_options;
#define NETWORK_DEFAULTS .arch = -1, .block = -1

/* Returns the name of the first option that was given, or NULL. */
const char *network_given(const network_options *o);
/* Checks that options go together. */
int network_check(const network_options *o);
/* Writes the settings as att_recommender_new has them. */
enum { NETWORK_SETTINGS = 512 };
void network_settings(const network_options *o, char text[NETWORK_SETTINGS]);
/* Sets the options to what a model has. */
void network_describe(network_options *o, const att_recommender_info *info);

#endif
