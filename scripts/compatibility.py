#!/usr/bin/env python3
"""Holds docs/compatibility.md against the last test run.

Every row of the table says what a behaviour's state is and which tests show it. A state of "works" or
"partly" needs at least one test, and every named test must exist and have passed in the last run, whose
results are the JUnit files in .build/results. Tests are named `Suite/function` (Swift: the suite's type and the
function without its arguments) or `file.py::function` (the genuine clients). A Swift test that skipped itself is
a fault too, unless it says that the shared vectors are not here (HEARTH_CONFORMANCE is not set): then it is
listed. A line of a table, or the name of a test, that cannot be read is a fault, not passed over.
"""

import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs" / "compatibility.md"
RESULTS = ROOT / ".build" / "results"
TEST = r"\w+/\w+|\w+\.py::\w+"
# What looks like the name of a test, well formed or not.
NAMED = r"`(\w+(?:/|\.py::)[^`\s]*)`"
STATES = {"works", "partly", "not yet", "no"}


WITHOUT_VECTORS = "skipped without vectors"


def ending(mark):
    """How a test ended that has such a mark in its results."""
    without = mark.tag == "skipped" and "HEARTH_CONFORMANCE is not set" in (mark.text or "")
    return WITHOUT_VECTORS if without else mark.tag


def results(folder):
    """The outcome of each test of the last run, by the name the table uses."""
    outcome = {}
    for file in sorted(folder.glob("*.xml")):
        for case in ElementTree.parse(file).getroot().iter("testcase"):
            owner, name = case.get("classname", ""), case.get("name", "")
            bad = next((ending(k) for k in case if k.tag in ("failure", "error", "skipped")), "passed")
            if file.name.startswith("clients"):
                key = f"{owner.split('.')[-1]}.py::{name.split('[')[0]}"
            else:
                key = f"{owner.split('.')[-1]}/{name.split('(')[0]}"
            if outcome.get(key) in (None, "passed"):
                outcome[key] = bad
    return outcome


def rows(text):
    """The table's rows: line number, id, state and what the last column names as tests; None for what is no row."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.lstrip().startswith("|") or re.fullmatch(r"\s*\|[\s|:-]+", line):
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())]
        if cells[1] == "id":
            continue
        if len(cells) == 7 and re.fullmatch(r"[A-Z]+[0-9]*\.?[0-9]+", cells[1]):
            yield number, cells[1], cells[4], re.findall(NAMED, cells[5])
        else:
            yield number, None, None, []


def check(text, outcome):
    """The faults of a table, how many rows have each state, and the rows that rest on what was skipped."""
    faults, counts, seen, unseen = [], {}, set(), set()
    for number, identifier, state, tests in rows(text):
        where = f"docs/compatibility.md:{number}: {identifier or 'a line of a table'}"
        if identifier is None:
            faults.append(f"{where}: is no row of five cells that begins with an id")
            continue
        counts[state] = counts.get(state, 0) + 1
        if identifier in seen:
            faults.append(f"{where}: stands twice")
        seen.add(identifier)
        if state not in STATES:
            faults.append(f"{where}: state '{state}' is none of {', '.join(sorted(STATES))}")
        if state in ("works", "partly") and not tests:
            faults.append(f"{where}: '{state}' without a test")
        for test in tests:
            ran = outcome.get(test)
            if not re.fullmatch(TEST, test):
                faults.append(f"{where}: `{test}` is not how a test is named")
            elif ran is None:
                faults.append(f"{where}: `{test}` did not run")
            elif ran == WITHOUT_VECTORS:
                unseen.add(identifier)
            elif ran != "passed":
                faults.append(f"{where}: `{test}` ended as {ran}")
    if not seen and not faults:
        faults.append("docs/compatibility.md: no rows")
    return faults, counts, unseen


def main():
    outcome = results(RESULTS)
    if not outcome:
        sys.exit(f"compatibility: no results in {RESULTS}; run make test first")
    faults, counts, unseen = check(TABLE.read_text(encoding="utf-8"), outcome)
    for fault in faults:
        print(fault)
    summary = ", ".join(f"{counts[state]} {state}" for state in sorted(counts))
    if unseen:
        print(f"compatibility: {len(unseen)} rows rest on a test that skipped itself here, as it says: {', '.join(sorted(unseen))}")
    print(f"compatibility: {sum(counts.values())} behaviours ({summary}), {len(faults)} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
