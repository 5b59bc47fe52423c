"""Studies: many data sets, methods and seeds, one table of figures."""
