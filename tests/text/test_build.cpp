// `napkin build`: libraries of C that programs use without napkin. NAPKIN_UPDATE_GOLDEN=1 rewrites the header in
// tests/text/build.
#include <gtest/gtest.h>

#include <cstdio>

#include "support/files.hpp"
#include "text/cli.hpp"

namespace {

class Build : public Cli {
protected:
    /// What a shell says of a command in the test's folder.
    [[nodiscard]] Outcome shell(const std::string& command) const {
        const int status = std::system(("cd '" + path(".").string() + "' && { " + command + "; } >said.txt 2>&1").c_str());
        return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read("said.txt"), ""};
    }
    [[nodiscard]] std::string on_processor() const {
        return " --machine '" + napkin::in_sources("tests/machines/cpu-256.toml") + "' -o out";
    }
    /// The block of that language in the document's section.
    static std::string in_document(const std::string& language) {
        const std::string text = napkin::read_file(napkin::in_sources("docs/commands.md")).value_or("");
        const std::size_t section = text.find("## A library of C"), mark = text.find("```" + language + "\n", section),
                          begin = text.find('\n', mark) + 1;
        return mark == std::string::npos ? "" : text.substr(begin, text.find("```", begin) - begin);
    }
    static constexpr const char* strict = "cc -std=c11 -Wall -Wextra -Wpedantic -Werror -Wno-overlength-strings ";
    static constexpr const char* product =
        "product(A[m, k]: bf16, B[n, k]: bf16) -> C[m, n]: bf16\n"
        "    C[m, n] = sum(k) A[m, k] * B[n, k]\n";
};

TEST_F(Build, TheDocumentsProgramRunsWithoutNapkin) {
    write("scores.nk", in_document("nk"));
    write("main.c", in_document("c"));
    const Outcome built = napkin("build scores.nk" + on_processor());
    ASSERT_EQ(built.code, 0) << built.err;
    EXPECT_EQ(built.out, "out/scores.h\nout/scores.cpp\nout/libscores.so\n");
    const Outcome compiled = shell(std::string(strict) + "main.c -Iout -Lout -lscores -Wl,-rpath,out -o main");
    ASSERT_EQ(compiled.code, 0) << compiled.out;
    EXPECT_EQ(shell("ldd main | grep -c -i napkin").out, "0\n");
    const Outcome ran = shell("./main");
    EXPECT_EQ(ran.code, 0);
    EXPECT_EQ(ran.out, "S[2][4] = 4.03125\n");
}

TEST_F(Build, TheHeaderIsAsWritten) {
    write("scores.nk", in_document("nk"));
    ASSERT_EQ(napkin("build scores.nk" + on_processor()).code, 0);
    const std::string expected = napkin::in_sources("tests/text/build/scores.header"), header = read("out/scores.h");
    if (std::getenv("NAPKIN_UPDATE_GOLDEN")) std::ofstream(expected, std::ios::binary) << header;
    EXPECT_EQ(header, napkin::read_file(expected).value_or(""));
}

