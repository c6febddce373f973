/* Napkin for C, and for every language that calls C: a diagram in text becomes a fused kernel, which runs on the caller's arrays.
 *
 *     napkin_program* program = NULL;
 *     napkin_error* error = NULL;
 *     if (napkin_parse(text, strlen(text), NULL, &program, &error) != NAPKIN_OK)
 *         fputs(napkin_error_text(error), stderr);
 *     napkin_call(program, arrays, 3, stream, &error);
 *
 * A text is parsed (napkin_program), planned for sizes on a machine (napkin_plan), compiled (napkin_kernel) and run. Or napkin_call does all
 * of it by the shapes of the arrays that it is given, and keeps the kernel of each shape.
 *
 * Errors are values. Every function that may fail returns a status; where that is not NAPKIN_OK and `error` is not NULL, *error becomes an
 * error that the caller frees. Where it is NAPKIN_OK, *error becomes NULL. Nothing is thrown, and what else a function would make stays
 * NULL. Pointers that functions return belong to the handle that they come from, and last as long as it does. What frees takes NULL.
 *
 * Handles may be used by several threads at a time; who frees one waits until nobody uses it.
 *
 * On a GPU. Kernels run on the first GPU (CUDA_VISIBLE_DEVICES decides which one that is), in its primary context, which is the one of CUDA's
 * runtime. Launches go to the caller's stream and return before they have run. A launch allocates nothing and waits for nothing, so that a
 * stream that is being captured into a graph takes it; what it launches keeps the addresses that it was given. All memory besides the
 * caller's arrays is the workspace, which the kernel has from when it is compiled: so runs of one kernel on several streams must be ordered by
 * the caller, or each be given a workspace of its own. Values of integer arrays by which others are read are not looked at on a GPU, since
 * that would wait for them: where they lead outside of an array, a kernel reads zeros. */
#ifndef NAPKIN_NAPKIN_H
#define NAPKIN_NAPKIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum napkin_status {
    NAPKIN_OK = 0,
    NAPKIN_BAD_INPUT = 1,     /* the text, the sizes or the arrays are wrong */
    NAPKIN_MACHINE_LACKS = 3, /* the machine lacks something: a GPU, a compiler, memory */
    NAPKIN_FAULT = 70         /* a fault of napkin itself */
} napkin_status;

typedef struct napkin_error napkin_error;     /* all that is wrong with one call */
typedef struct napkin_program napkin_program; /* a diagram, and the kernels that napkin_call made of it */
typedef struct napkin_plan napkin_plan; /* a diagram with sizes, derived and planned for a machine, and its source */
typedef struct napkin_kernel napkin_kernel; /* a plan compiled and loaded on the machine at hand */

/* "0.1.0" */
const char* napkin_version(void);

/* ---- errors -------------------------------------------------------------------------------------------------------------------- */

/* At least 1. The functions below take an index less than that, and give NULL or 0 for any other. */
size_t napkin_error_count(const napkin_error* error);
/* A stable name of what is wrong: "unknown-array". */
const char* napkin_error_code(const napkin_error* error, size_t index);
/* One line. */
const char* napkin_error_message(const napkin_error* error, size_t index);
/* The place in the text, from 1 on, the column in bytes; 0 where the error is not about one. */
int napkin_error_line(const napkin_error* error, size_t index);
int napkin_error_column(const napkin_error* error, size_t index);
/* All errors for people: each message with its place, the line and a caret, what was expected and what is near. */
const char* napkin_error_text(const napkin_error* error);
void napkin_error_free(napkin_error* error);

/* ---- arrays -------------------------------------------------------------------------------------------------------------------- */

/* The type of an array's elements: DLPack's DLDataType, member for member. Lanes are 1. */
typedef struct napkin_type {
    uint8_t code; /* 0 integer, 1 unsigned integer, 2 IEEE float, 4 bfloat, 6 bool (a byte that is 0 or 1), 10 e4m3 (DLPack's float8_e4m3fn), 12 e5m2 */
    uint8_t bits;
    uint16_t lanes;
} napkin_type;

enum {
    NAPKIN_ON_CPU = 1,
    NAPKIN_ON_GPU = 2
}; /* DLPack's kDLCPU and kDLCUDA. Pinned (3) and managed (13) memory is taken too. */

/* Where an array lies: DLPack's DLTensor, member for member, under a name of its own, so that this header goes with dlpack.h and without.
 * A pointer to a DLTensor is cast to a pointer to this. An array with a size of 0 needs no memory: its data may be NULL. All arrays
 * of a run lie on one device. On a GPU, kernels take arrays as they lie where they begin at multiples of 16 bytes, their last stride is 1 and
 * the others are multiples of 16 bytes. Kernels without tensor maps take any strides. Other views are right, too, but slower: they are copied
 * to memory that the stream has during the run, or from it. */
