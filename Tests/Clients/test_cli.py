"""Tests of the requests that the Firebase CLI sends to a Realtime Database over REST. It removes a large location in small
writes, which it splits when the server rejects them, and it imports in chunks that are written concurrently."""

import concurrent.futures
import json
import urllib.error
import urllib.parse
import urllib.request
import uuid

import pytest

# The maximum number of values that a write with writeSizeLimit=tiny may change.
TINY = 100_000


class CommandLine:
    """The requests of the CLI, which is an administrator of one namespace."""

    def __init__(self, host):
        self.host = host
        self.namespace = f"cli-{uuid.uuid4().hex}"
        self.refused = 0

    def request(self, method, path, body=None, **query):
        query["ns"] = self.namespace
        request = urllib.request.Request(
            f"http://{self.host}{path}.json?{urllib.parse.urlencode(query)}",
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers={"Authorization": "Bearer owner"},
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                text = answer.read()
                return answer.status, json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    # database:remove

    def delete(self, path, children=None):
        """Removes a location, or some of its children. Returns False if that exceeds one tiny write."""
        body = {child: None for child in children} if children else None
        method = "PATCH" if children else "DELETE"
        status, _ = self.request(method, path, body, print="silent", writeSizeLimit="tiny")
        self.refused += status >= 400
        return status < 400

    def list(self, path, count, after=None):
        query = {"shallow": "true", "limitToFirst": count, "timeout": "30s"}
        if after is not None:
            query["startAfter"] = after
        status, keys = self.request("GET", path, **query)
        assert status == 200
        return sorted(keys or {})

    def remove(self, path):
        """Removes a location like the CLI: completely if possible, else in chunks of children, else child by child."""
        if self.delete(path):
            return
        chunk = 250
        while children := self.list(path, chunk):
            if self.delete(path, children):
                chunk = min(chunk * 2, 5_000)
            elif len(children) == 1:
                self.remove(f"{path}/{children[0]}")
            else:
                chunk = max(len(children) // 10, 1)

    # database:import

    def load(self, path, value, maximum=20_000):
        """Imports like the CLI: only into an empty location, in chunks with deep keys, five concurrently."""
        status, existing = self.request("GET", path, shallow="true")
        assert status == 200 and existing is None, "the command refuses to import over data"
        chunks, chunk, size = [], {}, 0

        def visit(key, node):
            nonlocal chunk, size
            text = len(json.dumps(node))
            if isinstance(node, dict) and text > maximum:
                for name, child in node.items():
                    visit(f"{key}/{name}" if key else name, child)
                return
            if size + text > maximum and chunk:
                chunks.append(chunk)
                chunk, size = {}, 0
            chunk[key] = node
            size += text

        visit("", value)
        chunks.append(chunk)
        with concurrent.futures.ThreadPoolExecutor(5) as pool:
            answers = pool.map(lambda c: self.request("PATCH", path, c, print="silent", writeSizeLimit="medium"), chunks)
            assert {status for status, _ in answers} == {204}
        return len(chunks)


@pytest.fixture
def cli(shared_hearth):
    return CommandLine(shared_hearth.database)


def test_chunked_import_is_complete(cli):
    tree = {f"g{g}": {f"r{r}": {"n": r, "text": "x" * 40} for r in range(200)} for g in range(12)}
    assert cli.load("/data", tree) > 5
    assert cli.request("GET", "/data") == (200, tree)
    with pytest.raises(AssertionError, match="refuses"):
        cli.load("/data", {"more": 1})


def test_locations_too_large_for_a_tiny_write_are_removed_recursively(cli):
    wide = {f"g{g}": {f"k{n}": n for n in range(TINY // 3 + 100)} for g in range(3)}
    assert cli.request("PUT", "/data/deep/wide", wide, print="silent")[0] == 204
    assert cli.request("PUT", "/data/small", {"a": 1}, print="silent")[0] == 204
    assert cli.request("PUT", "/kept", {"b": 2}, print="silent")[0] == 204
    cli.remove("/data")
    assert cli.refused >= 3, "the whole, its children, and the only child were each too much"
    assert cli.request("GET", "/") == (200, {"kept": {"b": 2}})


def test_listing_continues_after_a_key(cli):
    names = [f"-N{n:03}" for n in range(50)] + ["7", "12", "a"]
    assert cli.request("PUT", "/list", {name: {"deep": {"er": 1}} for name in names}, print="silent")[0] == 204
    found, after = [], None
    while page := cli.list("/list", 9, after):
        found += page
        # The key order: integers by number, then strings.
        after = sorted(page, key=lambda k: (0, int(k), "") if k.isdigit() else (1, 0, k))[-1]
    assert sorted(found) == sorted(names)
