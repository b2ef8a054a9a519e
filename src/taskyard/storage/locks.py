"""File locks: kernel byte-range locks and npm folder locks; network file systems; folder identity.

`RangeLock` locks byte ranges of a file with open file description (OFD) locks. The kernel frees them when
the process exits, however it exits. One lock file serves a whole list: byte 0 is the list, byte N is task
N. Each holder opens the file anew, so threads exclude each other as processes do. A waiting thread sleeps
in the kernel until the range is free; the caller waits for that thread up to its timeout.

`FolderLock` is the lock of npm's proper-lockfile, which Claude Code uses: a folder `<target>.lock`.

    mkdir   acquires it     rmdir   releases it          older than 10 s   abandoned

Folders made by Taskyard have the sticky bit, npm's never do. The holder of the kernel lock on the same
target therefore knows that a sticky folder was left by a Taskyard process that crashed, and takes it over
at once; any other folder is respected until it is 10 s old. Without reliable kernel locks (network file systems,
`is_network_fs`) all folders are respected alike.

`folder_identity` identifies a folder independently of its path: the same path may lead elsewhere in a
container, in another mount namespace, or on a machine cloned from the same image. A process that concludes
"the file is gone" must know that it looked into the intended folder.

Fork handlers are registered on first use, not on import: the server that forks hundreds of supervisors has
no lock and no log open, so its forks are spared the handlers.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
import time
from _thread import allocate_lock

from taskyard.core import files
from taskyard.core.files import NotPlain, open_plain, storage_error
from taskyard.core.system import boottime
from taskyard.errors import Busy, Damaged, StorageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


_fork_handlers: set[Callable[[], None]] = set()


def after_fork_in_child(action: Callable[[], None]) -> None:
    """Call `action` first in every child forked from now on; registering it twice has no effect."""
    if action not in _fork_handlers:
        _fork_handlers.add(action)
        os.register_at_fork(after_in_child=action)


_FLOCK = struct.Struct("hhqqi4x")
_OPEN = os.O_RDWR | os.O_CREAT
_RELEASE = _FLOCK.pack(fcntl.F_UNLCK, os.SEEK_SET, 0, 0, 0)

#: Seconds to sleep before a waiting thread is started; their sum is a few times the usual lock duration.
_RETRY_DELAYS = (0.00005, 0.0001, 0.0002, 0.0004, 0.0008, 0.0016)

#: Descriptors that hold locks. A forked child closes its copies: it would share the lock and keep it held
#: after this process exits.
_locked_fds: set[int] = set()

#: Lock files of live holders, kept open for repeated queries. They hold no lock, so children may share them.
_probe_fds: dict[str, int] = {}
_probe_mutex = allocate_lock()
_MAX_PROBE_FDS = 64

#: Incremented in every forked child, whose copies of the parent's locks are closed.
_forks = 0


class RangeLock:
    """A holder of byte ranges of a lock file; leaving the `with` block releases all of them."""

    __slots__ = ("_born", "_place", "fd", "is_spoiled", "path")

    def __init__(self, path: str, *, mode: int = 0o600) -> None:
        self.path = path
        try:
            self.fd = open_plain(path, _OPEN, mode)
        except OSError as error:
            raise storage_error(path, error) from error
        after_fork_in_child(_release_in_child)
        self._born = _forks
        self._place: tuple[int, int] | None = None
        self.is_spoiled = False  #: a waiter that timed out may still acquire, and then release, bytes on this fd
        _locked_fds.add(self.fd)

    def take(self, offset: int, *, timeout: float, what: str, shared: bool = False, length: int = 1) -> None:
        """Lock `length` bytes from `offset`, waiting at most `timeout` seconds.

        Raises:
            Busy: the range was not free in time; names the holder.
        """
        request = _FLOCK.pack(fcntl.F_RDLCK if shared else fcntl.F_WRLCK, os.SEEK_SET, offset, length, 0)
        if self._try(request) or (timeout and self._soon(request)):
            return
        if not timeout:
            raise Busy(what, "another process", timeout)
        if not _Waiter(self.fd, request).granted(timeout):
            self.is_spoiled = True
            raise Busy(what, describe_holder(self.path, offset, length), timeout)

    def try_take(self, offset: int) -> bool:
        """Lock byte `offset` if it is free right now."""
        return self._try(_FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, offset, 1, 0))

    def _try(self, request: bytes) -> bool:
        try:
            fcntl.fcntl(self.fd, fcntl.F_OFD_SETLK, request)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                return False
            raise storage_error(self.path, error) from error
        return True

    def _soon(self, request: bytes) -> bool:
        """Retry after short sleeps: most locks are held for less time than it takes to start a thread.

        Sleeps instead of spinning: with more waiters than processors the holder must get to run.
        """
        for pause in _RETRY_DELAYS:
            time.sleep(pause)
            if self._try(request):
                return True
        return False

    def release(self, offset: int | None = None) -> None:
        """Release everything, or one byte, but keep the file open for reuse."""
        request = _RELEASE if offset is None else _FLOCK.pack(fcntl.F_UNLCK, os.SEEK_SET, offset, 1, 0)
        fcntl.fcntl(self.fd, fcntl.F_OFD_SETLK, request)

    @property
    def is_usable(self) -> bool:
        """Whether this process may use the lock: a forked child has closed its inherited copy."""
        return self._born == _forks

    def place(self) -> tuple[int, int]:
        """Device and inode, which distinguish the lock file from another one at the same path."""
        if self._place is None:
            found = os.fstat(self.fd)
            self._place = found.st_dev, found.st_ino
        return self._place

    def close(self) -> None:
        """Unlock explicitly, then close: a forked child may still hold a copy of the descriptor."""
        if self._born != _forks:
            return  # a forked child has closed its copy already
        _locked_fds.discard(self.fd)
        try:
            fcntl.fcntl(self.fd, fcntl.F_OFD_SETLK, _RELEASE)
        finally:
            os.close(self.fd)

    def hand_over(self) -> None:
        """Close only our descriptor: a child process started with a copy of it keeps the lock."""
        _locked_fds.discard(self.fd)
        os.close(self.fd)

    def __enter__(self) -> RangeLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Waiter:
    """A thread blocked in F_OFD_SETLKW on its own duplicate of the descriptor."""

    def __init__(self, fd: int, request: bytes) -> None:
        self._fd = os.dup(fd)  # same open file description: a lock granted to it belongs to `fd`
        _locked_fds.add(self._fd)
        self._request = request
        _, *where = _FLOCK.unpack(request)
        self._undo = _FLOCK.pack(fcntl.F_UNLCK, *where)
        import threading  # imported only when waiting is necessary

        self._settled = threading.Lock()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sleep, name="taskyard-lock", daemon=True)
        self._abandoned = self._ok = False

    def granted(self, timeout: float) -> bool:
        self._thread.start()
        self._done.wait(timeout)
        with self._settled:
            self._abandoned = not self._ok
            return self._ok

    def _sleep(self) -> None:
        try:
            fcntl.fcntl(self._fd, fcntl.F_OFD_SETLKW, self._request)
            with self._settled:
                if self._abandoned:
                    fcntl.fcntl(self._fd, fcntl.F_OFD_SETLK, self._undo)
                else:
                    self._ok = True
        except OSError:
            pass  # the caller sees a timeout and names the holder
        finally:
            _locked_fds.discard(self._fd)
            os.close(self._fd)
            self._done.set()


def is_locked(path: str, offset: int = 0) -> bool:
    """Return whether the kernel reports that a process holds byte `offset` of `path`.

    The file of a live holder is kept open, because its peers query it repeatedly.
    """
    after_fork_in_child(_release_in_child)
    with _probe_mutex:
        fd = _probe_fds.get(path, -1)
        try:
            if fd >= 0 and _is_range_locked(fd, offset):
                return True
            if fd >= 0:
                os.close(_probe_fds.pop(path))  # the holder exited, or restarted with another file of the same name
            fd = open_plain(path)
            if not _is_range_locked(fd, offset):
                os.close(fd)
                return False
        except (FileNotFoundError, NotPlain):
            return False
        except OSError as error:
            raise storage_error(path, error) from error
        while len(_probe_fds) >= _MAX_PROBE_FDS:
            os.close(_probe_fds.pop(next(iter(_probe_fds))))
        _probe_fds[path] = fd
        return True


def _is_range_locked(fd: int, offset: int) -> bool:
    asked = _FLOCK.pack(fcntl.F_RDLCK, os.SEEK_SET, offset, 1, 0)
    return bool(_FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_OFD_GETLK, asked))[0] != fcntl.F_UNLCK)


def describe_holder(path: str, offset: int, length: int = 1) -> str:
    """Describe the process that holds byte `offset` of `path`: the kernel lists locks per open descriptor."""
    try:
        inode = os.stat(path).st_ino
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return "another process"
    deadline = boottime() + 1.0
    for pid in pids:
        if boottime() > deadline:
            break
        if _holds(pid, inode, offset, length):
            return f"process {pid} ({_command(pid)})"
    return "a process that cannot be seen from here"


def _holds(pid: int, inode: int, offset: int, length: int) -> bool:
    from taskyard.core.system import proc_folder

    folder = f"{proc_folder(str(pid))}/fdinfo"
    try:
        for name in os.listdir(folder):
            with open(f"{folder}/{name}", encoding="ascii", errors="replace") as file:
                if any(_is_lock(line, inode, offset, length) for line in file if line.startswith("lock:")):
                    return True
    except OSError:
        pass  # the process exited meanwhile, or belongs to another user
    return False


def _is_lock(line: str, inode: int, offset: int, length: int) -> bool:
    """Parse `lock: 1: OFDLCK ADVISORY WRITE -1 00:1a:4711 0 0`: the last three are file, first and last byte."""
    parts = line.split()
    if len(parts) < 4 or not parts[-3].endswith(f":{inode}"):
        return False
    last = offset if parts[-1] == "EOF" else int(parts[-1])
    return int(parts[-2]) < offset + length and last >= offset


def _command(pid: int) -> str:
    from taskyard.core.system import proc_folder

    try:
        with open(f"{proc_folder(str(pid))}/cmdline", "rb") as file:
            words = file.read(200).split(b"\0")
    except OSError:
        return "ended meanwhile"
    return " ".join(word.decode("utf-8", "replace") for word in words if word)[:80] or "unknown"


def _release_in_child() -> None:
    global _forks, _probe_mutex
    _forks += 1
    _probe_mutex = allocate_lock()  # another thread of the parent may have held it
    for fd in _locked_fds:
        try:
            os.close(fd)
        except OSError:
            pass
    _locked_fds.clear()


#: Seconds; proper-lockfile's `stale`: a lock not touched for this long is abandoned.
STALE_AFTER = 10.0

#: Seconds after which other programs may soon consider the lock abandoned: verify it before writing.
RECHECK_AFTER = 4.0

#: Seconds between two attempts on another program's lock, which is usually held for 1-3 ms.
_FIRST_WAIT, _LONGEST_WAIT = 0.001, 0.05

#: Seconds. npm's timestamps are up to a second ahead; a lock further in the future is observed instead.
MAX_CLOCK_SKEW = 2.0

#: Seconds between two checks of an observed lock.
_WATCH_INTERVAL = 0.25

_MODE = 0o1755


class FolderLock:
    """A held `<target>.lock` folder; leaving the `with` block releases it."""

    __slots__ = ("_inode", "_taken", "path")

    def __init__(self, target: str, *, timeout: float, what: str, guarded: bool = True) -> None:
        """Acquire the lock, waiting at most `timeout` seconds.

        Args:
            target: The locked file; the lock folder is beside it.
            timeout: Seconds to wait for another program.
            what: What is locked, for the error.
            guarded: Whether the caller holds the kernel lock of this target.

        Raises:
            Busy: another program held it all that time.
        """
        self.path = target + ".lock"
        self._inode = 0
        if not self._try(guarded):
            self._wait(timeout, what, guarded)
        self._taken = boottime()
        if not guarded:
            self._inode = os.lstat(self.path).st_ino

    def _wait(self, timeout: float, what: str, guarded: bool) -> None:
        deadline, wait = boottime() + timeout, _FIRST_WAIT
        watched = _StaleLockWatch(self.path)
        while True:
            if boottime() >= deadline:
                watched.restamp()
                raise Busy(what, f"another program ({self.path})", timeout)
            time.sleep(wait)
            wait = min(wait * 2, _LONGEST_WAIT)
            if self._try(guarded):
                return
            watched.free_if_abandoned()

    def _try(self, guarded: bool) -> bool:
        try:
            os.mkdir(self.path, _MODE)
        except FileExistsError:
            return self._take_over(guarded)
        except OSError as error:
            raise storage_error(self.path, error) from error
        return True

    def _take_over(self, guarded: bool) -> bool:
        """Take over an abandoned lock; return whether it is ours now."""
        try:
            found = os.lstat(self.path)
            if guarded and found.st_mode & stat.S_ISVTX:
                os.utime(self.path)  # left by a crashed Taskyard process; refreshed so that npm respects it
                return True
            if time.time() - found.st_mtime > STALE_AFTER:
                os.rmdir(self.path)
        except FileNotFoundError:
            pass  # released this moment: the next attempt decides
        except OSError as error:
            raise storage_error(self.path, error) from error
        return False

    def is_ours(self) -> bool:
        """Return whether no other program took the lock; checked right before a write that relies on it."""
        if boottime() - self._taken <= RECHECK_AFTER:
            return True
        try:
            found = os.lstat(self.path)
        except FileNotFoundError:
            return False
        return bool(found.st_mode & stat.S_ISVTX) and self._inode in (0, found.st_ino)

    def release(self) -> None:
        """Release the lock, unless another program has taken it over."""
        if self.is_ours():
            try:
                os.rmdir(self.path)
            except OSError:
                pass  # taken over and released between the two calls: nothing of ours is left

    def __enter__(self) -> FolderLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class _StaleLockWatch:
    """Observes a lock dated in the future: it is abandoned if it stays untouched for 10 s."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._seen: tuple[int, int] | None = None
        self._since = 0.0

    def free_if_abandoned(self) -> bool:
        """Remove the lock once it was observed for long enough; return whether observation can stop."""
        found = _future_stamp(self._path)
        if found is None:
            self._seen = None
            return True
        if found != self._seen:
            self._seen, self._since = found, boottime()
        elif boottime() - self._since > STALE_AFTER:
            try:
                os.rmdir(self._path)
            except FileNotFoundError:
                pass
            except OSError as error:
                raise storage_error(self._path, error) from error
            return True
        return False

    def restamp(self) -> None:
        """On giving up, set the time of an untouched lock to now, so that the next waiter need not start over."""
        if (
            self._seen is not None
            and boottime() - self._since > MAX_CLOCK_SKEW
            and _future_stamp(self._path) == self._seen
        ):
            try:
                os.utime(self._path)
            except OSError:
                pass  # no permission to change it