typedef struct napkin_array {
    void* data;
    struct {
        int32_t device_type; /* NAPKIN_ON_CPU, … */
        int32_t device_id;   /* of a GPU: its number for the driver; else 0 */
    } device;
    int32_t ndim;
    napkin_type dtype;
    int64_t* shape;
    int64_t* strides; /* in elements; NULL: row-major without gaps */
    uint64_t byte_offset;
} napkin_array;

/* ---- text ---------------------------------------------------------------------------------------------------------------------- */

/* Parses a text. `diagram` names one of those that it defines; NULL: the last. Errors: all that `napkin check` says about a text. */
napkin_status napkin_parse(const char* text, size_t length, const char* diagram, napkin_program** program,
                           napkin_error** error);
/* How many values an axis has. */
typedef struct napkin_size {
    const char* axis;
    int64_t value;
} napkin_size;

/* What is said of a text from outside. Members that are 0 say nothing. */
typedef struct napkin_options {
    const char* diagram;      /* as that of napkin_parse */
    const napkin_size* sizes; /* in place of the text's; shapes of arrays go before them */
    size_t size_count;
    const char* schedule; /* lines as `napkin plan` prints them, and as `--schedule` reads them */
    /* The types of arrays that have none in the text, in the program's order, inputs first; with `bits` 0 nothing is said of one. Types of other
     * arrays are passed over. A result of which nothing is said has the promoted type of the inputs that have none in the text. */
    const napkin_type* types;
    size_t type_count;
    int batch_invariant; /* 1: the bits of a row of a result do not depend on how many rows there are */
} napkin_options;
/* napkin_parse with options. `name` stands for the text in messages; NULL: "<text>". Errors besides: unknown-type, unknown-axis, bad-size,
 * and those of a schedule's lines. */
napkin_status napkin_parse_with(const char* text, size_t length, const char* name, const napkin_options* options,
                                napkin_program** program, napkin_error** error);
/* The same as napkin_parse for a file. Error besides: unreadable-file. */
napkin_status napkin_load(const char* path, const char* diagram, napkin_program** program, napkin_error** error);
const char* napkin_program_name(const napkin_program* program);
/* The arrays that runs take, in this order: the diagram's inputs, then its outputs, as its first line has them. */
size_t napkin_program_inputs(const napkin_program* program);
size_t napkin_program_outputs(const napkin_program* program);
/* The array of that index: its name, type, number of axes and their names. NULL, zeros and 0 for an index that is none. */
const char* napkin_program_array_name(const napkin_program* program, size_t array);
napkin_type napkin_program_array_type(const napkin_program* program, size_t array);
size_t napkin_program_array_axes(const napkin_program* program, size_t array);
const char* napkin_program_axis_name(const napkin_program* program, size_t array, size_t axis);
/* The size that the text or the options give an axis: a number, or made of other axes, "n - w + 1", with + - * / ^; NULL where they give none. */
const char* napkin_program_axis_size(const napkin_program* program, size_t array, size_t axis);
/* Whether the text gives the array no type, so that options may. */
int napkin_program_type_is_open(const napkin_program* program, size_t array);
/* The text, with the options' types in it. */
const char* napkin_program_text(const napkin_program* program);
/* The shape of each output for inputs of these shapes; only `ndim` and `shape` of the arrays are read. `shapes` has room for the axes of all
 * outputs, one output after the other. Errors: view-count, view-sizes, missing-size, bad-size and others of sizes. */
napkin_status napkin_output_shapes(const napkin_program* program, const napkin_array* const* inputs, size_t count,
                                   int64_t* shapes, napkin_error** error);
/* With the kernels that napkin_call made. */
void napkin_program_free(napkin_program* program);

/* ---- plans --------------------------------------------------------------------------------------------------------------------- */

/* Derives the diagram and plans it. `machine` is a machine's name, a .toml file, or "gpu", the first GPU at hand ("gpu:1" the next one); NULL: this computer's
 * processor. Sizes override those of the program. No machine but the one at hand has to be there. Plans are kept in the user's cache.
 * Errors: unknown-machine, unknown-axis, missing-size, bad-size, no-gpu and others of `napkin plan`. */
napkin_status napkin_plan_for(const napkin_program* program, const char* machine, const napkin_size* sizes,
                              size_t count, napkin_plan** plan, napkin_error** error);
