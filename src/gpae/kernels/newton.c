/* The Newton search of gpae/search/newton.py, compiled: every lane of a vector is a row.

   A lane whose row is done takes the next one, so the vectors stay full. What is compiled in: REAL (float or double) and
   LATENT (the latent dimension). */

#include "full_step.h"
#include "latent_step.h"
#include "queue.h"

#ifdef SINGLE
#define RESTORED 4e-6f
#else
#define RESTORED 1e-9
#endif

#define NEAR ((REAL)1e-3) /* share of the margin by which a row that has arrived may miss the boundary */
#define LOST 16           /* a damping that only refused steps one after the other lead to: other steps get further */
#define MEETING 6         /* steps towards the boundary before the search, where no start is given */
#define RESTORING 20      /* steps onto it afterwards */

typedef struct {
    const double *x, *lower, *upper, *beta, *sign, *margin, *start; /* start may be null: met head-on */
    const int64_t *open, *held; /* which of a row's columns may move, and which lie where their bounds are */
    const double *units;        /* by what a column is multiplied before it is looked at */
    double tolerance, off;      /* off: the share of the margin by which a row may end off the boundary */
    int64_t iterations, full;   /* full: whether the steps are full ones */
    int64_t width, open_columns, held_columns;
    double *u, *objective, *h, *kkt;
    int64_t *taken;      /* iterations of each row */
    uint8_t *converged;
} Rows;

/* restoration._newton_on_h: the shortest way onto the linearised boundary, for some of the lanes. */
static void newton_on_h(const Group *g, mask who) {
    const Point *at = &g->here;
    const int64_t columns = g->columns;
    vec remaining = at->h, *u = g->proposal;
    for (int64_t j = 0; j < columns; j++) u[j] = pick(who, at->u[j], u[j]);
    for (int round = 0; round < 4; round++) {
        mask anyone = nobody();
        for (int64_t j = 0; j < columns; j++)
            anyone |= (u[j] > g->lower[j]) & (u[j] < g->upper[j]) & (g->grad_h[j] * remaining != 0);
        vec length = all(0);
        for (int64_t j = 0; j < columns; j++) {
            vec push = g->grad_h[j] * remaining;
            mask above = u[j] > g->lower[j], below = u[j] < g->upper[j];
            mask inside = above & below & (push != 0);
            mask inward = ((push > 0) & above) | ((push < 0) & below);
            g->scratch[j] = pick((anyone & inside) | (~anyone & inward), g->grad_h[j], all(0));
            length += g->scratch[j] * g->scratch[j];
        }
        vec pace = remaining / most(length, all(TINY));
        remaining = at->h;
        for (int64_t j = 0; j < columns; j++) {
            u[j] = pick(who, clip(u[j] - pace * g->scratch[j], g->lower[j], g->upper[j]), u[j]);
            remaining += g->grad_h[j] * (u[j] - at->u[j]);
        }
    }
}

/* ---- the search ---- */

enum { MEET, WALK, RESTORE, IDLE };

typedef struct {
    mask stage[4];                     /* which lanes are at which stage */
    vec damping, bend, penalty, steps; /* steps: of the present stage */
    int64_t row[LANES], taken[LANES];
    uint8_t converged[LANES];
} State;

static void enter(State *s, mask who, int stage) {
    for (int other = 0; other < 4; other++) s->stage[other] &= ~who;
    s->stage[stage] |= who;
    s->steps = pick(who, all(0), s->steps);
}

static inline double between(double value, double low, double high) {
    return value < low ? low : value > high ? high : value;
}

/* What a row's held columns make of the phases, and of the objective. */
static void hold(Group *g, const Rows *rows, int64_t row, int lane) {
    const Surface *p = g->surface;
    const double *x = rows->x + row * rows->width, *there = rows->lower + row * rows->width;
    REAL *line = g->line_of_phases;
    double way = 0;
    memcpy(line, p->phases, p->features * sizeof(REAL));
    for (int64_t i = 0; i < rows->held_columns; i++) {
        const int64_t j = rows->held[i];
        const double step = (there[j] - x[j]) * rows->units[j];
        const REAL value = (REAL)(there[j] * rows->units[j]), *z = p->held + i * p->features;
        way += 0.5 * step * step;
        if (value != 0)
            for (int64_t s = 0; s < p->features; s++) line[s] += z[s] * value;
    }
    for (int64_t s = 0; s < p->features; s++) g->phases[s][lane] = line[s];
    g->held_way[lane] = way;
}

