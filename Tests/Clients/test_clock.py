"""Tests that the server does not start with a clock that would give wrong times to written data."""

import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request

import pytest

from conftest import BINARY

CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec *time) {
  int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(clock, time);
  if (clock == CLOCK_REALTIME) time->tv_sec = SECONDS;
  return result;
}
"""


pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not shutil.which("clang"), reason="the clock is replaced on Linux with clang")


def serve(tmp_path, seconds=None, *options):
    """Starts the server, whose clock reads `seconds` since 1970; None for the true time."""
    environment = dict(os.environ)
    if seconds is not None:
        source, library = tmp_path / "clock.c", tmp_path / "clock.so"
        source.write_text(CLOCK)
        subprocess.run(["clang", f"-DSECONDS={seconds}", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        environment["LD_PRELOAD"] = str(library)
    command = [BINARY, "serve", "--emulator", "--data", str(tmp_path / "data"), *options]
    command += ["--firestore-port", "0", "--database-port", "0", "--auth-port", "0", "--hub-port", "0"]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def database_port(server):
    """Waits until the server is ready. Returns the port of the Realtime Database."""
    port = None
    for line in server.stdout:
        if found := re.match(r"Realtime Database.*:(\d+)$", line.strip()):
            port = int(found[1])
        if line.strip() == "ready":
            return port
    raise AssertionError("the server ended")


def stop(server):
    server.send_signal(signal.SIGTERM)
    server.communicate(timeout=30)


@pytest.mark.parametrize("seconds", [-86_400, 0, 1_577_836_799])
def test_a_clock_before_2020_stops_the_start_with_advice(tmp_path, seconds):
    server = serve(tmp_path, seconds)
    output, _ = server.communicate(timeout=30)
    assert server.returncode == 1, output
    assert "reads a time before 2020" in output, output


def test_a_clock_far_ahead_of_the_data_stops_the_start_unless_it_is_accepted(tmp_path):
    server = serve(tmp_path)
    request = urllib.request.Request(
        f"http://127.0.0.1:{database_port(server)}/a.json?ns=demo", method="PUT", data=b"1")
    assert urllib.request.urlopen(request).status == 200
    stop(server)
    in_2106 = 4_291_747_200
    server = serve(tmp_path, in_2106)
    output, _ = server.communicate(timeout=30)
    assert server.returncode == 1, output
    assert "days ahead of the newest stored version" in output and "--accept-clock" in output, output
    server = serve(tmp_path)
    with urllib.request.urlopen(f"http://127.0.0.1:{database_port(server)}/a.json?ns=demo") as answer:
        assert answer.read() == b"1"
    stop(server)
    server = serve(tmp_path, in_2106, "--accept-clock")
    with urllib.request.urlopen(f"http://127.0.0.1:{database_port(server)}/a.json?ns=demo") as answer:
        assert answer.read() == b"1"
    stop(server)
