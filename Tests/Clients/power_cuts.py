"""Power cuts of the complete server: both databases, indexes, rules, accounts, onDisconnect and exports.

The server runs on the simulated disk of Tests/PowerCut/shim.c, which ends it at a random change of the disk and keeps the
data that a real disk would retain. Clients use it through its ports until then. Afterwards a server without the shim opens
a copy of that data, and the state is compared with the acknowledgements:

- Every acknowledged operation has taken effect exactly once. Each client's operation in flight is complete or absent.
- Queries agree with the documents, and `hearth check` finds every index entry.
- A large write of the Realtime Database, which the server stages in several commits, is complete or absent.
- An onDisconnect write whose registration was acknowledged has run, unless its cancellation was acknowledged.
- An export directory is complete once an export to it was acknowledged. Before, it is complete, or the import rejects it.

Each client performs numbered steps, and the state after step k is a function of k. The next server continues with the data
itself, so that cuts also interrupt recoveries.

    python Tests/Clients/power_cuts.py N [--seed S] [--no-sync]

With --no-sync the disk ignores syncs, and the run must find losses.
"""

import argparse
import contextlib
import http.client
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from websockets.sync.client import connect

from conftest import BINARY, ROOT, Hearth

PROJECT = Hearth.project
DOCUMENTS = f"projects/{PROJECT}/databases/(default)/documents"
# The number of newest items that each client keeps.
KEPT = 12
# The maximum time that a server runs. A server without a power cut in this time does not count.
LIFE_SECONDS = 8
LIVES_PER_DIRECTORY = 5


class Lost(Exception):
    """The connection ended before the response."""


class Rejected(Exception):
    """The server answered with an error."""


