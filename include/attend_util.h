/* attend_util.h - what a library on top of attend needs: option structs, errors, memory, threads, random numbers.
 * Programs that only call attend do without.
 */
#ifndef ATTEND_UTIL_H
#define ATTEND_UTIL_H

#include "attend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Copies the caller's option struct src, which may be of an older or newer header, to dst [dst_size], ours; src or
 * NULL: all defaults. What src does not have becomes 0; dst's first field, size_t size, becomes dst_size. Errors: a
 * size that cannot be one; bytes after dst_size that are not 0. */
ATT_API att_status att_options_read(void *dst, size_t dst_size, const void *src, const char *type_name);
/* The way back: fills the caller's dst, whose first field is its size, from src [src_size], ours. What src does not
 * have becomes 0. Error: a size that cannot be one, and nothing is written. */
ATT_API att_status att_info_write(void *dst, const void *src, size_t src_size, const char *type_name);
/* A pointer by its name */
typedef struct att_named {
    const char *name;
    const void *pointer;
} att_named;
/* Some of them and their number in one: att_require(__func__, ATT_NAMED({"ctx", ctx}, {"out", out})). */
#ifdef __cplusplus
#define ATT_NAMED(...) att_first<att_named>({__VA_ARGS__}), sizeof(att_count<att_named>({__VA_ARGS__}))
#else
#define ATT_NAMED(...)                                                                                                 \
    ((const att_named[]){__VA_ARGS__}), (sizeof((const att_named[]){__VA_ARGS__}) / sizeof(att_named))
#endif
/* ATT_ERR_ARGUMENT where one of given [n] is NULL: the sentence names the function and the first such pointer. */
ATT_API att_status att_require(const char *function, const att_named *given, size_t n);
/* The same for a function that returns a variable: false where t is NULL, or one of given [n], with which the tape
 * fails. See attend_learn.h. */
typedef struct att_tape att_tape;
ATT_API bool att_tape_require(att_tape *t, const char *function, const att_named *given, size_t n);
/* att_options_read for such a function; src or NULL: all defaults. False: t is NULL, or a wrong struct, with which the
 * tape fails. */
ATT_API bool att_tape_options_read(att_tape *t, const char *function, void *dst, size_t dst_size, const void *src,
                                   const char *type_name);
/* Sets the calling thread's error sentence and returns s: return att_fail(ctx, ATT_ERR_FORMAT, "%s: ...", file). ctx or
 * NULL. */
ATT_API att_status att_fail(att_ctx *ctx, att_status s, const char *format, ...) ATT_PRINTF(3, 4);
/* The same with a sentence as it is, for languages without functions of any number of arguments. ctx or NULL. */
ATT_API att_status att_fail_text(att_ctx *ctx, att_status s, const char *text);
/* Passes a sentence to the `note` of the context's configuration, if it has one. */
ATT_API void att_note(att_ctx *ctx, const char *format, ...) ATT_PRINTF(2, 3);
/* Memory from the context's allocator, aligned to 64 bytes; NULL (error set) on failure and where count times
 * element_size overflows. 0 bytes give memory as well, to be freed. att_free takes p or NULL. */
ATT_API void *att_alloc(att_ctx *ctx, size_t count, size_t element_size);
/* The same, all zero. */
ATT_API void *att_calloc(att_ctx *ctx, size_t count, size_t element_size);
ATT_API void att_free(att_ctx *ctx, void *p);
/* Gives the pages of x back to the system, a view of a file that is mapped into memory for reading (MAP_PRIVATE,
 * PROT_READ): numbers that are read there afterwards come from the file again, and are the same. Pages that x has but a
 * part of stay. x or NULL. */
ATT_API void att_release_mapped(const att_tensor *x);
/* Grows an array of `count` elements of `size` bytes, with room for *room of them, to hold `more` than these; the room
 * at least doubles, so that adding one by one copies each element a constant number of times. array: the address of the
 * pointer to the first element, memory of att_alloc or NULL, which may change. After an error (memory) nothing has
 * changed. */
ATT_API att_status att_grow_array(att_ctx *ctx, void *array, size_t size, size_t count, size_t more, size_t *room);
/* body(arg, i) for each i in [0, n) on the context's threads; inside another one, or while another thread has them,
 * it runs on the calling thread. Bodies run with the default rounding and denormals, whatever the host has set. */
ATT_API void att_parallel_for(att_ctx *ctx, int n, void (*body)(void *arg, int i), void *arg);
/* Four random words: those of Philox4x32-10 (Salmon et al. 2011) for this key (the seed, low word first) and counter.
 * Without a state, so they are the same whatever the order and the threads. */
ATT_API void att_random(uint64_t seed, const uint32_t counter[4], uint32_t words[4]);
/* True when the cancel flag of the configuration, or that of the call that the thread runs (att_cancel_by), is set. */
ATT_API bool att_cancelled(const att_ctx *ctx);

#ifdef __cplusplus
}
#endif
#endif
