"""Fixtures that start Hearth for the tests with official clients.

`hearth` is a server with a fresh data directory. Tests can kill it (SIGKILL) and start it again on the same ports and
data. HEARTH_BIN names the binary; the default is the debug build.
"""

import os
import pathlib
import re
import signal
import socket
import subprocess
import threading
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BINARY = os.environ.get("HEARTH_BIN", str(ROOT / ".build" / "debug" / "hearth"))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Hearth:
    """One server, which keeps its ports and data over kills and restarts."""

    project = "demo-hearth"

    def __init__(self, directory, options=("--emulator",), cwd=None):
        self.directory = directory
        self.options = list(options)
        self.cwd = cwd
        self.firestore_port = free_port()
        self.database_port = free_port()
        self.auth_port = free_port()
        self.process = None
        self.output = []

    @property
    def firestore(self):
        return f"127.0.0.1:{self.firestore_port}"

    @property
    def database(self):
        return f"127.0.0.1:{self.database_port}"

    @property
    def auth(self):
        return f"127.0.0.1:{self.auth_port}"

    def start(self, timeout=20):
        command = [BINARY, "serve", *self.options]
        command += [] if "--host" in self.options else ["--host", "127.0.0.1"]
        command += ["--firestore-port", str(self.firestore_port), "--database-port", str(self.database_port)]
        command += ["--auth-port", str(self.auth_port)]
        command += ["--data", str(self.directory)] if self.directory else ["--ephemeral"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self.cwd)
        ready = threading.Event()

        def read(stream, lines):
            for line in stream:
                lines.append(line.rstrip())
                if re.fullmatch(r"\s*ready\W*", line):
                    ready.set()
            ready.set()

        self.output = []
        threading.Thread(target=read, args=(self.process.stdout, self.output), daemon=True).start()
        # A server that ends closes its output before it can be waited for, so the line counts.
        if not ready.wait(timeout) or not any(re.fullmatch(r"\s*ready\W*", line) for line in self.output):
            self.kill()
            raise AssertionError("hearth did not become ready:\n" + "\n".join(self.output))
        return self

    def kill(self):
        """Kills the server with SIGKILL, which loses data that is not durable."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        if self.process:
            self.process.wait(10)

    def stop(self):
        """Stops the server with SIGTERM and returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(15)


@pytest.fixture(scope="module")
def shared_hearth(tmp_path_factory):
    """A server on disk, shared by the tests of one module. Each test uses its own collections and paths."""
    server = Hearth(tmp_path_factory.mktemp("hearth")).start()
    yield server
    assert server.process.poll() is None, "hearth died:\n" + "\n".join(server.output[-40:])
    assert server.stop() == 0


@pytest.fixture
def hearth(tmp_path):
    """A server on disk for one test, which may kill and restart it."""
    server = Hearth(tmp_path / "data").start()
    yield server
    server.kill()


def eventually(check, timeout=15, what="the expected state"):
    """Waits until check() returns a true value, and returns it."""
    deadline = time.monotonic() + timeout
    while True:
        value = check()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come within {timeout} s")
        time.sleep(0.02)
