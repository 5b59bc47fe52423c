/* From a relaxed solution to a row that can be written down: the snapping and the local search of
   gpae/search/polish.py, compiled; REAL is double. One row at a time. */

#include "along.h"
#include "queue.h"

#define SLACK 1e-7   /* logit units by which a row may miss its margin through rounding in the arithmetic */
#define LEAST 1e-9   /* a move that gains less is none */
#define TRIALS 6     /* moves that are looked at in one round, the best ones by the linear model */
#define REPAIRS 40
#define TIGHTENINGS 12
#define STRIDES 7    /* 1, 2, 4, ... steps to either side */
#define FREE_STRIDE (1.0 / 2000.0)

typedef struct {
    const double *x, *lower, *upper, *beta, *sign, *margin, *start;
    double *u, *objective, *h;
    int64_t *looks; /* at how many points the map was evaluated */
} Rows;

typedef struct {
    int64_t feature, level;  /* of levels: the one to take */
    double value, flag;      /* of numbers: what to be, and whether it is missing */
    double cost, merit;      /* by the linear model */
} Move;

typedef struct {
    Row row;
    Move best[TRIALS];
    int n_best;
    Shift shift;             /* of the move under way, */
    double *before;          /* what its feature was, */
    int64_t *weighed;        /* and the columns whose gradients are known */
} Search;

static inline int is_repairing(const Row *r) { return r->h < -SLACK; }

/* Whether a feature may move next. Once the decision is bought nothing may be added to the change: what is one's own
   stays so. */
static int may_move(const Row *r, int64_t f) {
    return !is_fixed(&r->who, f) && (is_repairing(r) || !is_own(&r->who, f, r->u));
}

/* Value, h, and both gradients along what may move next. */
static void linearise(Search *q) {
    const Layout *y = q->row.who.layout;
    int64_t count = 0;
    evaluate(&q->row);
    for (int64_t f = 0; f < y->features; f++)
        if (may_move(&q->row, f))
            for (int64_t j = y->start[f]; j < y->start[f] + y->width[f]; j++) q->weighed[count++] = j;
    for (const int64_t last = count; count % ABREAST; count++) q->weighed[count] = q->weighed[last - 1];
    gradients(&q->row, q->weighed, count);
}

/* ---- moves ---- */

/* What a feature's column is after a move. */
static inline double after(const Layout *y, const Move *m, int64_t place) {
    if (y->kind[m->feature] == LEVELS) return place == m->level;
    return place == 0 ? m->value : m->flag;
}

/* What a move is worth by the linear model that gains and costs so much and makes the way so much longer; -INFINITY
   where it is none to be looked at. */
static inline double worth(const Row *r, double gain, double cost, double further) {
    if (is_repairing(r)) return gain > 0 ? smaller(gain, -1.2 * r->h) / (larger(cost, 0) + 1e-3) : -INFINITY;
    return further > 0 || cost >= 0 || r->h + gain < -0.5 * r->margin ? -INFINITY : -cost;
}

/* The same of moving one column by a step. */
static inline double worth_of_step(const Row *r, int64_t j, double step) {
    const double square = 0.5 * r->surface->metric[j] * step * step;
    const double further = r->surface->metric[j] * step * (r->u[j] - r->who.x[j]) + square;
    return worth(r, step * r->grad_h[j], step * r->grad_f[j] + square, further);
}

/* What a move has to be worth to be among the best. */
static inline double least_worth(const Search *q) { return q->n_best < TRIALS ? -INFINITY : q->best[TRIALS - 1].merit; }

/* Weigh a move by the linear model, and keep it if it is among the best. */
static void weigh(Search *q, const Move *m) {
    const Row *r = &q->row;
    const Layout *y = r->who.layout;
    const int64_t at = y->start[m->feature], width = y->width[m->feature];
    double gain = 0, cost = 0, further = 0;
    int differs = 0;
    for (int64_t place = 0; place < width; place++) {
        const int64_t j = at + place;
        const double step = after(y, m, place) - r->u[j], metric = r->surface->metric[j];
        differs |= fabs(step) > SAME;
        further += metric * step * (r->u[j] - r->who.x[j] + 0.5 * step);
        gain += step * r->grad_h[j], cost += step * (r->grad_f[j] + 0.5 * metric * step);
    }
    const double merit = worth(r, gain, cost, further);
    if (!differs || merit <= least_worth(q)) return;
    int place = q->n_best < TRIALS ? q->n_best++ : TRIALS - 1;
    for (; place > 0 && q->best[place - 1].merit < merit; place--) q->best[place] = q->best[place - 1];
    q->best[place] = (Move){m->feature, m->level, m->value, m->flag, cost, merit};
}

