#include "run/npy.hpp"
#include "support/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "run_test_support.hpp"

namespace napkin::test_npy {
namespace {

using test::TemporaryDirectory;

/// A file of the given header text and numbers.
std::string npy(const std::string& header, const std::string& data, int version = 1) {
    std::string file("\x93NUMPY");
    file += static_cast<char>(version);
    file += '\0';
    const std::string padded = header + "\n";
    for (int i = 0; i < (version == 1 ? 2 : 4); ++i) file += static_cast<char>(padded.size() >> (8 * i));
    return file + padded + data;
}
std::string header(const std::string& descr, const std::string& shape, bool fortran = false) {
    return "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': " + shape + ", }";
}
template <class T>
std::string raw(const std::vector<T>& values, bool swapped = false) {
    std::string text(values.size() * sizeof(T), '\0');
    std::memcpy(text.data(), values.data(), text.size());
    for (std::size_t i = 0; swapped && i < text.size(); i += sizeof(T))
        std::reverse(text.begin() + static_cast<std::ptrdiff_t>(i),
                     text.begin() + static_cast<std::ptrdiff_t>(i + sizeof(T)));
    return text;
}
Result<Tensor> parse(const std::string& file, std::optional<DType> wanted = std::nullopt) {
    return parse_npy(std::as_bytes(std::span(file.data(), file.size())), "x.npy", wanted);
}
std::string code(const Result<Tensor>& result) { return result.ok() ? "" : result.errors()[0].code; }
using Sizes = std::vector<std::int64_t>;
using Values = std::vector<double>;

TEST(Npy, ReadsEveryType) {
    const auto expect = [](const std::string& descr, const std::string& data, DType type, const Values& values,
                           std::optional<DType> wanted = std::nullopt) {
        const auto tensor = parse(npy(header(descr, "(2,)"), data), wanted);
        ASSERT_TRUE(tensor.ok()) << descr << ": " << render(tensor.errors());
        EXPECT_EQ(tensor->type(), type) << descr;
        EXPECT_EQ(tensor->to_doubles(), values) << descr;
    };
    expect("<f4", raw<float>({1.5F, -2}), DType::f32, {1.5, -2});
    expect(">f4", raw<float>({1.5F, -2}, true), DType::f32, {1.5, -2});
    expect("=f4", raw<float>({1.5F, -2}), DType::f32, {1.5, -2});
    expect("<f8", raw<double>({0.1, 1e300}), DType::f64, {0.1, 1e300});
    expect(">f8", raw<double>({0.1, 1e300}, true), DType::f64, {0.1, 1e300});
    expect("<f2", raw<std::uint16_t>({0x3c00, 0xc000}), DType::f16, {1, -2});
    expect(">f2", raw<std::uint16_t>({0x3c00, 0xc000}, true), DType::f16, {1, -2});
    expect("<i4", raw<std::int32_t>({-7, 2147483647}), DType::i32, {-7, 2147483647});
    expect(">i4", raw<std::int32_t>({-7, 2147483647}, true), DType::i32, {-7, 2147483647});
    expect("<i8", raw<std::int64_t>({-2147483648LL, 5}), DType::i64, {-2147483648.0, 5});
    expect("<i8", raw<std::int64_t>({-2147483648LL, 5}), DType::i32, {-2147483648.0, 5}, DType::i32);
    expect("<i4", raw<std::int32_t>({-7, 5}), DType::i64, {-7, 5}, DType::i64);
    expect(">i8", raw<std::int64_t>({-2147483648LL, 5}, true), DType::i64, {-2147483648.0, 5});
    expect("<i2", raw<std::int16_t>({-300, 300}), DType::i16, {-300, 300});
    expect("<i2", raw<std::int16_t>({-300, 300}), DType::i32, {-300, 300}, DType::i32);
    expect("<i2", raw<std::int16_t>({-3, 127}), DType::i8, {-3, 127}, DType::i8);
    expect("|i1", raw<std::int8_t>({-3, 3}), DType::i8, {-3, 3});
    expect("|u1", raw<std::uint8_t>({200, 3}), DType::u8, {200, 3});
    expect("|u1", raw<std::uint8_t>({200, 3}), DType::i16, {200, 3}, DType::i16);
    expect("<i8", raw<std::int64_t>({255, 0}), DType::u8, {255, 0}, DType::u8);
    expect("|u1", raw<std::uint8_t>({1, 0}), DType::boolean, {1, 0}, DType::boolean);
    expect("<f4", raw<float>({2, -3}), DType::i32, {2, -3}, DType::i32);
    expect(">f8", raw<double>({1, 0}, true), DType::boolean, {1, 0}, DType::boolean);
    expect("<V2", raw<std::uint16_t>({0x3f80, 0xc000}), DType::i64, {1, -2}, DType::i64);
    expect("<u2", raw<std::uint16_t>({60000, 3}), DType::i32, {60000, 3});
    expect("<u4", raw<std::uint32_t>({4000000000U, 3}), DType::i64, {4000000000, 3});
    expect("|b1", raw<std::uint8_t>({2, 0}), DType::boolean, {1, 0});
    expect("|b1", raw<std::uint8_t>({1, 0}), DType::i32, {1, 0}, DType::i32);
    expect("<V2", raw<std::uint16_t>({0x3f80, 0xc000}), DType::bf16, {1, -2});
    expect("|V2", raw<std::uint16_t>({0x3f80, 0xc000}), DType::bf16, {1, -2});
    expect("bfloat16", raw<std::uint16_t>({0x3f80, 0xc000}), DType::bf16, {1, -2});
    expect("<u2", raw<std::uint16_t>({0x3f80, 0xc000}), DType::bf16, {1, -2}, DType::bf16);
    expect("|V1", raw<std::uint8_t>({0x38, 0xb8}), DType::e4m3, {1, -1}, DType::e4m3);
    expect("|u1", raw<std::uint8_t>({0x3c, 0xbc}), DType::e5m2, {1, -1}, DType::e5m2);
}

TEST(Npy, ReadsEveryFormatAndOrder) {
    for (const int version : {1, 2, 3})
        EXPECT_EQ(parse(npy(header("<f4", "(2,)"), raw<float>({1, 2}), version))->to_doubles(), (Values{1, 2}));
    const auto fortran = parse(npy(header("<f4", "(2, 3)", true), raw<float>({1, 4, 2, 5, 3, 6})));
    EXPECT_EQ(fortran->to_doubles(), (Values{1, 2, 3, 4, 5, 6}));
    const auto cube = parse(npy(header(">i8", "(2, 2, 2)", true), raw<std::int64_t>({0, 4, 2, 6, 1, 5, 3, 7}, true)));
    EXPECT_EQ(cube->to_doubles(), (Values{0, 1, 2, 3, 4, 5, 6, 7}));
    EXPECT_EQ(parse(npy(header("<f4", "()"), raw<float>({9})))->at(0), 9);
    EXPECT_EQ(parse(npy(header("<f4", "()", true), raw<float>({9})))->at(0), 9);
    EXPECT_EQ(parse(npy(header("<f4", "(0, 5)"), ""))->sizes(), (Sizes{0, 5}));
    EXPECT_EQ(parse(npy(header("<f4", "(5, 0)", true), ""))->count(), 0);
    EXPECT_EQ(parse(npy("{\"shape\":(1L,2L),\"descr\":\"<f4\",\"fortran_order\":False}", raw<float>({1, 2})))->sizes(),
              (Sizes{1, 2}));
}

TEST(Npy, SaysWhatIsWrong) {
    const std::string good = npy(header("<f4", "(2, 3)"), raw<float>({1, 2, 3, 4, 5, 6}));
    ASSERT_TRUE(parse(good).ok());
    for (std::size_t n = 0; n < good.size(); ++n)
        EXPECT_EQ(code(parse(good.substr(0, n))), "bad-npy") << "cut to " << n << " bytes";
    EXPECT_EQ(code(parse(good + "x")), "bad-npy");
    EXPECT_EQ(code(parse("PK\x03\x04 this is an npz file, longer than ten bytes")), "bad-npy");
    EXPECT_EQ(code(parse(npy(header("<f4", "(2,)"), raw<float>({1, 2}), 4))), "bad-npy");
    for (const char* shape : {"(-1,)", "(2", "2", "[2]", "(a,)", "(2,,)", "(2.0,)", "(4611686018427387905,)",
                              "(99999999999999999999,)", "(,)", "(4294967296, 4294967296)",
                              "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2)", "(4611686018427387904, 4)", "(2 2)"}) {
        EXPECT_EQ(code(parse(npy(header("<f4", shape), raw<float>({1, 2})))), "bad-npy") << shape;
    }
    for (const char* text :
         {"", "{", "{}", "x", "{'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,)}",
          "{'descr': '<f4', 'shape': (2,)}", "{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (2,)}",
          "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x",
          "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}", "{'descr' '<f4'}", "{'descr': '<f4",
          "{'descr': '<\\x66', 'fortran_order': False, 'shape': (2,)}"}) {
        EXPECT_EQ(code(parse(npy(text, raw<float>({1, 2})))), "bad-npy") << text;
    }
    for (const char* descr : {"<f16", "<c8", "<U4", "|O", "<M8", "f", "", "<f", "<f4x", "<f-4", "<i3", "*f4", "<V8",
                              "|V1", "<f99999999999"}) {
        EXPECT_EQ(code(parse(npy(header(descr, "(2,)"), raw<float>({1, 2})))), "npy-type") << descr;
    }
    EXPECT_EQ(code(parse(npy(header("<i8", "(1,)"), raw<std::int64_t>({1LL << 40})), DType::i32)), "npy-range");
    EXPECT_EQ(code(parse(npy(header("<u4", "(1,)"), raw<std::uint32_t>({4000000000U})), DType::i32)), "npy-range");
    EXPECT_EQ(code(parse(npy(header("<u8", "(1,)"), raw<std::uint64_t>({~0ULL})))), "npy-range");
    const auto short_data = parse(npy(header("<f4", "(2, 3)"), raw<float>({1, 2})));
    EXPECT_NE(short_data.errors()[0].message.find("x.npy"), std::string::npos);
    EXPECT_NE(short_data.errors()[0].expected.find("2×3"), std::string::npos);
}

/// A finite number that a narrower input would make infinite is named with its place; what rounds to the largest one is
/// not.
TEST(Npy, RefusesRealNumbersBeyondTheType) {
    const auto message = [](const std::string& descr, const std::string& data, DType wanted, bool fortran = false) {
        const auto result = parse(npy(header(descr, "(2, 2)", fortran), data), wanted);
        return result.ok() ? "" : result.errors()[0].message + "; " + result.errors()[0].expected;
    };
    const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
    EXPECT_EQ(message("<f4", raw<float>({1, 2, 70000, 4}), DType::f16),
              "x.npy[1, 0]: 70000 is beyond f16; numbers from -65504 to 65504");
    EXPECT_EQ(message("<f4", raw<float>({1, -70000, 2, 4}), DType::f16, true),
              "x.npy[1, 0]: -70000 is beyond f16; numbers from -65504 to 65504");
    EXPECT_EQ(message("<f4", raw<float>({1, 65519, -65519, 4}), DType::f16), "");
    EXPECT_EQ(message("<f4", raw<float>({inf, -inf, nan, 4}), DType::f16), "");
    EXPECT_EQ(message("<f8", raw<double>({1, 2, 3, 1e39}), DType::f32).substr(0, 33),
              "x.npy[1, 1]: 1e+39 is beyond f32;");
    EXPECT_EQ(message("<f8", raw<double>({1, 2, 3, 1e39}), DType::f64), "");
    EXPECT_EQ(message("<i4", raw<std::int32_t>({1, 2, 3, 70000}), DType::f16).substr(0, 34),
              "x.npy[1, 1]: 70000 is beyond f16; ");
    EXPECT_EQ(message("<f4", raw<float>({1, 500, 3, 4}), DType::e4m3),
              "x.npy[0, 1]: 500 is beyond e4m3; numbers from -448 to 448");
}

/// What an integer array does not hold is named with its place and its value, and nothing is rounded.
TEST(Npy, RefusesNumbersThatTheTypeHasNot) {
    const auto refused = [](const std::string& descr, const std::string& data, DType wanted, bool fortran = false) {
        const auto result = parse(npy(header(descr, "(2, 2)", fortran), data), wanted);
        EXPECT_EQ(code(result), "npy-range") << descr;
        return result.ok() ? "" : result.errors()[0].message + "; " + result.errors()[0].expected;
    };
    const double nan = std::nan(""), beyond = 9223372036854775808.0;
    EXPECT_EQ(refused("<f8", raw<double>({1, 2.5, 0, 0}), DType::i32),
              "x.npy[0, 1]: 2.5 is no i32; integers from -2147483648 to 2147483647");
    EXPECT_EQ(refused("<f8", raw<double>({1, 2, 3e9, 0}), DType::i32),
              "x.npy[1, 0]: 3000000000 is no i32; integers from -2147483648 to 2147483647");
    EXPECT_EQ(refused("<f8", raw<double>({1, 3e9, 2, 0}), DType::i32, true),
              "x.npy[1, 0]: 3000000000 is no i32; integers from -2147483648 to 2147483647");
    EXPECT_EQ(refused("<f4", raw<float>({0, 0, 0, NAN}), DType::u8),
              "x.npy[1, 1]: nan is no u8; integers from 0 to 255");
    EXPECT_EQ(refused("<f8", raw<double>({0, 0.5, nan, 0}), DType::boolean), "x.npy[0, 1]: 0.5 is no bool; 0 or 1");
    EXPECT_EQ(
        refused("<f8", raw<double>({0, beyond, 0, 0}), DType::i64),
        "x.npy[0, 1]: 9.223372036854776e+18 is no i64; integers from -9223372036854775808 to 9223372036854775807");
    EXPECT_EQ(refused("<i2", raw<std::int16_t>({0, -129, 0, 0}), DType::i8),
              "x.npy[0, 1]: -129 is no i8; integers from -128 to 127");
    EXPECT_EQ(refused("|u1", raw<std::uint8_t>({0, 2, 0, 0}), DType::boolean), "x.npy[0, 1]: 2 is no bool; 0 or 1");
    EXPECT_EQ(
        refused("<u8", raw<std::uint64_t>({0, ~0ULL, 0, 0}), DType::i64),
        "x.npy[0, 1]: an integer past 64 bits is no i64; integers from -9223372036854775808 to 9223372036854775807");
}

TEST(Npy, WritesWhatItReads) {
    const TemporaryDirectory home;
    for (const DType type : all_dtypes) {
        for (const Sizes& sizes : {Sizes{}, Sizes{7}, Sizes{3, 5}, Sizes{2, 0}, Sizes{1, 2, 3, 4}}) {
            Tensor tensor = Tensor::make(type, sizes).value();
            tensor.fill_normal(3, 0, 5);
            const std::string path = home.file("t.npy");
            ASSERT_TRUE(write_npy(path, tensor).ok());
            const auto back = read_npy(path, type);
            ASSERT_TRUE(back.ok()) << render(back.errors());
            EXPECT_EQ(back->type(), type);
            EXPECT_EQ(back->sizes(), sizes);
            EXPECT_EQ(std::memcmp(back->data(), tensor.data(), static_cast<std::size_t>(tensor.size_bytes())), 0);
            const std::string file = npy_bytes(tensor);
            EXPECT_EQ((file.size() - static_cast<std::size_t>(tensor.size_bytes())) % 64, 0U) << "numbers are aligned";
        }
    }
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(home.path()), std::filesystem::directory_iterator()), 1);
}

