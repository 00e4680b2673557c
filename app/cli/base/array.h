/* Arrays that grow together. */
#ifndef CLI_ARRAY_H
#define CLI_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

typedef struct cli_array {
    void *pointer; /* the address of a T *, which is NULL or comes from malloc */
    size_t size;   /* bytes of one element: sizeof(T), or a multiple where several T belong together */
} cli_array;

/* Makes room for at least `count` elements in each of arrays [n]; *room: for how many there is room now. False if
 * memory runs out: all elements are still there, and *room is as before. */
bool cli_reserve(size_t *room, size_t count, const cli_array *arrays, int n);

#endif
