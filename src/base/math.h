/* Elementary functions of doubles, computed from additions, multiplications and divisions only, so that they have the
 * same bits with any C library and on any machine. Errors are at most one ulp unless stated otherwise; NaN gives
 * NaN. */
#ifndef ATT_BASE_MATH_H
#define ATT_BASE_MATH_H

double att_f64_exp(double x);
double att_f64_exp2(double x);
double att_f64_log(double x); /* x < 0: NaN */
/* base^(p / q); base > 0 and finite, q != 0 */
double att_f64_power(double base, double p, double q);
/* |x| > 2^100 (where neighboring doubles are many periods apart) is taken as 0; infinite x gives NaN */
void att_f64_sin_cos(double x, double *sine, double *cosine);

static inline double att_fmax(double a, double b) { return a > b ? a : b; } /* b if either is NaN */
static inline double att_fmin(double a, double b) { return a < b ? a : b; }

#endif
