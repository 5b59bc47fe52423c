/* A point of the search, every lane of a vector a row: what a surface says there, with first derivatives and the curvature
   of log p.

   Nothing here mixes lanes, so a row's bits are the same whoever stands beside it. The cost is `encode`: LATENT + 1
   products with the S x D frequencies and S sines and cosines. Tiles of FEATURES features keep what it touches in the
   first-level cache. Columns that no row moves are held: they count for the phases once, when a row takes its lane, and
   are none of the D. */

#ifndef POINT_H
#define POINT_H

#include "vectors.h"

#define FEATURES 64                                    /* features of the encoder in a tile */
#define BLOCK (LATENT >= 16 ? 1 : LATENT >= 8 ? 2 : 4) /* columns of the Jacobian that are summed side by side */
#define AT_BOUND ((REAL)1e-6)

typedef struct {
    int64_t features, columns, density_features; /* the first padded to FEATURES, the second to BLOCK, with zeros */
    const REAL *sheaves;                         /* features / SHEAF x columns x SHEAF: frequencies for the phases */
    const REAL *frequencies;                     /* features x columns: the same for the Jacobian */
    const REAL *phases, *weights;                /* features; features x LATENT, with the amplitude */
    const REAL *theta, *theta0;                  /* LATENT; 1 */
    const REAL *density_frequencies, *density_phases, *density_weights; /* T x LATENT; T; T, with the amplitude */
    const REAL *mean, *precision, *constant;     /* LATENT; LATENT x LATENT; what log p adds to its exponents */
    const REAL *held;                            /* held columns x features: their frequencies */
} Surface;

typedef struct {
    vec *u, *jacobian; /* columns; LATENT x columns */
    vec latent[LATENT], score[LATENT], curvature[PAIRS], objective, h, kkt, eta;
} Point;

typedef struct {
    const Surface *surface;
    int64_t columns;
    vec *x, *lower, *upper, *proposal, *grad_f, *grad_h, *scratch;
    vec *phases;              /* of the encoder's features, with the held columns */
    REAL *line_of_phases;     /* room for those of one row */
    double held_way[LANES];   /* what the way along the held columns adds to the objective */
    vec beta, sign, margin;
    Point here, there;
    vec *square[3], *line[6]; /* room for full steps: columns x columns, columns */
} Group;

/* log p at the latent, with its slope and (where asked) its curvature. */
static vec density(const Surface *p, Point *at, int derivatives) {
    vec value = all(p->constant[0]), centred[LATENT];
    for (int k = 0; k < LATENT; k++) centred[k] = at->latent[k] - all(p->mean[k]), at->score[k] = all(0);
    for (int k = 0, pair = 0; k < LATENT; k++) {
        vec pull = all(0);
        for (int l = 0; l < LATENT; l++) pull += all(p->precision[k * LATENT + l]) * centred[l];
        for (int l = k; l < LATENT; l++, pair++) at->curvature[pair] = all(-p->precision[k * LATENT + l]);
        at->score[k] -= pull;
        value -= all((REAL)0.5) * pull * centred[k];
    }
    for (int64_t t = 0; t < p->density_features; t++) {
        const REAL *z = p->density_frequencies + t * LATENT;
        vec phase = all(p->density_phases[t]), sine, cosine;
        for (int k = 0; k < LATENT; k++) phase += all(z[k]) * at->latent[k];
        sine_cosine(phase, &sine, &cosine);
        sine *= all(p->density_weights[t]), cosine *= all(p->density_weights[t]);
        value += cosine;
        if (!derivatives) continue;
        for (int k = 0, pair = 0; k < LATENT; k++) {
            at->score[k] -= all(z[k]) * sine;
            vec bent = all(z[k]) * cosine;
            for (int l = k; l < LATENT; l++, pair++) at->curvature[pair] -= all(z[l]) * bent;
        }
    }
    return value;
}