/// Products of rows and their maxima at any two numbers of rows, where each value is compared.
TEST_F(Build, KernelsAreRightForAllSizes) {
    write("sums.nk",
          "sums(A[m, k]: f32, B[n, k]: f32) -> C[m, n]: f32, D[m]: f32\n"
          "    C[m, n] = sum(k) A[m, k] * B[n, k]\n    D[m] = max(k) A[m, k]\nsizes m = n = any, k = "
          "48\n");
    const Outcome built = napkin("build sums.nk" + on_processor());
    ASSERT_EQ(built.code, 0) << built.err;
    write("main.c", R"(#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "sums.h"
enum { most_rows = 700, k = 48, wide = 64 };
static float A[most_rows][wide], B[most_rows][wide], C[most_rows * most_rows], D[most_rows];
static int check(int m, int n, int strided) {
    const int64_t bytes = sums_workspace_bytes(m, n), strides[] = {wide, 1};
    void* workspace = aligned_alloc(256, (size_t)(bytes > 0 ? bytes : 256));
    static float dense[2][most_rows * k];
    for (int i = 0; i < most_rows; ++i)
        for (int j = 0; j < k; ++j) dense[0][i * k + j] = A[i][j], dense[1][i * k + j] = B[i][j];
    for (int i = 0; i < m * n; ++i) C[i] = NAN;
    const int status = sums_run(m, n, strided ? (void*)A : (void*)dense[0], strided ? strides : NULL,
                                strided ? (void*)B : (void*)dense[1], strided ? strides : NULL, C, NULL, D, NULL,
                                workspace, NULL);
    free(workspace);
    if (status == sums_bad_strides && strided) return 0;
    if (status != sums_ok) return printf("%d %d: %s\n", m, n, sums_message(status)), 1;
    for (int i = 0; i < m; ++i) {
        double most = -INFINITY;
        for (int j = 0; j < n; ++j) {
            double sum = 0;
            for (int l = 0; l < k; ++l) sum += (double)A[i][l] * B[j][l];
            if (!(fabs(sum - C[i * n + j]) < 1e-4)) return printf("%d %d: C[%d][%d] %g %g\n", m, n, i, j, sum, C[i * n + j]), 1;
        }
        for (int l = 0; l < k; ++l) most = A[i][l] > most ? A[i][l] : most;
        if (most != D[i]) return printf("%d %d: D[%d] %g %g\n", m, n, i, most, D[i]), 1;
    }
    return 0;
}
int main(void) {
    for (int i = 0; i < most_rows; ++i)
        for (int j = 0; j < wide; ++j) A[i][j] = (float)(i * 7 + j * 3 % 5) / 4096, B[i][j] = (float)((i * 3 + j) % 11 - 5);
    static const int sizes[] = {1, 2, 3, 5, 8, 13, 31, 32, 33, 40, 63, 64, 65, 96, 100, 127, 128, 129, 250, 256, 257, 500, 700};
    enum { count = sizeof sizes / sizeof *sizes };
    for (int i = 0; i < count; ++i)
        for (int j = 0; j < count; j += i % 3 + 1)
            if (check(sizes[i], sizes[j], (i + j) % 2)) return 1;
    if (sums_run(0, 5, A, NULL, B, NULL, C, NULL, D, NULL, NULL, NULL) != sums_bad_size) return puts("size 0"), 1;
    if (sums_workspace_bytes(1 << 30, 1) != -1) return puts("size 2^30"), 1;
    if (sums_run(5, 5, NULL, NULL, B, NULL, C, NULL, D, NULL, NULL, NULL) != sums_null) return puts("null"), 1;
    return puts("right"), 0;
}
)");
    const Outcome compiled = shell(std::string(strict) + "main.c -Iout -Lout -lsums -lm -Wl,-rpath,out -o main");
    ASSERT_EQ(compiled.code, 0) << compiled.out;
    EXPECT_EQ(shell("./main").out, "right\n");
}

/// A GPU's library, with stand-ins for its driver and its compiler (tests/c_api/fake_cuda.c).
TEST_F(Build, AGpusLibraryLaunchesByItsSizes) {
    ASSERT_EQ(shell("cc -std=c11 -shared -fPIC -I'" + napkin::in_sources("tests/c_api") + "' '" +
                    napkin::in_sources("tests/c_api/fake_cuda.c") + "' -o libcuda.so.1")
                  .code,
              0);
    write("product.nk", std::string(product) + "sizes m = any, n = k = 1024\n");
    const Outcome built = napkin("build product.nk --machine h200 -o out", "NAPKIN_NVRTC=\"$PWD/libcuda.so.1\"");
    ASSERT_EQ(built.code, 0) << built.err;
    EXPECT_EQ(built.out, "out/product.h\nout/product.c\n");
    write("main.c", R"(#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include "fake_cuda.h"
#include "product.h"
static _Alignas(256) char memory[8 << 20], workspace[8 << 20];
int main(void) {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW);
    fake_state* (*get_state)(void);
    int (*retain)(void**, int), (*set)(void*);
    void* address = dlsym(driver, "fake_cuda_state");
    memcpy(&get_state, &address, sizeof address);
    address = dlsym(driver, "cuDevicePrimaryCtxRetain"), memcpy(&retain, &address, sizeof address);
    address = dlsym(driver, "cuCtxSetCurrent"), memcpy(&set, &address, sizeof address);
    const int64_t wide[] = {2048, 1}, odd[] = {1027, 1};
    if (product_run(100, memory, NULL, memory, NULL, memory, NULL, workspace, NULL) != product_no_context) return 1;
    void* context = NULL;
    retain(&context, 0), set(context);
    fake_state* state = get_state();
    for (int64_t m = 1; m <= 4096; m = 3 * m + 1) {
        const int before = state->launches;
        const int status = product_run(m, memory, wide, memory + 4096, NULL, memory + 8192, NULL, workspace, memory);
        if (status != product_ok) return printf("%s\n", product_message(status)), 1;
        const fake_launch* launch = state->launch;
        printf("m %d: %d launch, %d tiles fit, pointers %d, stream %d\n", (int)m, state->launches - before,
               launch->blocks >= 1 && launch->blocks <= 132 * 2, launch->pointers[0] == (uint64_t)(uintptr_t)memory,
               launch->stream == memory);
    }
    if (product_run(64, memory, odd, memory, NULL, memory, NULL, workspace, NULL) != product_bad_strides) return 2;
    if (product_run(64, memory + 2, NULL, memory, NULL, memory, NULL, workspace, NULL) != product_misaligned) return 3;
    state->fails = 1;
    const int status = product_run(64, memory, NULL, memory, NULL, memory, NULL, workspace, NULL);
    return printf("%s\n", product_message(status)), state->broken;
}
)");
    const Outcome compiled = shell(std::string(strict) + "main.c out/product.c -Iout -I'" +
                                   napkin::in_sources("tests/c_api") + "' -lm -ldl -lpthread -o main");
    ASSERT_EQ(compiled.code, 0) << compiled.out;
    const Outcome ran = shell("LD_LIBRARY_PATH=. ./main");
    EXPECT_EQ(ran.code, 0);
    std::string expected;
    for (int m = 1; m <= 4096; m = 3 * m + 1)
        expected += "m " + std::to_string(m) + ": 1 launch, 1 tiles fit, pointers 1, stream 1\n";
    EXPECT_EQ(ran.out, expected + "launching a kernel: unspecified launch failure (CUDA error 719)\n");
}

