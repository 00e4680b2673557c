/* The input is the folder of a recommender: config.json, items.json, the JSON of model.safetensors and its data as
 * sections. What is accepted must have ids, and list items that it has. */
#include "fuzz.h"

#include "attend_recommend.h"

static const char *const files[] = {"config.json", "items.json", "model.safetensors", NULL};

static void clean(void) { fuzz_remove(files); }

/* A .safetensors file, whose header has the right length; without `text`: none. */
static void write_weights(fuzz_section text, fuzz_section data)
{
    const size_t size = 8 + text.size + data.size;
    unsigned char *bytes = malloc(size);
    if (!bytes)
        abort();
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)((uint64_t)text.size >> 8 * i);
    if (text.size > 0)
        memcpy(bytes + 8, text.data, text.size);
    if (data.size > 0)
        memcpy(bytes + 8 + text.size, data.data, data.size);
    fuzz_write(files[2], (fuzz_section){bytes, text.size ? size : 0});
    free(bytes);
}

static void check_list(att_status e, att_recommendation *r, int64_t items)
{
    fuzz_check(e || r->n == 1, "another number of lists");
    for (int64_t i = 0; !e && i < r->k; i++)
        fuzz_check(r->items[i] >= -1 && r->items[i] < items, "an item that does not exist");
    for (int64_t i = 1; !e && i < r->k; i++)
        fuzz_check(r->scores[i - 1] >= r->scores[i], "scores that are not sorted");
    att_recommendation_free(fuzz_context(), r);
}

static void check_model(const att_recommender *m)
{
    att_recommender_info info = {.size = sizeof info};
    att_recommendation r;
    fuzz_check(!att_recommender_describe(m, &info) && info.items > 0, "a model without items");
    for (int64_t i = 0; i < info.items; i++) {
        const char *id = att_recommender_item(m, i);
        fuzz_check(id && att_recommender_find_item(m, id) == i, "an item without id");
    }
    const int32_t history[] = {0, (int32_t)info.items - 1};
    for (int64_t n = 0; n <= 2; n += 2) {
        const att_status e = att_recommend(m, 1, history, (const int64_t[]){0, n}, NULL, &r);
        check_list(e, &r, info.items);
    }
    check_list(att_recommender_similar(m, 0, NULL, &r), &r, info.items);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    static bool registered;
    att_recommender *m;
    if (!registered)
        registered = !atexit(clean);
    fuzz_section rest = {data, size};
    fuzz_write(files[0], fuzz_next(&rest));
    fuzz_write(files[1], fuzz_next(&rest));
    const fuzz_section text = fuzz_next(&rest);
    write_weights(text, rest);
    if (att_recommender_open(fuzz_context(), fuzz_folder(), NULL, &m)) {
        fuzz_check(!m, "refused, but with a model");
        return 0;
    }
    check_model(m);
    att_recommender_free(m);
    return 0;
}
