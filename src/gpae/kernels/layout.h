/* What a row may be: the layout of table/layout.py as tables, and the snapping of its blocks, bit for bit. */

#ifndef LAYOUT_H
#define LAYOUT_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define SAME 1e-12 /* encoded values closer than this are the same value */

enum { FREE, GRID, RANKS, LEVELS };

/* The rising encoded values of a grid: tabled, or evenly spaced as a formula, bit for bit that of grid.py. */
typedef struct {
    int64_t count, tabled;                  /* values in the range; tabled: where its entries of `values` and `middles` begin, or -1 */
    double minimum, step, ten;              /* in the user's units; ten: 10^decimals, or 0 */
    double low, high;                       /* what is encoded as 0 and as 1 */
    double range, zero;                     /* of an even one: steps from 0 to 1, and from the minimum to 0 */
} Grid;

typedef struct {
    int64_t features;
    const int64_t *kind, *start, *width, *missing;
    const Grid *grid;
    const double *values, *middles;         /* of tabled grids: encoded values, and from where on the next is nearer */
    const int64_t *first_code, *end_code;
    const double *codes;                    /* states beside the range */
    const double *low, *high, *fill;        /* the range without the codes; what stands where a value is missing */
    const int64_t *fine;                    /* steps far below what matters: free strides are tried as well */
} Layout;

/* A person, and where they may go. */
typedef struct {
    const Layout *layout;
    const double *x, *lower, *upper;
} Person;

static inline double between(double a, double low, double high) { return a < low ? low : a > high ? high : a; }
static inline double smaller(double a, double b) { return a < b ? a : b; }
static inline double larger(double a, double b) { return a > b ? a : b; }
static inline int same(double a, double b) { return fabs(a - b) <= SAME; }

static int inside(const Person *r, int64_t column, double value) {
    return r->lower[column] - SAME <= value && value <= r->upper[column] + SAME;
}

static int absent(const Layout *y, int64_t f, const double *u) { return y->missing[f] && u[y->start[f] + 1] >= 0.5; }

/* The bounds of what is a number and no code. */
static void reach(const Person *r, int64_t f, double *low, double *high) {
    const Layout *y = r->layout;
    const int64_t at = y->start[f];
    *low = r->lower[at], *high = r->upper[at];
    if (y->first_code[f] == y->end_code[f]) return;
    int state = absent(y, f, r->x);
    for (int64_t c = y->first_code[f]; c < y->end_code[f]; c++) state |= same(r->x[at], y->codes[c]);
    *low = larger(*low, state ? y->low[f] : smaller(y->low[f], r->x[at]));
    *high = smaller(*high, state ? y->high[f] : larger(y->high[f], r->x[at]));
}

/* How many of n rising numbers are at most u. */
static int64_t count_up_to(const double *rising, int64_t n, double u) {
    int64_t low = 0, high = n;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (rising[middle] <= u) low = middle + 1; else high = middle;
    }
    return low;
}

static double grid_value(const Layout *y, int64_t f, int64_t n) {
    const Grid *g = y->grid + f;
    if (g->tabled >= 0) return y->values[g->tabled + n];
    const double steps = (double)n;
    const double value = g->ten > 0 ? (rint(g->minimum * g->ten) + steps * rint(g->step * g->ten)) / g->ten
                                    : g->minimum + steps * g->step;
    return (value - g->low) / (g->high - g->low);
}

/* As a whole number, whatever it is: beyond 2^53 steps nothing is told apart. */
static int64_t counted(double a) { return a > -9e15 ? (a < 9e15 ? (int64_t)a : (int64_t)9e15) : (int64_t)-9e15; }

/* The position on the grid that is nearest to u, and the first and the last that the bounds hold. A person beyond the
   range widens the bounds, and an evenly spaced grid goes on there; a tabled one ends where the range does. */
static int64_t on_grid(const Layout *y, int64_t f, double u, double low, double high, int64_t *first, int64_t *last) {
    const Grid *g = y->grid + f;
    if (g->tabled >= 0) {
        const double *values = y->values + g->tabled;
        const double slack = 1e-9 / (double)g->count; /* bounds miss their own value by rounding errors */
        *first = count_up_to(values, g->count, low - slack);
        *last = count_up_to(values, g->count, high + slack) - 1;
        return count_up_to(y->middles + g->tabled, g->count - 1, u);
    }
    const double slack = 1e-6 + 1e-15 * (double)g->count;
    *first = counted(ceil(g->zero + low * g->range - slack)), *last = counted(floor(g->zero + high * g->range + slack));
    return counted(floor(g->zero + u * g->range + 0.5));
}

