/* The Newton search of gpae/search/newton.py, compiled: every lane of a vector is a row.

   Nothing here mixes lanes, so a row's bits are the same whoever stands beside it. A lane whose row is done takes the
   next one, so the vectors stay full. What is compiled in: REAL (float or double) and LATENT (the latent dimension).

   The cost of an iteration with a latent step is `linearise`: LATENT + 1 products with the S x D frequencies and S sines
   and cosines. Tiles of FEATURES features keep what it touches in the first-level cache. A full step, for the few rows
   that need one, costs D times as much. Columns that no row moves are held: they count for the phases once, when a row
   takes its lane, and are none of the D. */

#include "queue.h"
#include "vectors.h"

#define FEATURES 64                                        /* features of the encoder in a tile */
#define BLOCK (LATENT >= 16 ? 1 : LATENT >= 8 ? 2 : 4)     /* columns of the Jacobian that are summed side by side */
#ifdef SINGLE
#define RESTORED 4e-6f
#else
#define RESTORED 1e-9
#endif

#define NEAR ((REAL)1e-3)      /* share of the margin by which a row that has arrived may miss the boundary */
#define ROUNDS 12             /* of the active set in a step */
#define LATENT_DAMPING 4
#define AT_BOUND ((REAL)1e-6)
#define TINY ((REAL)1e-12)
#define FLAT ((REAL)0.1)      /* least curvature of a full step's model, and the share that negative curvature counts */
#define LOST 16               /* a damping that only refused steps one after the other lead to: other steps get further */
#define MEETING 6             /* steps towards the boundary before the search, where no start is given */
#define RESTORING 20          /* steps onto it afterwards */

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

/* ---- a point: values and first derivatives, and the curvature of log p ---- */

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

/* ---- algebra of LATENT x LATENT, one matrix a lane ---- */

/* N >= 0: minus the curvature of log p with its positive eigenvalues cut off, by Jacobi's rotations. */
static void concave_part(const Point *at, vec N[LATENT][LATENT]) {
    vec A[LATENT][LATENT], V[LATENT][LATENT];
    for (int k = 0, pair = 0; k < LATENT; k++)
        for (int l = k; l < LATENT; l++, pair++) A[k][l] = A[l][k] = -at->curvature[pair];
    for (int k = 0; k < LATENT; k++)
        for (int l = 0; l < LATENT; l++) V[k][l] = all(k == l);
    for (int sweep = 0; sweep < 12; sweep++) {
        vec off = all(0), on = all(0);
        for (int k = 0; k < LATENT; k++) {
            on += A[k][k] * A[k][k];
            for (int l = 0; l < k; l++) off += A[k][l] * A[k][l];
        }
        mask going = off > all(EPSILON * EPSILON) * on; /* who is done rests, however long the others take */
        if (!any(going)) break;
        for (int p = 0; p < LATENT; p++)
            for (int q = p + 1; q < LATENT; q++) {
                mask turn = going & (A[p][q] != 0);
                vec ratio = (A[q][q] - A[p][p]) / (all(2) * pick(turn, A[p][q], all(1)));
                vec t = all(1) / (size(ratio) + root(ratio * ratio + all(1)));
                t = pick(turn, pick(ratio < 0, -t, t), all(0));
                vec c = all(1) / root(t * t + all(1)), s = t * c;
                for (int k = 0; k < LATENT; k++) {
                    vec a = A[k][p], b = A[k][q];
                    A[k][p] = c * a - s * b, A[k][q] = s * a + c * b;
                }
                for (int k = 0; k < LATENT; k++) {
                    vec a = A[p][k], b = A[q][k];
                    A[p][k] = c * a - s * b, A[q][k] = s * a + c * b;
                    a = V[k][p], b = V[k][q];
                    V[k][p] = c * a - s * b, V[k][q] = s * a + c * b;
                }
            }
    }
    for (int k = 0; k < LATENT; k++)
        for (int l = 0; l < LATENT; l++) {
            N[k][l] = all(0);
            for (int e = 0; e < LATENT; e++) N[k][l] += V[k][e] * most(A[e][e], all(0)) * V[l][e];
        }
}

