"""
Death between any two system calls.

`calls_of` counts the system calls an operation makes, `killed_before` runs it in a child that SIGKILLs
itself right before call number n. Both are given what prepares the operation (not counted) and answers
it. Every function of the standard library that the package reaches the kernel through is wrapped, so a
call that is added tomorrow is counted tomorrow.
"""

from __future__ import annotations

import builtins
import fcntl
import os
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from support.racing import fork
from taskyard.core import files

#: What enters the kernel; names this Python does not have are left out.
_OS = """
    open close read write pread pwrite lseek fsync fdatasync ftruncate fstat stat lstat access listdir scandir mkdir
    rmdir rename replace unlink remove link symlink readlink utime chmod fchmod dup urandom
    mkfifo sendfile pipe2 dup2 set_blocking set_inheritable openpty memfd_create
    posix_spawn waitpid kill pidfd_open chdir umask setsid fstatvfs
"""

#: What the one function that calls the C library directly calls there.
_SPOKEN = {"_rename_with_flag": "renameat2"}

#: A child that has not ended by then hangs.
_LONGEST = 20.0


#: Makes ready in the child, and answers the operation that is to be interrupted.
Prepare = Callable[[], Callable[[], object]]


def calls_of(prepare: Prepare) -> list[str]:
    """The system calls the operation makes, by name, counted in a child that lives to the end."""
    hear, tell = os.pipe()
    pid = fork()
    if not pid:
        code = 1
        try:
            made: list[str] = []
            act = prepare()
            with_each_call(made.append)
            act()
            os.write(tell, " ".join(list(made)).encode())
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(tell)
    with os.fdopen(hear, "rb") as pipe:
        text = pipe.read().decode()
    status = _ended(pid)
    assert status == 0, f"the operation failed without being killed: {status}"
    return text.split()


def killed_before(number: int, prepare: Prepare) -> bool:
    """Run the operation in a child that dies right before its call number `number`; False if it ended before."""
    pid = fork()
    if not pid:
        code = 1
        try:
            left, kill = [number], os.kill

            def count(_: str) -> None:
                if not left[0]:
                    kill(os.getpid(), signal.SIGKILL)
                left[0] -= 1

            act = prepare()
            with_each_call(count)
            act()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    status = _ended(pid)
    assert status in (0, -signal.SIGKILL), f"killed before call {number}, but it ended with {status}"
    return status == -signal.SIGKILL


def with_each_call(tell: Callable[[str], None]) -> None:
    """From now on, in this process, `tell` hears the name of every system call before it is made."""
    for module, name in _entrances():
        original = getattr(module, name)
        setattr(module, name, _wrapped(original, _SPOKEN.get(name, name), tell))


def watched() -> list[str]:
    """The functions of `os` whose calls are counted."""
    return _OS.split()


def _entrances() -> Iterator[tuple[Any, str]]:
    yield from ((os, name) for name in watched() if hasattr(os, name))
    yield from [(fcntl, "fcntl"), (files, "_rename_with_flag"), (builtins, "open"), (time, "sleep")]


def _wrapped(original: Callable[..., Any], name: str, tell: Callable[[str], None]) -> Callable[..., Any]:
    def call(*args: Any, **named: Any) -> Any:
        tell(name)
        return original(*args, **named)

    return call


def _ended(pid: int) -> int:
    deadline = time.monotonic() + _LONGEST
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise AssertionError(f"the child still ran after {_LONGEST} s")
        time.sleep(0.0005)