static void load(Group *g, State *s, const Rows *rows, int64_t row, int lane) {
    const int64_t first = row * rows->width;
    hold(g, rows, row, lane);
    for (int64_t i = 0; i < rows->open_columns; i++) {
        const int64_t j = rows->open[i], at = first + j;
        const double unit = rows->units[j];
        const REAL low = (REAL)(rows->lower[at] * unit), high = (REAL)(rows->upper[at] * unit);
        const REAL u = (REAL)((rows->start ? rows->start[at] : rows->x[at]) * unit);
        g->x[i][lane] = (REAL)(rows->x[at] * unit), g->lower[i][lane] = low, g->upper[i][lane] = high;
        g->there.u[i][lane] = u < low ? low : u > high ? high : u;
    }
    g->beta[lane] = (REAL)rows->beta[row], g->sign[lane] = (REAL)rows->sign[row];
    g->margin[lane] = (REAL)rows->margin[row];
    s->damping[lane] = s->bend[lane] = s->penalty[lane] = 0;
    s->row[lane] = row, s->taken[lane] = 0, s->converged[lane] = 0;
}

static void unload(const Group *g, const State *s, const Rows *rows, int lane) {
    const int64_t row = s->row[lane], first = row * rows->width;
    const Point *at = &g->here;
    for (int64_t i = 0; i < rows->held_columns; i++) rows->u[first + rows->held[i]] = rows->lower[first + rows->held[i]];
    for (int64_t i = 0; i < rows->open_columns; i++) {
        const int64_t j = rows->open[i];
        const double u = (double)at->u[i][lane] / rows->units[j]; /* a bound in single precision may differ */
        rows->u[first + j] = between(u, rows->lower[first + j], rows->upper[first + j]);
    }
    rows->objective[row] = (double)at->objective[lane] + g->held_way[lane];
    rows->h[row] = (double)at->h[lane], rows->kkt[row] = (double)at->kkt[lane];
    rows->taken[row] = s->taken[lane], rows->converged[row] = s->converged[lane];
}

static void adopt(Group *g, mask take) {
    const int64_t columns = g->columns;
    Point *here = &g->here, *there = &g->there;
    for (int64_t j = 0; j < columns; j++) here->u[j] = pick(take, there->u[j], here->u[j]);
    for (int64_t j = 0; j < LATENT * columns; j++) here->jacobian[j] = pick(take, there->jacobian[j], here->jacobian[j]);
    for (int k = 0; k < LATENT; k++) {
        here->latent[k] = pick(take, there->latent[k], here->latent[k]);
        here->score[k] = pick(take, there->score[k], here->score[k]);
    }
    for (int pair = 0; pair < PAIRS; pair++)
        here->curvature[pair] = pick(take, there->curvature[pair], here->curvature[pair]);
    here->objective = pick(take, there->objective, here->objective), here->h = pick(take, there->h, here->h);
    here->kkt = pick(take, there->kkt, here->kkt), here->eta = pick(take, there->eta, here->eta);
}

/* newton._next_damping */
static vec next_damping(vec damping, vec ratio, mask nearer) {
    vec trust = pick(nearer, all(1), clip(ratio, all(0), all(1))), swing = all(2) * trust - all(1);
    vec lowered = damping * clip(all(1) - swing * swing * swing, all((REAL)0.25), all(2));
    lowered = pick(lowered < all((REAL)0.05), all(0), lowered);
    return pick((ratio > all((REAL)1e-3)) | nearer, lowered, most(all(4) * damping, all((REAL)0.25)));
}