class Http:
    """One HTTP connection with the emulator's administrator."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def __call__(self, method, path, body=None):
        headers = {"authorization": "Bearer owner", "content-type": "application/json"}
        data = body if body is None or isinstance(body, str) else json.dumps(body)
        try:
            self.connection.request(method, path, data, headers)
            answer = self.connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.connection.close()
            raise Lost(str(error)) from error
        if answer.status not in (200, 204):
            raise Rejected(f"{method} {path}: {answer.status} {text[:300]!r}")
        return json.loads(text) if text else None


class Server(Hearth):
    """A server with its own data directory, optionally on the simulated disk."""

    def __init__(self, directory, options=(), environment=None, ports=None):
        super().__init__(directory, ["--emulator", "--project", PROJECT, "--hub-port", "0", *options])
        if ports:
            self.firestore_port, self.database_port, self.auth_port = ports
        self.environment = environment or {}

    def start(self, timeout=60):
        before = {name: os.environ.get(name) for name in self.environment}
        os.environ.update(self.environment)
        try:
            return super().start(timeout)
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value

    @property
    def hub_port(self):
        line = next(line for line in self.output if "hub" in line.lower() and "http" in line)
        return int(line.rsplit(":", 1)[1].split("/")[0].split()[0])


class Client:
    """Steps of one client. `known` is the last acknowledged step, `sent` the last one that was sent."""

    def __init__(self, number):
        self.number = number
        self.known = self.sent = 0

    def run(self, server):
        while True:
            self.advance(server)

    def advance(self, server):
        self.sent = self.known + 1
        self.step(server, self.sent)
        self.known = self.sent

    def settle(self, found, problems):
        """Continues at the step whose state was found: the last acknowledged one, or the one in flight."""
        if found not in (self.known, self.sent):
            problems.append(f"{self} is at step {found}; acknowledged {self.known}, sent {self.sent}")
        self.known = self.sent = found or 0

    def __str__(self):
        return f"{type(self).__name__} {self.number}"


def kept(step):
    return range(max(1, step - KEPT + 1), step + 1)


def last_multiple(step, of):
    return step // of * of


class FirestoreClient(Client):
    """Commits a document, the removal of an old one, and an increment; each tenth commit also replaces 60 documents."""

    def fields(self, step):
        return {
            "n": {"integerValue": str(step)}, "g": {"integerValue": str(step % 3)},
            "tags": {"arrayValue": {"values": [{"stringValue": f"t{step % 4}"}, {"stringValue": "all"}]}},
            "pad": {"stringValue": "x" * (step % 5 * 300)},
        }

    def step(self, server, step):
        items, bulk = f"{DOCUMENTS}/items{self.number}", f"{DOCUMENTS}/bulk{self.number}"
        writes = [{"update": {"name": f"{items}/d{step}", "fields": self.fields(step)}, "currentDocument": {"exists": False}}]
        if step > KEPT:
            writes.append({"delete": f"{items}/d{step - KEPT}", "currentDocument": {"exists": True}})
        increment = {"fieldPath": "count", "increment": {"integerValue": "1"}}
        writes.append({"transform": {"document": f"{DOCUMENTS}/counters/c{self.number}", "fieldTransforms": [increment]}})
        if step % 10 == 0:
            writes += [{"update": {"name": f"{bulk}/b{n}", "fields": self.fields(step)}} for n in range(60)]
        http = self.http(server)
        http("POST", f"/v1/{DOCUMENTS}:commit", {"writes": writes})

    def http(self, server):
        if getattr(self, "server", None) is not server:
            self.server, self.connection = server, Http(server.firestore_port)
        return self.connection

    def read(self, http, problems):
        """Returns the step whose state the server has; nil if it has the state of no step."""
        items = self.list(http, f"items{self.number}")
        counters = self.list(http, "counters").get(f"c{self.number}", {})
        step = int(counters.get("count", {}).get("integerValue", 0))
        if items != {f"d{n}": self.fields(n) for n in kept(step)}:
            problems.append(f"{self}: the counter is at {step}, the documents are {sorted(items)}")
            return None
        replaced = last_multiple(step, 10)
        bulk = self.list(http, f"bulk{self.number}")
        if bulk != {f"b{n}": self.fields(replaced) for n in range(60) if replaced}:
            problems.append(f"{self}: step {step}, but {len(bulk)} documents of a commit of 60")
            return None
        self.check_queries(http, items, problems)
        return step

    def check_queries(self, http, items, problems):
        def compare(name, query, expected):
            answer = http("POST", f"/v1/{DOCUMENTS}:runQuery", {"structuredQuery": {"from": [source], **query}})
            found = [row["document"]["name"].rsplit("/", 1)[1] for row in answer if "document" in row]
            if found != expected:
                problems.append(f"{self}: the query {name} found {found} instead of {expected}")

        def field(name, op, value):
            return {"fieldFilter": {"field": {"fieldPath": name}, "op": op, "value": value}}

        source = {"collectionId": f"items{self.number}"}
        descending = [{"field": {"fieldPath": "n"}, "direction": "DESCENDING"}]
        numbers = sorted((int(item["n"]["integerValue"]) for item in items.values()), reverse=True)
        compare("n descending", {"orderBy": descending}, [f"d{n}" for n in numbers])
        equal = field("g", "EQUAL", {"integerValue": "1"})
        compare("g = 1", {"where": equal}, sorted(f"d{n}" for n in numbers if n % 3 == 1))
        composite = {"where": equal, "orderBy": descending}
        compare("g = 1, n descending", composite, [f"d{n}" for n in numbers if n % 3 == 1])
        tagged = field("tags", "ARRAY_CONTAINS", {"stringValue": "t2"})
        compare("tags contains t2", {"where": tagged}, sorted(f"d{n}" for n in numbers if n % 4 == 2))

    @staticmethod
    def list(http, collection):
        answer = http("GET", f"/v1/{DOCUMENTS}/{collection}?pageSize=300")
        return {d["name"].rsplit("/", 1)[1]: d.get("fields", {}) for d in answer.get("documents", [])}


class RealtimeClient(Client):
    """Updates three locations in one write; each seventh step replaces or removes a subtree of 700 KiB, which is staged."""

    def item(self, step):
        return {"n": step, "text": "y" * (step % 5 * 100)}

    def large(self, step):
        return {"step": step, "children": {f"k{n}": f"{step}-{n}-" + "z" * 1000 for n in range(700)}}

    def step(self, server, step):
        if getattr(self, "server", None) is not server:
            self.server, self.http = server, Http(server.database_port)
        root = f"realtime{self.number}"
        update = {f"items/i{step}": self.item(step), "count": {".sv": {"increment": 1}}}
        if step > KEPT:
            update[f"items/i{step - KEPT}"] = None
        if step % 7 == 0:
            update["large"] = self.large(step) if step % 28 else None
        self.http("PATCH", f"/{root}.json?ns={PROJECT}&print=silent&writeSizeLimit=unlimited", update)

    def read(self, http, problems):
        def get(path, query=""):
            return http("GET", f"/realtime{self.number}/{path}.json?ns={PROJECT}{query}")

        step = get("count") or 0
        items = get("items") or {}
        if items != {f"i{n}": self.item(n) for n in kept(step)}:
            problems.append(f"{self}: the counter is at {step}, the items are {sorted(items)}")
            return None
        replaced = last_multiple(step, 7)
        large = get("large")
        if large != (self.large(replaced) if replaced % 28 else None):
            problems.append(f"{self}: step {step}, the large write is of step {(large or {}).get('step')} and incomplete")
            return None
        try:
            newest = get("items", "&orderBy=%22n%22&limitToLast=3") or {}
        except Rejected as error:
            # The rules in force declare no index.
            if "Index not defined" not in str(error):
                raise
            return step
        if set(newest) != {f"i{n}" for n in kept(step)[-3:]}:
            problems.append(f"{self}: the query for the newest items found {sorted(newest)} at step {step}")
        return step


class RulesClient(Client):
    """Releases rules of Cloud Firestore and of the Realtime Database alternately; the latter declare or remove an index."""

    def realtime(self, step):
        index = {".indexOn": ["n"] if step % 4 == 1 else []}
        items = {f"realtime{n}": {"items": index} for n in range(2)}
        return {"rules": {".read": True, ".write": True, "step": {".validate": f"newData.val() !== {step}"}, **items}}

    def firestore(self, step):
        return (
            "rules_version = '2'; service cloud.firestore { match /databases/{db}/documents { match /{all=**} "
            f"{{ allow read, write: if {step} != 0; }} }} }}"
        )

    def step(self, server, step):
        if step % 2:
            Http(server.database_port)("PUT", f"/.settings/rules.json?ns={PROJECT}", self.realtime(step))
            return
        http = Http(server.firestore_port)
        source = {"source": {"files": [{"name": "firestore.rules", "content": self.firestore(step)}]}}
        ruleset = http("POST", f"/v1/projects/{PROJECT}/rulesets", source)["name"]
        release = {"name": f"projects/{PROJECT}/releases/cloud.firestore", "rulesetName": ruleset}
        if step == 2:
            http("POST", f"/v1/projects/{PROJECT}/releases", release)
        else:
            http("PATCH", f"/v1/projects/{PROJECT}/releases/cloud.firestore", {"release": release})

    def read(self, http, problems, database):
        """Compares both releases. Each is that of its last acknowledged step, or of the step in flight."""
        stored = database("GET", f"/.settings/rules.json?ns={PROJECT}")
        releases = http("GET", f"/v1/projects/{PROJECT}/releases").get("releases", [])
        files = [http("GET", f"/v1/{r['rulesetName']}")["source"]["files"] for r in releases]
        for step in (self.sent, self.known):
            odd, even = (step + 1) // 2 * 2 - 1, step // 2 * 2
            expected = [[self.firestore(even)]] if even else []
            contents = [[file["content"] for file in files] for files in files]
            if contents == expected and (odd < 1 or stored == self.realtime(odd)):
                return step
        problems.append(f"{self}: sent {self.sent}, acknowledged {self.known}; the rules are {stored} and {files}")
        return None


class AccountClient(Client):
    """Signs up one user in each step."""

    def step(self, server, step):
        body = {"email": f"user{step}@example.com", "password": "secret-password", "returnSecureToken": True}
        Http(server.auth_port)("POST", "/identitytoolkit.googleapis.com/v1/accounts:signUp?key=k", body)

    def read(self, http, problems):
        path = f"/identitytoolkit.googleapis.com/v1/projects/{PROJECT}/accounts:batchGet?maxResults=1000"
        emails = [user.get("email") for user in http("GET", path).get("users", [])]
        step = len(emails)
        if sorted(emails) != sorted(f"user{n}@example.com" for n in range(1, step + 1)):
            problems.append(f"{self}: the accounts are {sorted(emails)}")
            return None
        if step:
            body = {"email": f"user{step}@example.com", "password": "secret-password"}
            http("POST", "/identitytoolkit.googleapis.com/v1/accounts:signInWithPassword?key=k", body)
        return step


class PresenceClient:
    """Writes `on`, registers an onDisconnect write of `off`, and cancels each third one."""

    def __init__(self):
        self.number = 0
        # For the name of each location, the values that it may have after the session has ended.
        self.allowed = {}

    def run(self, server):
        try:
            with connect(f"ws://{server.database}/.ws?v=5&ns={PROJECT}", max_size=None) as socket:
                socket.recv(30)
                while True:
                    self.step(socket)
        except (OSError, EOFError, TimeoutError) as error:
            raise Lost(str(error)) from error
        except Exception as error:
            if type(error).__module__.startswith("websockets"):
                raise Lost(str(error)) from error
            raise

    def step(self, socket):
        self.number += 1
        name = f"p{self.number}"
        self.allowed[name] = {None, "on"}
        self.request(socket, "p", name, "on")
        self.allowed[name] = {"on", "off"}
        self.request(socket, "o", name, "off")
        self.allowed[name] = {"off"}
        if self.number % 3 == 0:
            self.allowed[name] = {"on", "off"}
            self.request(socket, "oc", name, None)
            self.allowed[name] = {"on"}

    def request(self, socket, action, name, value):
        body = {"p": f"/presence/{name}", "d": value}
        socket.send(json.dumps({"t": "d", "d": {"r": self.number, "a": action, "b": body}}))
        while True:
            message = json.loads(socket.recv(30))
            if message.get("t") == "d" and message["d"].get("r") == self.number:
                if message["d"]["b"]["s"] != "ok":
                    raise Rejected(f"{action} {name}: {message}")
                return

    def read(self, http, problems):
        """Waits until the sessions of the server that was cut have ended. A further write must then stay `on`."""
        deadline = time.monotonic() + 20
        while True:
            values = http("GET", f"/presence.json?ns={PROJECT}") or {}
            wrong = {name: values.get(name) for name, allowed in self.allowed.items() if values.get(name) not in allowed}
            # An onDisconnect write that was cancelled may or may not have run, so the loop cannot wait for it.
            if not wrong or time.monotonic() > deadline or any(value != "on" for value in wrong.values()):
                break
            time.sleep(0.02)
        if wrong:
            problems.append(f"onDisconnect: {wrong}; allowed: {[self.allowed[name] for name in wrong]}")
        # From here on each location has exactly one allowed value.
        self.allowed = {name: {values.get(name)} for name in self.allowed}


class Administrator:
    """Builds or removes composite indexes, signs up a user, releases rules, and exports all data, again and again."""

    def __init__(self, clients, others, indexes):
        self.clients = clients
        self.others = others
        self.indexes = indexes
        self.number = 0
        # The steps that were acknowledged before the last acknowledged export began; None before the first one.
        self.known = None

    def run(self, server, path):
        while True:
            self.number += 1
            self.write_indexes()
            with contextlib.suppress(ProcessLookupError):
                server.process.send_signal(signal.SIGHUP)
            for other in self.others:
                other.advance(server)
            before = [client.known for client in self.clients]
            Http(server.hub_port)("POST", "/_admin/export", {"path": path})
            self.known = before

    def write_indexes(self):
        fields = [{"fieldPath": "g", "order": "ASCENDING"}, {"fieldPath": "n", "order": "DESCENDING"}]
        groups = ["bulk0", "bulk1", "items0", "items1"] if self.number % 2 else []
        indexes = [{"collectionGroup": group, "queryScope": "COLLECTION", "fields": fields} for group in groups]
        self.indexes.write_text(json.dumps({"indexes": indexes, "fieldOverrides": []}))

    def read(self, directory, problems):
        """Imports the directory into an empty server and compares it with the acknowledged steps."""
        server = Server(None, ["--import", str(directory)])
        try:
            server.start()
        except AssertionError as error:
            if self.known is not None:
                problems.append(f"the acknowledged export cannot be imported: {error}")
            return False
        try:
            firestore, database = Http(server.firestore_port), Http(server.database_port)
            for index, client in enumerate(self.clients):
                step = client.read(firestore if isinstance(client, FirestoreClient) else database, problems)
                if step is not None and self.known and step < self.known[index]:
                    problems.append(f"the export has {client} at step {step}, before {self.known[index]}")
        finally:
            server.kill()
        return True


class Run:
    """A number of power cuts from a seed."""

    def __init__(self, seed, syncs=True):
        self.random = random.Random(seed)
        self.syncs = syncs
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="hearth-cuts-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
        self.disk, self.image, self.objects, self.copy = (self.work / name for name in ("disk", "image", "objects", "copy"))
        self.shim = self.work / "shim.so"
        source = ROOT / "Tests" / "PowerCut" / "shim.c"
        subprocess.run(["clang", "-O1", "-shared", "-fPIC", "-o", self.shim, source, "-ldl", "-lpthread"], check=True)
        self.indexes = self.work / "firestore.indexes.json"
        self.configuration = self.work / "firebase.json"
        self.configuration.write_text(json.dumps({"firestore": {"indexes": "firestore.indexes.json"}}))
        self.cuts = self.acknowledged = self.exports = self.imports = self.early = 0
        self.problems = []

    def close(self):
        shutil.rmtree(self.work, ignore_errors=True)

    def go(self, count):
        lives = 0
        while self.cuts < count and not self.problems:
            if lives % LIVES_PER_DIRECTORY == 0:
                self.reset()
            lives += 1
            if lives > 4 * count + 20:
                self.problems.append(f"only {self.cuts} cuts in {lives} lives")
                break
            self.live(lives)
        return self.report(count)

    def reset(self):
        self.count_steps()
        self.clear(self.disk)
        self.clients = [FirestoreClient(0), FirestoreClient(1), RealtimeClient(0), RealtimeClient(1)]
        self.rules, self.accounts, self.presence = RulesClient(0), AccountClient(0), PresenceClient()
        self.administrator = Administrator(self.clients, [self.accounts, self.rules], self.indexes)
        self.administrator.write_indexes()

    def count_steps(self):
        if hasattr(self, "clients"):
            self.acknowledged += sum(c.known for c in [*self.clients, self.rules, self.accounts]) + self.presence.number

    @staticmethod
    def clear(directory):
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()

    def live(self, number):
        """Runs one server until its cut, and verifies the data that remains."""
        # In one of four servers the cut happens early, while the store opens or recovers.
        change = self.random.randint(1, 80 if number % 4 == 0 else 2_500)
        mode = "drop" if number % 2 else "tear"
        for directory in (self.image, self.objects):
            self.clear(directory)
        server = Server(
            self.disk / "a" / "b" / "store", ["--config", str(self.configuration)], {
                "LD_PRELOAD": str(self.shim), "POWERCUT_DIR": str(self.disk), "POWERCUT_IMAGE": str(self.image),
                "POWERCUT_OBJECTS": str(self.objects), "POWERCUT_AT": str(change), "POWERCUT_MODE": mode,
                "POWERCUT_SEED": str(self.random.getrandbits(40)), "POWERCUT_IGNORE_SYNCS": "0" if self.syncs else "1",
            })
        name = f"cut {self.cuts + 1} (life {number}, change {change}, {mode})"
        found = []
        try:
            server.start()
            self.work_on(server, found)
        except AssertionError as error:
            self.early += 1
            if server.process.returncode != -signal.SIGKILL:
                found.append(f"the server did not start: {error}")
        with contextlib.suppress(subprocess.TimeoutExpired):
            if server.process.poll() is None:
                server.process.send_signal(signal.SIGTERM)
            server.process.wait(30)
        status = server.process.poll()
        if status == -signal.SIGKILL:
            self.cuts += 1
        elif status not in (0, 128 + signal.SIGTERM):
            found.append(f"the server ended with {status}: {server.output[-20:]}")
        shutil.rmtree(self.disk)
        self.image.rename(self.disk)
        if not found:
            self.verify(found)
        self.problems += [f"{name}: {problem}" for problem in found[:5]]

    def work_on(self, server, found):
        """Runs all clients until the server ends or its time is up."""
        def work(body, *arguments):
            try:
                body(server, *arguments)
            except Lost:
                pass
            except Exception as error:  # noqa: BLE001 - every other error is a finding
                found.append(f"{body}: {type(error).__name__} {error}")

        bodies = [(client.run,) for client in self.clients]
        bodies += [(self.presence.run,), (self.administrator.run, str(self.disk / "exports" / "nested"))]
        threads = [threading.Thread(target=work, args=body, daemon=True) for body in bodies]
        for thread in threads:
            thread.start()
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.process.wait(LIFE_SECONDS)
        if server.process.poll() is None:
            server.process.send_signal(signal.SIGTERM)
        for thread in threads:
            thread.join(60)
            if thread.is_alive():
                found.append("a client did not end with its server")

    def verify(self, found):
        shutil.rmtree(self.copy, ignore_errors=True)
        shutil.copytree(self.disk, self.copy)
        store = self.copy / "a" / "b" / "store"
        server = Server(store, ["--config", str(self.configuration)])
        try:
            server.start()
            firestore, database, auth = (Http(p) for p in (server.firestore_port, server.database_port, server.auth_port))
            for client in self.clients:
                http = firestore if isinstance(client, FirestoreClient) else database
                client.settle(client.read(http, found), found)
            self.accounts.settle(self.accounts.read(auth, found), found)
            self.rules.settle(self.rules.read(firestore, found, database), found)
            self.presence.read(database, found)
        except (AssertionError, Lost, Rejected) as error:
            found.append(f"the data cannot be read: {error}")
        finally:
            server.kill()
        check = subprocess.run([BINARY, "check", "--data", str(store)], capture_output=True, text=True)
        if check.returncode != 0:
            found.append(f"hearth check: {check.stdout} {check.stderr}")
        exports = self.copy / "exports" / "nested"
        if self.administrator.known is not None or exports.exists():
            self.exports += self.administrator.known is not None
            self.imports += self.administrator.read(exports, found)

    def report(self, count):
        self.count_steps()
        lines = self.problems[:20]
        lines.append(
            f"{self.cuts} power cuts of the server ({self.early} before it was ready), {self.acknowledged} acknowledged "
            f"operations, {self.exports} times an acknowledged export, {self.imports} imports: {len(self.problems)} problems")
        return "\n".join(lines), not self.problems and self.cuts == count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-sync", action="store_true")
    arguments = parser.parse_args()
    run = Run(arguments.seed, not arguments.no_sync)
    try:
        text, passed = run.go(arguments.count)
    finally:
        if os.environ.get("KEEP") is None:
            run.close()
    print(text)
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