def _future_stamp(path: str) -> tuple[int, int] | None:
    """Return inode and mtime of a lock folder dated in the future; None for any other, or none."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    is_ahead = stat.S_ISDIR(found.st_mode) and found.st_mtime - time.time() > MAX_CLOCK_SKEW
    return (found.st_ino, found.st_mtime_ns) if is_ahead else None


def free_stale_lock(path: str) -> bool:
    """Observe a lock dated in the future for at most 10 s; return False if its holder touched it meanwhile."""
    watched, deadline = _StaleLockWatch(path), boottime() + STALE_AFTER + 2 * _WATCH_INTERVAL
    while not watched.free_if_abandoned():
        if boottime() >= deadline:
            return False
        time.sleep(_WATCH_INTERVAL)
    return True


_NETWORK_FS_TYPES = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "9p", "ceph", "glusterfs", "lustre", "gpfs", "beegfs", "ncpfs"}
    | {"davfs", "virtiofs", "fuse.sshfs", "fuse.s3fs", "fuse.rclone", "fuse.glusterfs", "fuse.cephfs"}
    | {"fuse.gcsfuse", "fuse.davfs2"}
)


_MOUNT_TABLE = "/proc/self/mountinfo"


def is_network_fs(folder: str, *, table: str = _MOUNT_TABLE) -> bool:
    """Return whether `folder` is on a network file system according to the mount table.

    `TASKYARD_NETWORK_FS=1` (or `0`) overrides the result.
    """
    if told := os.environ.get("TASKYARD_NETWORK_FS"):
        return told == "1"
    device = _device(folder)
    if table == _MOUNT_TABLE and (known := _network_by_device.get(device)) is not None:
        return known
    found = _lookup_mount(folder, device, table)
    if table == _MOUNT_TABLE and device:
        _network_by_device[device] = found
    return found


#: Result per device seen by this process: the type of a device does not change while it is in use.
_network_by_device: dict[str, bool] = {}


def _lookup_mount(folder: str, device: str, table: str) -> bool:
    try:
        with open(table, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.readlines()
    except OSError:
        return False
    for line in lines:
        if device and device in line.partition(" - ")[0]:
            return _parse_mount(line)[1] in _NETWORK_FS_TYPES
    # Some file systems report another device for files than for the mount: then the longest path decides.
    path = os.path.realpath(folder)
    best, kind = "", ""
    for line in lines:
        mount, fs = _parse_mount(line)
        if mount and _contains(mount, path) and len(mount) >= len(best):
            best, kind = mount, fs
    return kind in _NETWORK_FS_TYPES


def _device(folder: str) -> str:
    """Return the device of `folder` as the mount table writes it; spaces within its paths are escaped."""
    try:
        number = os.stat(folder).st_dev
    except OSError:
        return ""
    return f" {os.major(number)}:{os.minor(number)} "


def _parse_mount(line: str) -> tuple[str, str]:
    """Return mount point and type of a line such as `36 35 98:0 /mnt1 /mnt2 rw master:1 - ext3 /dev/root rw`."""
    before, _, after = line.partition(" - ")
    fields = before.split(" ")
    if len(fields) < 5 or not after:
        return "", ""
    mount = fields[4]
    for code in ("\\040", "\\011", "\\012", "\\134"):  # escapes of space, tab, newline, backslash
        mount = mount.replace(code, chr(int(code[1:], 8)))
    return mount, after.split(" ", 1)[0]


def _contains(mount: str, path: str) -> bool:
    return path == mount or path.startswith(mount if mount.endswith("/") else mount + "/")


#: File with a random folder id: it survives a reboot, which device numbers may not.
_ID_FILE = ".place"
_MAX_ID_BYTES = 64

_NET_CLASS_DIR = "/sys/class/net"


def folder_identity(folder: str) -> str:
    """Return the identity of `folder`: its id with the machine's fingerprint, device and inode, and path."""
    found = os.stat(folder)
    return f"{_folder_id(folder)}.{machine_fingerprint()} {found.st_dev}:{found.st_ino} {folder}"


