/* The C API's launches on a GPU, with a stand-in for the driver (fake_cuda.c): what is launched, on which stream and with which addresses; that a
 * launch allocates nothing, waits for nothing and encodes nothing twice; and what arrays a GPU does not take. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime, threads */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "check.h"
#include "fake_cuda.h"

static const char* const product =
    "product(A[m, k]: bf16, B[n, k]: bf16) -> C[m, n]: bf16\n"
    "    C[m, n] = sum(k) A[m, k] * B[n, k]\n"
    "sizes m = n = k = 256\n";
/* Two sums that cannot be one kernel: what the first leaves lies in the workspace. */
static const char* const chain =
    "chain(A[m, k]: bf16, B[k, n]: bf16, D[n, p]: bf16) -> E[m, p]: bf16\n"
    "    S[m, n] = sum(k) A[m, k] * B[k, n]\n"
    "    M[n] = max(m) S[m, n]\n"
    "    E[m, p] = sum(n) (S[m, n] - M[n]) * D[n, p]\n"
    "sizes m = k = n = p = 256\n";

enum { most_arrays = 4, array_bytes = 512 * 512 * 2 };

static fake_state* state;
static char* memory; /* aligned to 256 */
static void* const stream = &failures;

typedef struct Call {
    int64_t shapes[most_arrays][2];
    napkin_array of[most_arrays];
    const napkin_array* arrays[most_arrays];
} Call;

/* Square bf16 matrices on the GPU, one after the other in memory from `at` on. */
static void prepare(Call* call, int64_t rows, int64_t size, char* at) {
    memset(call, 0, sizeof *call);
    for (int i = 0; i < most_arrays; ++i) {
        call->shapes[i][0] = i == 1 ? size : rows, call->shapes[i][1] = size;
        napkin_array* array = &call->of[i];
        array->data = at + i * array_bytes, array->shape = call->shapes[i], array->ndim = 2;
        array->device.device_type = NAPKIN_ON_GPU;
        array->dtype.code = 4, array->dtype.bits = 16, array->dtype.lanes = 1;
        call->arrays[i] = array;
    }
}

static napkin_program* parsed(const char* text) {
    napkin_program* program = NULL;
    CHECK_OK(napkin_parse(text, strlen(text), NULL, &program, &error));
    return program;
}

static napkin_kernel* compiled(const napkin_program* program, unsigned flags) {
    napkin_plan* plan = NULL;
    napkin_kernel* kernel = NULL;
    CHECK_OK(napkin_plan_for(program, "gpu", NULL, 0, &plan, &error));
    CHECK(strcmp(napkin_plan_machine(plan), "h200") == 0);
    CHECK_OK(napkin_compile(plan, flags | NAPKIN_NOT_VALIDATED, &kernel, &error));
    napkin_plan_free(plan);
    return kernel;
}

static uint64_t address(const void* pointer) { return (uint64_t)(uintptr_t)pointer; }

