/* The nearest rows of a table, and how far plans lie from them: every lane of a vector is a row of the table. */

#include "queue.h"
#include "vectors.h"

#define FAR ((REAL)1e15) /* its square can still be told */
#define CHAINS 4         /* sums side by side: one alone would wait for itself at every column */
#define GROUP (CHAINS * LANES)

typedef struct {
    int64_t rows, columns;
    const REAL *table;  /* rows x columns */
    const REAL *groups; /* rows / GROUP, rounded up, x columns x GROUP: the same, a lane a row */
} Table;

/* Squared distances from x to the rows of a group. */
static inline void from_group(const REAL *group, const REAL *x, int64_t columns, vec square[CHAINS]) {
    vec sum[CHAINS];
    for (int c = 0; c < CHAINS; c++) sum[c] = all(0);
    for (int64_t j = 0; j < columns; j++)
        for (int c = 0; c < CHAINS; c++) {
            vec apart = *(const vec *)(group + j * GROUP + c * LANES) - all(x[j]);
            sum[c] += apart * apart;
        }
    for (int c = 0; c < CHAINS; c++) square[c] = sum[c];
}

/* ---- the nearest rows: a pool of candidates, thinned out whenever it is full ---- */

#define TOGETHER 8 /* people who are taken through the table together: a group stays in the first-level cache */
#define SPARE 4    /* a pool holds so many times what is wanted */
#define SAMPLE 8   /* of so many groups one is looked at first, for a bound */

/* A squared distance and a row in one number: bits of numbers that are not negative are in the order of the numbers, and
   of two rows as near the first comes first. */
typedef uint64_t Near;

typedef struct {
    Near *near;
    int64_t count;
    REAL bound; /* what is not nearer than this is not among the nearest */
} Pool;

static inline Near near_row(float square, int64_t row) {
    uint32_t bits;
    memcpy(&bits, &square, sizeof bits);
    return (Near)bits << 32 | (Near)row;
}

static inline int64_t row_of(Near a) { return (int64_t)(a & 0xffffffff); }

static inline float square_of(Near a) {
    const uint32_t bits = (uint32_t)(a >> 32);
    float square;
    memcpy(&square, &bits, sizeof square);
    return square;
}

/* Shell's sort: a few dozen, or a few thousand where somebody is hard to answer. */
static void sort(Near *near, int64_t n) {
    static const int gaps[] = {1750, 701, 301, 132, 57, 23, 10, 4, 1};
    for (size_t g = 0; g < sizeof gaps / sizeof *gaps; g++)
        for (int64_t i = gaps[g]; i < n; i++) {
            const Near moving = near[i];
            int64_t at = i;
            for (; at >= gaps[g] && moving < near[at - gaps[g]]; at -= gaps[g]) near[at] = near[at - gaps[g]];
            near[at] = moving;
        }
}

/* Bring the n nearest to the front, the furthest of them to place n - 1 (Hoare's selection). */
static void thin_out(Pool *pool, int64_t n) {
    Near *near = pool->near;
    int64_t low = 0, high = pool->count - 1;
    while (low < high) {
        const Near pivot = near[(low + high) / 2];
        int64_t i = low, j = high;
        while (i <= j) {
            while (near[i] < pivot) i++;
            while (pivot < near[j]) j--;
            if (i > j) break;
            const Near swapped = near[i];
            near[i++] = near[j], near[j--] = swapped;
        }
        if (n - 1 <= j) high = j;
        else if (n - 1 >= i) low = i;
        else break;
    }
    pool->count = n, pool->bound = square_of(near[n - 1]);
}

static inline void add_group(const Table *t, const REAL *x, int64_t group, int64_t wanted, Pool *pool) {
    vec square[CHAINS];
    from_group(t->groups + group * t->columns, x, t->columns, square);
    vec closest = square[0];
    for (int c = 1; c < CHAINS; c++) closest = least(closest, square[c]);
    if (!any(closest < all(pool->bound))) return;
    for (int c = 0; c < CHAINS; c++) {
        if (!any(square[c] < all(pool->bound))) continue;
        for (int l = 0; l < LANES; l++) { /* written in any case, kept if the next does not take its place */
            pool->near[pool->count] = near_row(square[c][l], group + c * LANES + l);
            pool->count += square[c][l] < pool->bound;
        }
    }
    if (pool->count > SPARE * wanted) thin_out(pool, wanted);
}

/* A bound that about twice as many rows keep as are wanted, from a sample; with it few are looked at closely. */
static REAL likely_bound(const Table *t, const REAL *x, int64_t wanted, Pool *pool) {
    const int64_t some = 2 * wanted / SAMPLE + 1;
    *pool = (Pool){pool->near, 0, INFINITY};
    for (int64_t group = 0; group + GROUP <= t->rows; group += SAMPLE * GROUP) add_group(t, x, group, some, pool);
    if (pool->count < some) return INFINITY;
    thin_out(pool, some);
    return pool->bound;
}

