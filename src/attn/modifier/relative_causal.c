/* Relative positions, buckets are for keys behind the query: T5's decoder. */
#include "attn/modifier/relative.h"

enum { BOTH = false };

static double formula(const att_pair *p, double s) { return relative_formula(p, s, BOTH); }

static double derivative(const att_pair *p, double s, double ds, double *dparam)
{
    (void)s;
    return relative_derivative(p, ds, dparam, BOTH);
}

static void tile(const att_tile *t) { relative_tile(t, BOTH); }
static void tile_back(const att_tile *t) { relative_tile_back(t, BOTH); }

static att_status check(att_ctx *ctx, float greatest, const att_tensor *table)
{
    return relative_check(ctx, greatest, table, BOTH);
}

extern const att_modifier ATT_ISA(att_modifier_relative_causal);
const att_modifier ATT_ISA(att_modifier_relative_causal) = {.name = "relative_causal",
                                                            .flags = ATT_ADDITIVE | ATT_NEEDS_ALIGN | ATT_HAS_VALUE,
                                                            .param = {.name = "table", .extent = {ATT_ANY}},
                                                            .check = check,
                                                            .formula = formula,
                                                            .derivative = derivative,
                                                            .tile = tile,
                                                            .tile_back = tile_back};
