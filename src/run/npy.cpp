#include "run/npy.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "support/files.hpp"
#include "support/ids.hpp"
#include "support/limits.hpp"

namespace napkin {
namespace {
constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t max_header_bytes = 1 << 16;

Diagnostic npy_error(const std::string& code, const std::string& name, const std::string& message,
                     const std::string& expected = "") {
    return Diagnostic{.code = code, .message = name + ": " + message, .expected = expected};
}

/// How numbers stand in the file: 'f' float, 'i' and 'u' integers, 'b' bool, 'B' bfloat16, 'V' raw bytes.
struct Element {
    char kind = 'f';
    int size = 4;
    bool swapped = false;
    friend bool operator==(const Element&, const Element&) = default;
};

struct Header {
    std::string descr;
    bool fortran_order = false;
    std::vector<std::int64_t> shape;
};

/// Reads the Python dictionary of a header: string keys, and for values strings, True, False, or a tuple of integers.
class HeaderParser {
public:
    explicit HeaderParser(std::string_view text) : text_(text) {}

    /// Empty when all is well, else what is wrong.
    std::string parse(Header& header) {
        bool descr = false, order = false, shape = false;
        if (!take('{')) return "its header is not a dictionary";
        while (!take('}')) {
            std::string key;
            if (!string(key) || !take(':')) return "its header's dictionary is malformed";
            if (key == "descr") {
                if (!string(header.descr)) return "its \"descr\" is not a plain type (structured arrays are not read)";
                descr = true;
            } else if (key == "fortran_order") {
                if (word("True")) {
                    header.fortran_order = true;
                } else if (!word("False")) {
                    return "its \"fortran_order\" is neither True nor False";
                }
                order = true;
            } else if (key == "shape") {
                if (!tuple(header.shape)) return "its \"shape\" is not a tuple of sizes from 0 to 2^62";
                shape = true;
            } else {
                return fmt::format("its header has an unknown key \"{}\"", key);
            }
            if (!take(',') && !peek('}')) return "its header's dictionary is malformed";
        }
        skip();
        if (at_ != text_.size()) return "its header goes on after the dictionary";
        if (!descr || !order || !shape)
            return fmt::format("its header lacks \"{}\"", !descr ? "descr" : !order ? "fortran_order" : "shape");
        return "";
    }

private:
    void skip() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
            ++at_;
    }
    bool peek(char c) {
        skip();
        return at_ < text_.size() && text_[at_] == c;
    }
    bool take(char c) {
        const bool there = peek(c);
        at_ += there ? 1 : 0;
        return there;
    }
    bool word(std::string_view w) {
        skip();
        const bool there = text_.substr(at_, w.size()) == w;
        at_ += there ? w.size() : 0;
        return there;
    }
    bool string(std::string& out) {
        skip();
        if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) return false;
        const std::size_t end = text_.find(text_[at_], at_ + 1);
        if (end == std::string_view::npos) return false;
        out = text_.substr(at_ + 1, end - at_ - 1);
        at_ = end + 1;
        return out.find('\\') == std::string::npos;
    }
    bool tuple(std::vector<std::int64_t>& out) {
        out.clear();
        if (!take('(')) return false;
        while (!take(')')) {
            skip();
            std::int64_t value = -1;
            const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
            if (error != std::errc() || value < 0 || value > limits::max_size_product) return false;
            at_ = static_cast<std::size_t>(end - text_.data());
            if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2 wrote long integers so
            out.push_back(value);
            if (out.size() > limits::max_axes_per_array) return false;
            if (!take(',') && !peek(')')) return false;
        }
        return true;
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

std::optional<Element> parse_element(const std::string& descr) {
    if (descr == "bfloat16") return Element{'B', 2, false};
    if (descr.size() < 3) return std::nullopt;
    Element element;
    const char order = descr[0];
    element.kind = descr[1];
    const auto [end, error] = std::from_chars(descr.data() + 2, descr.data() + descr.size(), element.size);
    if (error != std::errc() || end != descr.data() + descr.size()) return std::nullopt;
    if (order != '<' && order != '>' && order != '=' && order != '|') return std::nullopt;
    const bool big_endian_machine = std::endian::native == std::endian::big;
    element.swapped = element.size > 1 && ((order == '<' && big_endian_machine) || (order == '>' && !big_endian_machine));
    const std::string_view known[] = {"f2", "f4", "f8", "i1", "i2", "i4", "i8",
                                      "u1", "u2", "u4", "u8", "b1", "V1", "V2"};
    if (std::find(std::begin(known), std::end(known), descr.substr(1)) == std::end(known)) return std::nullopt;
    return element;
}

/// The type of the elements in the file, where the language has it.
std::optional<DType> own_type(const Element& e) {
    for (const DType type : all_dtypes)
        if (facts(type).npy_kind == e.kind && bytes(type) == e.size && e.kind != 'V') return type;
    if (e.kind == 'B' || (e.kind == 'V' && e.size == 2)) return DType::bf16;
    return std::nullopt;
}

/// The type that the elements become.
std::optional<DType> type_of(const Element& e, std::optional<DType> wanted) {
    // NumPy has no name for these: raw bytes and unsigned integers are their bits.
    if (wanted && facts(*wanted).npy_kind == 'V' && e.size == bytes(*wanted) && (e.kind == 'V' || e.kind == 'u'))
        return wanted;
    // Two types are the same bytes to NumPy.
    if (wanted && facts(*wanted).npy_kind == e.kind && bytes(*wanted) == e.size) return wanted;
    const auto own = own_type(e);
    if (!own && e.kind != 'u') return std::nullopt;
    if (wanted && !is_float(*wanted)) return wanted;
    return own ? own : e.size < bytes(DType::i32) ? DType::i32 : DType::i64;
}

/// An element as it stands in the file; an integer past 64 signed bits as nothing. The bytes are in this machine's
/// order.
std::optional<Number> number_in_file(const Element& e, const unsigned char* raw) {
    if (const auto own = own_type(e)) return decode_number(*own, raw);
    std::uint64_t bits = 0;
    for (int i = 0; i < e.size; ++i) {
        const int from = std::endian::native == std::endian::big ? i : e.size - 1 - i;
        bits = bits << 8 | raw[from];
    }
    const auto value = static_cast<std::int64_t>(bits);
    return value >= 0 ? std::optional(Number::whole(Kind::i64, value)) : std::nullopt;
}

/// Whether an integer type has the number, without rounding it.
bool is_one_of(DType type, const Number& number) {
    if (number.kind() != Kind::real) return is_in_range(type, number.as_whole(Kind::i64));
    // The double nearest to the greatest of 64 bits is one more than it.
    return static_cast<double>(whole_of(type, number.as_real())) == number.as_real() && number.as_real() < 0x1p63;
}

std::string number_text(const std::optional<Number>& number) {
    if (!number) return "an integer past 64 bits";
    return number->kind() == Kind::real ? fmt::format("{}", number->as_real())
                                        : std::to_string(number->as_whole(Kind::i64));
}

/// "[1, 2]": where the number of that place in row-major order stands; "" of a single one.
std::string position_text(std::int64_t place, const std::vector<std::int64_t>& shape) {
    std::string text;
    for (std::size_t d = shape.size(); d-- > 0; place /= shape[d])
        text = fmt::format("{}{}{}", place % shape[d], text.empty() ? "" : ", ", text);
    return text.empty() ? text : fmt::format("[{}]", text);
}

Diagnostic not_of_type(const std::string& name, const std::string& position, const std::optional<Number>& number,
                       DType type) {
    const DTypeFacts& row = facts(type);
    const bool is_real = number && number->kind() == Kind::real;
    Diagnostic error = npy_error(
        "npy-range", name + position, fmt::format("{} is no {}", number_text(number), row.name),
        row.kind == DTypeKind::truth ? "0 or 1" : fmt::format("integers from {} to {}", row.least, row.most));
    if (is_real)
        error.hint = fmt::format(
            "to have real numbers converted, declare the input with their type and write {}(…) where it is read", row.name);
    return error;
}

/// Whether numbers of the file may be beyond the largest one of a float type.
bool may_pass(DType wanted, DType type) {
    const auto largest = [](DType of) {
        return is_float(of) ? format_range(of).largest : -static_cast<double>(facts(of).least);
    };
    return is_float(wanted) && largest(type) > largest(wanted);
}

bool is_beyond(DType type, double x) { return std::isfinite(x) && !std::isfinite(round_to(type, x)); }

Diagnostic beyond_type(const std::string& name, const std::string& position, const Number& number, DType type) {
    const double largest = format_range(type).largest;
    Diagnostic error = npy_error("npy-range", name + position,
                                 fmt::format("{} is beyond {}", number_text(number), facts(type).name),
                                 fmt::format("numbers from {} to {}", -largest, largest));
    error.hint = fmt::format(
        "to have such numbers become infinite, declare the input with their type and write {}(…) where it is read",
        facts(type).name);
    return error;
}

/// The place in row-major order of the i-th element of a Fortran-ordered file, counted up alongside.
class FortranOrder {
public:
    explicit FortranOrder(const std::vector<std::int64_t>& shape)
        : shape_(shape), index_(shape.size(), 0), strides_(shape.size(), 1) {
        for (std::size_t d = shape.size(); d-- > 1;) strides_[d - 1] = strides_[d] * shape[d];
    }
    [[nodiscard]] std::int64_t place() const { return place_; }
    void next() {
        for (std::size_t d = 0; d < shape_.size(); ++d) {
            place_ += strides_[d];
            if (++index_[d] < shape_[d]) return;
            place_ -= index_[d] * strides_[d];
            index_[d] = 0;
        }
    }

private:
    std::vector<std::int64_t> shape_, index_, strides_;
    std::int64_t place_ = 0;
};

}  // namespace

Result<Tensor> parse_npy(std::span<const std::byte> file, const std::string& name, std::optional<DType> wanted) {
    const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
    if (!text.starts_with(magic) || text.size() < 10)
        return npy_error("bad-npy", name, "it is not a NumPy array", "a .npy file, which begins with \\x93NUMPY");
    const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(text[i])); };
    const std::size_t version = byte(6);
    if (version < 1 || version > 3)
        return npy_error("bad-npy", name, fmt::format("its format is {}.{}", version, byte(7)),
                         "format 1.0, 2.0 or 3.0");
    const std::size_t length_bytes = version == 1 ? 2 : 4, begin = 8 + length_bytes;
    if (text.size() < begin) return npy_error("bad-npy", name, "it ends within its header");
    std::size_t length = 0;
    for (std::size_t i = 0; i < length_bytes; ++i) length |= byte(8 + i) << (8 * i);
    if (length > max_header_bytes || text.size() - begin < length) {
        return npy_error("bad-npy", name, fmt::format("it ends within its header of {} bytes", length),
                         fmt::format("at most {} bytes of header", max_header_bytes));
    }

    Header header;
    if (const std::string wrong = HeaderParser(text.substr(begin, length)).parse(header); !wrong.empty())
        return npy_error("bad-npy", name, wrong);
    const std::optional<Element> element = parse_element(header.descr);
    const std::optional<DType> type = element ? type_of(*element, wanted) : std::nullopt;
    if (!type) {
        return npy_error("npy-type", name, fmt::format("its numbers are of type '{}'", header.descr),
                         "f2, f4, f8, integers, bool, bfloat16 (or V2), or V1 and u1 for e4m3 and e5m2");
    }

    // Against the bytes that are there, before any memory is taken: a header may claim anything.
    const auto present = static_cast<std::int64_t>(text.size() - begin - length);
    std::int64_t count = !contains(header.shape, 0) ? 1 : 0;
    for (const std::int64_t size : header.shape) {
        if (count > 0 && size > present / element->size / count) {
            count = -1;
            break;
        }
        count *= size;
    }
    if (count < 0 || count * element->size != present) {
        std::string shape;
        for (const std::int64_t size : header.shape) shape += (shape.empty() ? "" : "×") + std::to_string(size);
        return npy_error(
            "bad-npy", name, fmt::format("it holds {} bytes of numbers", present),
            fmt::format("{} of {} bytes each, as its header says", shape.empty() ? "one" : shape, element->size));
    }

    Result<Tensor> made = Tensor::make(*type, header.shape);
    if (!made.ok()) return made;
    const auto* raw = reinterpret_cast<const unsigned char*>(text.data() + begin + length);
    auto* out = static_cast<unsigned char*>(made->data());
    const auto width = static_cast<std::size_t>(bytes(*type));
    // Any byte but 0 is true in memory, and 1 here.
    const bool converts = !is_float(*type) && (own_type(*element) != *type || facts(*type).kind == DTypeKind::truth);
    const bool may_be_beyond = wanted && may_pass(*wanted, *type);
    if (!converts && !may_be_beyond && !element->swapped && !header.fortran_order) {
        if (count > 0) std::memcpy(out, raw, static_cast<std::size_t>(present));
        return made;
    }
    FortranOrder fortran(header.shape);
    for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t place = header.fortran_order ? fortran.place() : i;
        unsigned char number[8];
        const auto size = static_cast<std::size_t>(element->size);
        std::memcpy(number, raw + static_cast<std::size_t>(i) * size, size);
        if (element->swapped) std::reverse(number, number + size);
        if (converts) {
            const std::optional<Number> value = number_in_file(*element, number);
            if (!value || !is_one_of(*type, *value))
                return not_of_type(name, position_text(place, header.shape), value, *type);
            encode(*type, *value, number);
        }
        if (may_be_beyond) {
            const Number value = decode_number(*type, number);
            if (is_beyond(*wanted, value.as_real()))
                return beyond_type(name, position_text(place, header.shape), value, *wanted);
        }
        std::memcpy(out + static_cast<std::size_t>(place) * width, number, width);
        if (header.fortran_order) fortran.next();
    }
    return made;
}

