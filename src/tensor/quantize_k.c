/* Converts f32 to quantized blocks of 256 numbers: Q4_K, Q5_K and Q6_K.
 *
 * The formats leave open how scales and integers are chosen. Here they minimize the sum of squared errors: each group
 * of numbers is fitted alone, the scales of all groups become integers times a factor of the block, and then these
 * integers and the factors are improved in turn. */
#include "kernel/kernel.h"
#include "tensor/quantize.h"

#include <math.h>
#include <string.h>

enum { NUMBERS = ATT_SUPER_BLOCK, MAX_GROUPS = 16, LANES = 4, STEPS = 20, ROUNDS = 2 };
/* If all numbers of a group are below the first, they count as 0, as their step does in f16; a step of numbers above
 * the second is infinite in f16. */
static const float smallest = 0x1p-60f, largest = 0x1p40f;

typedef float four __attribute__((vector_size(16)));
typedef int32_t bits __attribute__((vector_size(16)));

/* How numbers of a type are made of integers: d sc q - m mn, q in [low, high], sc in [sc_low, sc_high] and mn in
 * [0, mn_high] those of a group. */
typedef struct layout {
    int group, low, high, sc_low, sc_high, mn_high;
} layout;

/* A block while it is fitted */
typedef struct fit {
    const float *x; /* [NUMBERS] */
    float d, m;     /* values of f16 */
    int sc[MAX_GROUPS], mn[MAX_GROUPS];
    float q[NUMBERS];
    float error[MAX_GROUPS]; /* the sum of squares of each group */
} fit;

static float to_half(float x)
{
    uint16_t code;
    att_kernels_of(0)->vector.to_f16(1, &x, &code);
    att_kernels_of(0)->vector.from_f16(1, &code, &x);
    return x;
}

static four set(float x) { return (four){x, x, x, x}; }
static float sum(four x) { return (x[0] + x[2]) + (x[1] + x[3]); }

/* Rounds to the nearest integer in [low, high], ties to even. */
static four nearest(four x, four low, four high)
{
    const four magic = set(12582912.0f);
    const bits below = x<low, above = x> high;
    x = (four)((below & (bits)low) | (~below & (bits)x));
    x = (four)((above & (bits)high) | (~above & (bits)x));
    return (x + magic) - magic;
}

/* Sets q [group] to the nearest integers for x = step q - minus; returns the sum of squared errors. */
static float assign(const layout *t, const float *x, float step, float minus, float *q)
{
    const four inverse = set(step != 0 ? 1 / step : 0), low = set((float)t->low), high = set((float)t->high);
    four error = set(0);
    for (int i = 0; i < t->group; i += LANES) {
        four y;
        memcpy(&y, x + i, sizeof y);
        const four whole = nearest((y + minus) * inverse, low, high), e = y - (step * whole - minus);
        error += e * e;
        memcpy(q + i, &whole, sizeof whole);
    }
    return sum(error);
}

/* Solves x = step u - minus v by least squares for n numbers; minus is 0 if v is NULL or it would be negative. Leaves
 * both as they are if they are not determined. */
static void solve(int n, const float *x, const float *u, const float *v, float *step, float *minus)
{
    double uu = 0, uv = 0, vv = 0, xu = 0, xv = 0;
    for (int i = 0; i < n; i++) {
        const double a = (double)u[i], b = v ? (double)v[i] : 0, y = (double)x[i];
        uu += a * a;
        uv += a * b;
        vv += b * b;
        xu += y * a;
        xv += y * b;
    }
    const double det = uu * vv - uv * uv, of_minus = (uv * xu - uu * xv) / det;
    if (det > 0 && of_minus > 0) {
        *step = (float)((vv * xu - uv * xv) / det);
        *minus = (float)of_minus;
    } else if (uu > 0) {
        *step = (float)(xu / uu);
        *minus = 0;
    }
}

/* ---- a group alone */