/* The nearest of the pool, in order; where these are not enough, of all rows. */
static void in_their_order(const Table *t, const REAL *x, int64_t wanted, Pool *pool) {
    if (pool->count < wanted) {
        *pool = (Pool){pool->near, 0, INFINITY};
        for (int64_t group = 0; group < t->rows; group += GROUP) add_group(t, x, group, wanted, pool);
    }
    thin_out(pool, wanted);
    sort(pool->near, wanted);
}

/* For the queue's rows of x the `wanted` nearest rows of the table (which has as many), nearest first. Returns 0, or
   1 where there is no memory. */
int nearest_rows(const Table *t, const REAL *x, int64_t wanted, int64_t *index, Queue *queue) {
    const int64_t room = SPARE * wanted + GROUP + 1;
    Near *memory = malloc(TOGETHER * room * sizeof(Near));
    if (!memory) return 1;
    int64_t at, end;
    while (take(queue, TOGETHER, &at, &end)) {
        const int64_t here = end - at;
        const REAL *own = x + at * t->columns;
        Pool pools[TOGETHER];
        for (int64_t i = 0; i < here; i++) {
            pools[i].near = memory + i * room;
            pools[i] = (Pool){memory + i * room, 0, likely_bound(t, own + i * t->columns, wanted, &pools[i])};
        }
        for (int64_t group = 0; group < t->rows; group += GROUP)
            for (int64_t i = 0; i < here; i++) add_group(t, own + i * t->columns, group, wanted, &pools[i]);
        for (int64_t i = 0; i < here; i++) {
            in_their_order(t, own + i * t->columns, wanted, &pools[i]);
            for (int64_t n = 0; n < wanted; n++) index[(at + i) * wanted + n] = row_of(pools[i].near[n]);
        }
    }
    free(memory);
    return 0;
}

/* ---- how far plans lie from the few nearest of some rows ---- */

/* The rows of the table at `index` as groups; lanes without a row are far from everything. */
static void gather(const Table *t, const int64_t *index, int64_t n, REAL *groups) {
    for (int64_t at = 0; at < n + (-n & (GROUP - 1)); at++) {
        REAL *lane = groups + (at / GROUP * t->columns) * GROUP + at % GROUP;
        for (int64_t j = 0; j < t->columns; j++) lane[j * GROUP] = at < n ? t->table[index[at] * t->columns + j] : FAR;
    }
}

/* Put a square among the `few` least, which are in order. */
static inline void insert(REAL *least, int64_t few, REAL square) {
    int64_t at = few - 1;
    if (!(square < least[at])) return;
    for (; at > 0 && square < least[at - 1]; at--) least[at] = least[at - 1];
    least[at] = square;
}

/* The mean distance to the `few` nearest of n rows in groups. */
static double mean_of_least(const REAL *groups, int64_t n, const REAL *u, int64_t columns, int64_t few, REAL *least) {
    for (int64_t i = 0; i < few; i++) least[i] = INFINITY;
    for (int64_t first = 0; first < n; first += GROUP) {
        vec square[CHAINS];
        from_group(groups + first * columns, u, columns, square);
        for (int c = 0; c < CHAINS; c++)
            if (any(square[c] < all(least[few - 1])))
                for (int l = 0; l < LANES; l++) insert(least, few, square[c][l]);
    }
    double sum = 0;
    for (int64_t i = 0; i < few; i++) sum += sqrt((double)least[i]);
    return sum / few;
}

/* Of the queue's plans, places in `order`, in which a person's plans stand together: the mean distance to the few nearest
   of the person's n rows. */
int distances(const Table *t, const int64_t *index, int64_t n, const int64_t *person, const int64_t *order,
              const REAL *plans, int64_t few, double *far, Queue *queue) {
    const int64_t groups = (n + GROUP - 1) / GROUP;
    REAL *memory = aligned_alloc(BYTES, groups * t->columns * GROUP * sizeof(REAL));
    REAL *least = malloc(few * sizeof(REAL));
    int64_t first, end;
    while (memory && least && take(queue, SOME, &first, &end))
        for (int64_t at = first; at < end; at++) {
            const int64_t plan = order[at], who = person[plan];
            if (at == first || who != person[order[at - 1]]) gather(t, index + who * n, n, memory);
            far[plan] = mean_of_least(memory, n, plans + plan * t->columns, t->columns, few, least);
        }
    free(memory), free(least);
    return !memory || !least;
}
