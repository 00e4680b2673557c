/* The input is a byte, the options, and two sections: a file of captions and a list of images. What is accepted must be
 * complete: images whose names stay in their folder, each with captions, and words as they are counted. */
#include "fuzz.h"

#include "attend_caption.h"

enum { KEEP_TEXT = 1, LIST = 2 };

/* Returns the number of words, which have one space between them. */
static int64_t count_words(const char *caption)
{
    int64_t words = 1;
    fuzz_check(*caption && *caption != ' ', "a caption that begins with no word");
    for (; *caption; caption++) {
        words += *caption == ' ';
        fuzz_check(*caption != ' ' || (caption[1] && caption[1] != ' '), "a space that no word follows");
        fuzz_check(!strchr("ABC.,\t\n\"", *caption), "a character that is not a word's");
    }
    return words;
}

static void check_set(const att_caption_set *s, bool typed)
{
    att_caption_set_info info = {.size = sizeof info};
    int64_t captions = 0, longest = 0;
    fuzz_check(!att_caption_set_describe(s, &info) && info.images > 0, "a set without images");
    for (int64_t i = 0; i < info.images; i++) {
        const char *path = att_caption_set_path(s, i);
        const int64_t n = att_caption_set_count(s, i);
        fuzz_check(*path && !strpbrk(path, "/\\") && strcmp(path, "..") && strcmp(path, "."), "a path elsewhere");
        fuzz_check(n > 0 && n <= info.max_captions, "an image without captions");
        captions += n;
        for (int64_t k = 0; k < n; k++) {
            const int64_t words = typed ? 0 : count_words(att_caption_set_caption(s, i, k));
            longest = words > longest ? words : longest;
        }
    }
    fuzz_check(captions == info.captions && (typed || longest == info.max_words), "counted otherwise");
}

static void remove_files(void)
{
    static const char *const names[] = {"captions", "list", NULL};
    fuzz_remove(names);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    static bool registered;
    char captions[128], list[128];
    att_caption_set *s;
    if (!registered)
        registered = !atexit(remove_files);
    if (size < 2)
        return 0;
    fuzz_section rest = {data + 1, size - 1};
    fuzz_write("captions", fuzz_next(&rest));
    fuzz_write("list", rest);
    snprintf(captions, sizeof captions, "%s/captions", fuzz_folder());
    snprintf(list, sizeof list, "%s/list", fuzz_folder());
    const att_caption_set_options o = {
        .size = sizeof o, .list = data[0] & LIST ? list : NULL, .keep_text = data[0] & KEEP_TEXT};
    if (att_caption_set_open(fuzz_context(), captions, &o, &s)) {
        fuzz_check(!s, "refused, but with a set");
        return 0;
    }
    check_set(s, o.keep_text);
    att_caption_set_free(s);
    return 0;
}
