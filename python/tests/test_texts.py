"""Texts and what there is to look at: errors with their places, answers of the commands, the command line."""

import json
import subprocess
import sys

import numpy as np
import pytest

import napkin

H200 = {"machine": "h200"}


def test_errors_have_places_and_carets():
    with pytest.raises(napkin.Error) as raised:
        napkin.compile("f(A[i]) -> B[i]\n    B[i] = C[i] + D[i]\n")
    error = raised.value
    assert (error.code, error.line, error.column) == ("unknown-array", 2, 12)
    assert [one.column for one in error.errors] == [12, 19]
    assert "B[i] = C[i] + D[i]\n" in str(error) and "^" in str(error)
    assert not isinstance(error, napkin.MachineError)


def test_what_a_program_takes_and_gives(attention):
    assert attention.name == "attention"
    assert [str(array) for array in attention.inputs] == ["Q[q, k]", "K[x, k]", "V[x, d]"]
    assert attention.outputs == (napkin.Array("O", None, ("q", "d"), ("4096", "128")),)
    assert repr(attention) == "<napkin program attention(Q[q, k], K[x, k], V[x, d]) -> O[q, d]>"
    typed = attention.typed("bf16", V="f16")
    assert [array.type for array in typed.inputs] == ["bf16", "bf16", "f16"] and typed.outputs[0].type == "f32"
    with pytest.raises(ValueError):
        typed.typed(Q="f16")
    with pytest.raises(KeyError):
        attention.typed("f17")


def test_looking(attention):
    assert "O_acc" in attention.derive().text
    assert "side" in attention.explain().text or "rule" in attention.explain().text
    plan = attention.typed("bf16").plan(**H200, q=8192)
    assert "group" in plan.text and plan.data["schema"].startswith("napkin.plan/")
    assert "H100" not in repr(plan) and repr(plan) == plan.text
    assert plan._repr_html_().startswith("<pre")
    assert "H" in attention.cost("h200").text
    assert "__global__" in attention.source("h200")
    assert "<svg" in attention.draw()._repr_svg_() and attention.draw()._repr_html_().startswith("<svg")
    assert "characters" in repr(attention.draw())
    page = attention._repr_html_()
    assert "<svg" in page and "softmax(x)" in page and "<summary>plan</summary>" in page
    report = attention.report("h200")
    assert report.text.startswith("<!") and "srcdoc" in report._repr_html_()


def test_a_program_has_the_machine_and_sizes_that_it_is_made_with(root):
    text = (root / "examples/attention.nk").read_text()
    program = napkin.compile(text, machine="h200", sizes={"q": 64})
    assert program.plan().text == napkin.compile(text).plan("h200", q=64).text
    with pytest.raises(napkin.Error):
        program.plan("h201")
    with pytest.raises(napkin.Error):
        program.plan(z=3)


def test_benchmark():
    program = napkin.compile("f(A[i]) -> B[i]\n    B[i] = A[i] + 1\n")
    table = program.benchmark(np.zeros(64, np.float32), against={"numpy": lambda a: a + 1}, seconds=0.05)
    assert [row.name for row in table.rows] == ["f", "numpy"]
    assert all(0 < row.least <= row.seconds <= row.most for row in table.rows)
    assert "numpy" in repr(table) and "<table>" in table._repr_html_()


def test_saving(attention, tmp_path):
    attention.draw().save(tmp_path / "a.svg")
    assert "<svg" in (tmp_path / "a.svg").read_text()


def test_the_command_line(root):
    def command(*words):
        return subprocess.run([sys.executable, "-m", "napkin", *words], capture_output=True, text=True, cwd=root)

    assert command("check", "examples/attention.nk").stdout.endswith("well formed\n")
    plan = command("plan", "examples/attention.nk", "--machine", "h200", "--json")
    assert json.loads(plan.stdout)["schema"].startswith("napkin.plan/")
    assert command("plan", "no/such.nk").returncode == 1
    assert command("plam").returncode == 2
    assert command("--version").stdout == f"napkin {napkin.__version__}\n"


def test_a_benchmark_has_the_predicted_time():
    program = napkin.compile("f(A[i], B[i]) -> C[i]\n    C[i] = A[i] + B[i]\n")
    a = np.zeros(4096, np.float16)
    table = program.benchmark(a, a, seconds=0.02)
    plan = program.typed("f16").plan(i=4096).data
    assert table.predicted == sum(kernel["predicted"]["seconds"] for kernel in plan["kernels"]) > 0
    assert "predicted" in repr(table)
