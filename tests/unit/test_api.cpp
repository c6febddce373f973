// The public C++ API, through its headers alone.
#include <gtest/gtest.h>

#include <napkin/napkin.hpp>
#include <thread>

namespace test_api {
namespace {

constexpr const char* text =
    "f(A[i, k], B[k, j]) -> C[i, j]\n    C[i, j] = sum(k) A[i, k] * B[k, j]\nsizes i = 3, k = 2, j = 4\n";

using napkin::ElementType;

struct Arrays {
    std::vector<float> A = {1, 2, 3, 4, 5, 6}, B = {1, 0, 0, 1, 0, 1, 0, 1}, C = std::vector<float>(12, -1);
    std::vector<napkin::ConstView> in = {{A.data(), ElementType::f32, {3, 2}, {}},
                                         {B.data(), ElementType::f32, {2, 4}, {}}};
    std::vector<napkin::View> out = {{C.data(), ElementType::f32, {3, 4}, {}}};
};
const std::vector<float> product = {1, 2, 0, 3, 3, 4, 0, 7, 5, 6, 0, 11};

TEST(Api, compiles_and_runs) {
    const auto program = napkin::compile(text);
    ASSERT_TRUE(program) << program.error_text();
    EXPECT_EQ(program->name(), "f");
    ASSERT_EQ(program->inputs().size(), 2U);
    EXPECT_EQ(program->inputs()[1].name, "B");
    EXPECT_EQ(program->inputs()[1].axes, (std::vector<std::string>{"k", "j"}));
    EXPECT_EQ(program->inputs()[1].sizes, (std::vector<std::int64_t>{2, 4}));
    EXPECT_EQ(program->outputs()[0].type, ElementType::f32);
    Arrays arrays;
    EXPECT_TRUE(program->run(arrays.in, arrays.out).empty());
    EXPECT_EQ(arrays.C, product);
    EXPECT_NE(program->derivation().find("kernel C"), std::string::npos);
    EXPECT_FALSE(program->plan().empty());
    EXPECT_NE(program->source().find("extern \"C\""), std::string::npos);
    EXPECT_GE(program->prediction().transfers_values, 6 + 8 + 12);
    EXPECT_GT(program->extra_bytes(), 0);
}

TEST(Api, strides_are_free) {
    const auto program = napkin::compile(text);
    ASSERT_TRUE(program) << program.error_text();
    Arrays arrays;
    const std::vector<float> A_columns = {1, 3, 5, 2, 4, 6};
    std::vector<float> C_gaps(3 * 10, -1);
    arrays.in[0] = {A_columns.data(), ElementType::f32, {3, 2}, {1, 3}};
    arrays.out[0] = {C_gaps.data(), ElementType::f32, {3, 4}, {10, 2}};
    EXPECT_TRUE(program->run(arrays.in, arrays.out).empty());
    for (std::size_t i = 0; i < 3; ++i) {
        for (std::size_t j = 0; j < 4; ++j) {
            EXPECT_EQ(C_gaps[10 * i + 2 * j], product[4 * i + j]);
            EXPECT_EQ(C_gaps[10 * i + 2 * j + 1], -1);
        }
    }
}

TEST(Api, options_override_the_text) {
    napkin::CompileOptions options;
    options.sizes = {{"i", 5}};
    options.group = {{"j", 2}};
    options.stream = {{"k", 1}};
    options.threads = 1;
    const auto program = napkin::compile(text, options);
    ASSERT_TRUE(program) << program.error_text();
    EXPECT_EQ(program->outputs()[0].sizes, (std::vector<std::int64_t>{5, 4}));
    EXPECT_NE(program->plan().find("[override]"), std::string::npos);
}

TEST(Api, mistakes_in_the_text_say_where) {
    napkin::CompileOptions options;
    options.file_name = "mine.nk";
    const auto program = napkin::compile("f(A[i]) -> B[i]\n    B[i] = C[i] + D[i]\n", options);
    ASSERT_FALSE(program);
    ASSERT_EQ(program.errors().size(), 2U);
    const napkin::Error& error = program.errors()[0];
    EXPECT_EQ(error.kind, napkin::Error::Kind::input);
    EXPECT_EQ(error.code, "unknown-array");
    EXPECT_EQ(error.line, 2);
    EXPECT_EQ(error.column, 12);
    EXPECT_EQ(error.rendered.rfind("mine.nk:2:12: error: ", 0), 0U) << error.rendered;
    EXPECT_NE(program.error_text().find("2:19"), std::string::npos);
}

TEST(Api, missing_sizes_and_broken_rules_are_errors) {
    EXPECT_EQ(napkin::compile("f(A[i]) -> B[i]\n    B[i] = 2 * A[i]\n").errors().at(0).code, "missing-size");
    napkin::CompileOptions options;
    options.group = {{"k", 2}};
    EXPECT_EQ(napkin::compile(text, options).errors().at(0).code, "not-groupable");
    options = {};
    options.machine = "nowhere";
    EXPECT_EQ(napkin::compile(text, options).errors().at(0).code, "unknown-machine");
}

TEST(Api, views_that_do_not_fit_are_errors) {
    const auto program = napkin::compile(text);
    ASSERT_TRUE(program) << program.error_text();
    const auto code = [&](const Arrays& arrays) {
        const auto errors = program->run(arrays.in, arrays.out);
        return errors.empty() ? "none" : errors.front().code;
    };
    Arrays arrays;
    arrays.in.pop_back();
    EXPECT_EQ(code(arrays), "view-count");
    arrays = Arrays();
    arrays.in[0].type = ElementType::f64;
    EXPECT_EQ(code(arrays), "view-type");
    arrays = Arrays();
    arrays.in[1].sizes = {4, 2};
    EXPECT_EQ(code(arrays), "view-sizes");
    arrays = Arrays();
    arrays.out[0].strides = {4};
    EXPECT_EQ(code(arrays), "view-strides");
    arrays = Arrays();
    arrays.out[0].data = nullptr;
    EXPECT_EQ(code(arrays), "view-null");
}

TEST(Api, numbers_that_stand_for_no_type_are_errors) {
    const auto unknown = static_cast<ElementType>(99);
    EXPECT_EQ(napkin::bytes(unknown), 0U);
    const auto program = napkin::compile(text);
    ASSERT_TRUE(program) << program.error_text();
    Arrays arrays;
    arrays.in[0].type = unknown;
    arrays.out[0].type = unknown;
    const auto errors = program->run(arrays.in, arrays.out);
    ASSERT_EQ(errors.size(), 2U);
    EXPECT_EQ(errors[0].code, "view-type");
    EXPECT_NE(errors[0].message.find("99"), std::string::npos);
}

TEST(Api, choices_that_are_none_are_errors) {
    const auto code = [](const napkin::CompileOptions& options) {
        const auto program = napkin::compile(text, options);
        return program ? "none" : program.errors().front().code;
    };
    napkin::CompileOptions options;
    for (const int threads : {-1, -2147483647, 4097}) {
        options = {};
        options.threads = threads;
        EXPECT_NE(code(options), "none") << threads;
    }
    for (const std::string axis : {"j\nstream k", "j = 3 #", "j = 3, stream k", "", " j", "0"}) {
        options = {};
        options.group = {{axis, 2}};
        EXPECT_EQ(code(options), "unknown-axis") << axis;
        options = {};
        options.stream = {{axis, 2}};
        EXPECT_EQ(code(options), "unknown-axis") << axis;
    }
}

TEST(Api, strides_that_leave_memory_are_errors) {
    const auto program = napkin::compile(text);
    ASSERT_TRUE(program) << program.error_text();
    const auto code = [&](const Arrays& arrays) {
        const auto errors = program->run(arrays.in, arrays.out);
        return errors.empty() ? "none" : errors.front().code;
    };
    for (const std::int64_t stride : {INT64_MAX, INT64_MIN, INT64_MAX / 4, std::int64_t{1} << 60}) {
        Arrays arrays;
        arrays.in[0].strides = {stride, 1};
        EXPECT_EQ(code(arrays), "view-strides") << stride;
        arrays = Arrays();
        arrays.out[0].strides = {4, stride};
        EXPECT_EQ(code(arrays), "view-strides") << stride;
    }
}

TEST(Api, indices_outside_of_their_array_are_errors_before_anything_runs) {
    const auto program = napkin::compile("f(X[v], i[t]: i32) -> Y[t]\n    Y[t] = X[i[t]]\nsizes v = 3, t = 4\n");
    ASSERT_TRUE(program) << program.error_text();
    const std::vector<float> X = {10, 11, 12};
    const auto run = [&](const std::vector<std::int32_t>& i, const std::vector<std::int64_t>& strides,
                         std::vector<float>& Y) {
        const auto errors = program->run(std::vector<napkin::ConstView>{{X.data(), ElementType::f32, {3}, {}},
                                                                        {i.data(), ElementType::i32, {4}, strides}},
                                         std::vector<napkin::View>{{Y.data(), ElementType::f32, {4}, {}}});
        return errors.empty() ? "none" : errors.front().code + ": " + errors.front().message;
    };
    std::vector<float> Y(4, -1);
    EXPECT_EQ(run({0, 1, 3, 2}, {}, Y), "index-out-of-range: i[t] is 3 at t = 2, but v of X has 3 values");
    EXPECT_EQ(run({0, -1, 1, 2}, {}, Y), "index-out-of-range: i[t] is -1 at t = 1, but v of X has 3 values");
    EXPECT_EQ(run({0, 1, 2, 2}, {INT64_MAX / 4}, Y).substr(0, 12), "view-strides");
    EXPECT_EQ(Y, std::vector<float>(4, -1));
    EXPECT_EQ(run({2, 9, 0, 9, 1, -9, 2}, {2}, Y), "none");
    EXPECT_EQ(Y, (std::vector<float>{12, 10, 11, 12}));
}

TEST(Api, computed_indices_are_looked_at_before_a_kernel_reads_by_them) {
    // I lies in the caller's memory, with gaps; J in the program's own.
    const auto program = napkin::compile(
        "f(X[a, t], K[t]: i32, V[v]) -> I[a]: i32, Y[a], Z[a]\n    I[a] = argmax(t) X[a, t]\n    J[a] = K[I[a]] + 1\n"
        "    Y[a] = V[J[a]]\n    Z[a] = where(I[a] < size(v), V[I[a]], -1)\nsizes a = 2, t = 4, v = 3\n");
    ASSERT_TRUE(program) << program.error_text();
    const std::vector<float> V = {10, 11, 12};
    std::vector<std::int32_t> I(3, -5);
    std::vector<float> Y(2, -5), Z(2, -5);
    const auto run = [&](const std::vector<float>& X, const std::vector<std::int32_t>& K) {
        const auto errors = program->run(std::vector<napkin::ConstView>{{X.data(), ElementType::f32, {2, 4}, {}},
                                                                        {K.data(), ElementType::i32, {4}, {}},
                                                                        {V.data(), ElementType::f32, {3}, {}}},
                                         std::vector<napkin::View>{{I.data(), ElementType::i32, {2}, {2}},
                                                                   {Y.data(), ElementType::f32, {2}, {}},
                                                                   {Z.data(), ElementType::f32, {2}, {}}});
        return errors.empty() ? "none" : errors.front().code + ": " + errors.front().message;
    };
    const std::vector<float> X = {0, 1, 0, 0, 0, 0, 0, 1};
    EXPECT_EQ(run(X, {0, 1, 1, 2}), "index-out-of-range: J[a] is 3 at a = 1, but v of V has 3 values");
    EXPECT_EQ(run(X, {0, -2, 1, 0}), "index-out-of-range: J[a] is -1 at a = 0, but v of V has 3 values");
    EXPECT_EQ(Y, (std::vector<float>{-5, -5}));
    EXPECT_EQ(run(X, {0, 1, 7, -1}), "none");
    EXPECT_EQ(I, (std::vector<std::int32_t>{1, -5, 3}));
    EXPECT_EQ(Y, (std::vector<float>{12, 10}));
    EXPECT_EQ(Z, (std::vector<float>{11, -1}));
}

TEST(Api, outputs_that_overlap_are_errors) {
    const auto program = napkin::compile(text);
    ASSERT_TRUE(program) << program.error_text();
    const auto code = [&](const Arrays& arrays) {
        const auto errors = program->run(arrays.in, arrays.out);
        return errors.empty() ? "none" : errors.front().code;
    };
    Arrays arrays;
    for (const std::vector<std::int64_t>& strides :
         {std::vector<std::int64_t>{4, 0}, {0, 1}, {1, 1}, {3, 1}, {2, 2}, {0, 0}}) {
        arrays.out[0].strides = strides;
        EXPECT_EQ(code(arrays), "view-overlap") << strides[0] << ", " << strides[1];
    }
    arrays = Arrays();
    arrays.out[0].data = arrays.A.data() + 3;
    EXPECT_EQ(code(arrays), "view-overlap") << "an input under the output";
    // Inputs are only read: their strides may be 0, and they may lie on each other.
    arrays = Arrays();
    arrays.in[0].strides = {0, 1};
    arrays.in[1].data = arrays.A.data();
    arrays.in[1].strides = {1, 0};
    EXPECT_EQ(code(arrays), "none");
}

TEST(Api, outputs_that_overlap_each_other_are_errors) {
    const auto program = napkin::compile(
        "f(X[a]) -> Y[a], Z[a]\n    Y[a] = X[a] + 1\n    Z[a] = X[a] * 2\nsizes a = 4\n");
    ASSERT_TRUE(program) << program.error_text();
    const std::vector<float> X = {1, 2, 3, 4};
    std::vector<float> memory(9, -1);
    const auto run = [&](std::int64_t Y, std::int64_t Z, std::int64_t stride) {
        const auto errors = program->run(std::vector<napkin::ConstView>{{X.data(), ElementType::f32, {4}, {}}},
                                         std::vector<napkin::View>{{memory.data() + Y, ElementType::f32, {4}, {stride}},
                                                                   {memory.data() + Z, ElementType::f32, {4}, {stride}}});
        return errors.empty() ? "none" : errors.front().code + ": " + errors.front().message;
    };
    EXPECT_EQ(run(0, 3, 1), "view-overlap: the views of Y and Z overlap");
    EXPECT_EQ(run(4, 1, 1), "view-overlap: the views of Y and Z overlap");
    EXPECT_EQ(run(0, 2, 2), "view-overlap: the views of Y and Z overlap");
    EXPECT_EQ(memory, std::vector<float>(9, -1));
    EXPECT_EQ(run(0, 4, 1), "none");
    EXPECT_EQ(run(0, 1, 2), "none") << "one between the other's elements";
    EXPECT_EQ(memory, (std::vector<float>{2, 2, 3, 4, 4, 6, 5, 8, -1}));
}

TEST(Api, several_threads_may_run_one_program) {
    const auto program = napkin::compile(text);
    ASSERT_TRUE(program) << program.error_text();
    std::vector<Arrays> arrays(4);
    std::vector<std::thread> threads;
    std::vector<int> wrong(4, 0);
    for (std::size_t t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            Arrays mine;
            for (int i = 0; i < 50; ++i) wrong[t] += !program->run(mine.in, mine.out).empty() || mine.C != product;
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST(Api, bytes_of_types) {
    EXPECT_EQ(napkin::bytes(ElementType::f64), 8U);
    EXPECT_EQ(napkin::bytes(ElementType::bf16), 2U);
    EXPECT_EQ(napkin::bytes(ElementType::e4m3), 1U);
    EXPECT_FALSE(napkin::version().empty());
}

}  // namespace
}  // namespace test_api
