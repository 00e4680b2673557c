/* Arrays that grow together. */
#ifndef CLI_BASE_GROW_H
#define CLI_BASE_GROW_H

#include <stdbool.h>
#include <stddef.h>

typedef struct cli_array {
    void *pointer; /* the address of a T *, which is NULL or comes from malloc */
    size_t size;   /* bytes of one element: sizeof(T), or a multiple where several T belong together */
} cli_array;

/* Grows each of arrays [n] to at least `count` elements. *room: their capacity. Returns false if out of memory; then
 * the elements and *room are unchanged. */
bool cli_reserve(size_t *room, size_t count, const cli_array *arrays, int n);

#endif
