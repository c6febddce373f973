"""What the package is: quick to import, alone, whole, typed."""

import pathlib
import statistics
import subprocess
import sys

import pytest

import napkin

FOLDER = pathlib.Path(napkin.__file__).parent


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_import_is_quick_and_brings_nothing():
    code = "import sys, time; t = time.perf_counter(); import napkin; print(time.perf_counter() - t, *sys.modules)"
    runs = [python(code).split() for _ in range(5)]
    assert statistics.median(float(run[0]) for run in runs) < 0.06
    assert not {"numpy", "torch", "ml_dtypes", "jax", "cupy"} & set(runs[0])


def test_one_file_serves_all_versions():
    files = [path.name for path in FOLDER.glob("_native*.so")]
    assert files == ["_native.abi3.so"]
    assert sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()) < 25e6


def test_types_are_whole(root):
    pytest.importorskip("mypy")
    assert (FOLDER / "py.typed").exists() and (FOLDER / "_native.pyi").exists()
    words = ["-m", "mypy", "--config-file", str(root / "pyproject.toml"), "-p", "napkin"]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_all_that_is_public_is_documented():
    for name in napkin.__all__:
        thing = getattr(napkin, name)
        assert isinstance(thing, str) or thing.__doc__, name
        for method, value in vars(thing).items() if isinstance(thing, type) else ():
            if callable(value) and not method.startswith("_"):
                assert value.__doc__, f"{name}.{method}"
