#!/usr/bin/env python3
"""Host microseconds of a call, with the installed package: a napkin program beside torch's own operators.

    bench/python_calls.py [--device cuda]

Rows: torch.mul, a program, the program with out=, the program as an operator in eager mode and through torch's dispatcher; on a GPU also
compiled FlexAttention and a Triton kernel, where they are there. On a processor the time has the computation of 16 values in it; on a GPU
the calls are launches, and nobody waits for them.
"""
import argparse
import time

import torch

import napkin
import napkin.torch

TEXT = "f(A[i], B[i]) -> C[i]\n    C[i] = A[i] * B[i]\n"


def microseconds(call, device, calls=2000, rounds=9):
    """The least of the rounds' means: what is not the call's own only adds to it."""
    call()
    best = float("inf")
    for _ in range(rounds):
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        best = min(best, (time.perf_counter() - start) / calls)
    return best * 1e6


def triton_call(a, b):
    """A Triton kernel of the same product; None where Triton is not there."""
    try:
        import triton
        import triton.language as tl
    except ImportError:
        return None

    @triton.jit
    def kernel(a, b, c, n, block: tl.constexpr):
        at = tl.program_id(0) * block + tl.arange(0, block)
        tl.store(c + at, tl.load(a + at, at < n) * tl.load(b + at, at < n), at < n)

    c = torch.empty_like(a)
    return lambda: kernel[(1,)](a, b, c, a.numel(), block=16)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    device = arguments.parse_args().device
    a, b = torch.ones(16, device=device), torch.ones(16, device=device)
    out = torch.empty_like(a)
    program = napkin.compile(TEXT)
    operator = napkin.torch.operator(program)
    rows = {
        "torch.mul": lambda: torch.mul(a, b),
        "torch.mul, out=": lambda: torch.mul(a, b, out=out),
        "program": lambda: program(a, b),
        "program, out=": lambda: program(a, b, out=out),
        "operator": lambda: operator(a, b),
        "operator through the dispatcher": lambda: operator.op(a, b),
    }
    if device == "cuda":
        from torch.nn.attention.flex_attention import flex_attention

        flex = torch.compile(flex_attention)
        q = torch.randn(1, 1, 128, 64, device=device, dtype=torch.bfloat16)
        rows["napkin.torch.flex_attention"] = lambda: napkin.torch.flex_attention(q, q, q)
        rows["compiled FlexAttention"] = lambda: flex(q, q, q)
        rows["Triton kernel"] = triton_call(a, b)
    for name, call in rows.items():
        if call is not None:
            print(f"{name:32} {microseconds(call, device):8.2f} µs")


if __name__ == "__main__":
    main()
