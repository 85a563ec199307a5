#!/usr/bin/env python3
"""Holds docs/compatibility.md against the last test run.

Every row of the table says what a behaviour's state is and which tests show it. A state of "works" or
"partly" needs at least one test, and every named test must exist and have passed in the last run, whose
results are the JUnit files in .build/results. A test that skipped itself, for want of the shared vectors, is
listed but is no fault. Tests are named `Suite/function` (Swift: the suite's type and the function without its
arguments) or `file.py::function` (the genuine clients).
"""

import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs" / "compatibility.md"
RESULTS = ROOT / ".build" / "results"
TEST = r"`(\w+/\w+|\w+\.py::\w+)`"
STATES = {"works", "partly", "not yet", "no"}


def results():
    """The outcome of each test of the last run, by the name the table uses."""
    outcome = {}
    for file in sorted(RESULTS.glob("*.xml")):
        for case in ElementTree.parse(file).getroot().iter("testcase"):
            owner, name = case.get("classname", ""), case.get("name", "")
            bad = next((k.tag for k in case if k.tag in ("failure", "error", "skipped")), "passed")
            if file.name.startswith("clients"):
                key = f"{owner.split('.')[-1]}.py::{name.split('[')[0]}"
            else:
                key = f"{owner.split('.')[-1]}/{name.split('(')[0]}"
            if outcome.get(key) in (None, "passed"):
                outcome[key] = bad
    return outcome


def rows():
    """The table's rows: line number, id, state and tests."""
    for number, line in enumerate(TABLE.read_text(encoding="utf-8").splitlines(), 1):
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)]
        if len(cells) == 7 and re.fullmatch(r"[A-Z]+[0-9]*\.?[0-9]+", cells[1]):
            yield number, cells[1], cells[4], re.findall(TEST, cells[5])


def main():
    outcome = results()
    if not outcome:
        sys.exit(f"compatibility: no results in {RESULTS}; run make test first")
    faults, counts, seen, unseen = [], {}, set(), set()
    for number, identifier, state, tests in rows():
        counts[state] = counts.get(state, 0) + 1
        where = f"{TABLE.relative_to(ROOT)}:{number}: {identifier}"
        if identifier in seen:
            faults.append(f"{where}: stands twice")
        seen.add(identifier)
        if state not in STATES:
            faults.append(f"{where}: state '{state}' is none of {', '.join(sorted(STATES))}")
        if state in ("works", "partly") and not tests:
            faults.append(f"{where}: '{state}' without a test")
        for test in tests:
            ran = outcome.get(test)
            if ran is None:
                faults.append(f"{where}: `{test}` did not run")
            elif ran == "skipped":
                unseen.add(identifier)
            elif ran != "passed":
                faults.append(f"{where}: `{test}` ended as {ran}")
    if not seen:
        faults.append(f"{TABLE.relative_to(ROOT)}: no rows")
    for fault in faults:
        print(fault)
    summary = ", ".join(f"{counts[state]} {state}" for state in sorted(counts))
    if unseen:
        print(f"compatibility: {len(unseen)} rows rest on a test that skipped itself here, as it says: {', '.join(sorted(unseen))}")
    print(f"compatibility: {len(seen)} behaviours ({summary}), {len(faults)} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
