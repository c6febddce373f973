/* The C API on the processor: texts, plans, kernels, calls by shape, and everything that a caller may get wrong. C99, with nothing of napkin's
 * but its header. */
#include <math.h>
#include <stdlib.h>

#include "check.h"

static const char* const text =
    "f(A[i, k], B[k, j]) -> C[i, j]\n"
    "    C[i, j] = sum(k) A[i, k] * B[k, j]\n"
    "sizes i = 3, k = 2, j = 4\n";

static const float A[] = {1, 2, 3, 4, 5, 6}, B[] = {1, 0, 0, 1, 0, 1, 0, 1};
static const float product[] = {1, 2, 0, 3, 3, 4, 0, 7, 5, 6, 0, 11};

/* DLPack's DLTensor as its header has it. */
typedef struct {
    void* data;
    struct {
        int device_type;
        int32_t device_id;
    } device;
    int32_t ndim;
    struct {
        uint8_t code, bits;
        uint16_t lanes;
    } dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} Tensor;

static Tensor matrix(const float* data, int64_t* shape) {
    Tensor tensor;
    memset(&tensor, 0, sizeof tensor);
    tensor.data = (void*)data;
    tensor.device.device_type = NAPKIN_ON_CPU;
    tensor.ndim = 2;
    tensor.dtype.code = 2, tensor.dtype.bits = 32, tensor.dtype.lanes = 1;
    tensor.shape = shape;
    return tensor;
}

static napkin_program* parsed(const char* of) {
    napkin_program* program = NULL;
    CHECK_OK(napkin_parse(of, strlen(of), NULL, &program, &error));
    return program;
}

static void layout(void) {
    CHECK(sizeof(napkin_array) == sizeof(Tensor));
    CHECK(offsetof(napkin_array, device) == offsetof(Tensor, device));
    CHECK(offsetof(napkin_array, ndim) == offsetof(Tensor, ndim));
    CHECK(offsetof(napkin_array, dtype) == offsetof(Tensor, dtype));
    CHECK(offsetof(napkin_array, shape) == offsetof(Tensor, shape));
    CHECK(offsetof(napkin_array, strides) == offsetof(Tensor, strides));
    CHECK(offsetof(napkin_array, byte_offset) == offsetof(Tensor, byte_offset));
}

static void programs(void) {
    napkin_program* program = parsed(text);
    CHECK(strcmp(napkin_program_name(program), "f") == 0);
    CHECK(napkin_program_inputs(program) == 2 && napkin_program_outputs(program) == 1);
    CHECK(strcmp(napkin_program_array_name(program, 2), "C") == 0);
    CHECK(napkin_program_array_type(program, 1).code == 2 && napkin_program_array_type(program, 1).bits == 32);
    CHECK(napkin_program_array_axes(program, 1) == 2);
    CHECK(strcmp(napkin_program_axis_name(program, 1, 1), "j") == 0);
    CHECK(napkin_program_array_name(program, 3) == NULL && napkin_program_axis_name(program, 0, 2) == NULL);
    napkin_program_free(program);

    const char* both = "f(A[i]) -> B[i]\n    B[i] = A[i] + 1\ng(A[i]) -> B[i]\n    B[i] = A[i] + 2\n";
    CHECK_OK(napkin_parse(both, strlen(both), "f", &program, &error));
    CHECK(strcmp(napkin_program_name(program), "f") == 0);
    napkin_program_free(program);

    const char* types =
        "f(a[i]: f64, b[i]: f16, c[i]: bf16, d[i]: e4m3, e[i]: e5m2, f[i]: i32, g[i]: i64, h[i]: i8, j[i]: u8, k[i]: "
        "i16, "
        "l[i]: bool) -> y[i]\n    y[i] = a[i]\n";
    const napkin_type wanted[] = {{2, 64, 1}, {2, 16, 1}, {4, 16, 1}, {10, 8, 1}, {12, 8, 1}, {0, 32, 1},
                                  {0, 64, 1}, {0, 8, 1},  {1, 8, 1},  {0, 16, 1}, {6, 8, 1}};
    program = parsed(types);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; ++i) {
        const napkin_type type = napkin_program_array_type(program, i);
        CHECK(type.code == wanted[i].code && type.bits == wanted[i].bits && type.lanes == 1);
    }
    napkin_program_free(program);
}

