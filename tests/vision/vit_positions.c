/* The positions that a new vision Transformer begins with. */
#include "fixtures/check.h"

#include "attend_util.h"
#include "attend_vision.h"

#include <math.h>

static void they_are_sines_and_cosines_of_columns_and_rows(void **state)
{
    (void)state;
    enum { HIDDEN = 10, COLUMNS = 3 }; /* of two frequencies, 1 and 1 / 100; the last two features are not of these */
    att_ctx *ctx = check_open(NULL, 1);
    att_vit *m;
    if (att_vit_new(ctx,
                    "{\"model_type\": \"vit\", \"image_size\": [8, 12], \"patch_size\": 4, \"num_channels\": 1, "
                    "\"num_labels\": 3, \"hidden_size\": 10, \"num_hidden_layers\": 1, \"num_attention_heads\": 2, "
                    "\"intermediate_size\": 8}",
                    1, &m))
        fail_msg("%s", att_error(ctx));
    const char *name = "";
    const att_param *p = NULL;
    for (int64_t i = 0; strcmp(name, "embeddings.position") != 0; i++)
        assert_non_null(p = att_nn_params_at(att_vit_params(m), i, &name));
    const att_tensor *x = att_param_value(p);
    assert_int_equal(x->dim[0], 1 + 2 * COLUMNS);
    assert_int_equal(x->dim[1], HIDDEN);
    for (int row = 0; row < 2; row++)
        for (int column = 0; column < COLUMNS; column++) {
            const double expected[] = {sin(column), sin(0.01 * column), cos(column), cos(0.01 * column),
                                       sin(row),    sin(0.01 * row),    cos(row),    cos(0.01 * row)};
            const float *at = (const float *)x->data + (1 + row * COLUMNS + column) * HIDDEN;
            for (int k = 0; k < 8; k++)
                check_near(expected[k], (double)at[k], 1e-7, "row %d, column %d, feature %d", row, column, k);
        }
    for (int k = 0; k < HIDDEN; k++) /* of [CLS]: noise */
        assert_true(fabsf(((const float *)x->data)[k]) <= 0.04f);
    att_vit_free(m);
    att_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(they_are_sines_and_cosines_of_columns_and_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