static void launches(void) {
    napkin_program* program = parsed(product);
    napkin_kernel* kernel = compiled(program, 0);
    CHECK(state->loads == 1 && state->launches == 0);
    CHECK(napkin_kernel_workspace_bytes(kernel) == 0 && state->allocations == 0);
    Call call, other;
    prepare(&call, 256, 256, memory), prepare(&other, 256, 256, memory + 4 * array_bytes);
    call.of[0].byte_offset = 256;

    const fake_state before = *state;
    state->capturing = 1;
    CHECK_OK(napkin_run(kernel, call.arrays, 3, stream, &error));
    CHECK(state->launches == 1 && state->launch[0].stream == stream);
    CHECK(state->launch[0].pointers[0] == address(memory) + 256);
    CHECK(state->launch[0].pointers[1] == address(memory + array_bytes));
    CHECK(state->launch[0].pointers[2] == address(memory + 2 * array_bytes));
    CHECK(state->launch[0].blocks > 0 && state->launch[0].threads >= 128);
    /* The operands come by tensor maps; for the same addresses they are encoded once. */
    const int maps = state->encodings;
    CHECK(maps >= 2);
    for (int i = 0; i < 3; ++i) CHECK_OK(napkin_run(kernel, call.arrays, 3, stream, &error));
    CHECK(state->launches == 4 && state->encodings == maps);
    CHECK_OK(napkin_run(kernel, other.arrays, 3, NULL, &error));
    CHECK(state->encodings == 2 * maps && state->launch[0].stream == NULL);
    CHECK(state->launch[0].pointers[0] == address(memory + 4 * array_bytes));
    CHECK_OK(napkin_run(kernel, call.arrays, 3, stream, &error));
    CHECK(state->encodings == 2 * maps && state->launch[0].pointers[0] == address(memory) + 256);
    /* The last ones of many tuples of addresses are kept. */
    for (int i = 0; i < 40; ++i) {
        other.of[0].byte_offset = 16 * (uint64_t)i;
        CHECK_OK(napkin_run(kernel, other.arrays, 3, stream, &error));
        CHECK(state->launch[0].pointers[0] == address(memory + 4 * array_bytes) + 16 * (uint64_t)i);
    }
    CHECK_OK(napkin_run(kernel, call.arrays, 3, stream, &error));
    CHECK(state->launch[0].pointers[0] == address(memory) + 256);
    void* addresses[] = {memory, memory + array_bytes, memory + 2 * array_bytes};
    CHECK_OK(napkin_run_at(kernel, addresses, 3, NULL, stream, &error));
    CHECK(state->launch[0].pointers[0] == address(memory));
    state->capturing = 0;
    CHECK(state->broken == 0 && state->allocations == before.allocations && state->waits == before.waits);
    CHECK(state->fills == before.fills && state->frees == before.frees);

    state->fails = 1;
    CHECK_FAILS(napkin_run(kernel, call.arrays, 3, stream, &error), NAPKIN_MACHINE_LACKS, "gpu-failed");
    state->fails = 0;
    napkin_kernel_free(kernel);
    CHECK(state->unloads == 1);
    napkin_program_free(program);
}

static void arrays_that_are_not_taken(void) {
    napkin_program* program = parsed(product);
    napkin_kernel* kernel = compiled(program, 0);
    Call call;
    const int before = state->launches;
#define REFUSED(change, wanted)                                                                    \
    do {                                                                                           \
        prepare(&call, 256, 256, memory);                                                          \
        change;                                                                                    \
        CHECK_FAILS(napkin_run(kernel, call.arrays, 3, stream, &error), NAPKIN_BAD_INPUT, wanted); \
    } while (0)
    int64_t padded[] = {264, 1}, rows[] = {256, 1};
    REFUSED(call.of[0].device.device_type = NAPKIN_ON_CPU, "view-device");
    REFUSED(call.of[1].device.device_id = 1, "view-device");
    REFUSED(call.of[0].device.device_id = fake_devices, "view-device");
    REFUSED(call.of[1].dtype.code = 2, "view-type");
    REFUSED(call.shapes[2][1] = 255, "view-sizes");
    REFUSED(call.of[2].data = NULL, "view-null");
    REFUSED(call.of[2].data = memory + 16, "view-overlap");
    REFUSED(call.of[2].data = memory + 256 * 256 * 2 - 16, "view-overlap");
    void* addresses[] = {memory, memory + array_bytes, NULL};
    CHECK_FAILS(napkin_run_at(kernel, addresses, 3, NULL, stream, &error), NAPKIN_BAD_INPUT, "view-null");
    CHECK_FAILS(napkin_run_at(kernel, addresses, 2, NULL, stream, &error), NAPKIN_BAD_INPUT, "view-count");
    CHECK(state->launches == before);
    prepare(&call, 256, 256, memory);
    call.of[0].strides = rows, call.of[0].device.device_type = 13; /* managed */
    CHECK_OK(napkin_run(kernel, call.arrays, 3, stream, &error));
    CHECK(state->launches == before + 1);
    /* Rows with gaps come by maps of their own, which are encoded once. */
    const int maps = state->encodings;
    call.of[1].strides = padded;
    CHECK_OK(napkin_run(kernel, call.arrays, 3, stream, &error));
    const int with_gaps = state->encodings;
    CHECK(with_gaps > maps && state->launches == before + 2);
    CHECK_OK(napkin_run(kernel, call.arrays, 3, stream, &error));
    CHECK(state->encodings == with_gaps && state->launches == before + 3);
    napkin_kernel_free(kernel);
    napkin_program_free(program);
}

