/* Elementary functions of doubles, of additions, multiplications and divisions alone, so that they have the same bits
 * with any C library and on any machine. Off by an ulp at most, unless it says otherwise; NaN gives NaN. */
#ifndef ATT_BASE_MATH_H
#define ATT_BASE_MATH_H

double att_exp(double x);
double att_exp2(double x);
double att_log(double x); /* below 0: NaN */
/* base^(p / q) for base > 0, base finite; q not 0 */
double att_power(double base, double p, double q);
/* |x| above 2^100, where neighbours are many turns apart, counts as 0; NaN of an infinite one */
void att_sin_cos(double x, double *sine, double *cosine);

static inline double att_fmax(double a, double b) { return a > b ? a : b; } /* b where either is NaN */
static inline double att_fmin(double a, double b) { return a < b ? a : b; }

#endif
