/* The nearest allowed rows, for whoever has no surface to look at. */

#include "layout.h"
#include "queue.h"

/* Snap the queue's rows of u in place; all have `columns` columns. */
int snap_rows(const Layout *layout, int64_t columns, const double *x, const double *lower, const double *upper, double *u,
              Queue *queue) {
    int64_t first, end;
    while (take(queue, SOME, &first, &end))
        for (int64_t at = first * columns; at < end * columns; at += columns) {
            const Person who = {layout, x + at, lower + at, upper + at};
            snap(&who, u + at);
        }
    return 0;
}
