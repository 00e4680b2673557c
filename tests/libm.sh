#!/bin/sh
# Results may not depend on the C library: which of its mathematical functions does each object of libattend call?
# What is exact by IEEE 754 has the same bits everywhere; definitions in double, for tests and att_verify, compute
# nothing that a caller gets.
# usage: tests/libm.sh libattend.a
set -eu
nm -A -u "$1" | awk '
    BEGIN {
        exact = " sqrt sqrtf fma fmaf fabs fabsf floor floorf trunc truncf rint rintf "
        n = split("acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10 exp2 expm1 " \
                  "fdim fabs floor fma fmax fmin fmod frexp hypot ilogb j0 j1 jn ldexp lgamma llrint llround log " \
                  "log10 log1p log2 logb lrint lround modf nearbyint nextafter nexttoward pow remainder remquo rint " \
                  "round scalbln scalbn sin sincos sinh sqrt tan tanh tgamma trunc y0 y1 yn", names)
        for (i = 1; i <= n; i++)
            libm[names[i]] = libm[names[i] "f"] = libm[names[i] "l"] = 1
        may["reference.c"] = " exp log log1p tanh cosh erf erfc fmax fmin cos sin pow "
        may["verify_check.c"] = may["verify_score.c"] = may["verify_modifier.c"] = " fmax fmin "
        may["softcap.c"] = may["additive.c"] = " tanh " # their formulas
    }
    {
        objects++
        object = $1
        sub(/:$/, "", object)
        sub(/^.*:/, "", object)
        sub(/\.o$/, "", object)
        sub(/@.*/, "", $NF)
        if (libm[$NF] && !index(exact, " " $NF " ") && !index(may[object], " " $NF " ")) {
            print object " calls " $NF ": src/base/math.h and src/simd/math.h have what has the same bits everywhere"
            wrong = 1
        }
    }
    END {
        if (!objects)
            print "no symbols found"
        exit wrong || !objects
    }' && echo "results are free of the C library's functions"
