/* What a step of either kind is, and what both go by. */

#ifndef STEP_H
#define STEP_H

#include "algebra.h"
#include "point.h"

#define ROUNDS 12         /* of the active set in a step */
#define SWEEPS 12         /* of Jacobi's rotations at most */
#define LATENT_DAMPING 4
#define LEAST_BEND ((REAL)-0.5)
#define MOST_BEND ((REAL)4)
#define TELLING ((REAL)1e-6) /* the square of the least step that tells of a bend */

typedef struct {
    vec eta, change, model_h;      /* the step's multiplier, the change of its model objective, h of its model */
    vec square, uphill, curvature; /* of a latent step: its square, the objective's slope and the model's curvature
                                      along it, but for the bend's */
} Step;

#endif