/* Types, sizes and schedules from outside. */
static void options(void) {
    const char* open =
        "f(A[i, k], s, B[k, j]: f32) -> C[i, j], D[n]\n    C[i, j] = s * sum(k) A[i, k] * B[k, j]\n"
        "    D[n] = s * n\nsizes n = i - k + 1, j = 7\n";
    napkin_program* program = parsed(open);
    CHECK(napkin_program_type_is_open(program, 0) && !napkin_program_type_is_open(program, 2));
    CHECK(napkin_program_type_is_open(program, 3) && !napkin_program_type_is_open(program, 9));
    CHECK(strcmp(napkin_program_axis_size(program, 4, 0), "i - k + 1") == 0);
    CHECK(strcmp(napkin_program_axis_size(program, 3, 1), "7") == 0);
    CHECK(napkin_program_axis_size(program, 0, 0) == NULL && napkin_program_axis_size(program, 0, 2) == NULL);
    CHECK(strcmp(napkin_program_text(program), open) == 0);
    int64_t of_A[] = {6, 2}, of_B[] = {2, 4}, shapes[3] = {0};
    Tensor a = matrix(A, of_A), s = matrix(A, NULL), b = matrix(B, of_B);
    s.ndim = 0;
    const napkin_array* inputs[] = {(napkin_array*)&a, (napkin_array*)&s, (napkin_array*)&b};
    CHECK_OK(napkin_output_shapes(program, inputs, 3, shapes, &error));
    CHECK(shapes[0] == 6 && shapes[1] == 4 && shapes[2] == 5);
    of_B[0] = 3;
    CHECK_FAILS(napkin_output_shapes(program, inputs, 3, shapes, &error), NAPKIN_BAD_INPUT, "view-sizes");
    CHECK_FAILS(napkin_output_shapes(program, inputs, 2, shapes, &error), NAPKIN_BAD_INPUT, "view-count");
    b.ndim = 1;
    CHECK_FAILS(napkin_output_shapes(program, inputs, 3, shapes, &error), NAPKIN_BAD_INPUT, "view-sizes");
    CHECK_FAILS(napkin_output_shapes(program, NULL, 3, shapes, &error), NAPKIN_BAD_INPUT, "null-argument");
    napkin_program_free(program);

    /* Results follow the arguments that were open, and those that the text types stay. */
    const napkin_type types[] = {{2, 16, 1}, {2, 16, 1}, {2, 64, 1}, {0, 0, 0}, {2, 64, 1}};
    napkin_options options;
    memset(&options, 0, sizeof options);
    options.types = types, options.type_count = 5;
    CHECK_OK(napkin_parse_with(open, strlen(open), "a.nk", &options, &program, &error));
    const unsigned bits[] = {16, 16, 32, 16, 64};
    for (size_t i = 0; i < 5; ++i) CHECK(napkin_program_array_type(program, i).bits == bits[i]);
    CHECK(napkin_program_type_is_open(program, 0) && !napkin_program_type_is_open(program, 2));
    CHECK(strstr(napkin_program_text(program), "f(A[i, k]: f16, s: f16, B[k, j]: f32) -> C[i, j]: f16, D[n]: f64\n") != NULL);
    napkin_program_free(program);
    const napkin_type complex = {5, 64, 1};
    options.types = &complex, options.type_count = 1;
    CHECK_FAILS(napkin_parse_with(open, strlen(open), NULL, &options, &program, &error), NAPKIN_BAD_INPUT,
                "unknown-type");
    options.type_count = 0;

    /* A size that no shape says is the options'. */
    const napkin_size window = {"w", 2}, unknown = {"z", 2};
    const char* windowed = "f(A[i]) -> B[i]\n    B[i] = where(i < w, A[i], 0)\nsizes w = 1\n";
    options.sizes = &window, options.size_count = 1;
    CHECK_OK(napkin_parse_with(windowed, strlen(windowed), NULL, &options, &program, &error));
    float C[3];
    int64_t of_C[] = {3};
    Tensor c = matrix(C, of_C);
    a = matrix(A, of_C), a.ndim = c.ndim = 1;
    const napkin_array* both[] = {(napkin_array*)&a, (napkin_array*)&c};
    CHECK_OK(napkin_call(program, both, 2, NULL, &error));
    CHECK(C[0] == 1 && C[1] == 2 && C[2] == 0);
    napkin_program_free(program);
    options.sizes = &unknown;
    CHECK_FAILS(napkin_parse_with(windowed, strlen(windowed), NULL, &options, &program, &error), NAPKIN_BAD_INPUT,
                "unknown-axis");
    options.size_count = 0;

    options.schedule = "group i = 2";
    CHECK_OK(napkin_parse_with(windowed, strlen(windowed), NULL, &options, &program, &error));
    napkin_plan* plan = NULL;
    const napkin_size sizes[] = {{"i", 64}};
    CHECK_OK(napkin_plan_for(program, NULL, sizes, 1, &plan, &error));
    CHECK(strstr(napkin_plan_text(plan), "  group i         2  [override]") != NULL);
    napkin_plan_free(plan);
    napkin_program_free(program);
    options.schedule = "grop i = 2";
    CHECK_FAILS(napkin_parse_with(windowed, strlen(windowed), NULL, &options, &program, &error), NAPKIN_BAD_INPUT,
                "unknown-choice");
}

