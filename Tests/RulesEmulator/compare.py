"""Compares the rules of Cloud Firestore on Hearth with Google's emulator, by random programs from seeds.

Each seed determines a rules file, documents and requests. Both servers receive them over REST. The HTTP codes and the
canonical statuses of the responses must be equal. `make rules-emulator N=… SEED=…` runs it. Without the emulator of the
Google Cloud CLI, or without Java, it ends with a message and code 0.
"""

import argparse
import base64
import collections
import http.client
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "Clients"))
import random_rules as programs  # noqa: E402
from conftest import Hearth, free_port  # noqa: E402

JARS = [
    os.environ.get("FIRESTORE_EMULATOR_JAR", ""),
    "/usr/lib/google-cloud-sdk/platform/cloud-firestore-emulator/cloud-firestore-emulator.jar",
]
PROJECT = "demo-rules"
BASE = f"/v1/{programs.ROOT}"
CLASS = "com.google.cloud.datastore.emulator.firestore.CloudFirestore"


def token(claims):
    """An unsigned token, as both emulators accept it."""
    now = int(time.time())
    complete = {
        "user_id": claims["sub"], "iss": f"https://securetoken.google.com/{PROJECT}", "aud": PROJECT, "iat": now,
        "auth_time": now, "exp": now + 3600, "firebase": {"sign_in_provider": "custom", "identities": {}}, **claims,
    }
    parts = [{"alg": "none", "typ": "JWT"}, complete]
    return ".".join(base64.urlsafe_b64encode(json.dumps(p).encode()).decode().rstrip("=") for p in parts) + "."


