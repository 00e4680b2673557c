/* The two products of pairs (bf16_products.c) in tiles of 16 rows of 16 pairs. Remaining rows and pairs are multiplied
 * in vectors. Which ones remain depends only on their position in the block, so no row's bits depend on others.
 */

/* A product c [rows][PANEL] = a [rows, 16 n pairs] b [16 n pairs][PANEL], added to c if begun; distances are in
 * floats. */
typedef struct squares {
    bool begun;
    int64_t n;
    const float *a;
    int64_t a_row, a_tile, a_next; /* from row to row, from 16 rows to the next 16, from 16 pairs to the next 16 */
    const float *b;
    float *c;
    int64_t c_row;
} squares;

enum { EDGE = ATT_TILE_EDGE };

/* Multiplies 16 or 32 rows by 16 or 32 columns: tiles 0 to 3 are c, 4 and 5 a, 6 and 7 b. */
ATT_INLINE void square(const bool two_rows, const bool two_columns, const squares *s)
{
    const size_t a_row = (size_t)s->a_row * sizeof(float), b_row = PANEL * sizeof(float);
    const size_t c_row = (size_t)s->c_row * sizeof(float);
    const float *a = s->a, *b = s->b;
    float *const low = s->c + EDGE * s->c_row;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    if (s->begun) {
        _tile_loadd(0, s->c, c_row);
        if (two_columns)
            _tile_loadd(1, s->c + EDGE, c_row);
        if (two_rows)
            _tile_loadd(2, low, c_row);
        if (two_rows && two_columns)
            _tile_loadd(3, low + EDGE, c_row);
    }
    for (int64_t i = 0; i < s->n; i++, a += s->a_next, b += EDGE * PANEL) {
        _tile_loadd(4, a, a_row);
        _tile_loadd(6, b, b_row);
        _tile_dpbf16ps(0, 4, 6);
        if (two_columns) {
            _tile_loadd(7, b + EDGE, b_row);
            _tile_dpbf16ps(1, 4, 7);
        }
        if (two_rows) {
            _tile_loadd(5, a + s->a_tile, a_row);
            _tile_dpbf16ps(2, 5, 6);
        }
        if (two_rows && two_columns)
            _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, s->c, c_row);
    if (two_columns)
        _tile_stored(1, s->c + EDGE, c_row);
    if (two_rows)
        _tile_stored(2, low, c_row);
    if (two_rows && two_columns)
        _tile_stored(3, low + EDGE, c_row);
}

/* Computes all of `rows` rows, which are whole tiles. */
ATT_INLINE void all_squares(int64_t rows, const bool two_columns, squares *s)
{
    for (; rows >= 2 * EDGE; rows -= 2 * EDGE, s->a += 2 * s->a_tile, s->c += 2 * EDGE * s->c_row)
        square(true, two_columns, s);
    if (rows > 0)
        square(false, two_columns, s);
}

/* These are separate functions, because their loops need all registers. */
static void wide_squares(int64_t rows, squares s) { all_squares(rows, true, &s); }
static void narrow_squares(int64_t rows, squares s) { all_squares(rows, false, &s); }

/* Computes s [keys][PANEL] = k [keys, pairs] times transposed q [pairs][PANEL]. */
static void scores(int64_t keys, int64_t queries, int64_t pairs, const float *k, int64_t stride, const float *q,
                   float *s, int64_t s_stride)
{
    const int64_t in_tiles = pairs / EDGE * EDGE, rows = in_tiles ? keys / EDGE * EDGE : 0;
    const squares whole = {.n = in_tiles / EDGE,
                           .a = k,
                           .a_row = stride,
                           .a_tile = EDGE * stride,
                           .a_next = EDGE,
                           .b = q,
                           .c = s,
                           .c_row = s_stride};
    if (queries > EDGE)
        wide_squares(rows, whole);
    else
        narrow_squares(rows, whole);
    const tile_args pairs_left = {
        .k = pairs - in_tiles, .a = k + in_tiles, .lda = stride, .b = q + in_tiles * PANEL, .c = s, .ldc = s_stride};
    if (pairs_left.k > 0)
        tile_all(rows, ATT_PANEL_VECTORS, false, START_C, pairs_left);
    const tile_args rows_left = {
        .k = pairs, .a = k + rows * stride, .lda = stride, .b = q, .c = s + rows * s_stride, .ldc = s_stride};
    tile_all(keys - rows, ATT_PANEL_VECTORS, false, START_ZERO, rows_left);
}

