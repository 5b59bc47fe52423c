"""The search for a counterfactual: the problem as data, two solvers for its relaxation, and the polish."""
