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

/* Squared distances to the rows of a group from one row x, or two: so what is loaded does for both. */
static inline __attribute__((always_inline)) void from_group(const REAL *group, const REAL *x, int rows,
                                                             int64_t columns, vec square[][CHAINS]) {
    vec sum[2][CHAINS];
    for (int i = 0; i < rows; i++)
        for (int c = 0; c < CHAINS; c++) sum[i][c] = all(0);
    for (int64_t j = 0; j < columns; j++)
        for (int c = 0; c < CHAINS; c++) {
            const vec there = *(const vec *)(group + j * GROUP + c * LANES);
            for (int i = 0; i < rows; i++) {
                const vec apart = there - all(x[i * columns + j]);
                sum[i][c] += apart * apart;
            }
        }
    for (int i = 0; i < rows; i++)
        for (int c = 0; c < CHAINS; c++) square[i][c] = sum[i][c];
}

/* ---- the nearest rows: what is no further than a bound that enough rows keep, thinned out ---- */

#define TOGETHER 8 /* people who are taken through the table together: a group stays in the first-level cache */

/* A squared distance and a row in one number: bits of numbers that are not negative are in the order of the numbers, and
   of two rows as near the first comes first. */
typedef uint64_t Near;

static inline Near near_row(float square, int64_t row) {
    uint32_t bits;
    memcpy(&bits, &square, sizeof bits);
    return (Near)bits << 32 | (Near)row;
}

static inline int64_t row_of(Near a) { return (int64_t)(a & 0xffffffff); }

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

/* Bring the n nearest to the front (Hoare's selection). */
static void thin_out(Near *near, int64_t count, int64_t n) {
    int64_t low = 0, high = count - 1;
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
}

/* One person's squared distances to all rows, and the least of each of some shares of the rows, a lane a share. */
typedef struct {
    vec *square, *closest;
} Far;

/* As many shares as are twice wanted: about a third more rows than wanted are as near as half of the shares' least. */
static int64_t shares_for(int64_t wanted, int64_t vectors) {
    const int64_t shares = (2 * wanted + LANES - 1) / LANES;
    return shares < vectors ? shares : vectors;
}

/* Keep what was measured of a group, the first of whose vectors counts for this share; returns the next share. */
static inline int64_t keep(const Far *far, const vec square[CHAINS], int64_t vector, int64_t share, int64_t shares) {
    for (int c = 0; c < CHAINS; c++) {
        far->square[vector + c] = square[c];
        far->closest[share] = least(far->closest[share], square[c]);
        share = share + 1 < shares ? share + 1 : 0;
    }
    return share;
}

/* Measure some people, at x, together. */
static void measure(const Table *t, const REAL *x, int64_t people, int64_t shares, const Far *far) {
    int64_t share = 0, next = 0;
    for (int64_t i = 0; i < people; i++)
        for (int64_t s = 0; s < shares; s++) far[i].closest[s] = all(INFINITY);
    for (int64_t group = 0; group < t->rows; group += GROUP, share = next) {
        const REAL *there = t->groups + group * t->columns;
        vec square[2][CHAINS];
        for (int64_t i = 0; i < people; i += 2) {
            const int both = i + 1 < people;
            if (both) from_group(there, x + i * t->columns, 2, t->columns, square);
            else from_group(there, x + i * t->columns, 1, t->columns, square);
            next = keep(far + i, square[0], group / LANES, share, shares);
            if (both) keep(far + i + 1, square[1], group / LANES, share, shares);
        }
    }
}

/* The n-th least of all lanes: its bits, the highest first, for those of numbers not negative are in their order. */
static REAL nth_least(const vec *some, int64_t vectors, int64_t n) {
    uint32_t bits = 0;
    REAL value;
    for (uint32_t bit = 1u << 30; bit; bit >>= 1) {
        const mask tried = (mask){} + (whole)(bits | bit);
        int64_t below = 0;
        for (int64_t i = 0; i < vectors; i++) below += __builtin_popcount(which((mask)some[i] < tried));
        if (below < n) bits |= bit;
    }
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The `wanted` nearest rows, nearest first, at the front of `near`. */
static void select_nearest(const Table *t, const Far *far, int64_t shares, int64_t wanted, Near *near) {
    const vec bound = all(nth_least(far->closest, shares, wanted));
    int64_t count = 0;
    for (int64_t row = 0; row < t->rows; row += LANES)
        for (uint32_t there = which(far->square[row / LANES] <= bound); there; there &= there - 1) {
            const int lane = __builtin_ctz(there);
            near[count++] = near_row(far->square[row / LANES][lane], row + lane);
        }
    thin_out(near, count, wanted);
    sort(near, wanted);
}

/* For the queue's rows of x the `wanted` nearest rows of the table (which has as many), nearest first. Returns 0, or
   1 where there is no memory. */
int nearest_rows(const Table *t, const REAL *x, int64_t wanted, int64_t *index, Queue *queue) {
    const int64_t vectors = (t->rows + GROUP - 1) / GROUP * CHAINS, shares = shares_for(wanted, vectors);
    vec *memory = aligned_alloc(BYTES, TOGETHER * (vectors + shares) * sizeof(vec));
    Near *near = malloc(vectors * LANES * sizeof(Near));
    Far far[TOGETHER];
    int64_t at, end;
    for (int i = 0; memory && i < TOGETHER; i++)
        far[i].square = memory + i * (vectors + shares), far[i].closest = far[i].square + vectors;
    while (memory && near && take(queue, TOGETHER, &at, &end)) {
        measure(t, x + at * t->columns, end - at, shares, far);
        for (int64_t i = at; i < end; i++) {
            select_nearest(t, far + (i - at), shares, wanted, near);
            for (int64_t n = 0; n < wanted; n++) index[i * wanted + n] = row_of(near[n]);
        }
    }
    free(memory), free(near);
    return !memory || !near;
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
        vec square[1][CHAINS];
        from_group(groups + first * columns, u, 1, columns, square);
        for (int c = 0; c < CHAINS; c++)
            if (any(square[0][c] < all(least[few - 1])))
                for (int l = 0; l < LANES; l++) insert(least, few, square[0][c][l]);
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
