"""Tests of scripts/rerun.py: when it accepts a log as a run of all tests."""

import importlib.util
import pathlib

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "rerun.py"
BEGUN = "◇ Test run started.\n"
ENDED = "✘ Test run with 3 tests in 1 suite failed after 0.1 seconds with 1 issue.\n"


@pytest.mark.parametrize(
    "logs, processes, whole",
    [
        ({"swift-endpoints": BEGUN + ENDED, "swift-other": BEGUN + ENDED}, 2, True),
        # One process never started, crashed, or left no log: the log of the other is incomplete.
        ({"swift-endpoints": BEGUN + ENDED, "swift-other": "error: no such file\n"}, 2, False),
        ({"swift-endpoints": BEGUN + ENDED, "swift-other": BEGUN}, 2, False),
        ({"swift-endpoints": BEGUN + ENDED + BEGUN + ENDED, "swift-other": ""}, 2, False),
        ({"swift-endpoints": BEGUN + ENDED}, 2, False),
        ({}, 2, False),
        ({}, 1, True),
    ],
)
def test_whole_runs(tmp_path, logs, processes, whole):
    spec = importlib.util.spec_from_file_location("rerun", SCRIPT)
    rerun = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(rerun)
    rerun.RESULTS = tmp_path
    (tmp_path / "swift.log").write_text("".join(logs.values()) or BEGUN + ENDED)
    for name, text in logs.items():
        (tmp_path / f"{name}.log").write_text(text)
    assert rerun.ran(processes) is whole
