"""
Reading and changing the files of one folder, in the words of models: bounded, whole, and nothing outside of it.

What cannot be done is answered in a sentence that says what to do instead: a model reads it.
"""

from __future__ import annotations

import os
import stat
import threading

from taskyard.disk import files
from taskyard.errors import TaskyardError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

#: Bytes of a file that is read or changed.
LARGEST = 10_000_000

#: Lines and characters of one answer, and of one line.
_MOST_LINES, _MOST_CHARACTERS, _LONGEST_LINE = 2_000, 60_000, 2_000


class Refused(Exception):
    """It cannot be done, and why."""


class Files:
    """The files below one folder; below others, files are only read."""

    def __init__(self, folder: str, reads: Sequence[str] = ()) -> None:
        self._folder = os.path.realpath(folder)
        self._reads = [os.path.realpath(each) for each in reads]
        self._one_change = threading.Lock()  # a model may ask for several at once

    def read(self, file_path: str, offset: int = 1, limit: int = _MOST_LINES) -> str:
        """Lines of a text file with their numbers, from line `offset` on, at most `limit` of them.

        Raises:
            Refused: it is no text file in the folder.
        """
        lines = self._text(self._place(file_path, *self._reads)).split("\n")
        if lines[-1] == "":
            lines.pop()
        first = max(offset, 1)
        shown: list[str] = []
        room = _MOST_CHARACTERS
        for number, line in enumerate(lines[first - 1 : first - 1 + max(min(limit, _MOST_LINES), 1)], first):
            room -= min(len(line), _LONGEST_LINE) + 8
            if room < 0:
                break
            shown.append(f"{number:6}\t{line[:_LONGEST_LINE]}{'…' if len(line) > _LONGEST_LINE else ''}")
        if not lines:
            return "The file is empty."
        if not shown:
            return f"The file has {len(lines)} lines, none from {first} on."
        last = first + len(shown) - 1
        more = f"\n… lines {last + 1} to {len(lines)}: read on with offset {last + 1}." if last < len(lines) else ""
        return "\n".join(shown) + more

    def write(self, file_path: str, content: str) -> str:
        """Put `content` into a file, in place of whatever it held; folders on the way are made.

        Raises:
            Refused: it is no place for a file in the folder.
        """
        path = self._place(file_path)
        with self._one_change:
            existed = os.path.lexists(path)
            self._put(path, content)
        return f"{'Replaced' if existed else 'Created'} {file_path}."

    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> str:
        """Replace a piece of a text file by another. It must be there exactly once, unless all are replaced.

        Raises:
            Refused: it is not, or the file is none in the folder.
        """
        path = self._place(file_path)
        if not old_string:
            raise Refused("old_string is empty: give the exact text to replace, or use Write.")
        if old_string == new_string:
            raise Refused("old_string and new_string are the same: nothing would change.")
        with self._one_change:
            text = self._text(path)
            count = text.count(old_string)
            if count == 0:
                raise Refused(f"old_string is not in {file_path}. Read it, and give the exact text with its spaces.")
            if count > 1 and not replace_all:
                raise Refused(f"old_string is in {file_path} {count} times. Give more of the text, or set replace_all.")
            self._put(path, text.replace(old_string, new_string))
        return f"Changed {file_path} in {count} place{'s' if count > 1 else ''}."

    def _place(self, file_path: str, *others: str) -> str:
        """Where a file really is: in the folder, or in one of the `others`."""
        if not file_path or "\0" in file_path:
            raise Refused("file_path is empty or has a zero byte in it.")
        path = os.path.realpath(os.path.join(self._folder, os.path.expanduser(file_path)))
        if not any(
            path != folder and os.path.commonpath([path, folder]) == folder for folder in (self._folder, *others)
        ):
            raise Refused(f"{file_path} is not inside {self._folder}. Use Bash for what is elsewhere.")
        return path

    def _text(self, path: str) -> str:
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):
                raise Refused(f"{path} is no plain file.")
            data = files.read(path, most=LARGEST)
        except FileNotFoundError:
            data = None
        except OSError as error:
            raise Refused(f"{path} cannot be read: {error.strerror}.") from error
        except TaskyardError as error:
            raise Refused(str(error)) from error
        if data is None:
            raise Refused(f"There is no file {path}.")
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise Refused(f"{path} is no text in UTF-8. Use Bash to look at it.") from error

    def _put(self, path: str, content: str) -> None:
        """Write it beside, then put it in its place: nobody ever sees half of it."""
        try:
            data = content.encode()
        except UnicodeEncodeError as error:
            raise Refused("The text has half a character in it, which no file can hold.") from error
        if len(data) > LARGEST:
            raise Refused(f"That is more than {LARGEST:,} bytes.")
        beside = f"{path}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
        try:
            mode = _mode_of(path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            files.create(beside, data, mode=0o666)
            try:
                if mode is not None:
                    os.chmod(beside, mode)
                os.rename(beside, path)
            except OSError:
                os.unlink(beside)
                raise
        except OSError as error:
            raise Refused(f"{path} cannot be written: {error.strerror}.") from error
        except TaskyardError as error:
            raise Refused(str(error)) from error


def _mode_of(path: str) -> int | None:
    """The mode a file has, to be kept; None if there is none yet."""
    try:
        found = os.stat(path).st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found):
        raise Refused(f"{path} is no plain file.")
    return stat.S_IMODE(found)
