#!/usr/bin/env python3
"""Checks docs/compatibility.md and docs/bugs.md against the last test run.

Each row of the compatibility table gives a behaviour's state and the tests that prove it. The states "works" and
"partly" need at least one test. Every test that either page names must exist and must have passed in the last run;
the results are the JUnit files in .build/results. A Swift test is named `Suite/function`, a test of an official client
`file.py::function`. A skipped test is a fault, except where its reason is that HEARTH_CONFORMANCE is not set: such rows
are listed. A table row or test name that cannot be parsed is a fault.
"""

import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs" / "compatibility.md"
BUGS = ROOT / "docs" / "bugs.md"
RESULTS = ROOT / ".build" / "results"
TEST = r"\w+/\w+|\w+\.py::\w+"
# Matches anything that resembles a test name, well formed or not.
NAMED = r"`(\w+(?:/|\.py::)[^`\s]*)`"
STATES = {"works", "partly", "not yet", "no"}


WITHOUT_VECTORS = "skipped without vectors"


def ending(mark):
    """The outcome that a result element stands for."""
    without = mark.tag == "skipped" and "HEARTH_CONFORMANCE is not set" in (mark.text or "")
    return WITHOUT_VECTORS if without else mark.tag


def results(folder):
    """The outcome of each test of the last run, keyed by the name that the table uses."""
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
    """Yields line number, id, state and test names of each table row; the id is None for a malformed row."""
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
    """Returns the faults of the table, the number of rows in each state, and the rows whose tests were skipped."""
    faults, counts, seen, unseen = [], {}, set(), set()
    for number, identifier, state, tests in rows(text):
        where = f"docs/compatibility.md:{number}: {identifier or 'a table row'}"
        if identifier is None:
            faults.append(f"{where}: is not a row of five cells that begins with an id")
            continue
        counts[state] = counts.get(state, 0) + 1
        if identifier in seen:
            faults.append(f"{where}: occurs twice")
        seen.add(identifier)
        if state not in STATES:
            faults.append(f"{where}: state '{state}' is not one of {', '.join(sorted(STATES))}")
        if state in ("works", "partly") and not tests:
            faults.append(f"{where}: '{state}' without a test")
        for test in tests:
            ran = outcome.get(test)
            if not re.fullmatch(TEST, test):
                faults.append(f"{where}: `{test}` is not a valid test name")
            elif ran is None:
                faults.append(f"{where}: `{test}` did not run")
            elif ran == WITHOUT_VECTORS:
                unseen.add(identifier)
            elif ran != "passed":
                faults.append(f"{where}: `{test}` ended as {ran}")
    if not seen and not faults:
        faults.append("docs/compatibility.md: no rows")
    return faults, counts, unseen


def check_bugs(text, outcome):
    """Returns the faults of the table of bugs: tests that did not run or did not pass."""
    faults = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("|"):
            continue
        for test in re.findall(NAMED, line):
            ran = outcome.get(test)
            if ran not in ("passed", WITHOUT_VECTORS):
                faults.append(f"docs/bugs.md:{number}: `{test}` " + (f"ended as {ran}" if ran else "did not run"))
    return faults


def main():
    outcome = results(RESULTS)
    if not outcome:
        sys.exit(f"compatibility: no results in {RESULTS}; run make test first")
    faults, counts, unseen = check(TABLE.read_text(encoding="utf-8"), outcome)
    faults += check_bugs(BUGS.read_text(encoding="utf-8"), outcome)
    for fault in faults:
        print(fault)
    summary = ", ".join(f"{counts[state]} {state}" for state in sorted(counts))
    if unseen:
        print(f"compatibility: {len(unseen)} rows name a test that was skipped for want of vectors: {', '.join(sorted(unseen))}")
    print(f"compatibility: {sum(counts.values())} behaviours ({summary}), {len(faults)} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