/* Solve M y = (b, c) in place, with partial pivoting in each lane. */
static void solve(vec M[LATENT][LATENT], vec b[LATENT], vec c[LATENT]) {
    for (int k = 0; k < LATENT; k++) {
        for (int l = k + 1; l < LATENT; l++) {
            mask larger = size(M[l][k]) > size(M[k][k]);
            for (int j = k; j < LATENT; j++) {
                vec high = pick(larger, M[l][j], M[k][j]);
                M[l][j] = pick(larger, M[k][j], M[l][j]), M[k][j] = high;
            }
            vec high = pick(larger, b[l], b[k]);
            b[l] = pick(larger, b[k], b[l]), b[k] = high;
            high = pick(larger, c[l], c[k]);
            c[l] = pick(larger, c[k], c[l]), c[k] = high;
        }
        for (int l = k + 1; l < LATENT; l++) {
            vec share = M[l][k] / M[k][k];
            for (int j = k + 1; j < LATENT; j++) M[l][j] -= share * M[k][j];
            b[l] -= share * b[k], c[l] -= share * c[k];
        }
    }
    for (int k = LATENT - 1; k >= 0; k--) {
        for (int j = k + 1; j < LATENT; j++) b[k] -= M[k][j] * b[j], c[k] -= M[k][j] * c[j];
        b[k] /= M[k][k], c[k] /= M[k][k];
    }
}

/* ---- steps ---- */

typedef struct {
    vec eta, change, model_h; /* the step's multiplier, the change of its model objective, h of its model */
} Step;

/* steps.latent_step: the proposal goes to g->proposal. grad_h is to be that of g->here. */
static Step latent_step(const Group *g, vec damping, mask walking) {
    const Point *at = &g->here;
    const int64_t columns = g->columns;
    const vec *J = at->jacobian;
    vec N[LATENT][LATENT], damped[LATENT][LATENT], theta[LATENT];
    concave_part(at, N);
    for (int k = 0; k < LATENT; k++) {
        theta[k] = g->sign * all(g->surface->theta[k]);
        for (int l = 0; l < LATENT; l++)
            damped[k][l] = N[k][l] + all(LATENT_DAMPING * g->surface->precision[k * LATENT + l]) * damping;
    }
    vec shrink = all(1) / (all(1) + damping), steep = all(0), *wish = g->proposal, *held = g->scratch;
    for (int64_t j = 0; j < columns; j++) {
        mask movable = g->upper[j] > g->lower[j];
        steep += pick(movable, g->grad_h[j] * g->grad_h[j], all(0));
        held[j] = (vec)~movable, wish[j] = clip(g->x[j], g->lower[j], g->upper[j]);
    }
    vec cap = all(4) * (size(at->eta) + size(at->h) / most(steep, all(TINY)));
    Step step = {.eta = at->eta};
    mask settled = ~walking;
    for (int round = 0; round < ROUNDS; round++) {
        vec K[PAIRS], offset[LATENT];
        for (int pair = 0; pair < PAIRS; pair++) K[pair] = all(0);
        for (int k = 0; k < LATENT; k++) offset[k] = all(0);
        for (int64_t j = 0; j < columns; j++) {
            vec anchor = (g->x[j] + damping * at->u[j]) * shrink;
            vec to = pick((mask)held[j], wish[j], anchor) - at->u[j];
            for (int k = 0, pair = 0; k < LATENT; k++) {
                vec slope = J[k * columns + j];
                offset[k] += slope * to;
                vec moving = pick((mask)held[j], all(0), slope);
                for (int l = k; l < LATENT; l++, pair++) K[pair] += moving * J[l * columns + j];
            }
        }
        vec full[LATENT][LATENT], M[LATENT][LATENT], a[LATENT], b[LATENT];
        for (int k = 0, pair = 0; k < LATENT; k++)
            for (int l = k; l < LATENT; l++, pair++) full[k][l] = full[l][k] = K[pair] * shrink;
        for (int k = 0; k < LATENT; k++) {
            a[k] = offset[k], b[k] = all(0);
            for (int l = 0; l < LATENT; l++) {
                a[k] += g->beta * full[k][l] * at->score[l], b[k] += full[k][l] * theta[l];
                M[k][l] = all(k == l);
                for (int m = 0; m < LATENT; m++) M[k][l] += g->beta * full[k][m] * damped[m][l];
            }
        }
        solve(M, a, b);
        vec steepness = all(0), gap = at->h;
        for (int k = 0; k < LATENT; k++) steepness += theta[k] * b[k], gap += theta[k] * a[k];
        vec multiplier = clip(gap / most(steepness, all(TINY)), -cap, cap), v[LATENT];
        for (int k = 0; k < LATENT; k++) a[k] -= multiplier * b[k];
        for (int k = 0; k < LATENT; k++) {
            vec bent = at->score[k];
            for (int l = 0; l < LATENT; l++) bent -= damped[k][l] * a[l];
            v[k] = g->beta * bent - multiplier * theta[k];
        }
        mask changed = nobody();
        for (int64_t j = 0; j < columns; j++) {
            vec to = (g->x[j] + damping * at->u[j]);
            for (int k = 0; k < LATENT; k++) to += J[k * columns + j] * v[k];
            to *= shrink;
            mask outside = ~((to > g->lower[j]) & (to < g->upper[j]));
            mask differs = outside ^ (mask)held[j];
            changed |= differs;
            wish[j] = pick(settled, wish[j], clip(to, g->lower[j], g->upper[j]));
            held[j] = (vec)(((mask)held[j] & settled) | (outside & ~settled));
        }
        step.eta = pick(settled, step.eta, multiplier);
        settled |= ~changed;
        if (!any(~settled)) break;
    }
    vec a[LATENT], distance = all(0);
    step.model_h = at->h;
    for (int k = 0; k < LATENT; k++) a[k] = all(0);
    for (int64_t j = 0; j < columns; j++) {
        vec to = wish[j] - g->x[j], from = at->u[j] - g->x[j], by = wish[j] - at->u[j];
        distance += to * to - from * from;
        step.model_h += g->grad_h[j] * by;
        for (int k = 0; k < LATENT; k++) a[k] += J[k * columns + j] * by;
    }
    step.change = all((REAL)0.5) * distance;
    for (int k = 0; k < LATENT; k++) {
        vec bent = at->score[k];
        for (int l = 0; l < LATENT; l++) bent -= all((REAL)0.5) * N[k][l] * a[l];
        step.change -= g->beta * bent * a[k];
    }
    return step;
}