class Server:
    """One connection to a server."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def send(self, method, path, body=None, caller="owner"):
        """Returns the HTTP code, the canonical status and the message."""
        headers = {"Content-Type": "application/json"}
        if caller == "owner":
            headers["Authorization"] = "Bearer owner"
        elif caller:
            headers["Authorization"] = "Bearer " + token(caller)
        self.connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        response = self.connection.getresponse()
        data = response.read()
        if response.status == 200:
            return 200, "OK", ""
        try:
            answer = json.loads(data)
        except ValueError:
            return response.status, "", data.decode(errors="replace")
        if isinstance(answer, list):
            answer = answer[0]
        error = answer.get("error", {})
        return response.status, error.get("status", ""), error.get("message", "")

    def set_rules(self, source):
        body = {"rules": {"files": [{"name": "firestore.rules", "content": source}]}}
        return self.send("PUT", f"/emulator/v1/projects/{PROJECT}:securityRules", body)

    def store(self, documents):
        names = list(documents)
        for start in range(0, len(names), 200):
            writes = []
            for name in names[start : start + 200]:
                document = f"{programs.ROOT}/{name}"
                if documents[name] is None:
                    writes.append({"delete": document})
                else:
                    writes.append({"update": {"name": document, "fields": documents[name]}})
            outcome = self.send("POST", f"{BASE}:commit", {"writes": writes})
            if outcome[0] != 200:
                raise RuntimeError(f"documents cannot be stored: {outcome}")

    def play(self, program):
        """Plays a program. Returns an outcome for each rules file and request."""
        self.send("DELETE", f"/emulator/v1/projects/{PROJECT}/databases/(default)/documents")
        outcomes = [self.set_rules(source)[:1] + ("", "") for source in program.damaged]
        outcomes.append(self.set_rules(program.source))
        if outcomes[-1][0] != 200:
            return outcomes
        self.store(program.documents)
        for caller, method, path, body, written in program.requests:
            outcome = self.send(method, BASE + path, body, caller)
            outcomes.append(outcome)
            if outcome[0] == 200 and written:
                self.store({name: program.documents.get(name) for name in written})
        return outcomes


class Program:
    """The rules file, documents and requests of one seed."""

    def __init__(self, seed, count):
        rng = random.Random(seed)
        self.source = programs.rules_file(rng)
        self.documents = programs.documents(rng)
        self.requests = list(programs.requests(rng, count, self.documents))
        self.damaged = [programs.damaged(rng, self.source) for _ in range(10)]

    def describe(self, index):
        if index < len(self.damaged):
            return {"rules": self.damaged[index]}
        if index == len(self.damaged):
            return {"rules": self.source}
        caller, method, path, body, _ = self.requests[index - len(self.damaged) - 1]
        names = path.split("?")[0].split("/")
        return {"caller": (caller or {}).get("sub"), "request": f"{method} {path}", "body": body, "collection": names[1:2]}


class Emulator:
    """Google's emulator as a child process."""

    def __init__(self, jar):
        self.port = free_port()
        self.process = subprocess.Popen(
            ["java", "-Xmx1g", "-XX:+UseSerialGC", "-Duser.language=en", "-cp", jar, CLASS, "--host=127.0.0.1",
             f"--port={self.port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while True:
            try:
                Server(self.port).send("GET", "/")
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    self.stop()
                    raise
                time.sleep(0.1)

    def stop(self):
        self.process.kill()
        self.process.wait()


def compare(seed, count, servers, report):
    """Plays one program on both servers. Returns equal verdicts by status, known differences and other differences."""
    program = Program(seed, count)
    results = [None, None]

    def play(index):
        try:
            results[index] = servers[index].play(program)
        except Exception as error:  # The caller's thread raises it.
            results[index] = error

    threads = [threading.Thread(target=play, args=(index,)) for index in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, Exception):
            raise result
    equal, known, differences = collections.Counter(), collections.Counter(), 0
    for index, (ours, theirs) in enumerate(zip(*results)):
        kind = "compile" if index <= len(program.damaged) else "request"
        if ours[:2] == theirs[:2] or (kind == "compile" and ours[0] == theirs[0]):
            equal[f"{kind} {ours[0]} {ours[1]}"] += 1
            continue
        if theirs[2].startswith("Cannot ") and theirs[2].endswith("in the same request."):
            known["writes of one document that the emulator refuses"] += 1
            continue
        differences += 1
        report(
            {"seed": seed, "index": index, "hearth": ours, "emulator": theirs, **program.describe(index)}, program)
    if len(results[0]) != len(results[1]):
        differences += 1
    return equal, known, differences


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=10, help="how many seeds")
    parser.add_argument("--requests", type=int, default=400, help="requests of a program")
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--report", help="a file that receives one line of JSON for each difference")
    parser.add_argument("--port", type=int, help="the port of a running emulator")
    options = parser.parse_args()
    jar = next((path for path in JARS if path and os.path.exists(path)), None)
    if not options.port and (jar is None or shutil.which("java") is None):
        print("rules-emulator: skipped, Google's emulator or Java is not installed")
        return 0
    emulator = None if options.port else Emulator(jar)
    hearth = Hearth(None)
    hearth.project = PROJECT
    lines = open(options.report, "w") if options.report else None
    total, known, differences = collections.Counter(), collections.Counter(), 0

    def report(difference, program):
        if lines:
            print(json.dumps({**difference, "source": program.source, "documents": program.documents}), file=lines)
        else:
            print(json.dumps(difference))

    try:
        hearth.start()
        servers = [Server(hearth.firestore_port), Server(options.port or emulator.port)]
        for seed in range(options.seed, options.seed + options.programs):
            equal, expected, found = compare(seed, options.requests, servers, report)
            total += equal
            known += expected
            differences += found
    finally:
        hearth.kill()
        if emulator:
            emulator.stop()
    for name, count in sorted(total.items()):
        print(f"  {name}: {count}")
    for name, count in sorted(known.items()):
        print(f"  known difference, {name}: {count}")
    decisions = sum(total.values()) + sum(known.values()) + differences
    print(
        f"rules-emulator: {options.programs} programs from seed {options.seed}, {decisions} decisions,"
        f" {sum(known.values())} known differences, {differences} others")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
