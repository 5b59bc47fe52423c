/* The logit g(x) = v' cos(Zx + c) + b and its gradient: every lane of a vector is a row, so a row's bits are the same in
   any company. What searches by gradient descent ask at every step. */

#include "queue.h"
#include "vectors.h"

typedef struct {
    int64_t features, columns; /* the first padded to SHEAF, with zeros */
    const REAL *sheaves;       /* features / SHEAF x columns x SHEAF */
    const REAL *phases;        /* features */
    const REAL *weights;       /* features: v, with the amplitude */
    const REAL *offset;        /* 1: b */
} Logit;

/* What one sheaf of features adds to g and, where there is room for it, to the gradient. */
static inline vec add_sheaf(const Logit *p, int64_t first, const vec *x, vec *gradient) {
    const REAL *z = p->sheaves + first * p->columns;
    vec phase[SHEAF], sine, cosine, sum = all(0);
    for (int s = 0; s < SHEAF; s++) phase[s] = all(p->phases[first + s]);
    add_to_sheaf(z, x, p->columns, phase);
    for (int s = 0; s < SHEAF; s++) {
        const vec weight = all(p->weights[first + s]);
        sine_cosine(phase[s], &sine, &cosine);
        sum += weight * cosine;
        phase[s] = weight * sine;
    }
    for (int64_t j = 0; gradient && j < p->columns; j++, z += SHEAF) {
        vec slope = gradient[j];
        for (int s = 0; s < SHEAF; s++) slope -= all(z[s]) * phase[s];
        gradient[j] = slope;
    }
    return sum;
}

/* The logits of the queue's rows of x and, unless it is null, their gradients. Returns 0, or 1 where there is no
   memory. */
int slopes_of_rows(const Logit *p, const REAL *x, REAL *logits, REAL *gradients, Queue *queue) {
    const int64_t columns = p->columns;
    vec *rows = aligned_alloc(BYTES, 2 * columns * sizeof(vec)), *gradient = gradients ? rows + columns : NULL;
    int64_t at, end;
    if (!rows) return 1;
    memset(rows, 0, columns * sizeof(vec));
    while (take(queue, LANES, &at, &end)) {
        const int64_t here = end - at;
        vec g = all(p->offset[0]);
        for (int64_t l = 0; l < here; l++)
            for (int64_t j = 0; j < columns; j++) rows[j][l] = x[(at + l) * columns + j];
        if (gradient) memset(gradient, 0, columns * sizeof(vec));
        for (int64_t first = 0; first < p->features; first += SHEAF) g += add_sheaf(p, first, rows, gradient);
        for (int64_t l = 0; l < here; l++) {
            logits[at + l] = g[l];
            for (int64_t j = 0; gradient && j < columns; j++) gradients[(at + l) * columns + j] = gradient[j][l];
        }
    }
    free(rows);
    return 0;
}
