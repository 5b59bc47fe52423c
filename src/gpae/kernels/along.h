/* A surface at one row, vectors along the encoder's features; REAL is double.

   A move changes one feature, hence few columns, so the phases Zu + c of the row are kept and a trial only adds what its
   columns change. A trial and the gradients are only compared with others of their kind: single precision does for them.
   What is taken is evaluated in double precision. */

#include "layout.h"
#include "vectors.h"

#define ABREAST 4 /* columns whose gradients are summed side by side */
#define TURN 6.283185307179586477

typedef float narrowed __attribute__((vector_size(BYTES / 2))); /* as many lanes as a vec */

typedef struct {
    const REAL *by_column;                   /* columns x features: frequencies */
    const REAL *weights;                     /* LATENT x features, with the amplitude */
    const REAL *density_frequencies, *density_phases, *density_weights; /* LATENT x T; T; T, with the amplitude */
} Exact;

typedef struct {
    const float *by_column, *weights, *density_frequencies, *density_phases, *density_weights;
} Rough;

typedef struct {
    int64_t features, columns, density_features; /* the first and the last padded to ROUGH_LANES with weights of zero */
    const double *phases;                        /* features */
    const double *theta, *theta0;
    const double *mean, *precision, *constant;
    const double *metric;                        /* columns: what a squared way counts along each */
    Exact exact;
    Rough rough;                                 /* the same numbers */
} Surface;

typedef struct {
    const Surface *surface;
    Person who;
    double beta, sign, margin;
    double *u, *grad_f, *grad_h;
    double value, h, way;                  /* way: the square of it, halved */
    int64_t looks;
    vec *phase, *moved;                    /* along the encoder's features */
    rough *turned, *slope_f, *slope_h;     /* turned: the phases less whole turns, small enough for single precision */
} Row;

/* ---- sums over the features, in either precision ---- */

/* Half of the lanes onto the other half, until one is left. */
static inline double sum(vec a) {
#ifdef __AVX512F__
    return _mm512_reduce_add_pd((__m512d)a);
#else
    for (int half = LANES / 2; half; half /= 2)
        for (int l = 0; l < half; l++) a[l] += a[l + half];
    return a[0];
#endif
}

static inline double rough_sum(rough a) {
#ifdef __AVX512F__
    return (double)_mm512_reduce_add_ps((__m512)a);
#else
    for (int half = ROUGH_LANES / 2; half; half /= 2)
        for (int l = 0; l < half; l++) a[l] += a[l + half];
    return (double)a[0];
#endif
}

static inline rough rough_sine(rough a) { return rough_cosine(a - rough_all(1.57079632679489662f)); }

/* What the Gaussian adds to log p, and its part of the slope. */
static inline double log_gaussian(const Surface *p, const double *latent, double *score) {
    double value = p->constant[0];
    for (int k = 0; k < LATENT; k++) {
        double pull = 0;
        for (int l = 0; l < LATENT; l++) pull += p->precision[k * LATENT + l] * (latent[l] - p->mean[l]);
        value -= 0.5 * pull * (latent[k] - p->mean[k]);
        if (score) score[k] = -pull;
    }
    return value;
}

static double log_density(const Surface *p, const double *latent) {
    const int64_t n = p->density_features / LANES;
    const vec *w = (const vec *)p->exact.density_weights, *c = (const vec *)p->exact.density_phases;
    const vec *z = (const vec *)p->exact.density_frequencies;
    vec total = all(0);
    for (int64_t t = 0; t < n; t++) {
        vec phase = c[t];
        for (int k = 0; k < LATENT; k++) phase += z[k * n + t] * all(latent[k]);
        total += w[t] * cosine_of(phase);
    }
    return log_gaussian(p, latent, NULL) + sum(total);
}

