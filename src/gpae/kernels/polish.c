/* From a relaxed solution to a row that can be written down: the snapping and the local search of
   gpae/search/polish.py, compiled; REAL is double.

   One row at a time, vectors along the encoder's features: a move changes one feature, hence few columns, so the phases
   Zu + c of the row are kept and a trial only adds what its columns change. */

#include "vectors.h"

#define SAME 1e-12   /* encoded values closer than this are the same value */
#define SLACK 1e-7   /* logit units by which a row may miss its margin through rounding in the arithmetic */
#define LEAST 1e-9   /* a move that gains less is none */
#define TRIALS 6     /* moves that are tried exactly in one round, the best ones by the linear model */
#define REPAIRS 40
#define TIGHTENINGS 12
#define STRIDES 7    /* 1, 2, 4, ... steps to either side */
#define FREE_STRIDE (1.0 / 2000.0)

typedef struct {
    int64_t features, columns, density_features; /* the first and the last padded to LANES with weights of zero */
    const double *by_column;                     /* columns x features: frequencies */
    const double *phases, *weights, *across;     /* features; LATENT x features, with the amplitude; weights' theta */
    const double *theta, *theta0;
    const double *density_frequencies, *density_phases, *density_weights; /* LATENT x T; T; T, with the amplitude */
    const double *mean, *precision, *constant;
} Surface;

enum { FREE, GRID, RANKS, LEVELS };

