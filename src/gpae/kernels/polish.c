/* From a relaxed solution to a row that can be written down: the snapping and the local search of
   gpae/search/polish.py, compiled; REAL is double.

   One row at a time, vectors along the encoder's features: a move changes one feature, hence few columns, so the phases
   Zu + c of the row are kept and a trial only adds what its columns change. */

#include "layout.h"
#include "vectors.h"

#define SLACK 1e-7   /* logit units by which a row may miss its margin through rounding in the arithmetic */
#define LEAST 1e-9   /* a move that gains less is none */
#define TRIALS 6     /* moves that are tried exactly in one round, the best ones by the linear model */
#define REPAIRS 40
#define TIGHTENINGS 12
#define ABREAST 4    /* columns whose gradients are summed side by side; columns are padded to this */
#define STRIDES 7    /* 1, 2, 4, ... steps to either side */
#define FREE_STRIDE (1.0 / 2000.0)

typedef struct {
    int64_t features, columns, density_features; /* the first and the last padded to LANES with weights of zero */
    const double *by_column;                     /* columns x features: frequencies */
    const double *phases, *weights, *across;     /* features; LATENT x features, with the amplitude; weights' theta */
    const double *theta, *theta0;
    const double *density_frequencies, *density_phases, *density_weights; /* LATENT x T; T; T, with the amplitude */
    const double *mean, *precision, *constant;
    const double *metric;                        /* columns: what a squared way counts along each */
} Surface;

typedef struct {
    const double *x, *lower, *upper, *beta, *sign, *margin, *start;
    double *u, *objective, *h;
    int64_t *looks; /* at how many points the map was evaluated */
} Rows;

typedef struct {
    const Surface *surface;
    Person who;
    double beta, sign, margin;
    double *u, *grad_f, *grad_h, *trial;
    double value, h;
    int64_t looks, *weighed;
    vec *phase, *sine, *moved, *slope_f, *slope_h; /* along the encoder's features */
} Row;

typedef struct {
    int64_t feature, level;  /* of levels: the one to take */
    double value, flag;      /* of numbers: what to be, and whether it is missing */
    double cost, merit;      /* by the linear model */
} Move;

static inline double sum(vec a) {
    double total = 0;
    for (int l = 0; l < LANES; l++) total += a[l];
    return total;
}

/* ---- the surface along its features ---- */

