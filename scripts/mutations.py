"""Seeded faults: checks that the tests notice small faults in the code.

Usage: python3 scripts/mutations.py LIST [--only PATTERN] [--build COMMAND] [--test COMMAND]

A list is a file of `scripts/mutations`. Each fault is a block of lines, separated by an empty line:

    name of the fault
    path of the file
    - text that stands in the file exactly once
    + text that replaces it

The script applies one fault at a time, builds and tests, and restores the file. A fault is caught if the build or a test
fails. The last line is the number of faults that were caught. Run it by hand, in a clean checkout: each fault costs a build.
"""

import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def faults(path):
    """Yields (name, file, old, new) for each block of a list."""
    for block in path.read_text().split("\n\n"):
        lines = [line for line in block.split("\n") if line and not line.startswith("#")]
        if not lines:
            continue
        old = "\n".join(line[2:] for line in lines[2:] if line.startswith("- "))
        new = "\n".join(line[2:] for line in lines[2:] if line.startswith("+ "))
        yield lines[0], ROOT / lines[1], old, new


def run(command):
    return subprocess.run(command, shell=True, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def verdict(arguments):
    """Builds and tests. Returns how the fault was caught; None if it was not."""
    if run(arguments.build).returncode != 0:
        return "by the build"
    tests = run(arguments.test)
    if tests.returncode != 0:
        plain = re.sub(r"\x1b\[[0-9;]*m", "", tests.stdout)
        failed = [line for line in plain.splitlines() if "✘ Test" in line or "Fatal" in line]
        return failed[0].strip()[:140] if failed else "by the exit status of the tests"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("list", type=pathlib.Path)
    parser.add_argument("--only", default="", help="a regular expression for the names of the faults to run")
    parser.add_argument("--check", action="store_true", help="only check that each text stands in its file once")
    parser.add_argument("--build", default="swift build --build-tests")
    parser.add_argument("--test", default="swift test --skip-build --filter '^SecurityRulesTests'")
    arguments = parser.parse_args()
    if not arguments.check and (found := verdict(arguments)):
        sys.exit(f"Without a fault the run fails: {found}")
    caught = missed = 0
    for name, file, old, new in faults(arguments.list):
        if not re.search(arguments.only, name):
            continue
        text = file.read_text()
        if text.count(old) != 1 or old == new:
            sys.exit(f"{name}: the text stands {text.count(old)} times in {file.relative_to(ROOT)}")
        if arguments.check:
            caught += 1
            continue
        file.write_text(text.replace(old, new))
        try:
            found = verdict(arguments)
        finally:
            file.write_text(text)
        caught, missed = (caught + 1, missed) if found else (caught, missed + 1)
        print(f"{'caught' if found else 'MISSED'}: {name}{': ' + found if found else ''}", flush=True)
    print(f"{caught} of {caught + missed} faults {'found in their files' if arguments.check else 'caught'}")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
