"""Tests of the check of docs/compatibility.md: it detects every claim of the table that no test supports."""

import importlib.util
import pathlib

import pytest

PATH = pathlib.Path(__file__).resolve().parent.parent.parent / "scripts" / "compatibility.py"
SPEC = importlib.util.spec_from_file_location("compatibility", PATH)
compatibility = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(compatibility)

HEAD = "| id | side | behaviour | state | tests and notes |\n|---|---|---|---|---|\n"
RESULTS = """<testsuites><testsuite name="t">
<testcase classname="Module.Good" name="one()"/>
<testcase classname="Module.Good" name="many(_:)"/>
<testcase classname="Module.Good" name="many(_:)"><failure message="no"/></testcase>
<testcase classname="Module.Good" name="vectors()"><skipped>HEARTH_CONFORMANCE is not set</skipped></testcase>
<testcase classname="Module.Good" name="broken()"><skipped>some day</skipped></testcase>
</testsuite></testsuites>"""
CLIENTS = """<testsuites><testsuite name="t">
<testcase classname="Tests.Clients.test_a" name="test_it[1]"/>
<testcase classname="Tests.Clients.test_a" name="test_no"><skipped/></testcase>
</testsuite></testsuites>"""


@pytest.fixture
def outcome(tmp_path):
    (tmp_path / "swift-testing.xml").write_text(RESULTS)
    (tmp_path / "clients.xml").write_text(CLIENTS)
    return compatibility.results(tmp_path)


@pytest.mark.parametrize(
    "row, fault",
    [
        ("| A.1 | S | x | works | `Good/one`, `test_a.py::test_it`; as `GET /` says |", None),
        (r"| A.1 | S | a \| b | not yet |  |", None),
        ("| A.1 | S | x | works | `Good/none` |", "did not run"),
        ("| A.1 | S | x | works | `Good/many` |", "ended as failure"),
        ("| A.1 | S | x | works | `test_a.py::test_no` |", "ended as skipped"),
        ("| A.1 | S | x | works | nothing |", "without a test"),
        ("| A.1 | S | x | partly | `Good/one()` |", "is not a valid test name"),
        ("| A.1 | S | x | works | `Good/one`, `test_a.py::test_it[1]` |", "is not a valid test name"),
        ("| A.1 | S | x | done | `Good/one` |", "is not one of"),
        ("| A.1 | S | a | b | works | `Good/none` |", "is not a row"),
        ("| A-1 | S | x | works | `Good/none` |", "is not a row"),
        ("| A.1 | S | x | works | `Good/one` |\n| A.1 | S | x | works | `Good/one` |", "occurs twice"),
        ("", "no rows"),
    ],
)
def test_a_claim_without_a_passed_test_is_a_fault(outcome, row, fault):
    faults, _, _ = compatibility.check(HEAD + row, outcome)
    assert [fault in found for found in faults] == ([True] if fault else [])


def test_a_skipped_test_is_a_fault_unless_its_vectors_are_missing(outcome):
    faults, _, _ = compatibility.check(HEAD + "| A.1 | S | x | works | `Good/broken` |", outcome)
    assert len(faults) == 1 and "ended as skipped" in faults[0]
    table = HEAD + "| A.1 | S | x | works | `Good/vectors` |"
    assert compatibility.check(table, outcome) == ([], {"works": 1}, {"A.1"})
