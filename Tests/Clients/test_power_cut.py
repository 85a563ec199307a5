"""Tests the complete server through a few power cuts; `make crash` simulates many (power_cuts.py)."""

import re
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
        return run, *run.go(count)
    finally:
        run.close()


def test_acknowledged_operations_survive_power_cuts():
    _, text, passed = cut(3)
    assert passed, text


def test_a_disk_that_ignores_syncs_is_detected():
    run, text, passed = cut(1, syncs=False)
    found = [re.search(r" is at step (\d+); acknowledged (\d+),", problem) for problem in run.problems]
    losses = [match for match in found if match and int(match[1]) < int(match[2])]
    assert losses and not passed and run.cuts == 1, text