/* The slope of log p. */
static void rough_score(const Surface *p, const double *latent, double *score) {
    const int64_t n = p->density_features / ROUGH_LANES;
    const rough *w = (const rough *)p->rough.density_weights, *c = (const rough *)p->rough.density_phases;
    const rough *z = (const rough *)p->rough.density_frequencies;
    rough pulls[LATENT];
    for (int k = 0; k < LATENT; k++) pulls[k] = rough_all(0);
    for (int64_t t = 0; t < n; t++) {
        rough phase = c[t];
        for (int k = 0; k < LATENT; k++) phase += z[k * n + t] * rough_all((float)latent[k]);
        const rough pull = w[t] * rough_sine(phase);
        for (int k = 0; k < LATENT; k++) pulls[k] -= pull * z[k * n + t];
    }
    log_gaussian(p, latent, score);
    for (int k = 0; k < LATENT; k++) score[k] += rough_sum(pulls[k]);
}

static double rough_log_density(const Surface *p, const double *latent) {
    const int64_t n = p->density_features / ROUGH_LANES;
    const rough *w = (const rough *)p->rough.density_weights, *c = (const rough *)p->rough.density_phases;
    const rough *z = (const rough *)p->rough.density_frequencies;
    rough total = rough_all(0);
    for (int64_t t = 0; t < n; t++) {
        rough phase = c[t];
        for (int k = 0; k < LATENT; k++) phase += z[k * n + t] * rough_all((float)latent[k]);
        total += w[t] * rough_cosine(phase);
    }
    return log_gaussian(p, latent, NULL) + rough_sum(total);
}

static void encode(const Surface *p, const vec *phase, double *latent) {
    const int64_t n = p->features / LANES;
    const vec *w = (const vec *)p->exact.weights;
    vec totals[LATENT];
    for (int k = 0; k < LATENT; k++) totals[k] = all(0);
    for (int64_t s = 0; s < n; s++) {
        const vec cosine = cosine_of(phase[s]);
        for (int k = 0; k < LATENT; k++) totals[k] += w[k * n + s] * cosine;
    }
    for (int k = 0; k < LATENT; k++) latent[k] = sum(totals[k]);
}

/* ---- points ---- */

/* Some columns of a row, and by how much they move. */
typedef struct {
    int64_t count, *column;
    double *by;
} Shift;

/* The latent after a shift. */
static void rough_encode(const Row *r, const Shift *shift, double *latent) {
    const Surface *p = r->surface;
    const int64_t n = p->features / ROUGH_LANES;
    const rough *w = (const rough *)p->rough.weights, *z = (const rough *)p->rough.by_column;
    rough totals[LATENT];
    for (int k = 0; k < LATENT; k++) totals[k] = rough_all(0);
    for (int64_t s = 0; s < n; s++) {
        rough phase = r->turned[s];
        for (int64_t c = 0; c < shift->count; c++)
            phase += z[shift->column[c] * n + s] * rough_all((float)shift->by[c]);
        const rough cosine = rough_cosine(phase);
        for (int k = 0; k < LATENT; k++) totals[k] += w[k * n + s] * cosine;
    }
    for (int k = 0; k < LATENT; k++) latent[k] = rough_sum(totals[k]);
}

static double half_square_of_way(const Row *r) {
    const double *metric = r->surface->metric, *u = r->u, *x = r->who.x;
    double square = 0;
    for (int64_t j = 0; j < r->surface->columns; j++) square += metric[j] * (u[j] - x[j]) * (u[j] - x[j]);
    return 0.5 * square;
}

static double decision(const Row *r, const double *latent) {
    double logit = r->surface->theta0[0];
    for (int k = 0; k < LATENT; k++) logit += r->surface->theta[k] * latent[k];
    return r->sign * logit - r->margin;
}

/* h after a shift, to single precision; and the value, where such an h makes a move worth looking at further. */
static int look_at(Row *r, const Shift *shift, int (*is_worth_it)(const Row *r, double h), double *value, double *h) {
    double latent[LATENT], further = 0;
    r->looks++;
    rough_encode(r, shift, latent);
    *h = decision(r, latent);
    if (!is_worth_it(r, *h)) return 0;
    for (int64_t c = 0; c < shift->count; c++) {
        const double way = r->u[shift->column[c]] - r->who.x[shift->column[c]], by = shift->by[c];
        further += r->surface->metric[shift->column[c]] * by * (way + 0.5 * by);
    }
    *value = r->way + further - r->beta * rough_log_density(r->surface, latent);
    return 1;
}

