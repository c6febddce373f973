/* What the C programs of this folder check with. */
#ifndef NAPKIN_TESTS_CHECK_H
#define NAPKIN_TESTS_CHECK_H

#include <napkin/napkin.h>
#include <stdio.h>
#include <string.h>

static int failures = 0;

#define CHECK(condition)                                                            \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            ++failures;                                                             \
        }                                                                           \
    } while (0)

/* The call fails with that status, and the first error has that code. */
#define CHECK_FAILS(call, wanted_status, wanted_code)                                                                      \
    do {                                                                                                                   \
        napkin_error* error = NULL;                                                                                        \
        const napkin_status status = (call);                                                                               \
        const char* code = napkin_error_code(error, 0);                                                                    \
        if (status != (wanted_status) || code == NULL || strcmp(code, wanted_code) != 0) {                                 \
            fprintf(stderr, "%s:%d: %s gives %d, %s\n", __FILE__, __LINE__, #call, (int)status, code ? code : "no error"); \
            ++failures;                                                                                                    \
        }                                                                                                                  \
        napkin_error_free(error);                                                                                          \
    } while (0)

/* The call succeeds. */
#define CHECK_OK(call)                                                                        \
    do {                                                                                      \
        napkin_error* error = (napkin_error*)&failures; /* which success makes NULL */        \
        const napkin_status status = (call);                                                  \
        if (status != NAPKIN_OK || error != NULL) {                                           \
            fprintf(stderr, "%s:%d: %s gives %d\n%s", __FILE__, __LINE__, #call, (int)status, \
                    status != NAPKIN_OK ? napkin_error_text(error) : "with an error\n");      \
            ++failures;                                                                       \
            if (status != NAPKIN_OK) napkin_error_free(error);                                \
        }                                                                                     \
    } while (0)

#endif