/* The Lagrangian's Hessian I - beta J'HJ + sum_k (eta s theta - beta g)_k (Hessian of latent k) of g->here. */
static void lagrangian_hessian(const Group *g, vec *H) {
    const Surface *p = g->surface;
    const Point *at = &g->here;
    const int64_t columns = g->columns;
    vec pull[LATENT], weight[FEATURES], steep[FEATURES];
    for (int k = 0; k < LATENT; k++) pull[k] = at->eta * g->sign * all(p->theta[k]) - g->beta * at->score[k];
    memset(H, 0, columns * columns * sizeof(vec));
    for (int64_t first = 0; first < p->features; first += FEATURES) {
        for (int s = 0; s < FEATURES; s++) {
            const REAL *z = p->frequencies + (first + s) * columns, *w = p->weights + (first + s) * LATENT;
            vec phase = all(p->phases[first + s]), sine, cosine, along = all(0);
            for (int64_t j = 0; j < columns; j++) phase += all(z[j]) * at->u[j];
            sine_cosine(phase, &sine, &cosine);
            for (int k = 0; k < LATENT; k++) along += all(w[k]) * pull[k];
            weight[s] = -cosine * along;
        }
        for (int64_t i = 0; i < columns; i++) {
            const REAL *z = p->frequencies + first * columns;
            for (int s = 0; s < FEATURES; s++) steep[s] = weight[s] * all(z[s * columns + i]);
            for (int64_t j = 0; j <= i; j++) {
                vec sum = H[i * columns + j];
                for (int s = 0; s < FEATURES; s++) sum += steep[s] * all(z[s * columns + j]);
                H[i * columns + j] = sum;
            }
        }
    }
    for (int64_t i = 0; i < columns; i++) {
        vec bent[LATENT];
        for (int k = 0; k < LATENT; k++) bent[k] = all(0);
        for (int k = 0, pair = 0; k < LATENT; k++)
            for (int l = k; l < LATENT; l++, pair++) {
                bent[k] += at->curvature[pair] * at->jacobian[l * columns + i];
                if (l > k) bent[l] += at->curvature[pair] * at->jacobian[k * columns + i];
            }
        for (int64_t j = 0; j <= i; j++) {
            vec inner = all(i == j);
            for (int k = 0; k < LATENT; k++) inner -= g->beta * bent[k] * at->jacobian[k * columns + j];
            H[i * columns + j] += inner;
            H[j * columns + i] = H[i * columns + j];
        }
    }
}

