/* attend train --freeze: what is frozen stays bit by bit, also over a resume and with other classes; patterns that
 * freeze nothing or all are named. */
// labels: trains
#include "fixtures/idx_files.h"
#include "fixtures/tool.h"

#include "attend_model.h"
#include "attend_vision.h"

#define TRAIN "$A train classify --data . --batch 32 --rate 1e-2 --threads 2 "
#define HEAD                                                                                                           \
    TRAIN "-m base --labels rows,columns,diagonals --schedule constant --warmup 2 --freeze "                           \
          "layer,norm,patches,embeddings "

static int set_up(void **state)
{
    (void)state;
    setenv("A", ATTEND_TOOL, 1);
    tool_model = folder_new();
    stripes_write(&tool_model, "train", 240, 1);
    folder_write(&tool_model, "small.json",
                 "{\"model_type\": \"vit\", \"patch_size\": 2, \"hidden_size\": 16, \"num_hidden_layers\": 2, "
                 "\"num_attention_heads\": 2, \"intermediate_size\": 32}");
    assert_int_equal(tool(TRAIN "--config small.json --labels rows,columns,diagonals --steps 2 --dtype f16 -o base"),
                     0);
    return 0;
}

static att_safetensors *open_weights(att_ctx *ctx, const char *folder)
{
    char path[300];
    att_safetensors *file;
    snprintf(path, sizeof path, "%.200s/%.40s/model.safetensors", tool_model.path, folder);
    if (att_safetensors_open(ctx, path, &file))
        fail_msg("%s", att_error(ctx));
    return file;
}

/* All weights but the classifier's have the same bits, in f16; the classifier's have others. */
static void only_the_head_differs(const char *folder)
{
    att_ctx *ctx;
    assert_int_equal(att_open(&ctx, NULL), ATT_OK);
    att_safetensors *a = open_weights(ctx, "base"), *b = open_weights(ctx, folder);
    const int64_t n = att_safetensors_count(a);
    assert_true(n > 20 && att_safetensors_count(b) == n);
    for (int64_t i = 0; i < n; i++) {
        const char *name = att_safetensors_name(a, i);
        att_tensor x, y;
        assert_int_equal(att_safetensors_get(a, name, &x), ATT_OK);
        if (att_safetensors_get(b, name, &y))
            fail_msg("%s", att_error(ctx));
        const bool head = strstr(name, "classifier") != NULL;
        assert_true(x.dtype == ATT_F16 && y.dtype == ATT_F16);
        const size_t bytes = (size_t)(x.dim[0] * x.stride[0]) * 2;
        if (!head && (x.dim[0] != y.dim[0] || memcmp(x.data, y.data, bytes) != 0))
            fail_msg("%s differs", name);
        assert_true(!head || x.dim[0] != y.dim[0] || memcmp(x.data, y.data, bytes) != 0);
    }
    att_safetensors_free(a);
    att_safetensors_free(b);
    att_close(ctx);
}

/* Returns the loss of line `line` of the log's validations. */
static double loss_in(const char *folder, const char *which)
{
    char command[200];
    snprintf(command, sizeof command, "grep '\"loss\"' %s/log.jsonl | %s -n 1", folder, which);
    assert_int_equal(tool(command), 0);
    const char *loss = strstr(tool_out, "\"loss\": ");
    assert_non_null(loss);
    return atof(loss + strlen("\"loss\": "));
}

static void training_a_head_leaves_all_other_weights(void **state)
{
    (void)state;
    assert_int_equal(tool(HEAD "--steps 60 --validate-every 10 --dtype f16 -o head"), 0);
    assert_has(tool_err, "51 of 4899 parameters");
    only_the_head_differs("head");
    assert_true(loss_in("head", "tail") < loss_in("head", "head"));
    /* other classes: another classifier */
    assert_int_equal(tool(TRAIN "-m base --labels a,b,c --freeze layer,norm,patches,embeddings --steps 3 --dtype f16 "
                                "-o other"),
                     0);
    only_the_head_differs("other");
}

/* The checkpoint has the head alone, and resuming has the same bits as no interruption. */
static void a_resume_has_the_frozen_weights_of_the_model(void **state)
{
    (void)state;
    assert_int_equal(tool(HEAD "--steps 20 --dtype f16 -o whole"), 0);
    assert_int_equal(tool(HEAD "--steps 10 --dtype f16 -o halves"), 0);
    assert_int_equal(tool("test $(cat halves/checkpoint-* | wc -c) -lt 5000"), 0);
    assert_refused("$A train classify --resume -o halves --steps 20 --freeze layer", 2,
                   "--freeze is layer,norm,patches,embeddings in halves but layer here");
    assert_int_equal(tool("$A train classify --resume -o halves --steps 20"), 0);
    assert_int_equal(tool("cmp whole/model.safetensors halves/model.safetensors"), 0);
    /* weights of another model are refused */
    assert_int_equal(tool(TRAIN "--config small.json --labels rows,columns,diagonals --steps 2 -o base2 && "
                                "cp base/model.safetensors saved && cp base2/model.safetensors base/"),
                     0);
    assert_refused("$A train classify --resume -o halves --steps 30", 1, "is of a training with other frozen weights");
    assert_int_equal(tool("cp saved base/model.safetensors"), 0);
}

static void patterns_that_freeze_nothing_or_all_are_named(void **state)
{
    (void)state;
    assert_refused(TRAIN "-m base --labels rows,columns,diagonals --freeze norm,layr.1 -o none", 2,
                   "--freeze: \"layr.1\" matches no parameter; nearest are layer.1, layer.0, layer; the parts are "
                   "patches, embeddings, layer, norm, head");
    assert_refused(TRAIN "-m base --labels rows,columns,diagonals --freeze '*' -o none", 2,
                   "--freeze: all 40 parameters are frozen, so none learns");
    assert_refused(TRAIN "-m base --labels rows,columns,diagonals --freeze norm,, -o none", 2,
                   "--freeze norm,, has an empty pattern");
    assert_refused(TRAIN "-m base --labels columns,rows,diagonals --freeze head -o none", 1,
                   "head.weight is frozen, but the model has its classes in another order than the images");
    assert_int_equal(tool("test ! -e none"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_a_head_leaves_all_other_weights),
        cmocka_unit_test(a_resume_has_the_frozen_weights_of_the_model),
        cmocka_unit_test(patterns_that_freeze_nothing_or_all_are_named),
    };
    return cmocka_run_group_tests(tests, set_up, tool_teardown);
}
