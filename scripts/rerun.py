#!/usr/bin/env python3
"""Runs the Swift tests that failed in the last run again, each alone, and says which of them are unsteady.

A test over real sockets can fail once for what the machine did meanwhile. One that passes every further run is
unsteady: it is named in the log behind the Swift tests, to be mended as a bug, and in .build/results/unsteady.txt, from
where test.sh names it once more at its very end; its first failure stays in the results as output. A test that fails again is a failure, and so is a run that crashed or in which more than a few tests failed.

    rerun.py TIMES [swift test's flags]
"""

import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / ".build" / "results"
FEW = 3


def failed(tree):
    """The test cases of a JUnit file that failed."""
    marks = ("failure", "error")
    return [case for case in tree.getroot().iter("testcase") if any(mark.tag in marks for mark in case)]


def passes(case, flags):
    """Whether a test passes when it runs alone: it ran, and nothing failed."""
    name = f"{case.get('classname')}/{case.get('name', '').split('(')[0]}"
    command = ["swift", "test", "--skip-build", "--no-parallel", *flags, "--filter", "^" + re.escape(name) + r"\("]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace")
    ran = re.search(r"Test run with [1-9]\d* tests? .*passed", run.stdout + run.stderr)
    if run.returncode == 0 and ran:
        return True
    print(run.stdout[-4000:] + run.stderr[-2000:])
    return False


def is_whole(log):
    """Whether the run of tests that a log tells of began and came to its end."""
    text = log.read_text(errors="replace")
    begun = len(re.findall(r"^◇ Test run started", text, re.MULTILINE))
    ended = len(re.findall(r"^[✔✘] Test run with \d+ tests?", text, re.MULTILINE))
    return 0 < begun <= ended


def ran(processes):
    """Whether the tests ran to their end in so many processes, each of which has a log of its own if there are several."""
    logs = sorted(RESULTS.glob("swift-*.log")) or [RESULTS / "swift.log"]
    return len(logs) >= processes and all(is_whole(log) for log in logs)


def main(times, flags):
    if not ran(2 if sys.platform == "linux" else 1):
        print("The run did not come to its end: nothing is run again.")
        return 1
    unsteady = []
    for file in sorted(RESULTS.glob("swift*.xml")):
        tree = ElementTree.parse(file)
        cases = failed(tree)
        if len(cases) + len(unsteady) > FEW:
            print(f"More than {FEW} tests failed: nothing is run again.")
            return 1
        for case in cases:
            if not all(passes(case, flags) for _ in range(times)):
                print(f"FAILS AGAIN: {case.get('classname')}/{case.get('name')}")
                return 1
            unsteady.append(case)
            for mark in [mark for mark in case if mark.tag in ("failure", "error")]:
                case.remove(mark)
                note = ElementTree.SubElement(case, "system-out")
                note.text = f"unsteady: failed once, then passed {times} times alone: {mark.get('message')}"
        if cases:
            tree.write(file, encoding="utf-8", xml_declaration=True)
    for case in unsteady:
        line = f"UNSTEADY: {case.get('classname')}/{case.get('name')} failed once, then passed {times} times alone."
        print(line)
        print("\n".join("  " + note.text for note in case.iter("system-out")))
        with open(RESULTS / "unsteady.txt", "a") as file:
            file.write(line + "\n")
    return 0 if unsteady else 1


if __name__ == "__main__":
    if len(sys.argv) < 2 or not sys.argv[1].isdigit() or int(sys.argv[1]) < 1:
        sys.exit(__doc__)
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