/* Turn every eigenvalue of A positive and add the damping, by Jacobi's rotations; V and diagonal are room. */
static void turn_positive(vec *A, vec *V, vec *diagonal, vec damping, int64_t n) {
    for (int64_t i = 0; i < n * n; i++) V[i] = all(i / n == i % n);
    for (int sweep = 0; sweep < 12; sweep++) {
        vec off = all(0), on = all(0);
        for (int64_t k = 0; k < n; k++) {
            on += A[k * n + k] * A[k * n + k];
            for (int64_t l = 0; l < k; l++) off += A[k * n + l] * A[k * n + l];
        }
        mask going = off > all((REAL)1e-22) * on;
        if (!any(going)) break;
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) {
                mask turn = going & (A[p * n + q] != 0);
                if (!any(turn)) continue;
                vec ratio = (A[q * n + q] - A[p * n + p]) / (all(2) * pick(turn, A[p * n + q], all(1)));
                vec t = all(1) / (size(ratio) + root(ratio * ratio + all(1)));
                t = pick(turn, pick(ratio < 0, -t, t), all(0));
                vec c = all(1) / root(t * t + all(1)), s = t * c;
                for (int64_t k = 0; k < n; k++) {
                    vec a = A[k * n + p], b = A[k * n + q];
                    A[k * n + p] = c * a - s * b, A[k * n + q] = s * a + c * b;
                }
                for (int64_t k = 0; k < n; k++) {
                    vec a = A[p * n + k], b = A[q * n + k];
                    A[p * n + k] = c * a - s * b, A[q * n + k] = s * a + c * b;
                    a = V[p * n + k], b = V[q * n + k]; /* the rows of V are the eigenvectors */
                    V[p * n + k] = c * a - s * b, V[q * n + k] = s * a + c * b;
                }
            }
    }
    for (int64_t e = 0; e < n; e++) {
        vec value = A[e * n + e];
        A[e * n + e] = most(pick(value < 0, -FLAT * value, value), all(FLAT)) + damping;
    }
    for (int64_t i = 0; i < n; i++) { /* sum_e value_e v_e v_e': above the diagonal, which is still read, then on it */
        for (int64_t j = 0; j < i; j++) {
            vec sum = all(0);
            for (int64_t e = 0; e < n; e++) sum += A[e * n + e] * V[e * n + i] * V[e * n + j];
            A[j * n + i] = sum;
        }
    }
    for (int64_t i = 0; i < n; i++) {
        vec sum = all(0);
        for (int64_t e = 0; e < n; e++) sum += A[e * n + e] * V[e * n + i] * V[e * n + i];
        diagonal[i] = sum;
    }
    for (int64_t i = 0; i < n; i++) {
        A[i * n + i] = diagonal[i];
        for (int64_t j = 0; j < i; j++) A[i * n + j] = A[j * n + i];
    }
}

/* Solve A y = (b, c) for a positive A by Cholesky's factor L, which takes the place of A's lower triangle. */
static void solve_positive(vec *A, vec *b, vec *c, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            vec sum = A[i * n + j];
            for (int64_t k = 0; k < j; k++) sum -= A[i * n + k] * A[j * n + k];
            A[i * n + j] = i == j ? root(most(sum, all(TINY))) : sum / A[j * n + j];
        }
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < i; k++) b[i] -= A[i * n + k] * b[k], c[i] -= A[i * n + k] * c[k];
        b[i] /= A[i * n + i], c[i] /= A[i * n + i];
    }
    for (int64_t i = n - 1; i >= 0; i--) {
        for (int64_t k = i + 1; k < n; k++) b[i] -= A[k * n + i] * b[k], c[i] -= A[k * n + i] * c[k];
        b[i] /= A[i * n + i], c[i] /= A[i * n + i];
    }
}