static void errors_of_texts(void) {
    const char* wrong = "f(A[i]) -> B[i]\n    B[i] = C[i] + D[i]\n";
    napkin_program* program = (napkin_program*)&failures;
    napkin_error* error = NULL;
    CHECK(napkin_parse(wrong, strlen(wrong), NULL, &program, &error) == NAPKIN_BAD_INPUT);
    CHECK(program == NULL);
    CHECK(napkin_error_count(error) == 2);
    CHECK(strcmp(napkin_error_code(error, 0), "unknown-array") == 0);
    CHECK(napkin_error_line(error, 1) == 2 && napkin_error_column(error, 1) == 19);
    CHECK(strstr(napkin_error_message(error, 0), "C") != NULL);
    CHECK(strstr(napkin_error_text(error), "^") != NULL);
    CHECK(napkin_error_code(error, 2) == NULL && napkin_error_line(error, 2) == 0);
    napkin_error_free(error);

    CHECK(napkin_parse(wrong, strlen(wrong), NULL, &program, NULL) == NAPKIN_BAD_INPUT);
    CHECK_FAILS(napkin_parse(NULL, 0, NULL, &program, &error), NAPKIN_BAD_INPUT, "null-argument");
    CHECK_FAILS(napkin_parse(text, strlen(text), NULL, NULL, &error), NAPKIN_BAD_INPUT, "null-argument");
    CHECK_FAILS(napkin_parse(text, strlen(text), "g", &program, &error), NAPKIN_BAD_INPUT, "unknown-diagram");
    CHECK_FAILS(napkin_load("/nowhere/at/all.nk", NULL, &program, &error), NAPKIN_BAD_INPUT, "unreadable-file");
    napkin_error_free(NULL);
    napkin_program_free(NULL);
    napkin_plan_free(NULL);
    napkin_kernel_free(NULL);
}