/* steps.next_bend: gradients are those of the trial points. */
static vec next_bend(const Group *g, const State *s, const Step *step) {
    const Point *here = &g->here, *there = &g->there;
    vec slope = all(0);
    for (int64_t j = 0; j < g->columns; j++)
        slope += (there->u[j] - here->u[j]) * (g->grad_f[j] + there->eta * g->grad_h[j]);
    vec met = slope - step->uphill - there->eta * (step->model_h - here->h);
    vec found = (met - step->curvature) / most(step->square, all(TELLING));
    return pick(step->square > all(TELLING), clip(found, all(LEAST_BEND), all(MOST_BEND)), s->bend);
}

/* Judge the walkers' trial points; say who takes theirs. */
static mask judge(const Group *g, State *s, const Step *step) {
    const Point *here = &g->here, *there = &g->there;
    mask walking = s->stage[WALK];
    vec steepest = most(size(step->eta), size(here->eta));
    s->penalty = pick(walking, most(all(2) * steepest, all((REAL)0.5) * s->penalty), s->penalty);
    vec fall = here->objective - there->objective + s->penalty * (size(here->h) - size(there->h));
    vec predicted = s->penalty * (size(here->h) - size(step->model_h)) - step->change;
    vec ratio = fall / most(predicted, all((REAL)1e-16));
    mask nearer = (there->kkt < all((REAL)0.5) * here->kkt) &
                  (size(there->h) <= all((REAL)0.5) * size(here->h) + all(RESTORED));
    /* a fall below the arithmetic's noise says nothing: there the residual decides */
    vec noise = all(8 * EPSILON) * (size(here->objective) + s->penalty * size(here->h) + all(1));
    nearer |= (predicted < noise) & (size(fall) < noise) & (there->kkt < here->kkt);
    s->damping = pick(walking, next_damping(s->damping, ratio, nearer), s->damping);
    s->bend = pick(walking, next_bend(g, s, step), s->bend);
    return walking & ((ratio > all((REAL)1e-3)) | nearer);
}

/* Who is done with a stage goes on to the next; a lane may pass through several at once. */
static void advance(const Group *g, State *s, const Rows *rows, mask stuck) {
    const Point *at = &g->here;
    vec miss = size(at->h);
    mask met = s->stage[MEET] & ((miss <= all((REAL)1e-2)) | stuck | (s->steps >= all(MEETING)));
    enter(s, met, WALK);
    vec near = most(all(NEAR), all((REAL)rows->off)) * g->margin;
    mask there = (at->kkt <= all((REAL)rows->tolerance)) & (miss <= near);
    mask lost = s->damping >= all(LOST);
    mask out = s->stage[WALK] & (there | lost | (s->steps >= all((REAL)rows->iterations)));
    for (int l = 0; l < LANES; l++)
        if (out[l]) s->converged[l] = there[l] != 0;
    enter(s, out, RESTORE);
    mask restored = miss <= most(all(RESTORED), all((REAL)rows->off) * g->margin);
    enter(s, s->stage[RESTORE] & (restored | (stuck & ~out) | (s->steps >= all(RESTORING))), IDLE);
}

static void search(Group *g, State *s, const Rows *rows, Queue *queue) {
    const int64_t columns = g->columns;
    int64_t row, end;
    for (int l = 0; l < LANES; l++) s->row[l] = -1;
    s->stage[IDLE] = ~nobody();
    for (;;) {
        mask fresh = nobody();
        for (int l = 0; l < LANES; l++)
            if (s->stage[IDLE][l]) {
                if (s->row[l] >= 0) unload(g, s, rows, l), s->row[l] = -1;
                if (take(queue, 1, &row, &end)) load(g, s, rows, row, l), fresh[l] = -1;
            }
        enter(s, fresh, rows->start ? WALK : MEET);
        mask busy = ~s->stage[IDLE];
        if (!any(busy)) return;
        /* a fresh lane looks at its start; the others try a step */
        Step step = {0};
        mask old = busy & ~fresh;
        if (any(old)) {
            gradients(g, &g->here);
            mask walkers = old & s->stage[WALK];
            if (any(walkers))
                step = rows->full ? full_step(g, s->damping, walkers) : latent_step(g, s->damping, s->bend, walkers);
            if (any(old & ~s->stage[WALK])) newton_on_h(g, old & ~s->stage[WALK]);
            for (int64_t j = 0; j < columns; j++) g->there.u[j] = pick(fresh, g->there.u[j], g->proposal[j]);
        }
        linearise(g, &g->there, 1);
        first_order(g, &g->there);
        mask walkers = s->stage[WALK];
        s->stage[WALK] &= old;
        mask better = judge(g, s, &step);
        s->stage[WALK] = walkers;
        mask seeking = old & ~walkers, nearer = seeking & (size(g->there.h) < size(g->here.h));
        adopt(g, fresh | better | nearer);
        s->steps += pick(old, all(1), all(0));
        for (int l = 0; l < LANES; l++) s->taken[l] += old[l] != 0;
        advance(g, s, rows, seeking & ~nearer);
    }
}

