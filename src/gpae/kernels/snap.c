/* The nearest allowed rows, and which rows are allowed, for whoever has no surface to look at. */

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

/* Which of the queue's rows of u are allowed. */
int allowed_rows(const Layout *layout, int64_t columns, const double *x, const double *lower, const double *upper,
                 const double *u, uint8_t *yes, Queue *queue) {
    int64_t first, end;
    while (take(queue, SOME, &first, &end))
        for (int64_t row = first; row < end; row++) {
            const int64_t at = row * columns;
            const Person who = {layout, x + at, lower + at, upper + at};
            yes[row] = allowed(&who, u + at);
        }
    return 0;
}