/* A faster clock takes almost all of its part off the time of a product that the tensor cores bound, of rows that memory bounds almost nothing. */
static void at_clocks(void) {
    static const char* const texts[] = {
        "p(A[m, k]: bf16, B[n, k]: bf16) -> C[m, n]: bf16\n    C[m, n] = sum(k) A[m, k] * B[n, k]\n",
        "r(A[m, k]) -> B[m, k]\n    B[m, k] = softmax(k) A[m, k]\n",
        "s(A[m, k]: bf16) -> B[m]\n    B[m] = sum(k) A[m, k]\n"};
    const napkin_size sizes[] = {{"m", 8192}, {"k", 8192}, {"n", 8192}};
    for (int i = 0; i < 3; ++i) {
        napkin_program* program = parsed(texts[i]);
        napkin_plan* plan = NULL;
        CHECK_OK(napkin_plan_for(program, "h200", sizes, i == 0 ? 3 : 2, &plan, &error));
        const double own = napkin_plan_seconds(plan), fast = napkin_plan_seconds_at(plan, 1.98e9);
        CHECK(fabs(napkin_plan_seconds_at(plan, 1.83e9) / own - 1) < 1e-12);
        CHECK(i == 0 ? fast < 0.93 * own && fast > 0.92 * own : fast < own && fast > 0.96 * own);
        CHECK(napkin_plan_seconds(plan) == own);
        CHECK(napkin_plan_seconds_at(plan, 0) == 0 && napkin_plan_seconds_at(plan, -1) == 0);
        napkin_plan_free(plan);
        napkin_program_free(program);
    }
    CHECK(napkin_plan_seconds_at(NULL, 1e9) == 0);
}

static void plans(void) {
    napkin_program* program = parsed(text);
    napkin_plan* plan = NULL;
    const napkin_size larger = {"i", 64};
    CHECK_OK(napkin_plan_for(program, "h200", &larger, 1, &plan, &error));
    CHECK(strcmp(napkin_plan_machine(plan), "h200") == 0);
    CHECK(napkin_plan_size(plan, "i") == 64 && napkin_plan_size(plan, "k") == 2 && napkin_plan_size(plan, "q") == 0);
    CHECK(strstr(napkin_plan_source(plan), "__global__") != NULL);
    CHECK(strstr(napkin_plan_text(plan), "group") != NULL);
    CHECK(napkin_plan_busy_seconds(plan) > 0 && napkin_plan_seconds(plan) >= napkin_plan_busy_seconds(plan));
    CHECK(napkin_plan_bound_by(plan)[0] != '\0');
    napkin_plan_free(plan);
    at_clocks();

    const napkin_size unknown = {"z", 3}, negative = {"i", -1}, nameless = {NULL, 3};
    CHECK_FAILS(napkin_plan_for(program, NULL, &unknown, 1, &plan, &error), NAPKIN_BAD_INPUT, "unknown-axis");
    CHECK(plan == NULL);
    CHECK_FAILS(napkin_plan_for(program, NULL, &negative, 1, &plan, &error), NAPKIN_BAD_INPUT, "bad-size");
    CHECK_FAILS(napkin_plan_for(program, NULL, &nameless, 1, &plan, &error), NAPKIN_BAD_INPUT, "null-argument");
    CHECK_FAILS(napkin_plan_for(program, NULL, NULL, 1, &plan, &error), NAPKIN_BAD_INPUT, "null-argument");
    CHECK_FAILS(napkin_plan_for(program, "nowhere", NULL, 0, &plan, &error), NAPKIN_BAD_INPUT, "unknown-machine");
    napkin_program_free(program);

    program = parsed("f(A[i]) -> B[i]\n    B[i] = 2 * A[i]\n");
    CHECK_FAILS(napkin_plan_for(program, NULL, NULL, 0, &plan, &error), NAPKIN_BAD_INPUT, "missing-size");
    napkin_program_free(program);
}