/* Steps on the grid, or all ranks. Each is first weighed by its distance in even steps, which takes no division. */
static void weigh_grid(Search *q, Move m, int64_t side) {
    const Row *r = &q->row;
    const Layout *y = r->who.layout;
    const int64_t f = m.feature, at = y->start[f];
    const Grid *g = y->grid + f;
    const int ranks = y->kind[f] == RANKS, even = g->tabled < 0 && y->width[f] == 1, tightening = !is_repairing(r);
    double low, high;
    int64_t first, last;
    reach(&r->who, f, &low, &high);
    const int64_t here = on_grid(y, f, r->u[at], low, high, &first, &last);
    if (ranks) first = first < 0 ? 0 : first, last = last < g->count ? last : g->count - 1;
    if (first > last) return;
    const double off = even ? grid_value(y, f, here) - r->u[at] : 0, stride = even ? 1 / g->range : 0;
    for (int64_t k = 0; k < (ranks ? last - first + 1 : STRIDES); k++) {
        const int64_t wish = ranks ? first + k : here + side * ((int64_t)1 << k);
        const int64_t to = wish < first ? first : wish > last ? last : wish;
        const double promise = even ? worth_of_step(r, at, off + stride * (double)(to - here)) : INFINITY;
        if (promise > least_worth(q)) m.value = between(grid_value(y, f, to), low, high), weigh(q, &m);
        /* longer steps end here as well, or cost no less and lose no less */
        if (to != wish || (tightening && !ranks && promise == -INFINITY)) return;
    }
}

/* Steps of a column that takes every value. */
static void weigh_free(Search *q, Move m, int64_t side) {
    const Row *r = &q->row;
    const int64_t at = r->who.layout->start[m.feature];
    for (int k = 0; k < STRIDES; k++) {
        const double wish = r->u[at] + FREE_STRIDE * (double)(side * (1 << k));
        const double to = between(wish, r->who.lower[at], r->who.upper[at]);
        m.value = nearest(&r->who, m.feature, to);
        if (!isnan(m.value)) weigh(q, &m);
        if (to != wish) return;
    }
}

static void weigh_number(Search *q, int64_t f) {
    const Row *r = &q->row;
    const Layout *y = r->who.layout;
    const int64_t at = y->start[f];
    Move m = {.feature = f};
    if (own_is_inside(&r->who, f)) {
        m.value = r->who.x[at], m.flag = y->missing[f] ? r->who.x[at + 1] : 0;
        weigh(q, &m);
    }
    m.flag = 0;
    if (y->missing[f] && !inside(&r->who, at + 1, 0)) return;
    if (y->missing[f] && same(nearest(&r->who, f, y->fill[f]), y->fill[f])) m.value = y->fill[f], weigh(q, &m);
    for (int64_t c = y->first_code[f]; c < y->end_code[f]; c++)
        if (inside(&r->who, at, y->codes[c])) m.value = y->codes[c], weigh(q, &m);
    /* steps go the one way that promises anything: up the decision, or down the objective */
    const int64_t side = (is_repairing(r) ? r->grad_h[at] : -r->grad_f[at]) > 0 ? 1 : -1;
    if (y->kind[f] != FREE) weigh_grid(q, m, side);
    if (y->kind[f] == FREE || y->fine[f]) weigh_free(q, m, side);
}

static void weigh_levels(Search *q, int64_t f) {
    const Person *who = &q->row.who;
    const int64_t at = who->layout->start[f], width = who->layout->width[f];
    for (int64_t level = 0; level < width; level++) {
        int open = 1;
        for (int64_t l = 0; l < width; l++) open &= inside(who, at + l, l == level);
        if (open) weigh(q, &(Move){.feature = f, .level = level});
    }
}

/* The columns that a move changes, and by how much. */
static const Shift *shift_of(Search *q, const Move *m) {
    const Layout *y = q->row.who.layout;
    const int64_t at = y->start[m->feature];
    q->shift.count = 0;
    for (int64_t place = 0; place < y->width[m->feature]; place++) {
        const double by = after(y, m, place) - q->row.u[at + place];
        if (by == 0) continue;
        q->shift.column[q->shift.count] = at + place, q->shift.by[q->shift.count++] = by;
    }
    return &q->shift;
}

/* Repairing, any step towards the decision will do where none buys it; tightening, it must be kept. */
static inline int may_be_taken(const Row *r, double h) { return h >= -SLACK || (is_repairing(r) && h > r->h); }

