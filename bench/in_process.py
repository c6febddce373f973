"""Napkin in the process of a benchmark, by its C interface: kernels that run on torch's tensors and stream, so that they are raced beside torch's own."""
import ctypes as c
import os

import records

LIBRARY = os.environ.get("NAPKIN_LIBRARY", records.ROOT / "build/release/bench/libnapkin.so")


class Size(c.Structure):
    _fields_ = [("axis", c.c_char_p), ("value", c.c_int64)]


class Napkin:
    def __init__(self):
        self.of = c.CDLL(str(LIBRARY))
        for name in ("napkin_error_text", "napkin_plan_text", "napkin_plan_source"):
            getattr(self.of, name).restype = c.c_char_p
        self.of.napkin_plan_seconds.restype = c.c_double
        self.of.napkin_plan_seconds_at.restype = c.c_double
        self.of.napkin_plan_busy_seconds.restype = c.c_double
        self.of.napkin_kernel_compile_seconds.restype = c.c_double

    def call(self, name, *arguments):
        """Raises what napkin says is wrong."""
        error = c.c_void_p()
        if getattr(self.of, name)(*arguments, c.byref(error)) != 0:
            raise RuntimeError(self.of.napkin_error_text(error).decode())

    def kernel(self, text, sizes, machine="gpu"):
        return Kernel(self, text, sizes, machine)


class Kernel:
    """A diagram compiled for the GPU at hand, or planned for a machine by name. Calls take tensors in the diagram's order, inputs and outputs, and launch on torch's stream."""

    def __init__(self, napkin, text, sizes, machine="gpu"):
        self.napkin, self.program, self.plan, self.handle = napkin, c.c_void_p(), c.c_void_p(), c.c_void_p()
        data = text.encode()
        napkin.call("napkin_parse", data, c.c_size_t(len(data)), None, c.byref(self.program))
        of_axes = (Size * len(sizes))(*[Size(axis.encode(), value) for axis, value in sizes.items()])
        napkin.call("napkin_plan_for", self.program, machine.encode(), of_axes, c.c_size_t(len(sizes)), c.byref(self.plan))
        self.predicted_seconds = napkin.of.napkin_plan_seconds(self.plan)
        self.busy_seconds = napkin.of.napkin_plan_busy_seconds(self.plan)
        self.plan_text = napkin.of.napkin_plan_text(self.plan).decode()

    def predicted_seconds_at(self, clock_hz):
        """The same with the machine's cores at this clock, in Hz, and memory as it is."""
        return self.napkin.of.napkin_plan_seconds_at(self.plan, c.c_double(clock_hz))

    def compile(self):
        if not self.handle:
            self.napkin.call("napkin_compile", self.plan, c.c_uint(1), c.byref(self.handle))
        return self

    def __call__(self, *tensors):
        import torch

        addresses = (c.c_void_p * len(tensors))(*[t.data_ptr() for t in tensors])
        stream = c.c_void_p(torch.cuda.current_stream().cuda_stream)
        self.napkin.call("napkin_run_at", self.handle, addresses, c.c_size_t(len(tensors)), None, stream)

    def free(self):
        """The GPU's memory and code, once all launches have run."""
        self.napkin.of.napkin_kernel_free(self.handle)
        self.handle = c.c_void_p()