/* Views that tensor maps do not take are copied before the kernel, and an output behind it, on the caller's stream. */
static void views(void) {
    napkin_program* program = parsed(product);
    Call call;
    prepare(&call, 256, 256, memory);
    CHECK_OK(napkin_prepare(program, call.arrays, 3, &error));
    int64_t uneven[] = {260, 1}, columns[] = {1, 256}, back[] = {-256, 1}, all_one[] = {0, 1}, apart[] = {1024, 2};
    const struct {
        int array;
        int64_t* strides;
        uint64_t offset;
        int is_copied;
    } cases[] = {{0, uneven, 0, 1},       {1, columns, 0, 1},
                 {0, back, 255 * 512, 1}, {1, all_one, 0, 1},
                 {1, NULL, 2, 1},         {0, NULL, 1, 1},
                 {2, NULL, 8, 1},         {2, uneven, 0, 0} /* threads write it, by rows */,
                 {2, columns, 0, 1},      {2, apart, 0, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
        for (int time = 0; time < 2; ++time) {
            const int of = cases[i].array, copied = cases[i].is_copied, before = state->launches;
            const int memories = state->stream_allocations;
            const size_t copies = napkin_program_copies(program);
            prepare(&call, 256, 256, memory);
            call.of[of].strides = cases[i].strides, call.of[of].byte_offset = cases[i].offset;
            CHECK_OK(napkin_prepare(program, call.arrays, 3, &error)); /* with the kernel that copies */
            state->capturing = 1;
            CHECK_OK(napkin_call(program, call.arrays, 3, stream, &error));
            state->capturing = 0;
            CHECK(state->launches == before + 1 + copied && state->broken == 0);
            CHECK(state->stream_allocations == memories + copied && state->stream_frees == state->stream_allocations);
            CHECK(napkin_program_copies(program) == copies + (size_t)copied);
            /* The newest launch is the first here. A copy's arguments begin with where to and from where. */
            const fake_launch *copy = &state->launch[of == 2 ? 0 : 1], *kernel = &state->launch[of == 2 ? copied : 0];
            const uint64_t view = address(call.of[of].data) + cases[i].offset;
            CHECK(kernel->stream == stream && (kernel->pointers[of] == view) == !copied);
            if (!copied) continue;
            CHECK(copy->stream == stream && copy->pointers[of == 2 ? 0 : 1] == view);
            CHECK(kernel->pointers[of] == copy->pointers[of == 2 ? 1 : 0] && kernel->pointers[of] % 256 == 0);
        }
    /* Strides of arrays without values are as good as any. */
    prepare(&call, 256, 256, memory);
    call.shapes[0][0] = call.shapes[2][0] = 0, call.of[0].strides = columns;
    const int before = state->launches;
    CHECK_OK(napkin_call(program, call.arrays, 3, stream, &error));
    CHECK(state->launches == before);
    /* A sum over none is 0, which a kernel writes. */
    prepare(&call, 256, 256, memory);
    call.shapes[0][1] = call.shapes[1][1] = 0;
    call.of[2].strides = columns;
    CHECK_OK(napkin_call(program, call.arrays, 3, stream, &error));
    CHECK(state->launches > before && state->stream_frees == state->stream_allocations);
    napkin_program_free(program);
}

/* Arrays on the second GPU run there, by a kernel that is loaded there, whatever the thread's own context. */
static void devices(void) {
    napkin_program* program = parsed(product);
    napkin_kernel* kernel = compiled(program, 0);
    Call call;
    const int loads = state->loads;
    for (int time = 0; time < 2; ++time)
        for (int device = 0; device < fake_devices; ++device) {
            prepare(&call, 256, 256, memory);
            for (int i = 0; i < most_arrays; ++i) call.of[i].device.device_id = device;
            CHECK_OK(napkin_call(program, call.arrays, 3, stream, &error));
            CHECK(state->launch[0].device == device && state->launch[0].stream == stream);
            CHECK_OK(napkin_run(kernel, call.arrays, 3, stream, &error));
            CHECK(state->launch[0].device == device);
        }
    CHECK(state->loads == loads + 3); /* the program's on both, the kernel's on the second */
    void* addresses[] = {memory, memory + array_bytes, memory + 2 * array_bytes};
    state->second_device_from = address(memory);
    CHECK_OK(napkin_run_at(kernel, addresses, 3, NULL, stream, &error));
    CHECK(state->launch[0].device == 1);
    state->second_device_from = address(memory) + 1;
    CHECK_OK(napkin_run_at(kernel, addresses, 3, NULL, stream, &error));
    CHECK(state->launch[0].device == 0);
    state->second_device_from = 0;
    for (int i = 0; i < most_arrays; ++i) call.of[i].device.device_id = fake_devices;
    CHECK_FAILS(napkin_call(program, call.arrays, 3, stream, &error), NAPKIN_MACHINE_LACKS, "no-gpu");
    napkin_kernel_free(kernel);
    napkin_program_free(program);
}

/* The last kernel reads what the first one left in the workspace, and writes the output. */
static void check_last(const char* workspace, int64_t bytes, const void* output) {
    int reads = 0, writes = 0;
    for (int i = 0; i < fake_most_pointers; ++i) {
        const uint64_t pointer = state->launch[0].pointers[i];
        reads += pointer >= address(workspace) && pointer < address(workspace) + (uint64_t)bytes;
        writes += pointer == address(output);
    }
    CHECK(reads >= 1 && writes == 1);
}

static void workspaces(void) {
    napkin_program* program = parsed(chain);
    int allocations = state->allocations;
    const int fills = state->fills;
    napkin_kernel *own = compiled(program, 0), *given = NULL;
    const int64_t bytes = napkin_kernel_workspace_bytes(own);
    CHECK(bytes >= 256 * 256 * 2);
    CHECK(state->allocations == allocations + 1 && state->fills == fills + 1);
    allocations = state->allocations;
    given = compiled(program, NAPKIN_CALLERS_WORKSPACE);
    CHECK(napkin_kernel_workspace_bytes(given) == bytes && state->allocations == allocations);
    void* addresses[] = {memory, memory + array_bytes, memory + 2 * array_bytes, memory + 3 * array_bytes};
    char* const workspace = memory + 4 * array_bytes;

    const int before = state->launches;
    state->capturing = 1;
    CHECK_OK(napkin_run_at(own, addresses, 4, NULL, stream, &error));
    const int kernels = state->launches - before;
    CHECK(kernels >= 2 && kernels <= fake_most_launches);
    CHECK_FAILS(napkin_run_at(given, addresses, 4, NULL, stream, &error), NAPKIN_BAD_INPUT, "no-workspace");
    CHECK_FAILS(napkin_run_at(given, addresses, 4, workspace + 16, stream, &error), NAPKIN_BAD_INPUT, "no-workspace");
    CHECK(state->launches == before + kernels);
    CHECK_OK(napkin_run_at(given, addresses, 4, workspace, stream, &error));
    state->capturing = 0;
    CHECK(state->launches == before + 2 * kernels && state->broken == 0);
    check_last(workspace, bytes, addresses[3]);
    char* const another = memory + 8 * array_bytes;
    CHECK_OK(napkin_run_at(given, addresses, 4, another, stream, &error));
    check_last(another, bytes, addresses[3]);
    napkin_kernel_free(own);
    napkin_kernel_free(given);
    napkin_program_free(program);
}

static void calls_by_shape(void) {
    napkin_program* program = parsed(product);
    Call call, taller;
    prepare(&call, 256, 256, memory), prepare(&taller, 384, 256, memory);
    CHECK_OK(napkin_prepare(program, call.arrays, 3, &error));
    CHECK(napkin_program_kernels(program) == 1);
    const int loads = state->loads, before = state->launches;
    state->capturing = 1;
    CHECK_OK(napkin_call(program, call.arrays, 3, stream, &error));
    state->capturing = 0;
    CHECK(state->broken == 0 && state->loads == loads && state->launches == before + 1 && state->launch[0].stream == stream);
    /* More rows are a kernel of their own, whose code is the same. */
    CHECK_OK(napkin_call(program, taller.arrays, 3, stream, &error));
    CHECK(napkin_program_kernels(program) == 2 && state->loads == loads);
    CHECK_OK(napkin_call(program, call.arrays, 3, stream, &error));
    CHECK(napkin_program_kernels(program) == 2 && state->loads == loads);
    call.of[1].device.device_type = NAPKIN_ON_CPU;
    CHECK_FAILS(napkin_call(program, call.arrays, 3, stream, &error), NAPKIN_BAD_INPUT, "view-device");
    call.of[1].device.device_type = NAPKIN_ON_GPU;

    /* The same shapes on the processor are another kernel. */
    Call here;
    prepare(&here, 256, 256, memory);
    for (int i = 0; i < most_arrays; ++i) here.of[i].device.device_type = NAPKIN_ON_CPU;
    memset(memory, 0, 3 * array_bytes);
    const int launched = state->launches;
    CHECK_OK(napkin_call(program, here.arrays, 3, NULL, &error));
    CHECK(napkin_program_kernels(program) == 3 && state->launches == launched);

    /* The share of the host's time that is napkin's own: the stand-in takes none. */
    enum { rounds = 200000 };
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < rounds; ++i) (void)napkin_call(program, call.arrays, 3, stream, NULL);
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("a call takes %.0f ns without the driver's part\n",
           ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) / rounds);
    napkin_program_free(program);
}

