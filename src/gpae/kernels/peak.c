/* What a core can do at most: fused products, and sines with cosines, on vectors that stay in registers. */

#include "vectors.h"

#define CHAINS 12 /* independent sums: enough to hide how long one product takes */

/* CHAINS * LANES * n fused products. The result is returned, so that the work is done. */
double fused_products(int64_t n, double by) {
    vec sum[CHAINS], factor = all((REAL)by);
    for (int c = 0; c < CHAINS; c++) sum[c] = all((REAL)c);
    for (int64_t i = 0; i < n; i++)
        for (int c = 0; c < CHAINS; c++) sum[c] = sum[c] * factor + factor;
    vec total = all(0);
    for (int c = 0; c < CHAINS; c++) total += sum[c];
    return (double)total[0];
}

/* CHAINS * LANES * n sines, and as many cosines. */
double sines_and_cosines(int64_t n, double by) {
    vec angle[CHAINS], total = all(0), step = all((REAL)by);
    for (int c = 0; c < CHAINS; c++) angle[c] = all((REAL)c);
    for (int64_t i = 0; i < n; i++)
        for (int c = 0; c < CHAINS; c++) {
            vec sine, cosine;
            sine_cosine(angle[c], &sine, &cosine);
            total += sine * cosine, angle[c] += step;
        }
    return (double)total[0];
}
