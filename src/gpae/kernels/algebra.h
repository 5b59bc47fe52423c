/* Linear systems, one a lane: of LATENT unknowns, and of any number, then in rows one after the other. */

#ifndef ALGEBRA_H
#define ALGEBRA_H

#include "vectors.h"

#define TINY ((REAL)1e-12) /* instead of nothing, where something is divided by it */

/* Solve M y = (b, c) in place, with partial pivoting in each lane. */
static void solve(vec M[LATENT][LATENT], vec b[LATENT], vec c[LATENT]) {
    for (int k = 0; k < LATENT; k++) {
        for (int l = k + 1; l < LATENT; l++) {
            mask larger = size(M[l][k]) > size(M[k][k]);
            for (int j = k; j < LATENT; j++) {
                vec high = pick(larger, M[l][j], M[k][j]);
                M[l][j] = pick(larger, M[k][j], M[l][j]), M[k][j] = high;
            }
            vec high = pick(larger, b[l], b[k]);
            b[l] = pick(larger, b[k], b[l]), b[k] = high;
            high = pick(larger, c[l], c[k]);
            c[l] = pick(larger, c[k], c[l]), c[k] = high;
        }
        for (int l = k + 1; l < LATENT; l++) {
            vec share = M[l][k] / M[k][k];
            for (int j = k + 1; j < LATENT; j++) M[l][j] -= share * M[k][j];
            b[l] -= share * b[k], c[l] -= share * c[k];
        }
    }
    for (int k = LATENT - 1; k >= 0; k--) {
        for (int j = k + 1; j < LATENT; j++) b[k] -= M[k][j] * b[j], c[k] -= M[k][j] * c[j];
        b[k] /= M[k][k], c[k] /= M[k][k];
    }
}

/* Solve A y = (b, c) for a positive A by Cholesky's factor L, which takes the place of A's lower triangle. */
static void solve_positive(vec *A, vec *b, vec *c, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            vec sum = A[i * n + j];
            for (int64_t k = 0; k < j; k++) sum -= A[i * n + k] * A[j * n + k];
            A[i * n + j] = i == j ? root(most(sum, all(TINY))) : sum / A[j * n + j];
        }
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < i; k++) b[i] -= A[i * n + k] * b[k], c[i] -= A[i * n + k] * c[k];
        b[i] /= A[i * n + i], c[i] /= A[i * n + i];
    }
    for (int64_t i = n - 1; i >= 0; i--) {
        for (int64_t k = i + 1; k < n; k++) b[i] -= A[k * n + i] * b[k], c[i] -= A[k * n + i] * c[k];
        b[i] /= A[i * n + i], c[i] /= A[i * n + i];
    }
}

#endif