/* Prepares words of values [pairs of keys][dim] for accumulate_pv: transposes squares of 16 pairs by 16 in place. */
static void pack_values(int64_t keys, int64_t dim, float *pairs)
{
    for (int64_t pair = 0; pair + EDGE <= keys / 2; pair += EDGE)
        for (int64_t d = 0; d + EDGE <= dim; d += EDGE) {
            vf t[ATT_LANES];
            ATT_UNROLL (i, ATT_LANES)
                t[i] = v_load(pairs + (pair + i) * dim + d);
            v_transpose(t);
            ATT_UNROLL (i, ATT_LANES)
                v_store(pairs + (pair + i) * dim + d, t[i]);
        }
}

/* Scales rows [first, rows) of o [rows][PANEL] by scale [PANEL], or sets them to 0 if scale is NULL. */
static void begin_rows(int64_t first, int64_t rows, const float *scale, float *o)
{
    for (int64_t i = first; i < rows; i++)
        ATT_UNROLL (v, ATT_PANEL_VECTORS) {
            float *at = o + i * PANEL + v * ATT_LANES;
            v_store(at, scale ? v_mul(v_load(at), v_load(scale + v * ATT_LANES)) : v_set(0));
        }
}

/* Accumulates P V as attention.c does, on pairs: v [pairs of keys][dim] in transposed squares, p rounded into p_pairs
 * [pairs of keys][PANEL], or NULL if it has been rounded before. Ranges begin with a square (att_mask_tile_make). */
static void accumulate_pv(int n_ranges, const att_range *range, int64_t dim, const float *v, const float *p,
                          float *p_pairs, const float *rescale, float *o)
{
    const int64_t in_tiles = dim / EDGE * EDGE;
    for (int r = 0; r < n_ranges; r++) {
        const int64_t pair = range[r].first / 2, pairs = (range[r].last - range[r].first + 1) / 2;
        const int64_t in_tiles_k = (range[r].last - range[r].first) / (2 * EDGE) * EDGE;
        const bool begun = r > 0 || rescale;
        if (r == 0) /* tiles begin the rows before these */
            begin_rows(begun || !in_tiles_k ? 0 : in_tiles, dim, rescale, o);
        if (p)
            pack_weights(range[r].first, range[r].last, p, p_pairs);
        wide_squares(in_tiles_k ? in_tiles : 0, (squares){.begun = begun,
                                                          .n = in_tiles_k / EDGE,
                                                          .a = v + pair * dim,
                                                          .a_row = dim,
                                                          .a_tile = EDGE,
                                                          .a_next = EDGE * dim,
                                                          .b = p_pairs + pair * PANEL,
                                                          .c = o,
                                                          .c_row = PANEL});
        tile_args t = {.k = pairs - in_tiles_k,
                       .a = v + (pair + in_tiles_k) * dim,
                       .lda = dim,
                       .b = p_pairs + (pair + in_tiles_k) * PANEL,
                       .c = o,
                       .ldc = PANEL};
        if (t.k > 0)
            tile_all(in_tiles, ATT_PANEL_VECTORS, true, START_C, t);
        t = (tile_args){.k = pairs,
                        .a = v + pair * dim + in_tiles,
                        .lda = dim,
                        .b = p_pairs + pair * PANEL,
                        .c = o + in_tiles * PANEL,
                        .ldc = PANEL};
        tile_all(dim - in_tiles, ATT_PANEL_VECTORS, true, START_C, t);
    }
}