/* ---- what is called ---- */

static vec *vectors(void **memory, int64_t n) {
    vec *here = (vec *)*memory;
    *memory = here + n;
    return here;
}

static Group *gathered(const Surface *surface, int full, void **block) {
    const int64_t columns = surface->columns;
    const int64_t more = full ? (6 + 3 * columns) * columns : 0;
    const int64_t line = surface->features / LANES; /* features are padded to many more than there are lanes */
    const int64_t n = (9 + 2 * LATENT) * columns + more + surface->features + line +
                      (sizeof(Group) + sizeof(vec) - 1) / sizeof(vec);
    void *memory = *block = aligned_alloc(BYTES, n * sizeof(vec));
    if (!memory) return NULL;
    memset(memory, 0, n * sizeof(vec));
    Group *g = memory;
    memory = (char *)memory + (sizeof(Group) + sizeof(vec) - 1) / sizeof(vec) * sizeof(vec);
    g->surface = surface, g->columns = columns;
    vec **parts[] = {&g->x, &g->lower, &g->upper, &g->proposal, &g->grad_f, &g->grad_h, &g->scratch,
                     &g->here.u, &g->there.u};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) *parts[i] = vectors(&memory, columns);
    g->here.jacobian = vectors(&memory, LATENT * columns), g->there.jacobian = vectors(&memory, LATENT * columns);
    g->phases = vectors(&memory, surface->features), g->line_of_phases = (REAL *)vectors(&memory, line);
    for (int i = 0; full && i < 6; i++) g->line[i] = vectors(&memory, columns);
    for (int i = 0; full && i < 3; i++) g->square[i] = vectors(&memory, columns * columns);
    return g;
}

/* Solve the queue's rows. Returns 0, or 1 where there is no memory. */
int solve_rows(const Surface *surface, const Rows *rows, Queue *queue) {
    void *block;
    Group *g = gathered(surface, rows->full != 0, &block);
    if (!g) return 1;
    State state;
    memset(&state, 0, sizeof state);
    search(g, &state, rows, queue);
    free(block);
    return 0;
}

/* Look at each of the queue's rows at `start`, some times over. */
static int look(const Surface *surface, const Rows *rows, Queue *queue, int64_t times, int derivatives) {
    void *block;
    Group *g = gathered(surface, 0, &block);
    if (!g) return 1;
    State state;
    memset(&state, 0, sizeof state);
    int64_t at, end;
    while (take(queue, LANES, &at, &end)) {
        for (int l = 0; l < end - at; l++) load(g, &state, rows, at + l, l);
        for (int64_t i = 0; i < times; i++) linearise(g, &g->there, derivatives);
        for (int l = 0; l < end - at; l++) {
            rows->objective[at + l] = (double)g->there.objective[l] + g->held_way[l];
            rows->h[at + l] = (double)g->there.h[l];
        }
    }
    free(block);
    return 0;
}

/* Objective and h of the queue's rows at `start`. */
int evaluate_rows(const Surface *surface, const Rows *rows, Queue *queue) { return look(surface, rows, queue, 1, 0); }

/* The same with slopes, as often as there are iterations: what of a search are products, sines and cosines. */
int linearise_rows(const Surface *surface, const Rows *rows, Queue *queue) {
    return look(surface, rows, queue, rows->iterations, 1);
}
