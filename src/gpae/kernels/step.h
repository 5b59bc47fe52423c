/* What a step of either kind is, and what both go by. */

#ifndef STEP_H
#define STEP_H

#include "algebra.h"
#include "point.h"

#define ROUNDS 12         /* of the active set in a step */
#define SWEEPS 12         /* of Jacobi's rotations at most */
#define LATENT_DAMPING 4

typedef struct {
    vec eta, change, model_h; /* the step's multiplier, the change of its model objective, h of its model */
} Step;

#endif
