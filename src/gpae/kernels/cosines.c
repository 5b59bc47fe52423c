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

/* Rows that are summed together: a lane each, and what their sums come to. */
typedef struct {
    vec *rows, *sums;
} Together;

static Together room_for(const Sums *p) {
    vec *memory = aligned_alloc(BYTES, (p->columns + p->outputs) * sizeof(vec));
    if (memory) memset(memory, 0, (p->columns + p->outputs) * sizeof(vec));
    return (Together){memory, memory + p->columns};
}

static void sum_up(const Sums *p, const double *x, int64_t rows, Together t) {
    vec cosines[FEATURES];
    for (int64_t l = 0; l < rows; l++)
        for (int64_t j = 0; j < p->columns; j++) t.rows[j][l] = (REAL)x[l * p->columns + j];
    for (int64_t o = 0; o < p->outputs; o++) t.sums[o] = all(p->offset[o]);
    for (int64_t tile = 0; tile < p->features; tile += FEATURES) {
        tile_of_cosines(p, t.rows, tile, cosines);
        add_tile(p, cosines, tile, t.sums);
    }
}

/* The sums of the queue's rows of x, which has `columns` columns, into `out`, which has `outputs`. Returns 0, or 1 where
   there is no memory. */
int sum_rows(const Sums *p, const double *x, double *out, Queue *queue) {
    const Together t = room_for(p);
    int64_t at, end;
    while (t.rows && take(queue, LANES, &at, &end)) {
        sum_up(p, x + at * p->columns, end - at, t);
        for (int64_t l = 0; l < end - at; l++)
            for (int64_t o = 0; o < p->outputs; o++) out[(at + l) * p->outputs + o] = (double)t.sums[o][l];
    }
    free(t.rows);
    return !t.rows;
}

typedef double wide __attribute__((vector_size(sizeof(double) * LANES)));
typedef int64_t count __attribute__((vector_size(sizeof(int64_t) * LANES)));

/* How many of the first n sums of each of the queue's rows are above 0, a number of the row's own added. */
int count_above(const Sums *p, const double *x, const double *own, int64_t n, int64_t *out, Queue *queue) {
    const Together t = room_for(p);
    int64_t at, end;
    while (t.rows && take(queue, LANES, &at, &end)) {
        wide added = {};
        count above = {};
        sum_up(p, x + at * p->columns, end - at, t);
        for (int64_t l = 0; l < end - at; l++) added[l] = own[at + l];
        for (int64_t o = 0; o < n; o++) above -= (count)(added + __builtin_convertvector(t.sums[o], wide) > 0.0);
        for (int64_t l = 0; l < end - at; l++) out[at + l] = above[l];
    }
    free(t.rows);
    return !t.rows;
}