static void kernels(void) {
    napkin_program* program = parsed(text);
    napkin_plan* plan = NULL;
    napkin_kernel* kernel = NULL;
    CHECK_OK(napkin_plan_for(program, NULL, NULL, 0, &plan, &error));
    CHECK_FAILS(napkin_compile(NULL, 0, &kernel, &error), NAPKIN_BAD_INPUT, "null-argument");
    CHECK_OK(napkin_compile(plan, 0, &kernel, &error));
    napkin_plan_free(plan);
    napkin_program_free(program);
    CHECK(napkin_kernel_workspace_bytes(kernel) == 0);
    CHECK(napkin_kernel_from_cache(kernel) || napkin_kernel_compile_seconds(kernel) > 0);

    float C[12] = {0};
    void* addresses[] = {(void*)A, (void*)B, C, C};
    CHECK_OK(napkin_run_at(kernel, addresses, 3, NULL, NULL, &error));
    CHECK(memcmp(C, product, sizeof product) == 0);
    CHECK_FAILS(napkin_run_at(kernel, addresses, 2, NULL, NULL, &error), NAPKIN_BAD_INPUT, "view-count");
    CHECK_FAILS(napkin_run_at(kernel, addresses, 4, NULL, NULL, &error), NAPKIN_BAD_INPUT, "view-count");
    CHECK_FAILS(napkin_run_at(kernel, addresses, 3, NULL, C, &error), NAPKIN_BAD_INPUT, "no-stream");
    addresses[1] = NULL;
    CHECK_FAILS(napkin_run_at(kernel, addresses, 3, NULL, NULL, &error), NAPKIN_BAD_INPUT, "view-null");
    CHECK_FAILS(napkin_run_at(NULL, addresses, 3, NULL, NULL, &error), NAPKIN_BAD_INPUT, "null-argument");
    CHECK_FAILS(napkin_run_at(kernel, NULL, 3, NULL, NULL, &error), NAPKIN_BAD_INPUT, "null-argument");

    int64_t shape_A[] = {3, 2}, shape_B[] = {2, 4}, shape_C[] = {3, 4}, other[] = {4, 2}, columns[] = {1, 2};
    const float B_columns[] = {-1, 1, 0, 0, 1, 0, 0, 1, 1}; /* from the second on, column by column */
    Tensor a = matrix(A, shape_A), b = matrix(B_columns, shape_B), c = matrix(C, shape_C);
    b.byte_offset = sizeof(float), b.strides = columns;
    const napkin_array* arrays[] = {(const napkin_array*)&a, (const napkin_array*)&b, (const napkin_array*)&c};
    memset(C, 0, sizeof C);
    CHECK_OK(napkin_run(kernel, arrays, 3, NULL, &error));
    CHECK(memcmp(C, product, sizeof product) == 0);

    CHECK_FAILS(napkin_run(kernel, arrays, 2, NULL, &error), NAPKIN_BAD_INPUT, "view-count");
    CHECK_FAILS(napkin_run(kernel, NULL, 3, NULL, &error), NAPKIN_BAD_INPUT, "null-argument");
    b = matrix(B, other);
    napkin_error* error = NULL;
    CHECK(napkin_run(kernel, arrays, 3, NULL, &error) == NAPKIN_BAD_INPUT);
    CHECK(strstr(napkin_error_text(error), "B is 4×2") != NULL && strstr(napkin_error_text(error), "2×4") != NULL);
    napkin_error_free(error);
    b = matrix(B, shape_B), b.ndim = 1;
    CHECK_FAILS(napkin_run(kernel, arrays, 3, NULL, &error), NAPKIN_BAD_INPUT, "view-sizes");
    b = matrix(B, NULL);
    CHECK_FAILS(napkin_run(kernel, arrays, 3, NULL, &error), NAPKIN_BAD_INPUT, "view-sizes");
    b = matrix(B, shape_B), b.dtype.bits = 64;
    CHECK_FAILS(napkin_run(kernel, arrays, 3, NULL, &error), NAPKIN_BAD_INPUT, "view-type");
    b = matrix(B, shape_B), b.dtype.lanes = 4;
    CHECK_FAILS(napkin_run(kernel, arrays, 3, NULL, &error), NAPKIN_BAD_INPUT, "view-type");
    b = matrix(B, shape_B), b.device.device_type = NAPKIN_ON_GPU;
    CHECK_FAILS(napkin_run(kernel, arrays, 3, NULL, &error), NAPKIN_BAD_INPUT, "view-device");
    b = matrix(NULL, shape_B);
    CHECK_FAILS(napkin_run(kernel, arrays, 3, NULL, &error), NAPKIN_BAD_INPUT, "view-null");
    b = matrix(C, shape_B);
    CHECK_FAILS(napkin_run(kernel, arrays, 3, NULL, &error), NAPKIN_BAD_INPUT, "view-overlap");
    arrays[1] = NULL;
    CHECK_FAILS(napkin_run(kernel, arrays, 3, NULL, &error), NAPKIN_BAD_INPUT, "view-null");
    napkin_kernel_free(kernel);
}

