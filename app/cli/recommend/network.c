#include "network.h"
#include "cli/base/command.h"

#include <stdio.h>
#include <string.h>

const char *network_given(const network_options *o)
{
    const struct {
        const char *name;
        bool set;
    } sizes[] = {{"arch", o->arch >= 0},
                 {"block", o->block >= 0},
                 {"hidden", o->hidden > 0},
                 {"layers", o->layers > 0},
                 {"heads", o->heads > 0},
                 {"intermediate", o->intermediate > 0},
                 {"max-positions", o->max_positions > 0}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].set)
            return sizes[i].name;
    return NULL;
}

int network_check(const network_options *o)
{
    const long long width = o->hidden ? o->hidden : 64;
    if (o->heads && width % o->heads)
        return cli_misuse("--heads %lld does not divide --hidden %lld", (long long)o->heads, width);
    if (o->arch == BERT4REC && o->block == ATT_RECOMMENDER_BLOCK_SASREC)
        return cli_misuse("--block sasrec is for --arch sasrec");
    return CLI_DONE;
}

/* Appends "name": value, of numbers those that are set. */
static void add_setting(char text[NETWORK_SETTINGS], const char *name, int64_t value)
{
    const size_t n = strlen(text);
    if (value > 0)
        snprintf(text + n, NETWORK_SETTINGS - n, ", \"%s\": %lld", name, (long long)value);
}

void network_settings(const network_options *o, char text[NETWORK_SETTINGS])
{
    static const char *const types[] = {[SASREC] = "attend-sasrec", [BERT4REC] = "attend-bert4rec"};
    static const char *const blocks[] = {"pre-norm", "post-norm", "sasrec"};
    snprintf(text, NETWORK_SETTINGS, "{\"model_type\": \"%s\"", types[o->arch < 0 ? SASREC : o->arch]);
    const size_t n = strlen(text);
    if (o->block >= 0)
        snprintf(text + n, NETWORK_SETTINGS - n, ", \"block\": \"%s\"", blocks[o->block]);
    add_setting(text, "hidden_size", o->hidden);
    add_setting(text, "num_hidden_layers", o->layers);
    add_setting(text, "num_attention_heads", o->heads);
    add_setting(text, "intermediate_size", o->intermediate);
    add_setting(text, "max_position_embeddings", o->max_positions);
    strncat(text, "}", NETWORK_SETTINGS - strlen(text) - 1);
}

void network_describe(network_options *o, const att_recommender_info *info)
{
    *o = (network_options){.arch = strcmp(info->type, "attend-bert4rec") ? SASREC : BERT4REC,
                           .block = (int)info->block,
                           .hidden = info->hidden,
                           .layers = info->layers,
                           .heads = info->heads,
                           .intermediate = info->intermediate,
                           .max_positions = info->max_positions};
}
