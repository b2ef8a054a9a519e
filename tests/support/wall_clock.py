"""
A wall clock that a test can set, for processes that are started from now on; the clocks that only count are left alone.

A small library, loaded before libc, adds what is in a file to every answer. It is compiled here; where nothing can be
compiled there is no such clock.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

_SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static volatile long long *offset;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("TEST_CLOCK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *found = fd >= 0 ? mmap(0, 8, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    offset = found == MAP_FAILED ? 0 : found;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int answer = real(clock, now);
    if (!answer && offset && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += *offset;
    return answer;
}

time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec found;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &found);
    now->tv_sec = found.tv_sec;
    now->tv_usec = found.tv_nsec / 1000;
    return 0;
}
"""


class WallClock:
    """The clock of those who were started since."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            pytest.skip("no C compiler, so no clock to set")
        source, library, self._file = folder / "clock.c", folder / "clock.so", folder / "clock"
        source.write_text(_SOURCE, encoding="utf-8")
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True, timeout=60)
        self._file.write_bytes(struct.pack("q", 0))
        monkeypatch.setenv("TEST_CLOCK", str(self._file))
        monkeypatch.setenv("LD_PRELOAD", str(library))

    def jump(self, seconds: int) -> None:
        """Set it by so much, at once, for everybody."""
        fd = os.open(self._file, os.O_RDWR)
        try:
            [offset] = struct.unpack("q", os.pread(fd, 8, 0))
            os.pwrite(fd, struct.pack("q", offset + seconds), 0)
        finally:
            os.close(fd)