/* Fits x [group] from steps near the one that maps the numbers to all integers. */
static void fit_group(const layout *t, const float *x, float *step, float *minus)
{
    float min = 0, max = 0, q[NUMBERS], ones[NUMBERS], best = INFINITY;
    for (int i = 0; i < t->group; i++) {
        min = x[i] < min ? x[i] : min;
        max = x[i] > max ? x[i] : max;
        ones[i] = 1;
    }
    const float far = -min > max ? min : max, range = t->mn_high ? max - min : far / (float)t->low;
    *step = fabsf(far) > largest ? INFINITY : 0;
    *minus = 0;
    if (fabsf(far) < smallest || fabsf(far) > largest)
        return;
    for (int i = 0; i <= STEPS; i++) {
        const float levels =
            t->mn_high ? (float)t->high - 1 + 0.1f * (float)i : 1 + 0.1f * (float)(i - STEPS / 2) / (float)t->high;
        float d = range / levels, m = t->mn_high ? -min : 0;
        assign(t, x, d, m, q);
        solve(t->group, x, q, t->mn_high ? ones : NULL, &d, &m);
        const float error = assign(t, x, d, m, q);
        if (error < best) {
            best = error;
            *step = d;
            *minus = m;
        }
    }
}

/* ---- a block */

static int limit(int x, int low, int high) { return x < low ? low : x > high ? high : x; }

/* Returns the integer nearest to x / unit in [low, high]. */
static int integer_of(float x, float unit, int low, int high)
{
    const float y = unit != 0 ? x / unit : 0;
    return y <= (float)low ? low : y < (float)high ? (int)lrintf(y) : y >= (float)high ? high : 0;
}

/* Chooses the factors so that the largest scale of a group becomes the largest integer. */
static void set_scales(const layout *t, fit *f)
{
    float step[MAX_GROUPS], minus[MAX_GROUPS], largest_step = 0, largest_minus = 0;
    const int groups = NUMBERS / t->group;
    for (int g = 0; g < groups; g++) {
        fit_group(t, f->x + g * t->group, &step[g], &minus[g]);
        largest_step = fabsf(step[g]) > fabsf(largest_step) ? step[g] : largest_step;
        largest_minus = minus[g] > largest_minus ? minus[g] : largest_minus;
    }
    f->d = to_half(largest_step / (float)(t->sc_low ? t->sc_low : t->sc_high));
    f->m = t->mn_high ? to_half(largest_minus / (float)t->mn_high) : 0;
    for (int g = 0; g < groups; g++) {
        f->sc[g] = integer_of(step[g], f->d, t->sc_low, t->sc_high);
        f->mn[g] = integer_of(minus[g], f->m, 0, t->mn_high);
    }
}

static void assign_group(const layout *t, fit *f, int g)
{
    const int at = g * t->group;
    f->error[g] = assign(t, f->x + at, f->d * (float)f->sc[g], f->m * (float)f->mn[g], f->q + at);
}

/* Replaces the integers of a group by neighbors with a smaller error. */
static void improve_group(const layout *t, fit *f, int g)
{
    float q[NUMBERS];
    const int at = g * t->group, sc = f->sc[g], mn = f->mn[g], around = t->mn_high ? 1 : 0;
    for (int a = limit(sc - 1, t->sc_low, t->sc_high); a <= limit(sc + 1, t->sc_low, t->sc_high); a++)
        for (int b = limit(mn - around, 0, t->mn_high); b <= limit(mn + around, 0, t->mn_high); b++) {
            const float error = assign(t, f->x + at, f->d * (float)a, f->m * (float)b, q);
            if (error < f->error[g]) {
                f->error[g] = error;
                f->sc[g] = a;
                f->mn[g] = b;
                memcpy(f->q + at, q, (size_t)t->group * sizeof *q);
            }
        }
}

static double error_of(const layout *t, const fit *f)
{
    double error = 0;
    for (int g = 0; g < NUMBERS / t->group; g++)
        error += (double)f->error[g];
    return error;
}

