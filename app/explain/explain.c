/* The command `attend explain`: finds a chapter, opens what it is about, and runs it. */
#include "cli/base/signals.h"
#include "cli/caption/captioner.h"
#include "cli/draw/color.h"
#include "cli/translate/translator.h"
#include "cli/vision/vision.h"
#include "cli/explain.h"
#include "page.h"
#include "explain_chapters.h" /* written by the build: CHAPTER_LIST */

#include <string.h>

#define CHAPTER_DECLARE(name, title) extern const chapter chapter_##name;
CHAPTER_LIST(CHAPTER_DECLARE)
#define CHAPTER_ROW(name, title) {title, &chapter_##name},
static const struct {
    const char *name;
    const chapter *chapter;
} chapters[] = {CHAPTER_LIST(CHAPTER_ROW)};
enum { CHAPTERS = sizeof chapters / sizeof *chapters };

static const explain_request *const asked = &explain_asked;

/* The path in the folders of CLI_VISION_SHIPPED and CLI_CAPTIONER_SHIPPED. */
#define IMAGE_SHIPPED "examples/ankle-boot.png"
#define CAPTIONED_SHIPPED "examples/astronaut.png"

static int list_chapters(void)
{
    if (asked->input || asked->query || asked->svg)
        return cli_misuse("explain: --%s needs a chapter", asked->input ? "input" : asked->query ? "query" : "svg");
    puts(asked->language ? "章を学ぶ順に並べています。`attend explain 章の名前`で読めます。\n"
                         : "The chapters, in the order to read them in; `attend explain CHAPTER` shows one.\n");
    for (int i = 0; i < CHAPTERS; i++) {
        text about = chapters[i].chapter->about;
        printf("  %-14s %s\n", chapters[i].name, asked->language ? about.ja : about.en);
    }
    return CLI_DONE;
}

static const chapter *find(const char *name)
{
    const char *names[CHAPTERS];
    for (int i = 0; i < CHAPTERS; i++) {
        names[i] = chapters[i].name;
        if (strcmp(names[i], name) == 0)
            return chapters[i].chapter;
    }
    cli_hint hint;
    cli_misuse("explain: there is no chapter \"%s\"%s", name,
               cli_did_you_mean(&hint, "", name, names, CHAPTERS, "; \"attend explain\" lists them"));
    return NULL;
}

/* The subject of a chapter, besides vectors; all may be NULL. */
typedef struct subject {
    const att_translator *translator;
    const att_image_model *images;
    const cli_captioner *captioner;
    const char *folder, *picture;
} subject;

/* Returns the exit code. */
static int show(att_ctx *ctx, const chapter *c, const subject *about)
{
    vectors own = {0};
    if (asked->svg)
        cli_end_hold_pipe(); /* the picture is written even if standard output is closed */
    int code = cli_status(ctx, asked->input ? vectors_read(ctx, asked->input, &own) : ATT_OK);
    if (!code) {
        page p = {.out = stdout,
                  .ctx = ctx,
                  .japanese = asked->language,
                  .colors = terminal_colors(stdout),
                  .own = asked->input ? &own : NULL,
                  .query = asked->query,
                  .translator = about->translator,
                  .sentence = asked->sentence ? asked->sentence : "Kannst du mir helfen, diesen Satz zu übersetzen?",
                  .images = about->images,
                  .captioner = about->captioner,
                  .folder = about->folder,
                  .picture = about->picture,
                  .svg = asked->svg};
        code = cli_status(ctx, c->run(&p));
        code = code ? code : p.code;
        page_close(&p);
    }
    vectors_free(&own);
    if (asked->svg) {
        fflush(stdout);
        cli_end_release_pipe();
    }
    return code;
}

static int show_vectors(const chapter *c)
{
    att_ctx *ctx;
    int code = cli_open(&ctx, 1);
    if (code)
        return code;
    code = show(ctx, c, &(const subject){0});
    att_close(ctx);
    return code;
}

static int show_translator(const chapter *c)
{
    cli_translator m;
    int code = cli_model_open(&m.base, &cli_translator_kind, asked->model ? asked->model : CLI_TRANSLATOR_SHIPPED,
                              (cli_types){0}, 1);
    if (code)
        return code;
    code = show(m.base.ctx, c, &(const subject){.translator = m.translator});
    cli_model_close(&m.base);
    return code;
}

/* The path of a picture that comes with the model in folder */
typedef struct shipped_picture {
    char text[sizeof(att_model_path) + 64];
} shipped_picture;

static shipped_picture picture_of(const att_model_path *folder, const char *name)
{
    shipped_picture path;
    snprintf(path.text, sizeof path.text, "%s/%s", folder->text, name);
    return path;
}

static int show_vision(const chapter *c)
{
    cli_vision m;
    int code =
        cli_model_open(&m.base, &cli_vision_kind, asked->model ? asked->model : CLI_VISION_SHIPPED, (cli_types){0}, 1);
    if (code)
        return code;
    const shipped_picture shipped = picture_of(&m.base.folder, IMAGE_SHIPPED);
    code = show(m.base.ctx, c,
                &(const subject){.images = m.model,
                                 .folder = m.base.folder.text,
                                 .picture = asked->image ? asked->image : shipped.text});
    cli_model_close(&m.base);
    return code;
}

static int show_captioner(const chapter *c)
{
    cli_captioner m;
    int code = cli_model_open(&m.base, &cli_captioner_kind, asked->model ? asked->model : CLI_CAPTIONER_SHIPPED,
                              (cli_types){0}, 1);
    if (code)
        return code;
    const shipped_picture shipped = picture_of(&m.base.folder, CAPTIONED_SHIPPED);
    code =
        show(m.base.ctx, c,
             &(const subject){
                 .captioner = &m, .folder = m.base.folder.text, .picture = asked->image ? asked->image : shipped.text});
    cli_model_close(&m.base);
    return code;
}

static int show_picture(const chapter *c)
{
    if (asked->model && !asked->image)
        return cli_misuse("explain: --model %s needs a picture: --image FILE", asked->model);
    return c->captions ? show_captioner(c) : show_vision(c);
}

static int refuse_svg(const char *name)
{
    char list[256] = "";
    for (int i = 0; i < CHAPTERS; i++)
        if (chapters[i].chapter->draws)
            snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", *list ? ", " : "", chapters[i].name);
    return cli_misuse("explain: --svg: the chapter %s has no picture; those that have one: %s", name, list);
}

/* Checks that no option for another kind of chapter was given. */
static bool is_misused(const chapter *c)
{
    const bool on_picture = c->sees || c->captions, on_model = c->translates || on_picture;
    return ((on_model || c->own_data) && (asked->input || asked->query)) || (!on_model && asked->model) ||
           (!c->translates && asked->sentence) || (!on_picture && asked->image);
}

int explain_run(int n, char **arguments)
{
    if (n == 0)
        return list_chapters();
    const chapter *c = find(arguments[0]);
    if (!c)
        return CLI_MISUSE;
    if (asked->svg && !c->draws)
        return refuse_svg(arguments[0]);
    if (is_misused(c))
        return cli_misuse("explain: %s is on %s", arguments[0],
                          c->translates ? "a sentence: it takes --text and --model, no --input, --query or --image"
                          : c->sees || c->captions
                              ? "a picture: it takes --image and --model, no --input, --query or --text"
                          : c->own_data ? "data of its own: it takes no --input, --query, --text, --image or --model"
                                        : "vectors: it takes --input and --query, no --text, --image or --model");
    return c->translates ? show_translator(c) : c->sees || c->captions ? show_picture(c) : show_vectors(c);
}
