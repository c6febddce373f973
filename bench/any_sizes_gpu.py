#!/usr/bin/env python3
"""Attention at lengths that nobody said before, by napkin_call, beside torch's scaled_dot_product_attention in the same process.

    python3 bench/any_sizes_gpu.py [--output bench/results/NAME.json]

A model's shapes: 32 query heads over 8 key heads of 128 values in bf16, as views of arrays with the heads behind the tokens. Twenty-four tokens are
generated behind a prompt of 1,000, and eight prompts have lengths of their own. For each length: the first call, which may plan and compile, and the
median of later ones. How many kernels were compiled stands beside it. Values are compared with torch's.
"""
import ctypes as c
import time

import gpu
import in_process
import records
import torch

HEADS, GROUPS, WIDTH = 8, 4, 128
MASKED = "where(x <= q, {}, -inf)"
TEXT = """attention(Q[h, g, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, g, q, d]: bf16
    S[h, g, q, x] = sum(k) Q[h, g, q, k] * K[h, x, k]
    P[h, g, q, x] = softmax(x) {}
    O[h, g, q, d] = sum(x) P[h, g, q, x] * V[h, x, d]
"""
SCORE = "S[h, g, q, x] * k^-0.5"
# DLPack's codes and bits
TYPES = {torch.bfloat16: (4, 16), torch.int32: (0, 32), torch.float32: (2, 32)}
PROMPTS = (57, 130, 257, 511, 640, 1000, 1531, 2013)


class Device(c.Structure):
    _fields_ = [("device_type", c.c_int32), ("device_id", c.c_int32)]


class Type(c.Structure):
    _fields_ = [("code", c.c_uint8), ("bits", c.c_uint8), ("lanes", c.c_uint16)]


class Array(c.Structure):
    _fields_ = [("data", c.c_void_p), ("device", Device), ("ndim", c.c_int32), ("dtype", Type), ("shape", c.POINTER(c.c_int64)),
                ("strides", c.POINTER(c.c_int64)), ("byte_offset", c.c_uint64)]


def array_of(tensor):
    numbers = lambda values: (c.c_int64 * len(values))(*values)
    of_type = Type(*TYPES[tensor.dtype], 1)
    return Array(tensor.data_ptr() if tensor.numel() else None, Device(2, tensor.device.index or 0), tensor.dim(), of_type, numbers(tensor.shape), numbers(tensor.stride()), 0)


class Program:
    """A text called by the shapes of tensors, on torch's stream."""

    def __init__(self, napkin, text):
        self.napkin, self.handle = napkin, c.c_void_p()
        data = text.encode()
        napkin.call("napkin_parse", data, c.c_size_t(len(data)), None, c.byref(self.handle))
        for name in ("napkin_program_kernels", "napkin_program_codes"):
            getattr(napkin.of, name).restype = c.c_size_t

    def on(self, *tensors):
        """The call on these tensors. What Python makes of them is made once, so that a measurement has none of it."""
        arrays = [array_of(t) for t in tensors]
        pointers = (c.POINTER(Array) * len(arrays))(*[c.pointer(a) for a in arrays])
        count, stream = c.c_size_t(len(arrays)), c.c_void_p(torch.cuda.current_stream().cuda_stream)
        return lambda: self.napkin.call("napkin_call", self.handle, pointers, count, stream)

    def __call__(self, *tensors):
        self.on(*tensors)()

    def codes(self):
        return self.napkin.of.napkin_program_codes(self.handle)


def first_call_of(run):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    run()
    torch.cuda.synchronize()
    return time.perf_counter() - begin


def measured(program, queries, keys, is_causal):
    """One length: napkin and torch on the same views."""
    make = lambda *shape: torch.randn(*shape, device="cuda", dtype=torch.bfloat16)
    q, k, v = make(queries, HEADS * GROUPS, WIDTH), make(keys, HEADS, WIDTH), make(keys, HEADS, WIDTH)
    out = torch.empty_like(q)
    by_group = lambda t: t.view(queries, HEADS, GROUPS, WIDTH).permute(1, 2, 0, 3)
    ours = program.on(by_group(q), k.transpose(0, 1), v.transpose(0, 1), by_group(out))
    of_torch = [t.transpose(0, 1).unsqueeze(0) for t in (q, k, v)]
    theirs = lambda: torch.nn.functional.scaled_dot_product_attention(*of_torch, is_causal=is_causal, enable_gqa=True)
    before = program.codes()
    first = first_call_of(ours)
    torch_first = first_call_of(theirs)
    apart = (out - theirs()[0].transpose(0, 1)).abs().max().item()
    row = {"queries": queries, "keys": keys, "compiled": program.codes() - before, "first_call_s": first, "torch_first_call_s": torch_first,
           "seconds": gpu.seconds_of(ours, 0.01), "torch_seconds": gpu.seconds_of(theirs, 0.01), "largest_difference": apart}
    print("{queries:6} × {keys:6}  compiled {compiled}  first call {0:8.2f} ms ({1:6.2f})  then {2:7.1f} µs ({3:7.1f})  apart {largest_difference:.4f}".format(
        first * 1e3, torch_first * 1e3, row["seconds"] * 1e6, row["torch_seconds"] * 1e6, **row), flush=True)
    return row


def main():
    options = gpu.parser(__doc__).parse_args()
    napkin = in_process.Napkin()
    torch.manual_seed(1)
    torch.nn.functional.scaled_dot_product_attention(*(torch.ones(1, 1, 8, 64, device="cuda", dtype=torch.bfloat16) for _ in range(3)))
    generating, prefilling = Program(napkin, TEXT.format(SCORE)), Program(napkin, TEXT.format(MASKED.format(SCORE)))
    print("queries ×   keys; torch's in brackets")
    rows = {"prompts": [measured(prefilling, n, n, True) for n in PROMPTS],
            "generation": [measured(generating, 1, 1000 + n, False) for n in range(1, 25)]}
    for name, of in rows.items():
        later = of[1:]
        print(f"{name}: {sum(row['compiled'] for row in of)} compilations; first calls behind the first length take "
              f"{1e3 * records.median([row['first_call_s'] for row in later]):.2f} ms in the median, torch's "
              f"{1e3 * records.median([row['torch_first_call_s'] for row in later]):.2f}")
    gpu.write(options, "napkin.any-sizes/1", torch.cuda.get_device_name(0), **rows)


if __name__ == "__main__":
    main()
