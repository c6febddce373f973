/* What the stand-in for the driver was asked for. */
#ifndef NAPKIN_TESTS_FAKE_CUDA_H
#define NAPKIN_TESTS_FAKE_CUDA_H

#include <stdint.h>

enum { fake_devices = 2, fake_most_launches = 8, fake_most_pointers = 4 };

typedef struct fake_launch {
    void* stream;
    int device;
    unsigned blocks, threads, shared_bytes;
    uint64_t pointers[fake_most_pointers]; /* the first values of the first parameter */
    uint64_t scratch;                      /* the second parameter */
} fake_launch;

typedef struct fake_state {
    int capturing;               /* by the test: a stream is being captured */
    int fails;                   /* by the test: launches fail */
    uint64_t second_device_from; /* by the test: the first address of the second device's memory; 0: it has none */
    int stream_allocations, stream_frees;
    int broken; /* calls that a capture does not allow, while capturing */
    int waits;  /* for the device */
    int allocations, frees, fills;
    int loads, unloads; /* of modules */
    int compilations;   /* by NVRTC */
    int encodings;      /* of tensor maps */
    uint64_t encoded;   /* address in the last of them */
    int launches;       /* all; the last ones are in launch, the newest first */
    fake_launch launch[fake_most_launches];
} fake_state;

#endif
