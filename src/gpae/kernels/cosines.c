/* Sums of cosines, f(x) = W' cos(Zx + c): every lane of a vector is a row, so a row's bits are the same in any company.
   What an encoder, a density and a model's replicas are made of. */

#include "queue.h"
#include "vectors.h"

#define FEATURES 64 /* cosines in a tile: they stay in the first-level cache */
#define OUTPUTS 8   /* sums that are taken side by side */

typedef struct {
    int64_t features, columns, outputs; /* the first padded to FEATURES, the last to OUTPUTS, with zeros */
    const REAL *sheaves;                /* features / SHEAF x columns x SHEAF */
    const REAL *phases;                 /* features */
    const REAL *weights;                /* outputs / OUTPUTS x features x OUTPUTS */
    const REAL *offset;                 /* outputs */
} Sums;

static void tile_of_cosines(const Sums *p, const vec *x, int64_t first, vec cosines[FEATURES]) {
    for (int f = 0; f < FEATURES; f += SHEAF) {
        vec phase[SHEAF];
        for (int s = 0; s < SHEAF; s++) phase[s] = all(p->phases[first + f + s]);
        add_to_sheaf(p->sheaves + (first + f) * p->columns, x, p->columns, phase);
        for (int s = 0; s < SHEAF; s++) cosines[f + s] = cosine_of(phase[s]);
    }
}

static void add_tile(const Sums *p, const vec cosines[FEATURES], int64_t first, vec *sums) {
    for (int64_t block = 0; block < p->outputs; block += OUTPUTS) {
        const REAL *w = p->weights + block * p->features + first * OUTPUTS;
        vec sum[OUTPUTS];
        for (int o = 0; o < OUTPUTS; o++) sum[o] = sums[block + o];
        for (int f = 0; f < FEATURES; f++, w += OUTPUTS)
            for (int o = 0; o < OUTPUTS; o++) sum[o] += all(w[o]) * cosines[f];
        for (int o = 0; o < OUTPUTS; o++) sums[block + o] = sum[o];
    }
}

/* The sums of the queue's rows of x, which has `columns` columns, into `out`, which has `outputs`. Returns 0, or 1 where
   there is no memory. */
int sum_rows(const Sums *p, const double *x, double *out, Queue *queue) {
    vec *memory = aligned_alloc(BYTES, (p->columns + p->outputs) * sizeof(vec)), cosines[FEATURES];
    if (!memory) return 1;
    vec *rows = memory, *sums = memory + p->columns;
    int64_t at, end;
    memset(memory, 0, (p->columns + p->outputs) * sizeof(vec));
    while (take(queue, LANES, &at, &end)) {
        const int64_t here = end - at;
        for (int64_t l = 0; l < here; l++)
            for (int64_t j = 0; j < p->columns; j++) rows[j][l] = (REAL)x[(at + l) * p->columns + j];
        for (int64_t o = 0; o < p->outputs; o++) sums[o] = all(p->offset[o]);
        for (int64_t tile = 0; tile < p->features; tile += FEATURES) {
            tile_of_cosines(p, rows, tile, cosines);
            add_tile(p, cosines, tile, sums);
        }
        for (int64_t l = 0; l < here; l++)
            for (int64_t o = 0; o < p->outputs; o++) out[(at + l) * p->outputs + o] = (double)sums[o][l];
    }
    free(memory);
    return 0;
}