/* The machine's name. */
const char* napkin_plan_machine(const napkin_plan* plan);
/* Every choice with its reason, as a table. */
const char* napkin_plan_text(const napkin_plan* plan);
/* The C++ or CUDA that is compiled. */
const char* napkin_plan_source(const napkin_plan* plan);
/* The predicted duration of a run. */
double napkin_plan_seconds(const napkin_plan* plan);
/* The same with the machine's cores at another clock than its file has, in Hz. Rates and latencies that the file has by the second stay, as those of memory;
   what it has by the clock follows. 0 where there is no plan or the clock is not above 0. */
double napkin_plan_seconds_at(const napkin_plan* plan, double clock_hz);
/* How long the busiest part of the machine works in each kernel, all kernels together: below that, this plan does not come. */
double napkin_plan_busy_seconds(const napkin_plan* plan);
/* That part, in the kernel that takes longest: "tensor", "fma", "L2 to SMEM". */
const char* napkin_plan_bound_by(const napkin_plan* plan);
/* The extent of an axis, 0 where the diagram has none of that name. */
int64_t napkin_plan_size(const napkin_plan* plan, const char* axis);
void napkin_plan_free(napkin_plan* plan);

/* ---- kernels ------------------------------------------------------------------------------------------------------------------- */

enum {
    /* A derivation that is new to this computer is not tried against its definition on small sizes first. */
    NAPKIN_NOT_VALIDATED = 1,
    /* The kernel has no workspace of its own: every run is given one. */
    NAPKIN_CALLERS_WORKSPACE = 2
};

/* Compiles and loads; `flags` are those above, or 0. Code is kept in the user's cache. The plan may be freed afterwards.
 * Errors: no-gpu, other-gpu, no-cuda-compiler, gpu-failed, too-little-memory; no compiler for the processor. */
napkin_status napkin_compile(const napkin_plan* plan, unsigned flags, napkin_kernel** kernel, napkin_error** error);
/* Memory on the GPU that a run needs besides its arrays; 0 on the processor. */
int64_t napkin_kernel_workspace_bytes(const napkin_kernel* kernel);
/* Whether its code came from the cache, and how long the compiler took if it did not. */
int napkin_kernel_from_cache(const napkin_kernel* kernel);
double napkin_kernel_compile_seconds(const napkin_kernel* kernel);

/* Runs on arrays in the program's order, `count` of them. On a GPU: launches on the stream (a CUstream or cudaStream_t, NULL the default one),
 * in the kernel's own workspace. On the processor: strides are free, returns when all is done, and `stream` is NULL. What is encoded for
 * the addresses and strides of a call is kept for the last ones.
 * Errors: view-count, view-null, view-offset, view-device, view-type, view-sizes, view-strides, view-overlap,
 * no-stream, no-workspace, gpu-failed; index-out-of-range on the processor. */
napkin_status napkin_run(const napkin_kernel* kernel, const napkin_array* const* arrays, size_t count, void* stream,
                         napkin_error** error);
/* Runs on arrays of the kernel's own types and sizes, row-major without gaps, that begin at those addresses. The driver says
 * on which GPU these lie. `workspace` is
 * napkin_kernel_workspace_bytes() of memory on the GPU that begins at a multiple of 256 and that was filled with zeros before its first run;
 * NULL: the kernel's own. */
napkin_status napkin_run_at(const napkin_kernel* kernel, void* const* addresses, size_t count, void* workspace,
                            void* stream, napkin_error** error);
/* On a GPU, once its launches have run. */
void napkin_kernel_free(napkin_kernel* kernel);

/* ---- all of it, by the shapes of arrays ------------------------------------------------------------------------------------------ */

/* Runs the program on arrays in its order, wherever they lie: on this computer's processor or on any of its GPUs, as napkin_run does.
 * The arrays say which one; the thread's context stays what it is. Sizes
 * are those of the arrays' shapes. The first call with these shapes there plans and compiles; later ones find its kernel by a hash of the
 * shapes. Other shapes take over a known plan that is near enough to the best one, and its code where the text is the same: then nothing is compiled.
 * Kernels are kept until the program is freed.
 * Errors: those of napkin_run, napkin_plan_for and napkin_compile. */
napkin_status napkin_call(napkin_program* program, const napkin_array* const* arrays, size_t count, void* stream,
                          napkin_error** error);
/* The same without the run, so that a call with these arrays may be captured into a graph: its kernel is there then, and so is the one that
 * copies views. */
napkin_status napkin_prepare(napkin_program* program, const napkin_array* const* arrays, size_t count, napkin_error** error);
/* How many kernels the program keeps, and how many different codes they have: what was compiled, or read from the cache, for them. */
size_t napkin_program_kernels(const napkin_program* program);
size_t napkin_program_codes(const napkin_program* program);
/* How many views calls copied so far, to memory of the stream or from it, as no kernel takes them where they lie. Calls that were captured count once. */
size_t napkin_program_copies(const napkin_program* program);

#ifdef __cplusplus
}
#endif

#endif