TEST_F(Build, FixedSizesHaveNoArguments) {
    write("product.nk", std::string(product) + "sizes m = n = k = 64\n");
    const Outcome built = napkin("build product.nk" + on_processor());
    ASSERT_EQ(built.code, 0) << built.err;
    EXPECT_NE(read("out/product.h").find("int product_run(const void* A, const int64_t* A_strides,"), std::string::npos);
    EXPECT_NE(read("out/product.h").find("int64_t product_workspace_bytes(void);"), std::string::npos);
    const Outcome any = napkin("build product.nk --any-sizes --set m=4096 --set n=4096" + on_processor());
    ASSERT_EQ(any.code, 0) << any.err;
    EXPECT_NE(read("out/product.h").find("int product_run(int64_t m, int64_t n,"), std::string::npos);
}

/// A schedule's bounds for sums of one length are no formulas of it. Passed on for another length they would be wrong.
/// Bounds of rescaling and factors are formulas of the length, so that one text serves all lengths of a class.
TEST_F(Build, AttentionTakesAnyLength) {
    ASSERT_EQ(shell("cc -std=c11 -shared -fPIC -I'" + napkin::in_sources("tests/c_api") + "' '" +
                    napkin::in_sources("tests/c_api/fake_cuda.c") + "' -o libcuda.so.1")
                  .code,
              0);
    write("scores.nk",
          "scores(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, q, d]: bf16\n"
          "    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n    P[h, q, x] = softmax(x) S[h, q, x] * k^-0.5\n"
          "    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\nsizes h = 16, q = x = any(4096), k = d = 128\n");
    const Outcome built = napkin("build scores.nk --machine h200 -o out", "NAPKIN_NVRTC=\"$PWD/libcuda.so.1\"");
    ASSERT_EQ(built.code, 0) << built.err;
    const std::string header = napkin::read_file(path("out/scores.h")).value();
    EXPECT_NE(header.find("from 1 to"), std::string::npos) << header;
    EXPECT_NE(header.find("to 1048576,"), std::string::npos) << header;
}

TEST_F(Build, SaysWhatIsWrong) {
    write("product.nk", product);
    const Outcome open = napkin("build product.nk" + on_processor());
    EXPECT_EQ(open.code, 1);
    EXPECT_NE(open.err.find("missing-size"), std::string::npos) << open.err;
    write("product.nk", std::string(product) + "sizes m = n = k = 64\n");
    const Outcome alone = napkin("build product.nk" + on_processor(), "CXX=/nowhere/c++");
    EXPECT_EQ(alone.code, 3);
    EXPECT_NE(alone.err.find("no-compiler"), std::string::npos) << alone.err;
    const Outcome no_nvrtc = napkin("build product.nk --machine h200 -o out",
                                    "NAPKIN_NVRTC=/nowhere/nvrtc.so CUDA_HOME=/nowhere");
    EXPECT_TRUE(no_nvrtc.code == 0 || no_nvrtc.err.find("no-cuda-compiler") != std::string::npos) << no_nvrtc.err;
    write("file", "");
    const Outcome nowhere = napkin("build product.nk --machine generic-cpu -o file/out");
    EXPECT_EQ(nowhere.code, 3);
    EXPECT_NE(nowhere.err.find("unwritable-file"), std::string::npos) << nowhere.err;
}

}  // namespace