static void all_phases(Row *r) {
    const Surface *p = r->surface;
    const int64_t n = p->features / LANES;
    memcpy(r->phase, p->phases, p->features * sizeof(double));
    for (int64_t j = 0; j < p->columns; j++) {
        const vec *z = (const vec *)(p->exact.by_column + j * p->features), by = all(r->u[j]);
        if (r->u[j] != 0)
            for (int64_t s = 0; s < n; s++) r->phase[s] += z[s] * by;
    }
}

/* Move; what was there before is kept in `moved`. */
static void shift_by(Row *r, const Shift *shift) {
    const Surface *p = r->surface;
    const int64_t n = p->features / LANES;
    memcpy(r->moved, r->phase, p->features * sizeof(double));
    for (int64_t c = 0; c < shift->count; c++) {
        const vec *z = (const vec *)(p->exact.by_column + shift->column[c] * p->features), by = all(shift->by[c]);
        for (int64_t s = 0; s < n; s++) r->moved[s] += z[s] * by;
    }
    vec *before = r->phase;
    r->phase = r->moved, r->moved = before;
}

/* What is left of the phases without whole turns. */
static void turn(Row *r) {
    const vec round = all(6755399441055744.0); /* 1.5 * 2^52: adding it leaves the whole part */
    narrowed *turned = (narrowed *)r->turned;
    for (int64_t s = 0; s < r->surface->features / LANES; s++) {
        const vec turns = r->phase[s] * all(1 / TURN) + round - round;
        turned[s] = __builtin_convertvector(r->phase[s] - turns * all(TURN), narrowed);
    }
}

/* Value and h at u from its phases, and what gradients there are made of. */
static void evaluate(Row *r) {
    const Surface *p = r->surface;
    const int64_t n = p->features / ROUGH_LANES;
    const rough *w = (const rough *)p->rough.weights;
    double latent[LATENT], score[LATENT];
    r->looks++;
    encode(p, r->phase, latent);
    r->h = decision(r, latent);
    r->way = half_square_of_way(r);
    r->value = r->way - r->beta * log_density(p, latent);
    rough_score(p, latent, score);
    turn(r);
    for (int64_t s = 0; s < n; s++) {
        const rough sine = rough_sine(r->turned[s]);
        rough up = rough_all(0), over = rough_all(0);
        for (int k = 0; k < LATENT; k++) {
            up += w[k * n + s] * rough_all((float)score[k]);
            over += w[k * n + s] * rough_all((float)p->theta[k]);
        }
        r->slope_f[s] = up * sine, r->slope_h[s] = over * sine;
    }
}

/* Both gradients along some columns, a multiple of ABREAST of them. */
static void gradients(Row *r, const int64_t *columns, int64_t count) {
    const Surface *p = r->surface;
    const int64_t n = p->features / ROUGH_LANES;
    for (int64_t first = 0; first < count; first += ABREAST) {
        const rough *z[ABREAST];
        rough up[ABREAST], over[ABREAST];
        for (int c = 0; c < ABREAST; c++) {
            z[c] = (const rough *)(p->rough.by_column + columns[first + c] * p->features);
            up[c] = over[c] = rough_all(0);
        }
        for (int64_t s = 0; s < n; s++)
            for (int c = 0; c < ABREAST; c++)
                up[c] += z[c][s] * r->slope_f[s], over[c] += z[c][s] * r->slope_h[s];
        for (int c = 0; c < ABREAST; c++) {
            const int64_t j = columns[first + c];
            r->grad_f[j] = p->metric[j] * (r->u[j] - r->who.x[j]) + r->beta * rough_sum(up[c]);
            r->grad_h[j] = -r->sign * rough_sum(over[c]);
        }
    }
}