/* The Hessian as it matters: without the columns held at a bound, and steep along the normal (steps._reduced). */
static void reduce_hessian(const Group *g, vec *H) {
    const Point *at = &g->here;
    const int64_t n = g->columns;
    vec *normal = g->line[0], length = all(0), lift = all(0);
    for (int64_t j = 0; j < n; j++) {
        vec gradient = g->grad_f[j] + at->eta * g->grad_h[j];
        mask held = ((at->u[j] <= g->lower[j]) & (gradient > 0)) | ((at->u[j] >= g->upper[j]) & (gradient < 0));
        mask free_ = ~held & (g->upper[j] > g->lower[j]);
        g->scratch[j] = (vec)free_;
        normal[j] = pick(free_, g->grad_h[j], all(0));
        length += normal[j] * normal[j];
    }
    length = most(root(length), all(TINY));
    for (int64_t i = 0; i < n; i++) {
        vec sum = all(0);
        for (int64_t j = 0; j < n; j++) {
            mask both = (mask)g->scratch[i] & (mask)g->scratch[j];
            vec kept = pick(both, H[i * n + j], all(0));
            if (i == j) kept = pick((mask)g->scratch[i], kept, all(1));
            H[i * n + j] = kept;
            sum += size(kept);
        }
        lift = most(lift, sum);
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            H[i * n + j] += all(2) * lift * (normal[i] / length) * (normal[j] / length);
}

/* steps.full_step: Newton on the Lagrangian, inside the box, then back towards the boundary along the old normal. */
static Step full_step(Group *g, vec damping, mask walking) {
    const Point *at = &g->here;
    const int64_t n = g->columns;
    vec *M = g->square[0], *A = g->square[1], *V = g->square[2];
    vec *step = g->line[1], *a = g->line[2], *b = g->line[3], *wish = g->line[4], *held = g->line[5];
    lagrangian_hessian(g, M);
    reduce_hessian(g, M);
    turn_positive(M, V, a, damping, n);
    vec steep = all(0);
    for (int64_t i = 0; i < n; i++) {
        vec spread[LATENT];
        for (int k = 0; k < LATENT; k++) {
            spread[k] = all(0);
            for (int l = 0; l < LATENT; l++)
                spread[k] += all(g->surface->precision[k * LATENT + l]) * at->jacobian[l * n + i];
        }
        for (int64_t j = 0; j < n; j++) {
            vec sum = all(0);
            for (int k = 0; k < LATENT; k++) sum += spread[k] * at->jacobian[k * n + j];
            M[i * n + j] += all(LATENT_DAMPING) * damping * g->beta * sum;
        }
        mask movable = g->upper[i] > g->lower[i];
        steep += pick(movable, g->grad_h[i] * g->grad_h[i], all(0));
        held[i] = (vec)~movable, step[i] = all(0);
    }
    vec cap = all(4) * (size(at->eta) + size(at->h) / most(steep, all(TINY)));
    Step out = {.eta = at->eta};
    mask settled = ~walking;
    for (int round = 0; round < ROUNDS; round++) {
        vec gap = at->h;
        for (int64_t i = 0; i < n; i++) {
            mask stuck = (mask)held[i];
            gap += pick(stuck, g->grad_h[i] * step[i], all(0));
            vec pulled = g->grad_f[i];
            for (int64_t j = 0; j < n; j++) {
                mask either = stuck | (mask)held[j];
                pulled += pick((mask)held[j], M[i * n + j] * step[j], all(0));
                A[i * n + j] = pick(either, all(i == j), M[i * n + j]);
            }
            a[i] = pick(stuck, all(0), pulled), b[i] = pick(stuck, all(0), g->grad_h[i]);
        }
        solve_positive(A, a, b, n);
        vec steepness = all(0);
        for (int64_t i = 0; i < n; i++) steepness += g->grad_h[i] * b[i], gap -= g->grad_h[i] * a[i];
        vec multiplier = clip(gap / most(steepness, all(TINY)), -cap, cap);
        for (int64_t i = 0; i < n; i++) wish[i] = pick((mask)held[i], step[i], -a[i] - multiplier * b[i]);
        mask changed = nobody();
        for (int64_t i = 0; i < n; i++) {
            vec low = g->lower[i] - at->u[i], high = g->upper[i] - at->u[i], pull = g->grad_f[i];
            for (int64_t j = 0; j < n; j++) pull += M[i * n + j] * wish[j];
            pull += multiplier * g->grad_h[i];
            mask stuck = (mask)held[i], movable = high > low;
            /* a held column is released when its multiplier has the wrong sign */
            mask released = stuck & movable & (((step[i] <= low) & (pull < 0)) | ((step[i] >= high) & (pull > 0)));
            mask inside = (~stuck & (wish[i] > low) & (wish[i] < high)) | released;
            changed |= inside ^ ~stuck;
            g->scratch[i] = (vec)~inside;
        }
        for (int64_t i = 0; i < n; i++) {
            vec low = g->lower[i] - at->u[i], high = g->upper[i] - at->u[i];
            step[i] = pick(settled, step[i], clip(wish[i], low, high));
            held[i] = (vec)(((mask)held[i] & settled) | ((mask)g->scratch[i] & ~settled));
        }
        out.eta = pick(settled, out.eta, multiplier);
        settled |= ~changed;
        if (!any(~settled)) break;
    }
    out.change = all(0), out.model_h = at->h;
    for (int64_t i = 0; i < n; i++) {
        vec bent = all(0);
        for (int64_t j = 0; j < n; j++) bent += M[i * n + j] * step[j];
        out.change += (g->grad_f[i] + all((REAL)0.5) * bent) * step[i];
        wish[i] = clip(at->u[i] + step[i], g->lower[i], g->upper[i]);
    }
    /* a long step along a bent boundary leaves it: return along the old normal */
    Point off = {.u = wish};
    linearise(g, &off, 0);
    vec length = all(0);
    for (int64_t i = 0; i < n; i++) {
        mask inside = (wish[i] > g->lower[i]) & (wish[i] < g->upper[i]);
        a[i] = pick(inside, g->grad_h[i], all(0));
        length += a[i] * a[i];
    }
    vec pace = off.h / most(length, all(TINY));
    for (int64_t i = 0; i < n; i++) {
        g->proposal[i] = clip(wish[i] - pace * a[i], g->lower[i], g->upper[i]);
        out.model_h += g->grad_h[i] * (g->proposal[i] - at->u[i]);
    }
    return out;
}

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
    mask stage[4];                 /* which lanes are at which stage */
    vec damping, penalty, steps;   /* steps: of the present stage */
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
    s->damping[lane] = s->penalty[lane] = 0;
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
    return walking & ((ratio > all((REAL)1e-3)) | nearer);
}

