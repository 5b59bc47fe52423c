/* steps.latent_step: Gauss-Newton in the latent space, all of whose algebra is LATENT x LATENT. */

#include "step.h"

/* N >= 0: minus the curvature of log p with its positive eigenvalues cut off, by Jacobi's rotations. */
static void concave_part(const Point *at, vec N[LATENT][LATENT]) {
    vec A[LATENT][LATENT], V[LATENT][LATENT];
    for (int k = 0, pair = 0; k < LATENT; k++)
        for (int l = k; l < LATENT; l++, pair++) A[k][l] = A[l][k] = -at->curvature[pair];
    for (int k = 0; k < LATENT; k++)
        for (int l = 0; l < LATENT; l++) V[k][l] = all(k == l);
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
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

/* steps.latent_step: the proposal goes to g->proposal. grad_h is to be that of g->here. */
static Step latent_step(const Group *g, vec damping, vec bend, mask walking) {
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
    vec pull = damping + bend, shrink = all(1) / (all(1) + pull), steep = all(0);
    vec *wish = g->proposal, *held = g->scratch;
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
            vec anchor = (g->x[j] + pull * at->u[j]) * shrink;
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
            vec to = g->x[j] + pull * at->u[j];
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
        step.square += by * by, step.uphill += g->grad_f[j] * by;
        step.model_h += g->grad_h[j] * by;
        for (int k = 0; k < LATENT; k++) a[k] += J[k * columns + j] * by;
    }
    step.change = all((REAL)0.5) * (distance + bend * step.square), step.curvature = step.square;
    for (int k = 0; k < LATENT; k++) {
        vec bent = all(0);
        for (int l = 0; l < LATENT; l++) bent += N[k][l] * a[l];
        step.change -= g->beta * (at->score[k] - all((REAL)0.5) * bent) * a[k];
        step.curvature += g->beta * bent * a[k];
    }
    return step;
}
