/* attend_util.h - what a library on top of attend needs: option structs, errors, memory, threads, random numbers.
 * Programs that only call attend do not need it.
 */
#ifndef ATTEND_UTIL_H
#define ATTEND_UTIL_H

#include "attend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Copies the caller's option struct src, which may be of an older or newer header, to the library's struct dst
 * [dst_size]; src or NULL: all defaults. Fields that src does not have become 0; dst's first field, size_t size,
 * becomes dst_size. Errors: an impossible size; bytes of src after dst_size that are not 0. */
ATT_API att_status att_options_read(void *dst, size_t dst_size, const void *src, const char *type_name);
/* Fills the caller's struct dst, whose first field is its size, from the library's struct src [src_size]. Fields that
 * src does not have become 0. Error: an impossible size; nothing is written then. */
ATT_API att_status att_info_write(void *dst, const void *src, size_t src_size, const char *type_name);
/* A pointer and its name. */
typedef struct att_named {
    const char *name;
    const void *pointer;
} att_named;
/* Stands for the arguments given and n of att_require: att_require(__func__, ATT_NAMED({"ctx", ctx}, {"out", out})). */
#ifdef __cplusplus
#define ATT_NAMED(...) att_first<att_named>({__VA_ARGS__}), sizeof(att_count<att_named>({__VA_ARGS__}))
#else
#define ATT_NAMED(...)                                                                                                 \
    ((const att_named[]){__VA_ARGS__}), (sizeof((const att_named[]){__VA_ARGS__}) / sizeof(att_named))
#endif
/* Returns ATT_ERR_ARGUMENT if one of given [n] is NULL: the sentence names the function and the first such pointer. */
ATT_API att_status att_require(const char *function, const att_named *given, size_t n);
/* Checks the pointers of a function that returns a variable (attend_learn.h): returns false if t is NULL, or if one of
 * given [n] is, which becomes the tape's error. */
typedef struct att_tape att_tape;
ATT_API bool att_tape_require(att_tape *t, const char *function, const att_named *given, size_t n);
/* Reads the options of a function that returns a variable, as att_options_read does. src or NULL: all defaults. Returns
 * false if t is NULL, or if the struct is wrong, which becomes the tape's error. */
ATT_API bool att_tape_options_read(att_tape *t, const char *function, void *dst, size_t dst_size, const void *src,
                                   const char *type_name);
/* Sets the calling thread's error sentence and returns s: return att_fail(ctx, ATT_ERR_FORMAT, "%s: ...", file). ctx or
 * NULL. */
ATT_API att_status att_fail(att_ctx *ctx, att_status s, const char *format, ...) ATT_PRINTF(3, 4);
/* Sets the error sentence without formatting it, for languages that cannot call variadic functions. ctx or NULL. */
ATT_API att_status att_fail_text(att_ctx *ctx, att_status s, const char *text);
/* Passes a sentence to the `note` of the context's configuration, if it has one. */
ATT_API void att_note(att_ctx *ctx, const char *format, ...) ATT_PRINTF(2, 3);
/* att_alloc returns memory from the context's allocator, aligned to 64 bytes, or NULL (with the error set) if that
 * fails or count times element_size overflows. A request for 0 bytes also returns memory that must be freed. att_free
 * accepts p or NULL. */
ATT_API void *att_alloc(att_ctx *ctx, size_t count, size_t element_size);
/* Allocates as att_alloc does, and sets all bytes to zero. */
ATT_API void *att_calloc(att_ctx *ctx, size_t count, size_t element_size);
ATT_API void att_free(att_ctx *ctx, void *p);
/* Releases the pages of x to the system; x must be a view of a file that is mapped into memory for reading
 * (MAP_PRIVATE, PROT_READ). Later reads load the same numbers from the file again. Pages that x covers only in part are
 * kept. x or NULL. */
ATT_API void att_release_mapped(const att_tensor *x);
/* Grows an array of `count` elements of `size` bytes, with room for *room elements, so that it can hold `more`
 * additional ones. The room at least doubles, so that adding elements one by one copies each a constant number of times
 * on average. array: the address of the pointer to the first element (memory of att_alloc, or NULL), which may change.
 * After an error (out of memory) nothing has changed. */
ATT_API att_status att_grow_array(att_ctx *ctx, void *array, size_t size, size_t count, size_t more, size_t *room);
/* Calls body(arg, i) for each i in [0, n) on the context's threads. Inside another att_parallel_for, or while another
 * thread uses the context's threads, all run on the calling thread. Bodies run with the default rounding and denormals,
 * whatever the host has set. */
ATT_API void att_parallel_for(att_ctx *ctx, int n, void (*body)(void *arg, int i), void *arg);
/* Computes four random words: those of Philox4x32-10 (Salmon et al. 2011) for this key (the seed, low word first) and
 * counter. It has no state, so the words do not depend on order or threads. */
ATT_API void att_random(uint64_t seed, const uint32_t counter[4], uint32_t words[4]);
/* Returns whether a cancel flag is set: that of the context's configuration, or that of the thread's current call
 * (att_cancel_by). */
ATT_API bool att_cancelled(const att_ctx *ctx);

#ifdef __cplusplus
}
#endif
#endif