/// What a link names is written, and the link stays: one that names an open descriptor, as /dev/stdout does, is written
/// where that stands.
TEST(Npy, WritesThroughLinks) {
    const TemporaryDirectory home;
    const Tensor tensor = Tensor::make(DType::f32, {2}).value();
    namespace fs = std::filesystem;
    fs::create_symlink("real.npy", home.file("link.npy"));
    fs::create_symlink("link.npy", home.file("chain.npy"));
    for (int round = 0; round < 2; ++round) {  // the file is new, then there
        ASSERT_TRUE(write_npy(home.file("chain.npy"), tensor).ok());
        EXPECT_TRUE(fs::is_symlink(home.file("chain.npy")) && fs::is_symlink(home.file("link.npy")));
        EXPECT_TRUE(read_npy(home.file("real.npy")).ok());
    }
    const int fd = ::open(home.file("open").c_str(), O_WRONLY | O_CREAT, 0600);
    ASSERT_EQ(::write(fd, "before", 6), 6);
    fs::create_symlink("/proc/self/fd/" + std::to_string(fd), home.file("descriptor"));
    ASSERT_TRUE(write_npy(home.file("descriptor"), tensor).ok());
    ASSERT_EQ(::write(fd, "after", 5), 5);
    ::close(fd);
    EXPECT_TRUE(fs::is_symlink(home.file("descriptor")));
    EXPECT_EQ(read_file(home.file("open")), "before" + npy_bytes(tensor) + "after");
}

TEST(Npy, FilesThatAreNotThere) {
    const TemporaryDirectory home;
    EXPECT_EQ(code(read_npy(home.file("none.npy"))), "no-such-file");
    EXPECT_EQ(code(read_npy(home.path())), "unreadable-file");
    const Tensor tensor = Tensor::make(DType::f32, {2}).value();
    const auto written = write_npy(home.file("no/such/folder.npy"), tensor);
    ASSERT_FALSE(written.ok());
    EXPECT_EQ(written.errors()[0].code, "unwritable-file");
    EXPECT_TRUE(write_npy("/dev/null", tensor).ok());
    struct stat info{};
    ASSERT_EQ(::stat("/dev/null", &info), 0);
    EXPECT_TRUE(S_ISCHR(info.st_mode));
}

}  // namespace
}  // namespace napkin::test_npy
