/* For tests of the tool on recommenders: a model of random weights, in the folder of tool.h. */
#ifndef RECOMMENDER_TOOL_H
#define RECOMMENDER_TOOL_H

#include "attend_recommend.h"
#include "tool.h"

enum { SHOP_ITEMS = 12, SHOP_HIDDEN = 8, SHOP_POSITIONS = 5 };

static const char *const shop_ids[SHOP_ITEMS] = {"apple", "pear", "green tea", "ラーメン", "a,b", "say \"hi\"",
                                                 "plum",  "fig",  "kiwi",      "lime",     "nut", "oat"};

/* The model $R, whose most popular items are the numbers 7, 2 and 9, and log.tsv, which has one more item. */
static inline void shop_setup(void)
{
    att_ctx *c;
    att_recommender *m;
    int64_t counts[SHOP_ITEMS];
    char path[96];
    for (int64_t i = 0; i < SHOP_ITEMS; i++)
        counts[i] = (i * 5) % SHOP_ITEMS;
    assert_int_equal(att_open(&c, NULL), ATT_OK);
    assert_int_equal(att_recommender_new(c,
                                         "{\"model_type\": \"attend-sasrec\", \"hidden_size\": 8, "
                                         "\"num_attention_heads\": 2, \"max_position_embeddings\": 5}",
                                         SHOP_ITEMS, shop_ids, NULL, 3, &m),
                     ATT_OK);
    assert_int_equal(att_recommender_set_counts(m, counts), ATT_OK);
    snprintf(path, sizeof path, "%s/shop", tool_model.path);
    assert_int_equal(att_recommender_write(m, path, ATT_F32), ATT_OK);
    att_recommender_free(m);
    att_close(c);
    setenv("R", path, 1);
    folder_write(&tool_model, "log.tsv",
                 "ann\tapple\t3\nann\tgreen tea\t1\nann\tpear\t2\n"
                 "bob\tラーメン\t1\nbob\ta,b\t2\nbob\tdurian\t3\n"
                 "carl\tdurian\t1\n"
                 "dora\tfig\t1\ndora\tfig\t2\ndora\tkiwi\t3\n");
}

#endif