/* The allowed encoded number nearest to u; NaN where the bounds hold none. */
static double nearest(const Person *r, int64_t f, double u) {
    const Layout *y = r->layout;
    double low, high, best = NAN;
    reach(r, f, &low, &high);
    if (y->kind[f] == FREE) {
        if (low <= high) best = between(u, low, high);
    } else {
        int64_t first, last, n = on_grid(y, f, u, low, high, &first, &last);
        if (first <= last) best = between(grid_value(y, f, n < first ? first : n > last ? last : n), low, high);
    }
    for (int64_t c = y->first_code[f]; c < y->end_code[f]; c++)
        if (inside(r, y->start[f], y->codes[c]) && !(fabs(best - u) <= fabs(y->codes[c] - u))) best = y->codes[c];
    return best;
}

static int is_own(const Person *r, int64_t f, const double *u) {
    for (int64_t j = r->layout->start[f]; j < r->layout->start[f] + r->layout->width[f]; j++)
        if (!same(u[j], r->x[j])) return 0;
    return 1;
}

static int own_is_inside(const Person *r, int64_t f) {
    for (int64_t j = r->layout->start[f]; j < r->layout->start[f] + r->layout->width[f]; j++)
        if (!inside(r, j, r->x[j])) return 0;
    return 1;
}

static int is_fixed(const Person *r, int64_t f) {
    for (int64_t j = r->layout->start[f]; j < r->layout->start[f] + r->layout->width[f]; j++)
        if (r->lower[j] != r->upper[j]) return 0;
    return 1;
}

static void snap_levels(const Person *r, int64_t f, double *u) {
    const int64_t at = r->layout->start[f], width = r->layout->width[f];
    if (is_fixed(r, f)) {
        memcpy(u + at, r->lower + at, width * sizeof(double));
        return;
    }
    int64_t best = at;
    double most_of = -INFINITY;
    for (int64_t j = at; j < at + width; j++) {
        const double score = r->upper[j] > 0 ? between(u[j], r->lower[j], r->upper[j]) : -INFINITY;
        if (score > most_of) most_of = score, best = j;
    }
    for (int64_t j = at; j < at + width; j++) u[j] = j == best;
}

/* A person may sit off the grid, and stays there: their own values are copied, bit for bit. */
static void snap_number(const Person *r, int64_t f, double *u) {
    const Layout *y = r->layout;
    const int64_t at = y->start[f], width = y->width[f];
    for (int64_t j = at; j < at + width; j++) u[j] = between(u[j], r->lower[j], r->upper[j]);
    int own = is_own(r, f, u);
    const int gone = absent(y, f, u);
    const double near = nearest(r, f, u[at]);
    const int nowhere = isnan(near) && !gone;
    u[at] = gone ? r->x[at] : nowhere ? u[at] : near;
    if (width > 1) u[at + 1] = gone;
    own |= is_own(r, f, u) | nowhere;
    if (own && own_is_inside(r, f)) memcpy(u + at, r->x + at, width * sizeof(double));
}

static void snap(const Person *r, double *u) {
    for (int64_t f = 0; f < r->layout->features; f++)
        if (r->layout->kind[f] == LEVELS) snap_levels(r, f, u); else snap_number(r, f, u);
}

/* Whether exactly one level is chosen, and an open one. */
static int allowed_levels(const Person *r, int64_t f, const double *u) {
    double sum = 0;
    for (int64_t j = r->layout->start[f]; j < r->layout->start[f] + r->layout->width[f]; j++) {
        if ((u[j] != 0 && u[j] != 1) || !inside(r, j, u[j])) return 0;
        sum += u[j];
    }
    return sum == 1;
}

/* Whether a number is the person's own, or one that there is; inside its bounds in any case. */
static int allowed_number(const Person *r, int64_t f, const double *u) {
    const Layout *y = r->layout;
    const int64_t at = y->start[f];
    for (int64_t j = at; j < at + y->width[f]; j++)
        if (!inside(r, j, u[j])) return 0;
    return is_own(r, f, u) || (same(nearest(r, f, u[at]), u[at]) && !(y->missing[f] && u[at + 1] != 0));
}

static int allowed(const Person *r, const double *u) {
    for (int64_t f = 0; f < r->layout->features; f++)
        if (!(r->layout->kind[f] == LEVELS ? allowed_levels(r, f, u) : allowed_number(r, f, u))) return 0;
    return 1;
}

#endif
