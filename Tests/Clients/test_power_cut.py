"""Tests the complete server through a few power cuts; `make crash` simulates many (power_cuts.py)."""

import shutil
import sys

import pytest

from power_cuts import Run


pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not shutil.which("clang"), reason="the simulated disk needs Linux and clang"
)


def cut(count, **options):
    run = Run(seed=1, **options)
    try:
        return run.go(count)
    finally:
        run.close()


def test_acknowledged_operations_survive_power_cuts():
    text, passed = cut(3)
    assert passed, text


def test_a_disk_that_ignores_syncs_is_noticed():
    text, passed = cut(1, syncs=False)
    assert not passed and "acknowledged" in text, text
