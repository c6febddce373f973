/* scores, exported by napkin for the machine cpu-256.
 *
 *     S[q, x] = sum(d) Q[q, d] * K[x, d]
 *
 * Arrays:
 *     Q  input   q x d=64  f32   row-major
 *     K  input   x x d=64  f32   any strides
 *     S  output  q x x     f32   row-major
 *
 * q, x from 1 to 1048576. The largest of them says which kernels:
 *     from 1 to 7, planned at 255
 *     from 8 to 8, planned at 32768
 *     from 9 to 16, planned at 255
 *     from 17 to 24, planned at 32768
 *     from 25 to 32, planned at 255
 *     from 33 to 1048576, planned at 32768
 *
 * Strides are in values, one for each dimension; NULL: row-major without gaps. Arrays that are written share no memory
 * with others.
 *
 * Integers by which others are read are not looked at. */
#ifndef NAPKIN_EXPORTED_scores_H
#define NAPKIN_EXPORTED_scores_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    scores_ok = 0,
    scores_bad_size = 1,     /* no kernels are for these sizes */
    scores_null = 2,         /* a pointer to an array is NULL */
    scores_bad_strides = 3,  /* kernels do not take an array with these strides, or sizes that make them */
    scores_misaligned = 4,   /* an array, or the workspace, does not begin at a multiple of its alignment */
    scores_no_workspace = 5, /* memory is needed, and the workspace is NULL */
    scores_no_driver = 6,    /* CUDA's driver is not found, or is older than CUDA 12 */
    scores_no_context = 7,   /* the thread has no context of CUDA */
    scores_failed = 8        /* of CUDA's driver; the message has its words */
};

/* Bytes of the workspace, which begins at a multiple of 256. -1: no kernels are for these sizes. */
int64_t scores_workspace_bytes(int64_t q, int64_t x);
/* Has run when it returns. One call runs at a time. The stream is NULL. */
int scores_run(int64_t q, int64_t x, const void* Q, const int64_t* Q_strides, const void* K, const int64_t* K_strides,
               void* S, const int64_t* S_strides, void* workspace, void* stream);
/* What a status says. That of scores_failed is about the thread's last call. */
const char* scores_message(int status);

#ifdef __cplusplus
}
#endif

#endif
