/* Rows that threads take from one queue, some at a time: whoever is done first takes more. */

#ifndef QUEUE_H
#define QUEUE_H

#include <stdint.h>

#define SOME 32 /* rows to take at a time where they are done one after the other */

typedef struct {
    int64_t next, end;
} Queue;

/* Rows first..end - 1 are the caller's; 0 where none are left. */
static inline int take(Queue *queue, int64_t many, int64_t *first, int64_t *end) {
    *first = __atomic_fetch_add(&queue->next, many, __ATOMIC_RELAXED);
    *end = *first + many < queue->end ? *first + many : queue->end;
    return *first < queue->end;
}

#endif