#define SCORES(masked)                                                                            \
    "attention(Q[h, g, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, g, q, d]: bf16\n" \
    "    S[h, g, q, x] = sum(k) Q[h, g, q, k] * K[h, x, k]\n"                                     \
    "    P[h, g, q, x] = softmax(x) " masked                                                      \
    "\n"                                                                                          \
    "    O[h, g, q, d] = sum(x) P[h, g, q, x] * V[h, x, d]\n"
static const char *const attention = SCORES("S[h, g, q, x] * k^-0.5"),
                         *const causal = SCORES("where(x <= q, S[h, g, q, x] * k^-0.5, -inf)");

/* A call of attention on so many queries and keys, at addresses that the stand-in does not read. */
static void attend(napkin_program* program, int64_t queries, int64_t keys) {
    int64_t of_q[] = {8, 4, queries, 128}, of_x[] = {8, keys, 128};
    napkin_array of[4];
    const napkin_array* arrays[4];
    memset(of, 0, sizeof of);
    for (int i = 0; i < 4; ++i) {
        const int is_keys = i == 1 || i == 2;
        of[i].data = (char*)(uintptr_t)((uint64_t)(i + 1) << 40); /* NOLINT: an address of a GPU */
        of[i].shape = is_keys ? of_x : of_q, of[i].ndim = is_keys ? 3 : 4;
        of[i].device.device_type = NAPKIN_ON_GPU;
        of[i].dtype.code = 4, of[i].dtype.bits = 16, of[i].dtype.lanes = 1;
        arrays[i] = &of[i];
    }
    CHECK_OK(napkin_call(program, arrays, 4, stream, &error));
}

