#!/usr/bin/env python3
"""Programs that memory bounds, beside torch.compile in the same process: normalisations, sums, transposes, rotations, losses.

    python3 bench/rows_gpu.py [--output bench/results/NAME.json] [--only NAME,...]

Each is planned for the GPU at hand. The bytes that must move, each array once, over the time stand beside it, and what a large copy reaches in the same
process."""
import gpu
import in_process
import products_gpu
import torch
from products_gpu import BF16, normal

F = torch.nn.functional
F32 = torch.float32


def rows(text, of_torch, count, columns, dtype, more=(), out_shape=None):
    """A program of X[r, c] and vectors of c; its peer takes the same tensors."""
    name = {BF16: "bf16", F32: "f32"}[dtype]
    x = normal(count, columns, dtype=dtype)
    inputs = [x, *(normal(*(count, columns) if shape == "rc" else (columns,), dtype=dtype) for shape in more)]
    out = torch.empty(*(out_shape or (count, columns)), device="cuda", dtype=dtype)
    compiled = torch.compile(of_torch)
    return text.replace("TYPE", name), {"r": count, "c": columns}, inputs, out, lambda: compiled(*inputs)


NORM = "f(X[r, c]: TYPE, G[c]: TYPE, B[c]: TYPE) -> Y[r, c]: TYPE\n    Y[r, c] = layernorm(c)(X[r, c], G[c], B[c])\n"
RESIDUAL = "f(X[r, c]: TYPE, R[r, c]: TYPE, G[c]: TYPE) -> Y[r, c]: TYPE\n    S[r, c] = X[r, c] + R[r, c]\n    Y[r, c] = rmsnorm(c)(S[r, c], G[c])\n"
GELU = "f(X[r, c]: TYPE, B[c]: TYPE) -> Y[r, c]: TYPE\n    Y[r, c] = gelu(X[r, c] + B[c])\n"
L2 = "f(X[r, c]: TYPE) -> Y[r, c]: TYPE\n    N[r] = sum(c) X[r, c] * X[r, c]\n    Y[r, c] = X[r, c] * rsqrt(N[r] + 1e-12)\n"
SOFTMAX = "f(X[r, c]: TYPE) -> Y[r, c]: TYPE\n    Y[r, c] = softmax(c) X[r, c]\n"
SUM = "f(X[r, c]: TYPE) -> Y[r]: TYPE\n    Y[r] = sum(c) X[r, c]\n"
COLUMNS = "f(X[r, c]: TYPE) -> Y[c]: TYPE\n    Y[c] = sum(r) X[r, c]\n"
TRANSPOSE = "f(X[r, c]: TYPE) -> Y[c, r]: TYPE\n    Y[c, r] = X[r, c]\n"
KINDS = {
    "layer norm": (NORM, lambda x, g, b: F.layer_norm(x, x.shape[-1:], g, b), ("c", "c"), None),
    "RMSNorm + residual": (RESIDUAL, lambda x, r, g: F.rms_norm(x + r, x.shape[-1:], g, 1e-6), ("rc", "c"), None),
    "bias + GELU": (GELU, lambda x, b: F.gelu(x + b), ("c",), None),
    "L2 norm": (L2, lambda x: x * torch.rsqrt((x.float() * x.float()).sum(1, keepdim=True) + 1e-12).to(x.dtype), (), None),
    "softmax": (SOFTMAX, lambda x: torch.softmax(x, 1), (), None),
    "row sum": (SUM, lambda x: x.sum(1), (), "r"),
    "column sum": (COLUMNS, lambda x: x.sum(0), (), "c"),
    "transpose": (TRANSPOSE, lambda x: x.T.contiguous(), (), "cr"),
}


def of_kind(name, count, columns, dtype):
    text, of_torch, more, shape = KINDS[name]
    sizes = {"r": count, "c": columns}
    return lambda: rows(text, of_torch, count, columns, dtype, more, [sizes[a] for a in shape] if shape else None)


