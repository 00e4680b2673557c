/* Vision Transformers: logits, features and hidden states of transformers and timm; what a folder may have, and what is
 * refused. */
#include "vision/vit_config.h"
#include "fixtures/tiny_vit.h"

/* Within 1e-5 of the largest */
static void expect_near(const char *name, const float *is, int64_t n, const double *want, int64_t wanted)
{
    double error = 0, largest = 0;
    if (n != wanted)
        fail_msg("%s: %lld numbers, not %lld", name, (long long)n, (long long)wanted);
    for (int64_t i = 0; i < n; i++) {
        error = fmax(error, fabs((double)is[i] - want[i]));
        largest = fmax(largest, fabs(want[i]));
    }
    if (!(error <= 1e-5 * largest))
        fail_msg("%s: off by %g of %g", name, error, largest);
}

static void results_are_those_of_pytorch(void **state)
{
    (void)state;
    static float is[TINY_VIT_NUMBERS];
    static double want[TINY_VIT_NUMBERS];
    static tiny_images images;
    for (int i = 0; i < N_VITS; i++) {
        const char *name = tiny_vits[i];
        const test_folder folder = tiny_vit_folder(name, NULL);
        att_vit *m = tiny_vit_open(&folder, false);
        att_vit_info info = {.size = sizeof info};
        assert_int_equal(att_vit_describe(m, &info), ATT_OK);
        tiny_images_of(&images, name);
        const char *key = tiny_vit_key(name, info.classes ? "logits" : "features");
        int n = golden_line(TINY_VIT_GOLDEN, key, want, TINY_VIT_NUMBERS);
        expect_near(key, is, tiny_vit_apply(m, info.classes ? att_vit_logits : att_vit_features, &images.tensor, is),
                    want, n);
        key = tiny_vit_key(name, "hidden");
        n = golden_line(TINY_VIT_GOLDEN, key, want, TINY_VIT_NUMBERS);
        const int64_t all = tiny_vit_apply(m, att_vit_apply, &images.tensor, is);
        expect_near(key, is + all / images.tensor.dim[0] - n, n, want, n);
        att_vit_free(m);
        folder_remove(&folder);
    }
}

/* ---- timm's architectures */

enum { NUMBERS = 16 };

/* What a name stands for here, in the order of vit_architectures.txt; false: it is refused */
static bool read_architecture(const char *name, int64_t is[NUMBERS])
{
    att_settings s;
    att_vit_config c;
    char text[200];
    snprintf(text, sizeof text, "{\"architecture\": \"%s\", \"pretrained_cfg\": {\"input_size\": [3, 224, 224]}}",
             name);
    att_settings_parse(&s, ctx, "test", text, strlen(text));
    att_vit_timm_read(&s, &c);
    att_settings_close(&s);
    const att_vit_info *i = &c.info;
    const int64_t all[NUMBERS] = {i->patch[0],
                                  i->hidden,
                                  i->layers,
                                  i->heads,
                                  i->intermediate,
                                  c.registers,
                                  c.positioned,
                                  c.class_token,
                                  c.distillation_token,
                                  !c.no_qkv_bias,
                                  c.layer_scale != 0,
                                  c.gated,
                                  i->pooling == ATT_VIT_POOLING_MEAN,
                                  !c.no_norm && !c.pooled_norm,
                                  c.pooled_norm,
                                  c.resampled};
    memcpy(is, all, sizeof all);
    return !s.status;
}

static void timm_architectures_are_known_by_name(void **state)
{
    (void)state;
    FILE *f = fopen("tests/golden/vit_architectures.txt", "r");
    char line[300], name[100];
    int known = 0;
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        int64_t is[NUMBERS];
        int used = 0, n = 0;
        assert_int_equal(sscanf(line, "%99s%n", name, &used), 1);
        const bool has_numbers = line[used] == ' ', refused = !read_architecture(name, is);
        if (refused && has_numbers && !strstr(name, "siglip") && !strstr(name, "radio"))
            fail_msg("%s is not known", name);
        if (refused)
            continue;
        for (char *at = line + used, *end; n < NUMBERS; at = end, n++)
            if (strtoll(at, &end, 10) != is[n] || end == at)
                fail_msg("%s: number %d is %lld", name, n, (long long)is[n]);
        known++;
    }
    assert_true(known >= 75);
    fclose(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_those_of_pytorch),
        cmocka_unit_test(timm_architectures_are_known_by_name),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