static inline double log_density(const Surface *p, const double *latent, double *score) {
    const int64_t n = p->density_features / LANES;
    const vec *w = (const vec *)p->density_weights, *c = (const vec *)p->density_phases;
    const vec *z = (const vec *)p->density_frequencies;
    vec total = all(0), pulls[LATENT];
    for (int k = 0; k < LATENT; k++) pulls[k] = all(0);
    for (int64_t t = 0; t < n; t++) {
        vec phase = c[t], sine, cosine;
        for (int k = 0; k < LATENT; k++) phase += z[k * n + t] * all(latent[k]);
        if (score) sine_cosine(phase, &sine, &cosine); else cosine = cosine_of(phase);
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

static inline void encode(const Surface *p, const vec *phase, vec *sines, double *latent) {
    const int64_t n = p->features / LANES;
    const vec *w = (const vec *)p->weights;
    vec totals[LATENT];
    for (int k = 0; k < LATENT; k++) totals[k] = all(0);
    for (int64_t s = 0; s < n; s++) {
        vec cosine;
        if (sines) sine_cosine(phase[s], &sines[s], &cosine); else cosine = cosine_of(phase[s]);
        for (int k = 0; k < LATENT; k++) totals[k] += w[k * n + s] * cosine;
    }
    for (int k = 0; k < LATENT; k++) latent[k] = sum(totals[k]);
}

static void values(const Row *r, const double *u, const double *latent, double *score, double *value, double *h) {
    const Surface *p = r->surface;
    double square = 0, logit = p->theta0[0];
    for (int64_t j = 0; j < p->columns; j++) square += p->metric[j] * (u[j] - r->who.x[j]) * (u[j] - r->who.x[j]);
    for (int k = 0; k < LATENT; k++) logit += p->theta[k] * latent[k];
    *h = r->sign * logit - r->margin;
    *value = 0.5 * square - r->beta * log_density(p, latent, score);
}

static inline int is_repairing(const Row *r) { return r->h < -SLACK; }

/* Whether a feature may move next. Once the decision is bought nothing may be added to the change: what is one's own
   stays so. */
static int may_move(const Row *r, int64_t f) {
    return !is_fixed(&r->who, f) && (is_repairing(r) || !is_own(&r->who, f, r->u));
}

/* The columns of features that may move, up to a multiple of ABREAST. */
static int64_t columns_to_weigh(Row *r) {
    const Layout *y = r->who.layout;
    int64_t count = 0;
    for (int64_t f = 0; f < y->features; f++)
        if (may_move(r, f))
            for (int64_t j = y->start[f]; j < y->start[f] + y->width[f]; j++) r->weighed[count++] = j;
    const int64_t last = count;
    while (count % ABREAST) r->weighed[count++] = r->weighed[last - 1];
    return count;
}

/* Value and h at u, from its phases, and both gradients along what may move next. */
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
    const int64_t count = columns_to_weigh(r);
    for (int64_t first = 0; first < count; first += ABREAST) {
        const vec *z[ABREAST];
        vec up[ABREAST], over[ABREAST];
        for (int c = 0; c < ABREAST; c++) {
            z[c] = (const vec *)(p->by_column + r->weighed[first + c] * p->features);
            up[c] = over[c] = all(0);
        }
        for (int64_t s = 0; s < n; s++)
            for (int c = 0; c < ABREAST; c++)
                up[c] += z[c][s] * r->slope_f[s], over[c] += z[c][s] * r->slope_h[s];
        for (int c = 0; c < ABREAST; c++) {
            const int64_t j = r->weighed[first + c];
            r->grad_f[j] = p->metric[j] * (r->u[j] - r->who.x[j]) + r->beta * sum(up[c]);
            r->grad_h[j] = -r->sign * sum(over[c]);
        }
    }
}

/* ---- moves ---- */

static void apply(const Row *r, const Move *m, double *u) {
    const Layout *y = r->who.layout;
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
    const Layout *y = r->who.layout;
    const int64_t at = y->start[m.feature], width = y->width[m.feature];
    double *to = r->trial, gain = 0, cost = 0, further = 0;
    int differs = 0;
    memcpy(to + at, r->u + at, width * sizeof(double));
    apply(r, &m, to);
    for (int64_t j = at; j < at + width; j++) {
        const double step = to[j] - r->u[j];
        if (step == 0) continue;
        differs |= fabs(step) > SAME;
        const double metric = r->surface->metric[j], way = to[j] - r->who.x[j], before = r->u[j] - r->who.x[j];
        further += metric * (way * way - before * before);
        gain += step * r->grad_h[j], cost += step * (r->grad_f[j] + 0.5 * metric * step);
    }
    if (!differs) return;
    m.cost = cost;
    if (repairing) {
        m.merit = fmin(gain, -1.2 * r->h) / (fmax(cost, 0) + 1e-3);
    } else {
        if (further > 0 || cost >= 0 || r->h + gain < -0.5 * r->margin) return;
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
    const Layout *y = r->who.layout;
    const int64_t at = y->start[f];
    Move m = {.feature = f};
    if (own_is_inside(&r->who, f)) {
        m.value = r->who.x[at], m.flag = y->missing[f] ? r->who.x[at + 1] : 0;
        weigh(r, m, repairing, best, n_best);
    }
    m.flag = 0;
    if (y->missing[f] && !inside(&r->who, at + 1, 0)) return;
    if (y->missing[f] && same(nearest(&r->who, f, y->fill[f]), y->fill[f])) {
        m.value = y->fill[f];
        weigh(r, m, repairing, best, n_best);
    }
    for (int64_t c = y->first_code[f]; c < y->end_code[f]; c++)
        if (inside(&r->who, at, y->codes[c])) m.value = y->codes[c], weigh(r, m, repairing, best, n_best);
    /* steps go the one way that promises anything: up the decision, or down the objective */
    const int64_t side = (repairing ? r->grad_h[at] : -r->grad_f[at]) > 0 ? 1 : -1;
    double low, high;
    reach(&r->who, f, &low, &high);
    if (y->kind[f] != FREE) {
        int64_t first, last, n = on_grid(y, f, r->u[at], low, high, &first, &last);
        const int ranks = y->kind[f] == RANKS;
        if (ranks) first = first < 0 ? 0 : first, last = last < y->grid[f].count ? last : y->grid[f].count - 1;
        for (int64_t k = 0; first <= last && k < (ranks ? last - first + 1 : STRIDES); k++) {
            int64_t to = ranks ? first + k : n + side * ((int64_t)1 << k);
            to = to < first ? first : to > last ? last : to;
            m.value = between(grid_value(y, f, to), low, high);
            weigh(r, m, repairing, best, n_best);
        }
        if (!y->fine[f]) return;
    }
    for (int k = 0; k < STRIDES; k++) {
        const double to = r->u[at] + FREE_STRIDE * (double)(side * (1 << k));
        m.value = nearest(&r->who, f, between(to, r->who.lower[at], r->who.upper[at]));
        if (!isnan(m.value)) weigh(r, m, repairing, best, n_best);
    }
}

static void weigh_levels(const Row *r, int64_t f, int repairing, Move *best, int *n_best) {
    const Layout *y = r->who.layout;
    const int64_t at = y->start[f], width = y->width[f];
    for (int64_t level = 0; level < width; level++) {
        int open = 1;
        for (int64_t l = 0; l < width; l++) open &= inside(&r->who, at + l, l == level);
        if (open) weigh(r, (Move){.feature = f, .level = level}, repairing, best, n_best);
    }
}

/* The row and the phases after a move. */
static void try_on(Row *r, const Move *m) {
    const Surface *p = r->surface;
    const Layout *y = r->who.layout;
    const int64_t n = p->features / LANES, at = y->start[m->feature];
    memcpy(r->trial, r->u, p->columns * sizeof(double));
    apply(r, m, r->trial);
    memcpy(r->moved, r->phase, p->features * sizeof(double));
    for (int64_t j = at; j < at + y->width[m->feature]; j++) {
        const vec *z = (const vec *)(p->by_column + j * p->features), by = all(r->trial[j] - r->u[j]);
        if (r->trial[j] != r->u[j])
            for (int64_t s = 0; s < n; s++) r->moved[s] += z[s] * by;
    }
}

/* Value and h of a row that differs from u in one feature. */
static void look_at(Row *r, const Move *m, double *value, double *h) {
    const Surface *p = r->surface;
    double latent[LATENT];
    r->looks++;
    try_on(r, m);
    encode(p, r->moved, NULL, latent);
    values(r, r->trial, latent, NULL, value, h);
}

/* Take the best of the moves that are tried; 0 where none is better than to stay. */
static int move(Row *r) {
    const int repairing = is_repairing(r);
    Move best[TRIALS];
    int n_best = 0;
    for (int64_t f = 0; f < r->who.layout->features; f++) {
        if (!may_move(r, f)) continue;
        if (r->who.layout->kind[f] == LEVELS) weigh_levels(r, f, repairing, best, &n_best);
        else weigh_number(r, f, repairing, best, &n_best);
    }
    double least_score = INFINITY, new_value = 0, new_h = 0;
    const Move *chosen = NULL;
    for (int i = 0; i < n_best; i++) {
        double value, h, score = INFINITY;
        /* where there is an answer already, what promises to be dearer is not looked at */
        if (chosen && new_h >= -SLACK && best[i].cost >= new_value - r->value) continue;
        look_at(r, best + i, &value, &h);
        if (h >= -SLACK) score = repairing ? value - 1e9 : value;
        else if (repairing && h > r->h) score = -(h - r->h) / (fmax(value - r->value, 0) + 1e-3);
        if (score < least_score) least_score = score, chosen = best + i, new_value = value, new_h = h;
    }
    if (!chosen || !(repairing ? new_h > r->h + LEAST : new_value < r->value - LEAST)) return 0;
    try_on(r, chosen);
    memcpy(r->u, r->trial, r->surface->columns * sizeof(double));
    vec *before = r->phase;
    r->phase = r->moved, r->moved = before;
    linearise(r);
    return 1;
}

/* Repairing buys back the decision that rounding lost; tightening gives back what the decision does not need. */
static void local_search(Row *r) {
    all_phases(r);
    linearise(r);
    for (int round = 0; round < REPAIRS && is_repairing(r); round++)
        if (!move(r)) return;
    for (int round = 0; round < TIGHTENINGS && !is_repairing(r); round++)
        if (!move(r)) return;
}

/* ---- what is called ---- */

static void *room(const Surface *p) {
    const int64_t bytes = (5 * p->features + 5 * (p->columns + LANES)) * sizeof(double);
    return aligned_alloc(BYTES, (bytes + BYTES - 1) / BYTES * BYTES);
}

static void take_place(Row *r, const Rows *rows, int64_t at, const Surface *p) {
    const int64_t first = at * p->columns;
    r->who.x = rows->x + first, r->who.lower = rows->lower + first, r->who.upper = rows->upper + first;
    r->beta = rows->beta[at], r->sign = rows->sign[at], r->margin = rows->margin[at];
    memcpy(r->u, rows->start + first, p->columns * sizeof(double));
}

/* Snap rows first..end - 1 and search around them; u, objective and h. Returns 0, or 1 where there is no memory. */
int polish_rows(const Surface *p, const Layout *layout, const Rows *rows, int64_t first, int64_t end) {
    double *memory = room(p);
    if (!memory) return 1;
    const int64_t n = p->features / LANES, columns = p->columns + LANES;
    vec *along = (vec *)memory;
    double *across = memory + 5 * p->features;
    Row r = {.surface = p, .who.layout = layout,
             .phase = along, .sine = along + n, .moved = along + 2 * n, .slope_f = along + 3 * n,
             .slope_h = along + 4 * n,
             .u = across, .grad_f = across + columns, .grad_h = across + 2 * columns, .trial = across + 3 * columns,
             .weighed = (int64_t *)(across + 4 * columns)};
    memset(across, 0, 5 * columns * sizeof(double));
    for (int64_t at = first; at < end; at++) {
        take_place(&r, rows, at, p);
        snap(&r.who, r.u);
        r.looks = 0;
        local_search(&r);
        rows->objective[at] = r.value, rows->h[at] = r.h, rows->looks[at] = r.looks;
        memcpy(rows->u + at * p->columns, r.u, p->columns * sizeof(double));
    }
    free(memory);
    return 0;
}
