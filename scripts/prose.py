#!/usr/bin/env python3
"""Checks the language of comments, test titles, identifiers and documents: prose.py [PATH...].

Fails on the words of scripts/prose.txt and on comments that begin with "What" or "Who". Without paths it checks every tracked
Swift file and document. Strings are not checked, apart from the titles of tests. Code in Markdown is not checked either.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = ROOT / "scripts" / "prose.txt"
OPENING = re.compile(r"(?:^|[.:;] )(What|Whoever|Who|Whom|Whose)\b")
TITLE = re.compile(r'@(?:Test|Suite)\(\s*"((?:[^"\\]|\\.)*)"')
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"""(?:.*?)"""|#"(?:.*?)"#|"(?:[^"\\\n]|\\.)*"', re.DOTALL)
QUOTED = re.compile(r"`[^`\n]*`|\"[^\"\n]*\"|“[^”\n]*”")


def rules():
    """Returns the patterns for prose and for identifiers, each with its replacement."""
    prose, names = [], []
    for line in LIST.read_text(encoding="utf-8").splitlines():
        if line.startswith("#") or "=>" not in line:
            continue
        pattern, replacement = (part.strip() for part in line.split("=>", 1))
        if pattern.startswith("name "):
            names.append((re.compile(pattern[5:]), replacement))
        else:
            prose.append((re.compile(pattern, re.IGNORECASE), replacement))
    return prose, names


def swift(text):
    """Yields kind, line number and text of the comments, titles and code of a Swift file."""
    end = 0
    for match in TOKEN.finditer(text):
        yield "code", text.count("\n", 0, end) + 1, text[end:match.start()]
        if match.group().startswith("/"):
            yield "comment", text.count("\n", 0, match.start()) + 1, match.group().lstrip("/*! ")
        end = match.end()
    yield "code", text.count("\n", 0, end) + 1, text[end:]
    for match in TITLE.finditer(text):
        yield "title", text.count("\n", 0, match.start()) + 1, match.group(1)


def markdown(text):
    """Yields the lines of a document outside code blocks."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield "document", number, line


def findings(path, prose, names):
    """Yields line number, words and replacement of each finding in a file."""
    text = path.read_text(encoding="utf-8")
    follows = None
    for kind, number, part in swift(text) if path.suffix == ".swift" else markdown(text):
        if kind == "code":
            for pattern, replacement in names:
                for match in pattern.finditer(part):
                    yield number + part.count("\n", 0, match.start()), match.group(), replacement
            continue
        plain = QUOTED.sub("`", part)
        # A line that continues a comment may begin with any word.
        begins = kind != "comment" or follows != number
        follows = number + 1
        opening = OPENING.search(plain)
        if opening and kind != "document" and (begins or opening.start() > 0):
            yield number, opening.group(1) + " …", "a noun as the subject"
        for pattern, replacement in prose:
            for match in pattern.finditer(plain):
                yield number, match.group(), replacement


def main(arguments):
    if arguments:
        paths = [pathlib.Path(argument).resolve() for argument in arguments]
    else:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "*.swift", "*.md"], cwd=ROOT, capture_output=True, check=True, text=True)
        paths = [ROOT / name for name in listed.stdout.split("\0") if name and "/Generated/" not in name]
    prose, names = rules()
    count = 0
    for path in paths:
        if not path.is_file():
            continue
        for number, words, replacement in findings(path, prose, names):
            print(f"{path.relative_to(ROOT)}:{number}: '{words}': use {replacement}")
            count += 1
    if count:
        sys.exit(f"prose: {count} findings; scripts/prose.txt lists the words")
    print(f"prose: {len(paths)} files, no findings")


if __name__ == "__main__":
    main(sys.argv[1:])
