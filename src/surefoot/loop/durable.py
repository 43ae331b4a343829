"""Files that keep their promise: what was accepted is on disk, what was refused is not, and nothing is half there.

:class:`Appended` is a file that one writer only ever appends to; journals and ledgers are such files.
:func:`write_atomically` replaces a whole file. Both hold on a full disk, after a failed fsync, and when Ctrl-C comes in
the middle.

>>> import tempfile
>>> file = Appended(Path(tempfile.mkdtemp()) / "run.jsonl")
>>> file.open()
b''
>>> file.append(b"first\\n")
>>> file.close()
>>> file.path.read_bytes()
b'first\\n'
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import secrets
import signal
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from surefoot.errors import SurefootError

__all__ = ["Appended", "uninterrupted", "write_atomically"]


class Appended:
    """A file that one writer appends to, durably.

    Parameters
    ----------
    path : path
        The file.

    **Writing.** Bytes go to a known offset, past every buffer, and are on disk before :meth:`append` returns. When any
    part of that fails, they are cut off again and the failure is raised: a refused append leaves the file as it was,
    and is not made up for later. That includes a failed fsync, after which nobody knows what is on disk. Should the
    bytes not even be cut off, they are blanked out, so that they are no whole line, and the file takes no more: open it
    again to go on from what it holds.

    **One writer.** On POSIX systems the file itself is locked, which does not keep anybody from reading it, and no
    other file is needed: what is not there cannot stay behind. (A lock file could only be removed safely by one who
    knows that nobody waits for it.) Since a lock belongs to a file, not to its name, the name is looked up again
    once the lock is held. A lock file that version 0.1 left beside it is taken as well, for the case that version 0.1
    is still at work. On Windows a lock would keep readers out; there a file with ``.lock`` appended is locked, and
    removed afterwards, which Windows refuses while anybody else has it open. Either lock ends with the process.

    **One file.** Before each append the name must still lead to the file that was opened, and the file must end where
    the last append ended; afterwards the name is looked up again. A file that was deleted, replaced, cut or written to
    by somebody else is refused, and left alone. Put back, it is written on.

    >>> import tempfile
    >>> file = Appended(Path(tempfile.mkdtemp()) / "run.jsonl")
    >>> _ = file.open()
    >>> file.path.unlink()
    >>> file.append(b"lost?")
    Traceback (most recent call last):
    ...
    surefoot.errors.SurefootError: ...run.jsonl was deleted, or another file is in its place; nothing ...
    >>> file.close()
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._place = ""  # absolute: a process may change its folder
        self._file: io.FileIO | None = None
        self._locks: list[io.FileIO] = []
        self._end = 0
        self._process = 0
        self._broken = False

    def open(self) -> bytes:
        """Become the writer and return the content; an empty file is made where there is none."""
        if self._file is not None:
            raise SurefootError(f"{self.path} is being written already")
        self._place, self._process, self._broken = os.path.abspath(self.path), os.getpid(), False
        _make_folders(Path(self._place).parent)
        try:
            self._acquire()
            content = self._read()
        except BaseException:
            self.close()
            raise
        self._end = len(content)
        return content

    def cut(self, end: int) -> None:
        """Drop everything from an offset on: what a crash left of a last append."""
        file = self._writable()
        if end != self._end:
            os.ftruncate(file.fileno(), end)
            self._end = end

    def append(self, data: bytes) -> None:
        """Write at the end and wait until it is on disk; on any failure the file is as it was."""
        file = self._writable()
        self._check_name()
        if (size := os.fstat(file.fileno()).st_size) != self._end:
            raise SurefootError(
                f"{self.path} was written to by somebody else: it should end after {self._end} bytes and ends after "
                f"{size}; nothing was written"
            )
        start = self._end
        try:
            _write_at(file.fileno(), data, start)
            os.fsync(file.fileno())
            self._check_name()
            if not start:
                _sync_folder(os.path.dirname(self._place))  # the name of a new file
            self._end = start + len(data)
        except BaseException:
            self._take_back(file.fileno(), start, len(data))
            raise

    def close(self) -> None:
        """Stop writing and let others write."""
        file, self._file = self._file, None
        locks, self._locks = self._locks, []
        with contextlib.ExitStack() as stack:
            if file is not None:
                stack.callback(file.close)
            for lock in locks:
                stack.callback(self._release, lock)

    def _writable(self) -> io.FileIO:
        if self._file is None:
            raise SurefootError(f"{self.path} is not open for writing")
        if self._broken:
            raise SurefootError(
                f"{self.path} could not be brought back to what it held before a write that failed, and takes no more; "
                "open it again to go on from what it holds"
            )
        return self._file

    def _check_name(self) -> None:
        """Refuse to write where the name leads elsewhere, or nowhere."""
        if self._file is None or not _same(self._file.fileno(), self._place):
            raise SurefootError(
                f"{self.path} was deleted, or another file is in its place; nothing was written. Put it back to go on, "
                "or save what is in memory elsewhere"
            )

    def _take_back(self, descriptor: int, start: int, length: int) -> None:
        """Undo an append that failed. Until that is certain, the file counts as broken."""
        self._broken = True
        self._end = start
        try:
            os.ftruncate(descriptor, start)
            os.fsync(descriptor)
            self._broken = False
        except BaseException as error:
            with contextlib.suppress(OSError):
                # Room is there already. A line of blanks without an end is what a crash leaves: dropped when opened.
                written = os.fstat(descriptor).st_size - start
                _write_at(descriptor, b" " * min(length, max(written, 0)), start)
                os.fsync(descriptor)
            if not isinstance(error, OSError):  # what failed first is raised, unless this is Ctrl-C
                raise

    # -- locking -----------------------------------------------------------------------------------------------------

    def _acquire(self) -> None:
        if os.name != "posix":  # pragma: no cover - Windows
            self._locks.append(self._locked(f"{self._place}.lock", os.O_RDWR | os.O_CREAT))
            self._file = _opened(self._place, os.O_RDWR | os.O_CREAT)
            return
        while True:
            file = self._locked(self._place, os.O_RDWR | os.O_CREAT)
            if _same(file.fileno(), self._place):
                break
            file.close()  # deleted or replaced between opening and locking
        self._file = file
        self._locks.append(file)
        with contextlib.suppress(FileNotFoundError):
            self._locks.append(self._locked(f"{self._place}.lock", os.O_RDWR))

    def _locked(self, place: str, flags: int) -> io.FileIO:
        file = _opened(place, flags)
        try:
            _lock_exclusively(file.fileno())
        except (BlockingIOError, PermissionError):
            file.close()
            raise SurefootError(f"{self.path} is being written by another process or policy") from None
        except BaseException:
            file.close()
            raise
        return file

    def _release(self, lock: io.FileIO) -> None:
        try:
            if os.getpid() == self._process:  # a forked copy shares the lock, and has no right to end it
                _unlock(lock.fileno())
        finally:
            lock.close()
            if os.name != "posix":  # pragma: no cover - Windows
                with contextlib.suppress(OSError):
                    os.unlink(f"{self._place}.lock")

    def _read(self) -> bytes:
        if self._file is None:
            return b""
        self._file.seek(0)
        return self._file.readall()


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Put Ctrl-C off until the block is done: what is on disk and what is in memory change together, or not at all.

    It then comes as it would have come, as ``KeyboardInterrupt`` from the block for one.

    >>> with uninterrupted():
    ...     on_disk = in_memory = True
    """
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(usual):
        yield  # it comes to the main thread only; or it is ignored, or ends the process as a crash does
        return
    came: list[tuple[Any, Any]] = []
    signal.signal(signal.SIGINT, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
        if came:
            usual(*came[0])


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file so that a reader, or a crash, sees the old or the new content, never a part.

    When it fails, on a full disk for one, the old content stays, and nothing lies beside it.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "note.txt"
    >>> write_atomically(path, "whole")
    >>> path.read_text()
    'whole'
    """
    # Two threads may write the same file.
    partial = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.partial")
    try:
        with partial.open("wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: str | os.PathLike[str]) -> None:
    """Make names in a folder durable, where the system allows it."""
    if os.name != "posix":  # pragma: no cover - Windows
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network file systems have no such thing
            raise
    finally:
        os.close(descriptor)


def _make_folders(folder: Path) -> None:
    """Make a folder with those above it; their names are durable too."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for made in reversed(missing):
        _sync_folder(made.parent)


def _opened(place: str, flags: int) -> io.FileIO:
    """A file without a buffer, closed when nobody holds it any more; pipes and devices are refused."""
    descriptor = os.open(place, flags | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0), 0o666)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ValueError(f"{place} is not a regular file")
    return io.FileIO(descriptor, "r+b")


def _same(descriptor: int, place: str) -> bool:
    """Whether a name leads to an open file."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(place))
    except (FileNotFoundError, NotADirectoryError):
        return False


def _write_at(descriptor: int, data: bytes, offset: int) -> None:
    """Write all of the data at an offset; the system may take it in parts."""
    rest = memoryview(data)
    while rest:
        if hasattr(os, "pwrite"):
            count = os.pwrite(descriptor, rest, offset)
        else:  # Windows
            os.lseek(descriptor, offset, os.SEEK_SET)
            count = os.write(descriptor, rest)
        if count < 1:
            raise OSError(errno.EIO, "nothing was written")
        rest, offset = rest[count:], offset + count


def _lock_exclusively(descriptor: int) -> None:
    """Take a lock that the system releases when the process dies, or raise OSError."""
    if os.name == "posix":
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    else:  # pragma: no cover - Windows
        import msvcrt

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]


def _unlock(descriptor: int) -> None:
    if os.name == "posix":
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_UN)
    else:  # pragma: no cover - Windows
        import msvcrt

        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)  # type: ignore[attr-defined, unused-ignore]