/* The latent of at->u and, where asked, its Jacobian. */
static void encode(const Group *g, Point *at, int derivatives) {
    const Surface *p = g->surface;
    const int64_t columns = p->columns;
    vec slopes[FEATURES][LATENT];
    for (int k = 0; k < LATENT; k++) at->latent[k] = all(0);
    if (derivatives) memset(at->jacobian, 0, LATENT * columns * sizeof(vec));
    for (int64_t first = 0; first < p->features; first += FEATURES) {
        for (int sheaf = 0; sheaf < FEATURES; sheaf += SHEAF) {
            vec phase[SHEAF];
            for (int s = 0; s < SHEAF; s++) phase[s] = g->phases[first + sheaf + s];
            add_to_sheaf(p->sheaves + (first + sheaf) * columns, at->u, columns, phase);
            for (int s = 0; s < SHEAF; s++) {
                const REAL *w = p->weights + (first + sheaf + s) * LATENT;
                vec sine, cosine;
                sine_cosine(phase[s], &sine, &cosine);
                for (int k = 0; k < LATENT; k++) {
                    at->latent[k] += all(w[k]) * cosine;
                    slopes[sheaf + s][k] = all(-w[k]) * sine;
                }
            }
        }
        if (!derivatives) continue;
        for (int64_t j = 0; j < columns; j += BLOCK) {
            const REAL *z = p->frequencies + first * columns + j;
            vec sum[LATENT][BLOCK];
            for (int k = 0; k < LATENT; k++)
                for (int c = 0; c < BLOCK; c++) sum[k][c] = at->jacobian[k * columns + j + c];
            for (int s = 0; s < FEATURES; s++, z += columns)
                for (int k = 0; k < LATENT; k++)
                    for (int c = 0; c < BLOCK; c++) sum[k][c] += slopes[s][k] * all(z[c]);
            for (int k = 0; k < LATENT; k++)
                for (int c = 0; c < BLOCK; c++) at->jacobian[k * columns + j + c] = sum[k][c];
        }
    }
}

static void linearise(const Group *g, Point *at, int derivatives) {
    encode(g, at, derivatives);
    vec square = all(0), logit = all(g->surface->theta0[0]);
    for (int64_t j = 0; j < g->columns; j++) square += (at->u[j] - g->x[j]) * (at->u[j] - g->x[j]);
    for (int k = 0; k < LATENT; k++) logit += all(g->surface->theta[k]) * at->latent[k];
    at->objective = all((REAL)0.5) * square - g->beta * density(g->surface, at, derivatives);
    at->h = g->sign * logit - g->margin;
}

/* grad_f and grad_h of a linearised point, column by column. */
static void gradients(const Group *g, const Point *at) {
    const int64_t columns = g->columns;
    for (int64_t j = 0; j < columns; j++) {
        vec up = all(0), across = all(0);
        for (int k = 0; k < LATENT; k++) {
            up += at->score[k] * at->jacobian[k * columns + j];
            across += all(g->surface->theta[k]) * at->jacobian[k * columns + j];
        }
        g->grad_f[j] = at->u[j] - g->x[j] - g->beta * up;
        g->grad_h[j] = g->sign * across;
    }
}

/* The multiplier over the columns that are free to move, and the residual with it: problem.kkt_residual. */
static void first_order(const Group *g, Point *at) {
    const int64_t columns = g->columns;
    vec eta = all(0), *held = g->scratch; /* of -1 and 0 as masks */
    gradients(g, at);
    for (int64_t j = 0; j < columns; j++) held[j] = (vec) ~(g->upper[j] > g->lower[j]);
    for (int round = 0; round < 4; round++) {
        vec above = all(0), below = all(0);
        mask changed = nobody();
        for (int64_t j = 0; j < columns; j++) {
            above += pick((mask)held[j], all(0), g->grad_f[j] * g->grad_h[j]);
            below += pick((mask)held[j], all(0), g->grad_h[j] * g->grad_h[j]);
        }
        eta = pick(below > 0, -above / most(below, all((REAL)1e-30)), eta);
        for (int64_t j = 0; j < columns; j++) {
            vec gradient = g->grad_f[j] + eta * g->grad_h[j];
            mask stuck = ~(g->upper[j] > g->lower[j]);
            stuck |= (at->u[j] <= g->lower[j] + AT_BOUND) & (gradient > 0);
            stuck |= (at->u[j] >= g->upper[j] - AT_BOUND) & (gradient < 0);
            changed |= stuck ^ (mask)held[j];
            held[j] = (vec)stuck;
        }
        if (!any(changed)) break;
    }
    vec worst = all(0), way = all(0), steep = all(0);
    for (int64_t j = 0; j < columns; j++) {
        vec gradient = g->grad_f[j] + eta * g->grad_h[j];
        vec projected = at->u[j] - clip(at->u[j] - gradient, g->lower[j], g->upper[j]);
        worst = most(worst, size(projected));
        mask movable = g->upper[j] > g->lower[j];
        way += pick(movable, (at->u[j] - g->x[j]) * (at->u[j] - g->x[j]), all(0));
        steep += pick(movable, g->grad_h[j] * g->grad_h[j], all(0));
    }
    vec scale = most(most(root(way), size(eta) * root(steep)), all(1));
    at->kkt = worst / scale, at->eta = eta;
}

#endif