/* The rising encoded values of a grid: tabled, or evenly spaced as a formula, bit for bit that of grid.py. */
typedef struct {
    int64_t count, tabled;                  /* values in the range; tabled: where its entries of `values` and `middles` begin, or -1 */
    double minimum, step, ten;              /* in the user's units; ten: 10^decimals, or 0 */
    double low, high;                       /* what is encoded as 0 and as 1 */
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

typedef struct {
    const double *x, *lower, *upper, *beta, *sign, *margin, *start;
    double *u, *objective, *h;
    int64_t *looks; /* at how many points the map was evaluated */
} Rows;

typedef struct {
    const Surface *surface;
    const Layout *layout;
    const double *x, *lower, *upper;
    double beta, sign, margin;
    double *u, *grad_f, *grad_h, *trial;
    double value, h;
    int64_t looks;
    vec *phase, *sine, *moved, *slope_f, *slope_h; /* along the encoder's features */
} Row;

typedef struct {
    int64_t feature, level;  /* of levels: the one to take */
    double value, flag;      /* of numbers: what to be, and whether it is missing */
    double merit;
} Move;

static inline double between(double a, double low, double high) { return a < low ? low : a > high ? high : a; }
static inline int same(double a, double b) { return fabs(a - b) <= SAME; }
static inline double sum(vec a) {
    double total = 0;
    for (int l = 0; l < LANES; l++) total += a[l];
    return total;
}

/* ---- what a feature may be ---- */

static int inside(const Row *r, int64_t column, double value) {
    return r->lower[column] - SAME <= value && value <= r->upper[column] + SAME;
}

static int absent(const Layout *y, int64_t f, const double *u) { return y->missing[f] && u[y->start[f] + 1] >= 0.5; }

/* The bounds of what is a number and no code. */
static void reach(const Row *r, int64_t f, double *low, double *high) {
    const Layout *y = r->layout;
    const int64_t at = y->start[f];
    *low = r->lower[at], *high = r->upper[at];
    if (y->first_code[f] == y->end_code[f]) return;
    int state = absent(y, f, r->x);
    for (int64_t c = y->first_code[f]; c < y->end_code[f]; c++) state |= same(r->x[at], y->codes[c]);
    *low = fmax(*low, state ? y->low[f] : fmin(y->low[f], r->x[at]));
    *high = fmin(*high, state ? y->high[f] : fmax(y->high[f], r->x[at]));
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
    const double range = (g->high - g->low) / g->step, zero = (g->low - g->minimum) / g->step;
    const double slack = 1e-6 + 1e-15 * (double)g->count;
    *first = counted(ceil(zero + low * range - slack)), *last = counted(floor(zero + high * range + slack));
    return counted(floor(zero + u * range + 0.5));
}

/* The allowed encoded number nearest to u; NaN where the bounds hold none. */
static double nearest(const Row *r, int64_t f, double u) {
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

static int is_own(const Row *r, int64_t f, const double *u) {
    for (int64_t j = r->layout->start[f]; j < r->layout->start[f] + r->layout->width[f]; j++)
        if (!same(u[j], r->x[j])) return 0;
    return 1;
}

static int own_is_inside(const Row *r, int64_t f) {
    for (int64_t j = r->layout->start[f]; j < r->layout->start[f] + r->layout->width[f]; j++)
        if (!inside(r, j, r->x[j])) return 0;
    return 1;
}

static int is_fixed(const Row *r, int64_t f) {
    for (int64_t j = r->layout->start[f]; j < r->layout->start[f] + r->layout->width[f]; j++)
        if (r->lower[j] != r->upper[j]) return 0;
    return 1;
}

static void snap_levels(const Row *r, int64_t f, double *u) {
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
static void snap_number(const Row *r, int64_t f, double *u) {
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

static void snap(const Row *r, double *u) {
    for (int64_t f = 0; f < r->layout->features; f++)
        if (r->layout->kind[f] == LEVELS) snap_levels(r, f, u); else snap_number(r, f, u);
}

/* ---- the surface along its features ---- */

static double log_density(const Surface *p, const double *latent, double *score) {
    const int64_t n = p->density_features / LANES;
    const vec *w = (const vec *)p->density_weights, *c = (const vec *)p->density_phases;
    const vec *z = (const vec *)p->density_frequencies;
    vec total = all(0), pulls[LATENT];
    for (int k = 0; k < LATENT; k++) pulls[k] = all(0);
    for (int64_t t = 0; t < n; t++) {
        vec phase = c[t], sine, cosine;
        for (int k = 0; k < LATENT; k++) phase += z[k * n + t] * all(latent[k]);
        sine_cosine(phase, &sine, &cosine);
        total += w[t] * cosine;
        if (score)
            for (int k = 0; k < LATENT; k++) pulls[k] -= w[t] * sine * z[k * n + t];
    }
    double value = p->constant[0] + sum(total);
    for (int k = 0; k < LATENT; k++) {
        double pull = 0;
        for (int l = 0; l < LATENT; l++) pull += p->precision[k * LATENT + l] * (latent[l] - p->mean[l]);
        value -= 0.5 * pull * (latent[k] - p->mean[k]);
        if (score) score[k] = sum(pulls[k]) - pull;
    }
    return value;
}

static void all_phases(Row *r) {
    const Surface *p = r->surface;
    const int64_t n = p->features / LANES;
    memcpy(r->phase, p->phases, p->features * sizeof(double));
    for (int64_t j = 0; j < p->columns; j++) {
        const vec *z = (const vec *)(p->by_column + j * p->features), by = all(r->u[j]);
        if (r->u[j] != 0)
            for (int64_t s = 0; s < n; s++) r->phase[s] += z[s] * by;
    }
}

static void encode(const Surface *p, const vec *phase, vec *sines, double *latent) {
    const int64_t n = p->features / LANES;
    const vec *w = (const vec *)p->weights;
    vec totals[LATENT];
    for (int k = 0; k < LATENT; k++) totals[k] = all(0);
    for (int64_t s = 0; s < n; s++) {
        vec sine, cosine;
        sine_cosine(phase[s], &sine, &cosine);
        for (int k = 0; k < LATENT; k++) totals[k] += w[k * n + s] * cosine;
        if (sines) sines[s] = sine;
    }
    for (int k = 0; k < LATENT; k++) latent[k] = sum(totals[k]);
}

static void values(const Row *r, const double *u, const double *latent, double *score, double *value, double *h) {
    const Surface *p = r->surface;
    double square = 0, logit = p->theta0[0];
    for (int64_t j = 0; j < p->columns; j++) square += (u[j] - r->x[j]) * (u[j] - r->x[j]);
    for (int k = 0; k < LATENT; k++) logit += p->theta[k] * latent[k];
    *h = r->sign * logit - r->margin;
    *value = 0.5 * square - r->beta * log_density(p, latent, score);
}

static int movable(const Row *r, int64_t column) { return r->upper[column] > r->lower[column]; }

/* Value, h and both gradients at u, from its phases. */
static void linearise(Row *r) {
    const Surface *p = r->surface;
    const int64_t n = p->features / LANES;
    const vec *w = (const vec *)p->weights, *v = (const vec *)p->across;
    double latent[LATENT], score[LATENT];
    r->looks++;
    encode(p, r->phase, r->sine, latent);
    values(r, r->u, latent, score, &r->value, &r->h);
    for (int64_t s = 0; s < n; s++) {
        vec up = all(0);
        for (int k = 0; k < LATENT; k++) up += w[k * n + s] * all(score[k]);
        r->slope_f[s] = up * r->sine[s], r->slope_h[s] = v[s] * r->sine[s];
    }
    for (int64_t j = 0; j < p->columns; j++) {
        if (!movable(r, j)) continue;
        const vec *z = (const vec *)(p->by_column + j * p->features);
        vec up = all(0), over = all(0);
        for (int64_t s = 0; s < n; s++) up += z[s] * r->slope_f[s], over += z[s] * r->slope_h[s];
        r->grad_f[j] = r->u[j] - r->x[j] + r->beta * sum(up);
        r->grad_h[j] = -r->sign * sum(over);
    }
}

/* ---- moves ---- */

static void apply(const Row *r, const Move *m, double *u) {
    const Layout *y = r->layout;
    const int64_t at = y->start[m->feature];
    if (y->kind[m->feature] == LEVELS) {
        for (int64_t l = 0; l < y->width[m->feature]; l++) u[at + l] = l == m->level;
        return;
    }
    u[at] = m->value;
    if (y->width[m->feature] > 1) u[at + 1] = m->flag;
}

/* Weigh a move by the linear model, and keep it if it is among the best. */
static void weigh(const Row *r, Move m, int repairing, Move *best, int *n_best) {
    const Layout *y = r->layout;
    const int64_t at = y->start[m.feature], width = y->width[m.feature];
    double *to = r->trial, gain = 0, cost = 0, further = 0;
    int differs = 0;
    memcpy(to + at, r->u + at, width * sizeof(double));
    apply(r, &m, to);
    for (int64_t j = at; j < at + width; j++) {
        const double step = to[j] - r->u[j];
        if (step == 0) continue;
        differs |= fabs(step) > SAME;
        further += (to[j] - r->x[j]) * (to[j] - r->x[j]) - (r->u[j] - r->x[j]) * (r->u[j] - r->x[j]);
        gain += step * r->grad_h[j], cost += step * (r->grad_f[j] + 0.5 * step);
    }
    if (!differs) return;
    if (repairing) {
        m.merit = fmin(gain, -1.2 * r->h) / (fmax(cost, 0) + 1e-3);
    } else {
        /* the decision is bought already: nothing may be added to the change, whatever the density would gain */
        if (further > 0 || r->h + gain < -0.5 * r->margin) return;
        m.merit = -cost;
    }
    int place = *n_best < TRIALS ? (*n_best)++ : TRIALS;
    while (place > 0 && best[place - 1].merit < m.merit) {
        if (place < TRIALS) best[place] = best[place - 1];
        place--;
    }
    if (place < TRIALS) best[place] = m;
}

static void weigh_number(const Row *r, int64_t f, int repairing, Move *best, int *n_best) {
    const Layout *y = r->layout;
    const int64_t at = y->start[f];
    Move m = {.feature = f};
    if (own_is_inside(r, f)) {
        m.value = r->x[at], m.flag = y->missing[f] ? r->x[at + 1] : 0;
        weigh(r, m, repairing, best, n_best);
    }
    m.flag = 0;
    if (y->missing[f] && !inside(r, at + 1, 0)) return;
    if (y->missing[f] && same(nearest(r, f, y->fill[f]), y->fill[f])) {
        m.value = y->fill[f];
        weigh(r, m, repairing, best, n_best);
    }
    for (int64_t c = y->first_code[f]; c < y->end_code[f]; c++)
        if (inside(r, at, y->codes[c])) m.value = y->codes[c], weigh(r, m, repairing, best, n_best);
    double low, high;
    reach(r, f, &low, &high);
    if (y->kind[f] != FREE) {
        int64_t first, last, n = on_grid(y, f, r->u[at], low, high, &first, &last);
        const int ranks = y->kind[f] == RANKS;
        if (ranks) first = first < 0 ? 0 : first, last = last < y->grid[f].count ? last : y->grid[f].count - 1;
        for (int64_t k = 0; first <= last && k < (ranks ? last - first + 1 : 2 * STRIDES); k++) {
            int64_t to = ranks ? first + k : n + (k % 2 ? 1 : -1) * ((int64_t)1 << k / 2);
            to = to < first ? first : to > last ? last : to;
            m.value = between(grid_value(y, f, to), low, high);
            weigh(r, m, repairing, best, n_best);
        }
        if (!y->fine[f]) return;
    }
    for (int k = 0; k < 2 * STRIDES; k++) {
        const double to = r->u[at] + (k % 2 ? FREE_STRIDE : -FREE_STRIDE) * (double)(1 << k / 2);
        m.value = nearest(r, f, between(to, r->lower[at], r->upper[at]));
        if (!isnan(m.value)) weigh(r, m, repairing, best, n_best);
    }
}

static void weigh_levels(const Row *r, int64_t f, int repairing, Move *best, int *n_best) {
    const Layout *y = r->layout;
    const int64_t at = y->start[f], width = y->width[f];
    for (int64_t level = 0; level < width; level++) {
        int open = 1;
        for (int64_t l = 0; l < width; l++) open &= inside(r, at + l, l == level);
        if (open) weigh(r, (Move){.feature = f, .level = level}, repairing, best, n_best);
    }
}

/* Value and h of a row that differs from u in one feature. */
static void look_at(Row *r, const Move *m, double *value, double *h) {
    const Surface *p = r->surface;
    const Layout *y = r->layout;
    const int64_t n = p->features / LANES, at = y->start[m->feature];
    double latent[LATENT];
    r->looks++;
    memcpy(r->trial, r->u, p->columns * sizeof(double));
    apply(r, m, r->trial);
    memcpy(r->moved, r->phase, p->features * sizeof(double));
    for (int64_t j = at; j < at + y->width[m->feature]; j++) {
        const vec *z = (const vec *)(p->by_column + j * p->features), by = all(r->trial[j] - r->u[j]);
        if (r->trial[j] != r->u[j])
            for (int64_t s = 0; s < n; s++) r->moved[s] += z[s] * by;
    }
    encode(p, r->moved, NULL, latent);
    values(r, r->trial, latent, NULL, value, h);
}

/* Take the best of the moves that are tried; 0 where none is better than to stay. */
static int move(Row *r, int repairing) {
    Move best[TRIALS];
    int n_best = 0;
    for (int64_t f = 0; f < r->layout->features; f++) {
        if (is_fixed(r, f)) continue;
        if (r->layout->kind[f] == LEVELS) weigh_levels(r, f, repairing, best, &n_best);
        else weigh_number(r, f, repairing, best, &n_best);
    }
    double least_score = INFINITY, new_value = 0, new_h = 0;
    const Move *chosen = NULL;
    for (int i = 0; i < n_best; i++) {
        double value, h, score = INFINITY;
        look_at(r, best + i, &value, &h);
        if (h >= -SLACK) score = repairing ? value - 1e9 : value;
        else if (repairing && h > r->h) score = -(h - r->h) / (fmax(value - r->value, 0) + 1e-3);
        if (score < least_score) least_score = score, chosen = best + i, new_value = value, new_h = h;
    }
    if (!chosen || !(repairing ? new_h > r->h + LEAST : new_value < r->value - LEAST)) return 0;
    apply(r, chosen, r->u);
    all_phases(r);
    linearise(r);
    return 1;
}

/* Repairing buys back the decision that rounding lost; tightening gives back what the decision does not need. */
static void local_search(Row *r) {
    all_phases(r);
    linearise(r);
    for (int round = 0; round < REPAIRS && r->h < -SLACK; round++)
        if (!move(r, 1)) return;
    for (int round = 0; round < TIGHTENINGS && r->h >= -SLACK; round++)
        if (!move(r, 0)) return;
}

/* ---- what is called ---- */

static void *room(const Surface *p) {
    const int64_t bytes = (5 * p->features + 4 * (p->columns + LANES)) * sizeof(double);
    return aligned_alloc(BYTES, (bytes + BYTES - 1) / BYTES * BYTES);
}

static void take_place(Row *r, const Rows *rows, int64_t at, const Surface *p) {
    const int64_t first = at * p->columns;
    r->x = rows->x + first, r->lower = rows->lower + first, r->upper = rows->upper + first;
    r->beta = rows->beta[at], r->sign = rows->sign[at], r->margin = rows->margin[at];
    memcpy(r->u, rows->start + first, p->columns * sizeof(double));
}

/* Snap rows first..end - 1 and, where `searching`, search around them; u, and then objective and h too. */
int polish_rows(const Surface *p, const Layout *layout, const Rows *rows, int searching, int64_t first, int64_t end) {
    double *memory = room(p);
    if (!memory) return 1;
    const int64_t n = p->features / LANES, columns = p->columns + LANES;
    vec *along = (vec *)memory;
    double *across = memory + 5 * p->features;
    Row r = {.surface = p, .layout = layout,
             .phase = along, .sine = along + n, .moved = along + 2 * n, .slope_f = along + 3 * n,
             .slope_h = along + 4 * n,
             .u = across, .grad_f = across + columns, .grad_h = across + 2 * columns, .trial = across + 3 * columns};
    memset(across, 0, 4 * columns * sizeof(double));
    for (int64_t at = first; at < end; at++) {
        take_place(&r, rows, at, p);
        snap(&r, r.u);
        if (searching) {
            r.looks = 0;
            local_search(&r);
            rows->objective[at] = r.value, rows->h[at] = r.h, rows->looks[at] = r.looks;
        }
        memcpy(rows->u + at * p->columns, r.u, p->columns * sizeof(double));
    }
    free(memory);
    return 0;
}
