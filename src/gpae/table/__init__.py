"""What a row is: tables in the user's units on one side, encoded rows of numbers in [0, 1] on the other.

``schema`` says what each column means and ``inference`` guesses it from a table. ``scaling`` and ``grid``
describe one number, ``value_block`` and ``level_block`` one feature's encoded columns, ``layout`` a whole
encoded row. ``columns`` and ``frames`` read data frames, and ``codec`` joins the two sides.
"""
