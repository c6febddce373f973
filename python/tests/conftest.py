"""What the tests of the package share. They run on an installed napkin, and never on the sources."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "reference"))  # the second evaluator of the language


@pytest.fixture
def root():
    return ROOT


@pytest.fixture
def attention():
    import napkin

    return napkin.load(ROOT / "examples" / "attention.nk")
