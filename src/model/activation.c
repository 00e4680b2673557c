#include "model/activation.h"

#include <string.h>

static const struct {
    const char *name;
    att_activation activation;
} known[] = {{"gelu", ATT_ACTIVATION_GELU_ERF},
             {"gelu_new", ATT_ACTIVATION_GELU_TANH},
             {"gelu_pytorch_tanh", ATT_ACTIVATION_GELU_TANH},
             {"relu", ATT_ACTIVATION_RELU}};
enum { KNOWN = sizeof known / sizeof known[0] };

att_activation att_activation_read(att_settings *s, const char *key, const char *otherwise)
{
    const char *name = att_settings_text(s, key, otherwise);
    for (int i = 0; i < KNOWN; i++)
        if (!strcmp(known[i].name, name))
            return known[i].activation;
    att_settings_unsupported(s, key, "one of gelu, gelu_new, gelu_pytorch_tanh and relu");
    return ATT_ACTIVATION_IDENTITY;
}

const char *att_activation_name(att_activation a)
{
    int i = 0;
    while (i < KNOWN - 1 && known[i].activation != a)
        i++;
    return known[i].name;
}
