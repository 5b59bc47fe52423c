/* The nearest allowed rows, for whoever has no surface to look at. */

#include "layout.h"

/* Snap rows first..end - 1 of u in place; all have `columns` columns. */
int snap_rows(const Layout *layout, int64_t columns, const double *x, const double *lower, const double *upper, double *u,
              int64_t first, int64_t end) {
    for (int64_t at = first * columns; at < end * columns; at += columns) {
        const Person who = {layout, x + at, lower + at, upper + at};
        snap(&who, u + at);
    }
    return 0;
}
