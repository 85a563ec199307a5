"""Tests that the server does not start with a clock that would give wrong times to written data."""

import os
import shutil
import subprocess
import sys

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


@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("clang"), reason="the clock is replaced on Linux with clang")
@pytest.mark.parametrize("seconds", [-86_400, 0, 1_577_836_799])
def test_a_clock_before_2020_stops_the_start_with_advice(tmp_path, seconds):
    source, library = tmp_path / "clock.c", tmp_path / "clock.so"
    source.write_text(CLOCK)
    subprocess.run(["clang", f"-DSECONDS={seconds}", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    command = [BINARY, "serve", "--emulator", "--data", str(tmp_path / "data")]
    command += ["--firestore-port", "0", "--database-port", "0", "--auth-port", "0", "--hub-port", "0"]
    started = subprocess.run(
        command, env={**os.environ, "LD_PRELOAD": str(library)}, capture_output=True, text=True, timeout=30)
    assert started.returncode == 1, started
    assert "reads a time before 2020" in started.stdout + started.stderr, started
