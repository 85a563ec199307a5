"""Tests regular expressions of Firestore rules against RE2 itself, with random patterns.

Needs Google's bindings of RE2: `.venv/bin/pip install google-re2`. Without them the test is skipped. HEARTH_PATTERNS sets
the number of patterns, HEARTH_SEED the seed.
"""

import http.client
import json
import os
import random

import pytest

re2 = pytest.importorskip("re2", reason="google-re2 is not installed")

RULES = """
rules_version = '2';
service cloud.firestore {
  match /databases/{database}/documents {
    match /yes/{id} { allow get: if resource.data.t.matches(resource.data.p); }
    match /no/{id} { allow get: if !resource.data.t.matches(resource.data.p); }
  }
}
"""
LETTERS = list("aabbcAB01_ -.\n\téßſkKσςΣİı") + ["\u212a", "\u00c0", "\U0001f600", "\u0430", "\u4e2d", "\u0301", "\u1e9e"]
CLASSES = [
    "\\d", "\\D", "\\s", "\\S", "\\w", "\\W", "\\pL", "\\PL", "\\p{Lu}", "\\P{Ll}", "\\p{Greek}", "\\p{^Latin}", "\\pN",
    "[[:alpha:]]", "[[:^digit:]]", "[[:word:]]", "[[:space:]]", ".", "\\pM", "\\p{Cyrillic}",
]
ESCAPES = ["\\.", "\\n", "\\t", "\\x41", "\\x{e9}", "\\x{1F600}", "\\101", "\\-", "\\Qa.b\\E", "\\a", "\\z", "\\A", "\\b", "\\B"]
WRONG = ["(?=a)", "\\1", "a**", "[b-a]", "(", "\\pX", "(?<n", "\\8", "{1,2}", "a{3,2}", "a{1001}", "\\"]


def pattern(rng, depth=3):
    """A random pattern; one in about 30 has a fault."""
    kind = rng.random()
    if depth == 0 or kind < 0.3:
        letter = rng.choice(LETTERS)
        return rng.choice([letter if letter not in ".\\" else "\\.", letter if letter != "." else "-", rng.choice(CLASSES), rng.choice(ESCAPES)])
    if kind < 0.55:
        return "".join(pattern(rng, depth - 1) for _ in range(rng.randint(1, 4)))
    if kind < 0.65:
        return "(" + rng.choice(["", "", "?:", "?i:", "?s:", "?m:", "?P<g>", "?-i:", "?U:"]) + pattern(rng, depth - 1) + ")"
    if kind < 0.75:
        return "(?:" + "|".join(pattern(rng, depth - 1) for _ in range(rng.randint(2, 3))) + ")"
    if kind < 0.88:
        return "(?:" + pattern(rng, depth - 1) + ")" + rng.choice(["*", "+", "?", "*?", "+?", "??", "{2}", "{0,2}", "{1,}", "{0}"])
    if kind < 0.97:
        return character_class(rng)
    return rng.choice(["^", "$", "(?i)", "(?m)", "(?s)", rng.choice(WRONG)])


def character_class(rng):
    parts = []
    for _ in range(rng.randint(1, 3)):
        first, last = sorted([rng.choice("abcxyzABCéσ"), rng.choice("abcxyzABCéσ")])
        parts.append(rng.choice([first, f"{first}-{last}", "\\d", "\\W", "\\p{Lu}", "[:alnum:]", "-", "^", "."]))
    return "[" + rng.choice(["", "^"]) + "".join(parts) + "]"


def text_for(rng, own):
    """A text that has a chance to match: pieces of the pattern's characters, or random ones."""
    letters = [c for c in own if c in LETTERS or c.isalnum()] or LETTERS
    return "".join(rng.choice(letters if rng.random() < 0.6 else LETTERS) for _ in range(rng.randint(0, 4)))


def expected(own, text):
    # Google's emulator rejects two groups of one name; these bindings accept them.
    if own.count("(?P<g>") > 1:
        return None
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(own, options).fullmatch(text) is not None
    except re2.error:
        return None


def test_random_patterns_match_as_in_re2(shared_hearth):
    count = int(os.environ.get("HEARTH_PATTERNS", "600"))
    rng = random.Random(int(os.environ.get("HEARTH_SEED", "1")))
    project = "demo-patterns"
    root = f"/v1/projects/{project}/databases/(default)/documents"
    connection = http.client.HTTPConnection("127.0.0.1", shared_hearth.firestore_port, timeout=60)

    def send(method, path, body=None, headers=None):
        connection.request(method, path, json.dumps(body) if body is not None else None, headers or {})
        response = connection.getresponse()
        return response.status, response.read()

    owner = {"Authorization": "Bearer owner"}
    rules = {"rules": {"files": [{"name": "firestore.rules", "content": RULES}]}}
    assert send("PUT", f"/emulator/v1/projects/{project}:securityRules", rules, owner)[0] == 200
    cases = []
    for _ in range(count):
        own = pattern(rng)
        cases += [(own, text_for(rng, own)) for _ in range(3)]
    for start in range(0, len(cases), 150):
        writes = [
            {"update": {"name": f"{root[4:]}/{c}/x{i}", "fields": {"p": {"stringValue": p}, "t": {"stringValue": t}}}}
            for i, (p, t) in enumerate(cases[start : start + 150], start) for c in ("yes", "no")
        ]
        assert send("POST", f"{root}:commit", {"writes": writes}, owner)[0] == 200
    differences, kinds = [], {True: 0, False: 0, None: 0}
    for index, (own, text) in enumerate(cases):
        granted = [send("GET", f"{root}/{name}/x{index}")[0] == 200 for name in ("yes", "no")]
        verdict = True if granted == [True, False] else False if granted == [False, True] else None
        kinds[expected(own, text)] += 1
        if verdict != expected(own, text):
            differences.append((own, text, verdict, expected(own, text)))
    print(f"patterns: {len(cases)} matches compared, {kinds}, {len(differences)} differences")
    assert min(kinds.values()) > 0
    assert not differences, differences[:20]