def rotary(heads=32, tokens=8192, width=128):
    text = ("f(X[t, h, c]: bf16, A[t, c]: bf16, B[t, c]: bf16) -> Y[t, h, c]: bf16\n"
            "    Y[t, h, c] = X[t, h, c] * A[t, c] + where(c < size(c) // 2, -1, 1) * X[t, h, (c + size(c) // 2) % size(c)] * B[t, c]\n")
    x, a, b = normal(tokens, heads, width), normal(tokens, width), normal(tokens, width)

    def peer(x, a, b):
        low, high = x.chunk(2, -1)
        return x * a[:, None] + torch.cat((-high, low), -1) * b[:, None]
    compiled = torch.compile(peer)
    return text, {"t": tokens, "h": heads, "c": width}, [x, a, b], torch.empty_like(x), lambda: compiled(x, a, b)


def cross_entropy(count=4096, columns=128256):
    text = "f(X[r, c]: bf16, y[r]: i32) -> L[r]: f32\n    Z[r] = logsumexp(c) X[r, c]\n    L[r] = Z[r] - X[r, y[r]]\n"
    x, y = normal(count, columns), products_gpu.whole(columns, count)
    wide = y.long()
    compiled = torch.compile(lambda x, y: F.cross_entropy(x.float(), y, reduction="none"))
    return text, {"r": count, "c": columns}, [x, y], torch.empty(count, device="cuda"), lambda: compiled(x, wide)


def linear_cross_entropy(tokens=8192, width=4096, words=32000):
    text = ("f(X[t, c]: bf16, W[v, c]: bf16, y[t]: i32) -> L[t]: f32\n    S[t, v] = sum(c) X[t, c] * W[v, c]\n    Z[t] = logsumexp(v) S[t, v]\n"
            "    L[t] = Z[t] - (sum(c) X[t, c] * W[y[t], c])\n")
    x, w, y = normal(tokens, width), normal(words, width) / width ** 0.5, products_gpu.whole(words, tokens)
    wide = y.long()
    compiled = torch.compile(lambda x, w, y: F.cross_entropy((x @ w.T).float(), y, reduction="none"))
    return text, {"t": tokens, "c": width, "v": words}, [x, w, y], torch.empty(tokens, device="cuda"), lambda: compiled(x, w, wide)


PROGRAMS = {
    **{f"{name}, {count} × {columns} {kind}": of_kind(name, count, columns, dtype)
       for count, columns, kind, dtype in ((32768, 4096, "bf16", BF16), (8192, 8192, "f32", F32), (2048, 32768, "f32", F32)) for name in KINDS},
    "rotary": rotary,
    "cross-entropy": cross_entropy,
    "linear cross-entropy": linear_cross_entropy,
}


def main():
    parser = gpu.parser(__doc__)
    parser.add_argument("--only", default="", help="names of programs, or parts of them, separated by commas")
    options = parser.parse_args()
    napkin = in_process.Napkin()
    torch.manual_seed(1)
    large = torch.randn(1 << 28, device="cuda")
    copy = torch.empty_like(large)
    rate = 2 * large.numel() * 4 / gpu.seconds_of(lambda: copy.copy_(large), options.seconds)
    del large, copy
    print(f"a copy: {rate / 1e12:.2f} TB/s")
    found = []
    for name, make in gpu.each_selected(PROGRAMS, options.only):
        try:
            text, sizes, inputs, out, peer = make()
            row = products_gpu.measured_program(napkin, name, text, sizes, inputs, out, peer, "torch.compile", options.seconds)
            row["bytes_per_s"] = sum(t.numel() * t.element_size() for t in (*inputs, out)) / row["seconds"]
            found.append(row)
            print(f"{'':28} {row['bytes_per_s'] / 1e12:9.2f} TB/s, {row['bytes_per_s'] / rate:.2f} of the copy", flush=True)
        except Exception as error:  # one program that fails must not hide the others
            print(name, "failed:", str(error)[:600], flush=True)
    gpu.write(options, "napkin.rows/1", torch.cuda.get_device_name(0), copy_bytes_per_s=rate, programs=found)


if __name__ == "__main__":
    main()
