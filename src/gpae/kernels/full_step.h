/* steps.full_step: Newton on the Lagrangian over the columns, D times as dear as a latent step. */

#include "step.h"

#define FLAT ((REAL)0.1) /* least curvature of its model, and the share that negative curvature counts */

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
            vec phase = g->phases[first + s], sine, cosine, along = all(0);
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
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
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