/* One query behind keys of every length: plans split the keys in parts, of which short lengths leave some empty. */
static void every_length(void) {
    napkin_program* program = parsed(attention);
    for (int64_t keys = 1001; keys <= 1024; ++keys) attend(program, 1, keys);
    /* The first length's text has the number of its parts; that of all later ones takes it as an argument. */
    CHECK(napkin_program_kernels(program) == 24 && napkin_program_codes(program) <= 2);
    for (int64_t power = 1; power <= 1 << 15; power *= 2)
        for (int64_t keys = power - 1; keys <= power + 1; ++keys)
            if (keys > 0) attend(program, 1, keys);
    CHECK(napkin_program_codes(program) <= 7); /* six, and one for what none of them serves */
    napkin_program_free(program);
}

/* Prompts of eight lengths: what is not taken is not compiled. */
static void prompts(void) {
    static const int64_t lengths[] = {57, 130, 257, 511, 640, 1000, 1531, 2013};
    napkin_program* program = parsed(causal);
    const int compilations = state->compilations, loads = state->loads;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; ++i) attend(program, lengths[i], lengths[i]);
    CHECK(napkin_program_codes(program) <= 2 && state->loads - loads <= 2);
    CHECK(state->compilations - compilations <= (int)napkin_program_codes(program));
    napkin_program_free(program);
}