Result<Tensor> read_npy(const std::string& path, std::optional<DType> wanted, const std::string& name) {
    if (::access(path.c_str(), F_OK) != 0) return npy_error("no-such-file", path, "there is no such file");
    struct stat info{};
    // A pipe ends where its writer says; a device or a terminal is no array.
    if (::stat(path.c_str(), &info) == 0 && (S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode)))
        return npy_error("unreadable-file", path, "it is a device", "a .npy file");
    const std::optional<std::string> content = read_file(path, std::numeric_limits<std::size_t>::max(), magic);
    if (!content) {
        const std::string why = why_unreadable(path);
        return npy_error("unreadable-file", path, why.empty() ? "it cannot be read" : why,
                         "a .npy file that you may read");
    }
    return parse_npy(std::as_bytes(std::span(content->data(), content->size())), name.empty() ? path : name, wanted);
}

std::string npy_bytes(const Tensor& tensor) {
    const char order = std::endian::native == std::endian::little ? '<' : '>';
    const DTypeFacts& row = facts(tensor.type());
    const std::string descr = fmt::format("{}{}{}", row.bytes > 1 ? order : '|', row.npy_kind, row.bytes);
    std::string shape;
    for (const std::int64_t size : tensor.sizes()) shape += fmt::format("{}, ", size);
    if (tensor.sizes().size() > 1) shape.resize(shape.size() - 2);
    if (tensor.sizes().size() == 1) shape.resize(shape.size() - 1);
    std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, shape);
    // The numbers begin at a multiple of 64 bytes, and the header ends with a newline.
    header.append(63 - (magic.size() + 4 + header.size()) % 64, ' ');
    header += '\n';
    std::string file(magic);
    file += {'\x01', '\x00', static_cast<char>(header.size() & 255), static_cast<char>(header.size() >> 8)};
    file += header;
    file.append(static_cast<const char*>(tensor.data()), static_cast<std::size_t>(tensor.size_bytes()));
    return file;
}

Status write_npy(const std::string& path, const Tensor& tensor) { return replace_file(path, npy_bytes(tensor)); }

}  // namespace napkin
