"""Plans under constraints that hypothesis draws, judged from outside: does any written plan break what was asked?

Each plan is judged as a user would: from the answer's table, the query, the schema's and the constraints' plain values,
and the model itself. Nothing of gpae's own judgement is used.

``python -m benchmarks.soak -o results/soak --plans 200000``, from the root of the repository.
"""