/* The best of the moves, each looked at; NULL where none is better than to stay. */
static const Move *chosen(Search *q) {
    Row *r = &q->row;
    const int repairing = is_repairing(r);
    double least_score = INFINITY, new_value = 0, new_h = 0;
    const Move *choice = NULL;
    for (int i = 0; i < q->n_best; i++) {
        double value, h, score;
        /* where there is an answer already, what promises to be dearer is not looked at */
        if (choice && new_h >= -SLACK && q->best[i].cost >= new_value - r->value) continue;
        if (!look_at(r, shift_of(q, q->best + i), may_be_taken, &value, &h)) continue;
        if (h >= -SLACK) score = repairing ? value - 1e9 : value;
        else score = -(h - r->h) / (larger(value - r->value, 0) + 1e-3);
        if (score < least_score) least_score = score, choice = q->best + i, new_value = value, new_h = h;
    }
    return choice && (repairing ? new_h > r->h + LEAST : new_value < r->value - LEAST) ? choice : NULL;
}

/* Take a move, unless it is none on a second, exact look. */
static int taken(Search *q, const Move *m) {
    Row *r = &q->row;
    const Layout *y = r->who.layout;
    const int64_t at = y->start[m->feature], width = y->width[m->feature];
    const int repairing = is_repairing(r);
    const double value = r->value, h = r->h;
    memcpy(q->before, r->u + at, width * sizeof(double));
    shift_by(r, shift_of(q, m));
    for (int64_t place = 0; place < width; place++) r->u[at + place] = after(y, m, place);
    linearise(q);
    if (repairing ? r->h > h + LEAST : !is_repairing(r) && r->value < value - LEAST) return 1;
    memcpy(r->u + at, q->before, width * sizeof(double));
    r->value = value, r->h = h;
    return 0;
}

/* Move once; 0 where nothing is better than to stay. */
static int move(Search *q) {
    const Layout *y = q->row.who.layout;
    q->n_best = 0;
    for (int64_t f = 0; f < y->features; f++) {
        if (!may_move(&q->row, f)) continue;
        if (y->kind[f] == LEVELS) weigh_levels(q, f);
        else weigh_number(q, f);
    }
    const Move *choice = chosen(q);
    return choice && taken(q, choice);
}

/* Repairing buys back the decision that rounding lost; tightening gives back what the decision does not need. */
static void local_search(Search *q) {
    all_phases(&q->row);
    linearise(q);
    for (int round = 0; round < REPAIRS && is_repairing(&q->row); round++)
        if (!move(q)) return;
    for (int round = 0; round < TIGHTENINGS && !is_repairing(&q->row); round++)
        if (!move(q)) return;
}

/* ---- what is called ---- */

static void take_place(Row *r, const Rows *rows, int64_t at) {
    const int64_t columns = r->surface->columns, first = at * columns;
    r->who.x = rows->x + first, r->who.lower = rows->lower + first, r->who.upper = rows->upper + first;
    r->beta = rows->beta[at], r->sign = rows->sign[at], r->margin = rows->margin[at];
    r->looks = 0;
    memcpy(r->u, rows->start + first, columns * sizeof(double));
}

/* Snap the queue's rows and search around them; u, objective and h. Returns 0, or 1 where there is no memory. */
int polish_rows(const Surface *p, const Layout *layout, const Rows *rows, Queue *queue) {
    /* along the features: two in double precision, three in single; across the columns: seven, of words alike */
    const int64_t n = p->features / LANES, columns = (p->columns + ABREAST + LANES) / LANES * LANES;
    const int64_t vectors = 2 * n + (3 * n + 1) / 2 + 7 * columns / LANES;
    vec *memory = aligned_alloc(BYTES, vectors * sizeof(vec));
    if (!memory) return 1;
    memset(memory, 0, vectors * sizeof(vec));
    rough *rough_memory = (rough *)(memory + 2 * n);
    double *across = (double *)(memory + 2 * n + (3 * n + 1) / 2);
    int64_t *places = (int64_t *)(across + 5 * columns);
    Search q = {
        .row = {.surface = p, .who.layout = layout, .phase = memory, .moved = memory + n,
                .turned = rough_memory, .slope_f = rough_memory + n / 2, .slope_h = rough_memory + n,
                .u = across, .grad_f = across + columns, .grad_h = across + 2 * columns},
        .shift = {.by = across + 3 * columns, .column = places},
        .before = across + 4 * columns, .weighed = places + columns,
    };
    int64_t at, end;
    while (take(queue, 1, &at, &end)) {
        take_place(&q.row, rows, at);
        snap(&q.row.who, q.row.u);
        local_search(&q);
        rows->objective[at] = q.row.value, rows->h[at] = q.row.h, rows->looks[at] = q.row.looks;
        memcpy(rows->u + at * p->columns, q.row.u, p->columns * sizeof(double));
    }
    free(memory);
    return 0;
}
