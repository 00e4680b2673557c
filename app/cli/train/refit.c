#include "refit.h"
#include "cli/model/checkpoints.h"

#include <string.h>
#include <sys/stat.h>

/* Returns whether a training has begun in the folder. */
static bool has_begun(const char *folder)
{
    char path[CLI_TRAINING_PATH];
    struct stat s;
    cli_checkpoints c;
    cli_checkpoints_find(folder, &c);
    return c.n > 0 || (!cli_training_file_path(folder, path) && lstat(path, &s) == 0);
}

int cli_refit_begin(cli_training *t)
{
    cli_training_options *o = &t->options;
    if (!o->folder || !t->kind->use_all)
        return CLI_DONE;
    if (snprintf(t->first_folder.text, sizeof t->first_folder.text, "%s/validated", o->folder) >=
        (int)sizeof t->first_folder.text)
        return o->refit ? cli_fail("%.64s...: the path is too long", o->folder) : CLI_DONE;
    const bool first = has_begun(t->first_folder.text), second = has_begun(o->folder);
    if (o->resume ? second || !first : !o->refit)
        return CLI_DONE;
    if (!o->resume && (first || second))
        return cli_fail("%s: has a training already: attend train %s --resume -o %s; --refit needs another folder",
                        o->folder, t->kind->command, cli_quoted(o->folder).text);
    t->refit_folder = o->folder;
    o->folder = t->first_folder.text;
    return CLI_DONE;
}

int cli_refit_check(const cli_training *t, bool falls)
{
    const cli_training_options *o = &t->options;
    if (!o->refit)
        return CLI_DONE;
    if (!t->validates)
        return cli_misuse("--refit needs %s", t->kind->validation);
    if (o->average)
        return cli_misuse("--average does not go with --refit, which trains for as many epochs as the best model had");
    if (o->keep < 1)
        return cli_misuse("--keep 0 does not go with --refit, whose first training is resumed from its checkpoint");
    if (falls || (o->warmup > 0 && o->warmup < 1))
        return cli_misuse("--%s does not go with --refit: its learning rates depend on the last step, but the second "
                          "training ends earlier",
                          falls ? "schedule" : "warmup, a share,");
    return CLI_DONE;
}

int cli_refit_next(cli_training *t, double epochs)
{
    const cli_training first = *t;
    if (first.best_step == 0)
        return cli_fail("%s: no step was better than the model to begin with, which is in it; so there is no training "
                        "on all data",
                        first.first_folder.text);
    *t = (cli_training){.kind = first.kind, .options = first.options};
    memcpy(t->file.typed, first.file.typed, sizeof t->file.typed);
    cli_training_options *o = &t->options;
    o->folder = first.refit_folder;
    o->resume = o->refit = false;
    o->steps = o->patience = 0;
    o->minutes = 0;
    o->epochs = epochs;
    t->kind->use_all(t);
    cli_note("%s has validated; the second training, in %s, is on all data for the %g epochs that were best",
             first.first_folder.text, o->folder, o->epochs);
    return CLI_DONE;
}