def is_same_folder(place: str, *, restarted: bool = False) -> bool:
    """Return whether the path in the identity `place` leads to that same folder from here.

    After a reboot (`restarted`) the folder id and the machine decide: a copy of the disk has the same ids.
    """
    name, _, rest = place.partition(" ")
    name, _, machine = name.partition(".")
    where, _, folder = rest.partition(" ")
    try:
        found = os.stat(folder)
        if restarted:
            return bool(name) and _read_folder_id(folder) == name and machine in ("", machine_fingerprint())
        return where == f"{found.st_dev}:{found.st_ino}"
    except (OSError, ValueError, StorageError, Damaged):
        return False


def machine_fingerprint() -> str:
    """Return what distinguishes this machine from a clone with the same machine id; stable across reboots.

    It is a checksum of the host name and the addresses of the built-in network adapters. If either changes, it
    counts as another machine, and the holder of claims made before the reboot as unknown.
    """
    global _fingerprint
    if _fingerprint is None:
        import zlib  # needed only for claims

        _fingerprint = f"{zlib.crc32(' '.join([os.uname().nodename, *_adapter_addresses()]).encode()):08x}"
    return _fingerprint


_fingerprint: str | None = None


def _adapter_addresses() -> list[str]:
    """Return the addresses of built-in network adapters: not virtual, not on USB, not random."""
    found: list[str] = []
    try:
        for name in sorted(os.listdir(_NET_CLASS_DIR)):
            device = f"{_NET_CLASS_DIR}/{name}/device"
            if not os.path.exists(device) or "/usb" in os.path.realpath(device):
                continue
            if _first_line(f"{_NET_CLASS_DIR}/{name}/addr_assign_type") == "0":
                found.append(_first_line(f"{_NET_CLASS_DIR}/{name}/address"))
    except OSError:
        pass
    return found


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.readline().strip()
    except OSError:
        return ""


def _folder_id(folder: str) -> str:
    if (name := _read_folder_id(folder)) is None:
        try:
            files.create(f"{folder}/{_ID_FILE}", os.urandom(8).hex().encode())
        except FileExistsError:
            pass  # another process was faster
        name = _read_folder_id(folder)
    return name or ""


def _read_folder_id(folder: str) -> str | None:
    data = files.read(f"{folder}/{_ID_FILE}", most=_MAX_ID_BYTES)
    text = (data or b"").decode("ascii", "replace").strip()
    return text if text.isalnum() else None