/* Replaces the factors by those of least squares if the error becomes smaller. */
static void improve_factors(const layout *t, fit *f)
{
    fit other = *f;
    float u[NUMBERS], v[NUMBERS];
    for (int i = 0; i < NUMBERS; i++) {
        u[i] = (float)f->sc[i / t->group] * f->q[i];
        v[i] = (float)f->mn[i / t->group];
    }
    solve(NUMBERS, f->x, u, t->mn_high ? v : NULL, &other.d, &other.m);
    other.d = to_half(other.d);
    other.m = to_half(other.m);
    for (int g = 0; g < NUMBERS / t->group; g++)
        assign_group(t, &other, g);
    if (error_of(t, &other) < error_of(t, f))
        *f = other;
}

/* Fits x [256]. If a number is not finite, d is NaN; if one is too large for the factors, d is infinite. */
static void fit_block(const layout *t, const float *x, fit *f)
{
    const int groups = NUMBERS / t->group;
    *f = (fit){.x = x, .d = att_finite_or_nan(NUMBERS, x, 0)};
    if (isnan(f->d))
        return;
    set_scales(t, f);
    if (isinf(f->d) || isinf(f->m)) {
        f->d = INFINITY;
        return;
    }
    for (int g = 0; g < groups; g++)
        assign_group(t, f, g);
    for (int round = 0; round <= ROUNDS; round++) {
        if (round > 0)
            improve_factors(t, f);
        for (int g = 0; g < groups; g++)
            improve_group(t, f, g);
    }
}

/* ---- bytes */

/* Writes eight scales and eight minimums of 6 bits into 12 bytes. */
static void pack_six_bits(const int *sc, const int *mn, uint8_t *s)
{
    for (int g = 0; g < 4; g++) {
        s[g] = (uint8_t)(sc[g] | (sc[4 + g] >> 4) << 6);
        s[4 + g] = (uint8_t)(mn[g] | (mn[4 + g] >> 4) << 6);
        s[8 + g] = (uint8_t)((sc[4 + g] & 15) | (mn[4 + g] & 15) << 4);
    }
}

/* Packs bits [from, from + count) of q + zero in planes, as att_dequantize unpacks them: plane k of a row of `width`
 * bytes has `count` bits of each byte, those from k * count on. */
static void pack_planes(const float *q, int zero, int from, int count, int width, uint8_t *to)
{
    const int planes = 8 / count, mask = (1 << count) - 1;
    for (int i = 0; i < NUMBERS / planes; i++) {
        const float *row = q + i / width * width * planes + i % width;
        int byte = 0;
        for (int k = 0; k < planes; k++)
            byte |= (((int)row[k * width] + zero) >> from & mask) << (k * count);
        to[i] = (uint8_t)byte;
    }
}

static void write_affine(const layout *t, const float *x, uint8_t *block)
{
    fit f;
    fit_block(t, x, &f);
    att_write_half(f.d, block);
    att_write_half(f.m, block + 2);
    pack_six_bits(f.sc, f.mn, block + 4);
    if (t->high > 15)
        pack_planes(f.q, 0, 4, 1, 32, block + 16);
    pack_planes(f.q, 0, 0, 4, 32, block + (t->high > 15 ? 48 : 16));
}

void att_write_q4_k(const float *x, uint8_t *block)
{
    write_affine(&(const layout){.group = 32, .high = 15, .sc_high = 63, .mn_high = 63}, x, block);
}

void att_write_q5_k(const float *x, uint8_t *block)
{
    write_affine(&(const layout){.group = 32, .high = 31, .sc_high = 63, .mn_high = 63}, x, block);
}

void att_write_q6_k(const float *x, uint8_t *block)
{
    fit f;
    fit_block(&(const layout){.group = 16, .low = -32, .high = 31, .sc_low = -128, .sc_high = 127}, x, &f);
    pack_planes(f.q, 32, 0, 4, 64, block);
    pack_planes(f.q, 32, 4, 2, 32, block + 128);
    for (int g = 0; g < MAX_GROUPS; g++)
        block[192 + g] = (uint8_t)(int8_t)f.sc[g];
    att_write_half(f.d, block + 208);
}