/* Who is done with a stage goes on to the next; a lane may pass through several at once. */
static void advance(const Group *g, State *s, const Rows *rows, mask stuck) {
    const Point *at = &g->here;
    vec miss = size(at->h);
    mask met = s->stage[MEET] & ((miss <= all((REAL)1e-2)) | stuck | (s->steps >= all(MEETING)));
    enter(s, met, WALK);
    mask there = (at->kkt <= all((REAL)rows->tolerance)) & (miss <= all(NEAR) * g->margin);
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
            if (any(walkers)) step = rows->full ? full_step(g, s->damping, walkers) : latent_step(g, s->damping, walkers);
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

/* Objective and h of the queue's rows at `start`. */
int evaluate_rows(const Surface *surface, const Rows *rows, Queue *queue) {
    void *block;
    Group *g = gathered(surface, 0, &block);
    if (!g) return 1;
    State state;
    memset(&state, 0, sizeof state);
    int64_t at, end;
    while (take(queue, LANES, &at, &end)) {
        for (int l = 0; l < end - at; l++) load(g, &state, rows, at + l, l);
        linearise(g, &g->there, 0);
        for (int l = 0; l < end - at; l++) {
            rows->objective[at + l] = (double)g->there.objective[l] + g->held_way[l];
            rows->h[at + l] = (double)g->there.h[l];
        }
    }
    free(block);
    return 0;
}