/* A thread that has no context, or another one, launches all the same, and has what it had afterwards. */
typedef struct Driver {
    int (*get_current)(void**);
    int (*set_current)(void*);
} Driver;
typedef struct Work {
    Driver driver;
    napkin_program* program;
    Call call;
} Work;

static void* launch_elsewhere(void* argument) {
    Work* work = argument;
    void* current = stream;
    CHECK(work->driver.get_current(&current) == 0 && current == NULL);
    CHECK_OK(napkin_call(work->program, work->call.arrays, 3, stream, &error));
    CHECK(work->driver.get_current(&current) == 0 && current == NULL);
    work->driver.set_current(&work->call);
    CHECK_OK(napkin_call(work->program, work->call.arrays, 3, stream, &error));
    prepare(&work->call, 128, 256, memory);
    CHECK_OK(napkin_call(work->program, work->call.arrays, 3, stream, &error));
    CHECK(work->driver.get_current(&current) == 0 && current == &work->call);
    napkin_program_free(work->program);
    return NULL;
}

static void threads(void* driver) {
    Work work;
    work.program = parsed(product);
    *(void**)&work.driver.get_current = dlsym(driver, "cuCtxGetCurrent");
    *(void**)&work.driver.set_current = dlsym(driver, "cuCtxSetCurrent");
    void* current = stream;
    CHECK(work.driver.get_current(&current) == 0 && current == NULL); /* all calls so far left it so */
    prepare(&work.call, 256, 256, memory);
    CHECK_OK(napkin_call(work.program, work.call.arrays, 3, stream, &error));
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, launch_elsewhere, &work) == 0);
    pthread_join(thread, NULL);
}

int main(void) {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW);
    fake_state* (*state_of)(void) = NULL;
    if (driver != NULL) *(void**)&state_of = dlsym(driver, "fake_cuda_state");
    if (state_of == NULL) {
        fprintf(stderr, "the stand-in for the driver is not the first on LD_LIBRARY_PATH\n");
        return EXIT_FAILURE;
    }
    state = state_of();
    void* all = NULL;
    CHECK(posix_memalign(&all, 256, 16 * array_bytes) == 0);
    memory = all;
    launches();
    arrays_that_are_not_taken();
    views();
    devices();
    workspaces();
    calls_by_shape();
    every_length();
    prompts();
    threads(driver);
    CHECK(state->allocations == state->frees && state->loads == state->unloads);
    free(memory);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