/* Arrays without values need no memory; what is summed up over none is 0. */
static void empty_arrays(void) {
    napkin_program* program = parsed(text);
    int64_t shape_A[] = {3, 0}, shape_B[] = {0, 4}, shape_C[] = {3, 4};
    float C[12];
    for (int i = 0; i < 12; ++i) C[i] = -1;
    Tensor a = matrix(NULL, shape_A), b = matrix(NULL, shape_B), c = matrix(C, shape_C);
    const napkin_array* arrays[] = {(const napkin_array*)&a, (const napkin_array*)&b, (const napkin_array*)&c};
    CHECK_OK(napkin_call(program, arrays, 3, NULL, &error));
    for (int i = 0; i < 12; ++i) CHECK(C[i] == 0);
    shape_A[0] = shape_C[0] = 0, shape_A[1] = shape_B[0] = 2;
    b = matrix(B, shape_B), c = matrix(NULL, shape_C);
    CHECK_OK(napkin_call(program, arrays, 3, NULL, &error));
    CHECK(napkin_program_kernels(program) == 2);
    b = matrix(NULL, shape_B);
    CHECK_FAILS(napkin_call(program, arrays, 3, NULL, &error), NAPKIN_BAD_INPUT, "view-null");
    napkin_program_free(program);

    program = parsed("f(A[i], I[n]: i32) -> B[n]\n    B[n] = A[I[n]]\nsizes i = 0, n = 2\n");
    napkin_plan* plan = NULL;
    CHECK_FAILS(napkin_plan_for(program, NULL, NULL, 0, &plan, &error), NAPKIN_BAD_INPUT, "index-out-of-range");
    const napkin_size none = {"n", 0};
    CHECK_OK(napkin_plan_for(program, "h200", &none, 1, &plan, &error));
    CHECK(napkin_plan_size(plan, "n") == 0 && napkin_plan_seconds(plan) == 0 && napkin_plan_bound_by(plan) != NULL);
    napkin_plan_free(plan);
    napkin_program_free(program);
}

/* What a place without a GPU refuses, it refuses again after the same shapes ran on the processor. */
static void places_have_plans_of_their_own(void) {
    napkin_program* program = parsed(text);
    int64_t shape_A[] = {3, 2}, shape_B[] = {2, 4}, shape_C[] = {3, 4};
    float C[12];
    Tensor a = matrix(A, shape_A), b = matrix(B, shape_B), c = matrix(C, shape_C);
    const napkin_array* here[] = {(const napkin_array*)&a, (const napkin_array*)&b, (const napkin_array*)&c};
    Tensor on_gpu[] = {a, b, c};
    const napkin_array* there[3];
    for (int i = 0; i < 3; ++i) {
        ((napkin_array*)&on_gpu[i])->device.device_type = NAPKIN_ON_GPU;
        there[i] = (const napkin_array*)&on_gpu[i];
    }
    napkin_error* error = NULL;
    const napkin_status first = napkin_prepare(program, there, 3, &error);
    napkin_error_free(error);
    CHECK_OK(napkin_call(program, here, 3, NULL, &error));
    const napkin_status again = napkin_prepare(program, there, 3, &error);
    napkin_error_free(error);
    CHECK(again == first);
    napkin_program_free(program);
}

/* Sizes whose product no memory holds, and an offset that no address has. */
static void sizes_past_all(void) {
    napkin_program* program = parsed(text);
    const int64_t large[] = {INT64_MAX, (int64_t)1 << 62, (int64_t)1 << 61, (int64_t)1 << 40, (int64_t)1 << 31};
    float C[12];
    for (size_t i = 0; i < sizeof large / sizeof *large; ++i) {
        int64_t shape_A[] = {large[i], 2}, shape_B[] = {2, 4}, shape_C[] = {large[i], 4};
        Tensor a = matrix(A, shape_A), b = matrix(B, shape_B), c = matrix(C, shape_C);
        const napkin_array* arrays[] = {(const napkin_array*)&a, (const napkin_array*)&b, (const napkin_array*)&c};
        napkin_error* error = NULL;
        const napkin_status status = napkin_prepare(program, arrays, 3, &error);
        CHECK(i > 1 ? status != NAPKIN_FAULT : status == NAPKIN_BAD_INPUT);
        napkin_error_free(error);
    }
    int64_t shape_A[] = {3, 2}, shape_B[] = {2, 4}, shape_C[] = {3, 4};
    Tensor a = matrix(A, shape_A), b = matrix(B, shape_B), c = matrix(C, shape_C);
    const napkin_array* arrays[] = {(const napkin_array*)&a, (const napkin_array*)&b, (const napkin_array*)&c};
    b.byte_offset = UINT64_MAX - 7;
    CHECK_FAILS(napkin_call(program, arrays, 3, NULL, &error), NAPKIN_BAD_INPUT, "view-offset");
    napkin_program_free(program);
}

static void calls_by_shape(void) {
    napkin_program* program = parsed(text);
    float C[12];
    int64_t shape_A[] = {3, 2}, shape_B[] = {2, 4}, shape_C[] = {3, 4}, long_A[] = {2, 3}, short_C[] = {2, 4};
    Tensor a = matrix(A, shape_A), b = matrix(B, shape_B), c = matrix(C, shape_C);
    const napkin_array* arrays[] = {(const napkin_array*)&a, (const napkin_array*)&b, (const napkin_array*)&c};
    CHECK_OK(napkin_prepare(program, arrays, 3, &error));
    CHECK(napkin_program_kernels(program) == 1);
    for (int time = 0; time < 2; ++time) {
        memset(C, 0, sizeof C);
        CHECK_OK(napkin_call(program, arrays, 3, NULL, &error));
        CHECK(memcmp(C, product, sizeof product) == 0);
    }
    CHECK(napkin_program_kernels(program) == 1);
    /* Two rows of A: another kernel, whatever the text says. */
    shape_A[0] = 2, c = matrix(C, short_C);
    C[8] = -1;
    CHECK_OK(napkin_call(program, arrays, 3, NULL, &error));
    CHECK(memcmp(C, product, 8 * sizeof(float)) == 0 && C[8] == -1);
    CHECK(napkin_program_kernels(program) == 2);

    a = matrix(A, long_A);
    napkin_error* error = NULL;
    CHECK(napkin_call(program, arrays, 3, NULL, &error) == NAPKIN_BAD_INPUT);
    CHECK(strcmp(napkin_error_message(error, 0), "axis k is 2 in B but 3 in A") == 0);
    napkin_error_free(error);
    a = matrix(A, shape_A), a.ndim = 3;
    CHECK_FAILS(napkin_call(program, arrays, 3, NULL, &error), NAPKIN_BAD_INPUT, "view-sizes");
    shape_A[0] = -2, a = matrix(A, shape_A), short_C[0] = -2;
    CHECK_FAILS(napkin_call(program, arrays, 3, NULL, &error), NAPKIN_BAD_INPUT, "bad-size");
    shape_A[0] = short_C[0] = 1, a = matrix(A, shape_A), a.dtype.code = 4;
    CHECK_FAILS(napkin_call(program, arrays, 3, NULL, &error), NAPKIN_BAD_INPUT, "view-type");
    a = matrix(A, shape_A), a.device.device_type = 7;
    CHECK_FAILS(napkin_call(program, arrays, 3, NULL, &error), NAPKIN_BAD_INPUT, "view-device");
    a = matrix(A, shape_A);
    CHECK_FAILS(napkin_call(program, arrays, 1, NULL, &error), NAPKIN_BAD_INPUT, "view-count");
    CHECK_FAILS(napkin_call(program, arrays, 0, NULL, &error), NAPKIN_BAD_INPUT, "view-count");
    CHECK_FAILS(napkin_call(program, NULL, 3, NULL, &error), NAPKIN_BAD_INPUT, "null-argument");
    CHECK_FAILS(napkin_call(NULL, arrays, 3, NULL, &error), NAPKIN_BAD_INPUT, "null-argument");
    CHECK(napkin_program_kernels(program) == 2);
    napkin_program_free(program);

    /* A size that the text computes from others is not the caller's to say. */
    program = parsed("f(A[i]) -> B[o]\n    B[o] = A[o + 1]\nsizes i = 3, o = i - 1\n");
    int64_t of_A[] = {6}, of_B[] = {5};
    a = matrix(A, of_A), b = matrix(C, of_B), a.ndim = b.ndim = 1;
    CHECK_OK(napkin_call(program, arrays, 2, NULL, &error));
    CHECK(memcmp(C, A + 1, 5 * sizeof(float)) == 0);
    of_B[0] = 4;
    CHECK_FAILS(napkin_call(program, arrays, 2, NULL, &error), NAPKIN_BAD_INPUT, "view-sizes");
    CHECK(napkin_program_kernels(program) == 1);
    napkin_program_free(program);

    program = parsed("f(X[v], i[t]: i32) -> Y[t]\n    Y[t] = X[i[t]]\n");
    int32_t indices[] = {0, 2};
    int64_t of_X[] = {2}, of_i[] = {2};
    a = matrix(A, of_X), b = matrix((const float*)indices, of_i), c = matrix(C, of_i), a.ndim = b.ndim = c.ndim = 1;
    b.dtype.code = 0;
    CHECK_FAILS(napkin_call(program, arrays, 3, NULL, &error), NAPKIN_BAD_INPUT, "index-out-of-range");
    indices[1] = 1;
    CHECK_OK(napkin_call(program, arrays, 3, NULL, &error));
    CHECK(C[0] == A[0] && C[1] == A[1]);
    napkin_program_free(program);

    /* What 32 bits of an index say is not asked. */
    program = parsed("f(X[v], i[t]: i64) -> Y[t]\n    Y[t] = X[i[t]]\n");
    int64_t far[] = {0, ((int64_t)1 << 32) + 1};
    b = matrix((const float*)far, of_i), b.ndim = 1, b.dtype.code = 0, b.dtype.bits = 64;
    CHECK_FAILS(napkin_call(program, arrays, 3, NULL, &error), NAPKIN_BAD_INPUT, "index-out-of-range");
    far[1] = 1;
    CHECK_OK(napkin_call(program, arrays, 3, NULL, &error));
    CHECK(C[0] == A[0] && C[1] == A[1]);
    napkin_program_free(program);

    /* Rows of blocks are read as one, whatever lies between the blocks. */
    program = parsed("f(X[b, p]) -> Y[w]\n    Y[w] = X[w // 2, w % 2]\nsizes w = 2 * b, p = 2\n");
    int64_t of_blocks[] = {2, 2}, apart[] = {4, 1}, of_flat[] = {4};
    a = matrix(A, of_blocks), b = matrix(C, of_flat), b.ndim = 1;
    CHECK_OK(napkin_call(program, arrays, 2, NULL, &error));
    CHECK(memcmp(C, A, 4 * sizeof(float)) == 0);
    a.strides = apart;
    CHECK_OK(napkin_call(program, arrays, 2, NULL, &error));
    CHECK(C[0] == A[0] && C[1] == A[1] && C[2] == A[4] && C[3] == A[5]);
    int64_t as_flat[] = {4};
    a = matrix(A, as_flat), a.ndim = 1;
    CHECK_FAILS(napkin_call(program, arrays, 2, NULL, &error), NAPKIN_BAD_INPUT, "view-sizes");
    napkin_program_free(program);
}

int main(void) {
    CHECK(strchr(napkin_version(), '.') != NULL);
    layout();
    programs();
    options();
    errors_of_texts();
    plans();
    kernels();
    empty_arrays();
    places_have_plans_of_their_own();
    sizes_past_all();
    calls_by_shape();
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
