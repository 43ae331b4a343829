"""Nothing that was accepted is lost and nothing that was refused comes back: on a full disk, after any errno, and when
the file is deleted, replaced, cut or written to by somebody else.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import sys
import textwrap

import pytest

from surefoot import Box, Journal, RandomSearch, SurefootError, load
from surefoot.loop import durable
from surefoot.loop.durable import Appended, write_atomically
from surefoot.loop.events import timeless

BOX = Box([(0.0, 1.0)])
ERRORS = [
    *(
        OSError(getattr(errno, name), f"injected {name}")
        for name in ("ENOSPC", "EDQUOT", "EIO", "EFBIG", "EINTR", "EROFS")
    ),
    KeyboardInterrupt(),
]
posix = pytest.mark.skipif(os.name != "posix", reason="locks and signals of POSIX")


def name_of(error):
    return errno.errorcode[error.errno] if isinstance(error, OSError) else type(error).__name__


class Failing:
    """Calls of the system fail from the one on that is named: before they did anything, half done, or done."""

    def __init__(self, monkeypatch):
        self.real = {name: getattr(os, name) for name in ("write", "pwrite", "fsync", "ftruncate") if hasattr(os, name)}
        self.counts = dict.fromkeys(self.real, 0)
        self.plan = {}
        for name in self.real:
            monkeypatch.setattr(os, name, lambda *given, name=name: self.call(name, *given))

    def after(self, name, position, error, *, how="before", times=1):
        self.plan[name] = (position, position + times, error, how)
        return self

    def call(self, name, *given):
        position = self.counts[name]
        self.counts[name] += 1
        first, last, error, how = self.plan.get(name, (0, 0, None, ""))
        if not first <= position < last:
            return self.real[name](*given)
        if how == "done":
            self.real[name](*given)
        elif how == "half" and name in ("write", "pwrite"):
            descriptor, data, *rest = given
            self.real[name](descriptor, bytes(data)[: len(data) // 2], *rest)
        raise error

    def rest(self):
        self.plan = {}


def steps(policy):
    """What is done to a policy, one event or several at a time."""
    yield lambda: policy.tell([0.5], 1.0)
    yield lambda: policy.ask()
    yield lambda: policy.tell(policy.pending[0], 2.0)
    yield lambda: policy.ask(3)
    yield lambda: policy.cancel(policy.pending[1])
    yield lambda: policy.tell(policy.pending[0], None)


def lived(path, disk):
    """Run the steps; one that fails must leave policy and file agreeing, and succeeds when it is made again."""

    def insist(act, check=lambda: None):
        try:
            return act()
        except (OSError, KeyboardInterrupt):  # kept, and with it what failed
            check()
            disk.rest()
            return act()

    def agree():
        assert Journal(path).read()[1] == policy.events

    policy = insist(lambda: RandomSearch(BOX, seed=1, journal=path))
    for step in steps(policy):
        insist(step, agree)
        agree()
    policy.close()
    with insist(lambda: load(path)) as again:
        assert again.events == policy.events
        assert again.history == policy.history
        assert again.pending == policy.pending
    return timeless(policy.events)


@pytest.fixture
def disk(monkeypatch):
    return Failing(monkeypatch)


def calls_of_a_run(path, monkeypatch):
    with monkeypatch.context() as patch:
        disk = Failing(patch)
        events = lived(path, disk)
        return events, disk.counts


# Finding 2 of the review of 0.1.0
@pytest.mark.parametrize("error", ERRORS, ids=name_of)
@pytest.mark.parametrize("how", ["before", "half", "done"])
def test_a_journal_keeps_its_promise_under_every_error_at_every_call(tmp_path, monkeypatch, error, how):
    expected, counts = calls_of_a_run(tmp_path / "whole.jsonl", monkeypatch)
    assert counts["pwrite"] >= 7
    assert counts["fsync"] >= counts["pwrite"]
    for name in ("pwrite", "fsync"):
        for position in range(counts[name]):
            with monkeypatch.context() as patch:
                disk = Failing(patch).after(name, position, error, how=how)
                assert lived(tmp_path / f"{name}-{position}.jsonl", disk) == expected
                assert not disk.plan, "it did fail"


# Finding 2 of the review of 0.1.0
@pytest.mark.parametrize("how", ["before", "half", "done"])
def test_a_journal_keeps_its_promise_where_there_is_no_pwrite(tmp_path, monkeypatch, how):
    monkeypatch.delattr(os, "pwrite", raising=False)
    expected, counts = calls_of_a_run(tmp_path / "whole.jsonl", monkeypatch)
    for position in range(counts["write"]):
        with monkeypatch.context() as patch:
            disk = Failing(patch).after("write", position, ERRORS[0], how=how)
            assert lived(tmp_path / f"{position}.jsonl", disk) == expected


@pytest.mark.parametrize("error", [OSError(errno.EIO, "injected EIO"), KeyboardInterrupt()], ids=name_of)
@pytest.mark.parametrize("first", ["pwrite", "fsync"])
@pytest.mark.parametrize("how", ["half", "done"])
def test_what_cannot_be_cut_off_again_is_blanked_and_the_journal_says_it_is_broken(tmp_path, disk, first, how, error):
    path = tmp_path / "run.jsonl"
    policy = RandomSearch(BOX, seed=1, journal=path)
    policy.tell([0.5], 1.0)
    before = policy.events
    disk.after(first, disk.counts[first], OSError(errno.ENOSPC, "injected ENOSPC"), how=how)
    disk.plan["ftruncate"] = (0, 10**6, error, "before")
    with pytest.raises((OSError, KeyboardInterrupt)):
        policy.ask(3)
    disk.rest()
    with pytest.raises(SurefootError, match="takes no more; open it again"):
        policy.tell([0.6], 2.0)
    assert policy.events == before
    policy.close()
    with load(path) as again:
        assert again.events == before
        again.tell([0.6], 2.0)
    assert Journal(path).read()[1] == again.events


def test_a_journal_on_a_dead_disk_takes_no_more(tmp_path, disk):
    path = tmp_path / "run.jsonl"
    policy = RandomSearch(BOX, seed=1, journal=path)
    policy.tell([0.5], 1.0)
    before = policy.events
    for name in ("pwrite", "fsync", "ftruncate"):
        disk.after(name, disk.counts[name], OSError(errno.EIO, "injected EIO"), how="done", times=10**6)
    for _ in range(3):
        with pytest.raises((OSError, SurefootError)):
            policy.tell([0.6], 2.0)
    disk.rest()
    assert policy.events == before
    policy.close()
    with load(path) as again:
        assert again.events == before


@pytest.mark.parametrize("error", ERRORS, ids=name_of)
def test_a_torn_last_line_that_cannot_be_cut_off_leaves_the_lock_free(tmp_path, disk, error):
    path = tmp_path / "run.jsonl"
    with RandomSearch(BOX, seed=1, journal=path) as policy:
        policy.tell([0.5], 1.0)
    with path.open("ab") as file:
        file.write(b'{"event":"to')
    disk.after("ftruncate", disk.counts["ftruncate"], error)
    with pytest.raises(type(error)):
        load(path)
    with load(path) as again:
        again.tell([0.6], 2.0)
    assert len(Journal(path).read()[1]) == 2


# Finding 2 of the review of 0.1.0
@pytest.mark.parametrize("error", ERRORS, ids=name_of)
def test_a_journal_whose_header_could_not_be_written_can_be_begun_again(tmp_path, disk, error):
    path = tmp_path / "new" / "run.jsonl"
    for name in ("fsync", "pwrite"):
        disk.after(name, disk.counts[name], error, how="half")
        with pytest.raises(type(error)) as caught:  # kept, and with it what failed
            RandomSearch(BOX, seed=1, journal=path)
        disk.rest()
    RandomSearch(BOX, seed=1, journal=path).close()
    assert Journal(path).read()[0]["seed"] == 1
    del caught


# -- Ctrl-C ------------------------------------------------------------------------------------------------------------


class Pressed:
    """Ctrl-C at one line of the library, the lines being counted."""

    def __init__(self, number):
        self.left = number

    def __call__(self, frame, event, _argument):
        if not frame.f_code.co_filename.endswith(("/policy.py", "/record.py", "/journal.py", "/durable.py")):
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                signal.raise_signal(signal.SIGINT)
        return self


# Finding 2 of the review of 0.1.0
@posix
@pytest.mark.parametrize("number", range(6))
def test_ctrl_c_at_any_line_leaves_policy_and_journal_agreeing(tmp_path, number):
    """What came in the middle of a call was done altogether, or not at all."""
    line = 0
    while True:
        line += 1
        path = tmp_path / f"{line}.jsonl"
        with RandomSearch(BOX, seed=1, journal=path) as policy:
            for step in (wanted := list(steps(policy)))[:number]:
                step()
            pressed, before = Pressed(line), sys.gettrace()
            sys.settrace(pressed)
            with contextlib.suppress(KeyboardInterrupt):
                wanted[number]()
            sys.settrace(before)
            assert Journal(path).read()[1] == policy.events
            policy.tell([0.25], 7.0)
        with load(path) as again:
            assert again.events == policy.events
            assert again.history == policy.history
            assert again.pending == policy.pending
        if pressed.left > 0:
            assert line > 20
            return


@pytest.fixture
def interruptible():
    """What a shell starts in the background ignores SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_comes_when_the_block_is_done():
    done = []
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012
        with durable.uninterrupted(), durable.uninterrupted():
            signal.raise_signal(signal.SIGINT)
            done.append(1)
        done.append(2)
    assert done == [1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


# -- a file that is no longer ours -------------------------------------------------------------------------------------


def deleted(path):
    path.unlink()


def replaced(path):
    path.with_suffix(".copy").write_bytes(path.read_bytes())
    path.with_suffix(".copy").replace(path)


def cut(path):
    os.truncate(path, path.stat().st_size // 2)


def written(path):
    with path.open("ab") as file:
        file.write(b'{"event":"told","x":[0.1],"value":9.0}\n')


def folder_gone(path):
    path.parent.rename(path.parent.with_name("elsewhere"))


# Finding 10 of the review of 0.1.0
@posix
@pytest.mark.parametrize("harm", [deleted, replaced, cut, written, folder_gone])
def test_a_journal_that_is_deleted_or_replaced_during_a_run_is_noticed(tmp_path, harm):
    path = tmp_path / "runs" / "run.jsonl"
    policy = RandomSearch(BOX, seed=1, journal=path)
    policy.tell([0.5], 1.0)
    before = policy.events
    harm(path)
    left = path.read_bytes() if path.exists() else None
    for _ in range(2):
        with pytest.raises(SurefootError, match=r"was deleted, or another file is in its place|by somebody else"):
            policy.ask()
    assert policy.events == before
    assert not policy.pending
    assert (path.read_bytes() if path.exists() else None) == left, "what is there now is somebody else's"
    policy.save(tmp_path / "state.json")  # nothing is lost
    policy.close()
    with load(tmp_path / "state.json") as again:
        assert again.events == before


@posix
def test_a_journal_that_is_put_back_is_written_on(tmp_path):
    path = tmp_path / "run.jsonl"
    with RandomSearch(BOX, seed=1, journal=path) as policy:
        path.rename(tmp_path / "away.jsonl")
        with pytest.raises(SurefootError, match="Put it back"):
            policy.tell([0.5], 1.0)
        (tmp_path / "away.jsonl").rename(path)
        policy.tell([0.5], 1.0)
    assert Journal(path).read()[1] == policy.events


@posix
def test_a_journal_that_is_deleted_while_it_is_written_is_noticed(tmp_path, monkeypatch):
    path = tmp_path / "run.jsonl"
    with RandomSearch(BOX, seed=1, journal=path) as policy:
        real = os.fsync
        monkeypatch.setattr(os, "fsync", lambda descriptor: (path.unlink(missing_ok=True), real(descriptor))[1])
        with pytest.raises(SurefootError, match="was deleted"):
            policy.tell([0.5], 1.0)
        assert policy.events == []


def test_a_process_may_change_its_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    with RandomSearch(BOX, seed=1, journal="run.jsonl") as policy:
        monkeypatch.chdir(tmp_path / "other")
        policy.tell([0.5], 1.0)
    assert len(Journal(tmp_path / "run.jsonl").read()[1]) == 1


# -- locks -------------------------------------------------------------------------------------------------------------


# Finding 10 of the review of 0.1.0
def test_no_lock_file_stays_behind(tmp_path):
    with RandomSearch(BOX, seed=1, journal=tmp_path / "run.jsonl") as policy:
        policy.tell([0.5], 1.0)
    assert [file.name for file in tmp_path.iterdir()] == ["run.jsonl"]


@posix
def test_a_writer_of_0_1_is_respected(tmp_path):
    """It locks a file beside the journal."""
    import fcntl

    path = tmp_path / "run.jsonl"
    RandomSearch(BOX, seed=1, journal=path).close()
    with (tmp_path / "run.jsonl.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(SurefootError, match="being written by another"):
            load(path)
    with load(path) as again:
        with (tmp_path / "run.jsonl.lock").open("ab") as lock, pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        again.tell([0.5], 1.0)


@posix
def test_a_file_that_is_replaced_before_it_is_locked_is_opened_anew(tmp_path, monkeypatch):
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"old\n")
    real = durable._lock_exclusively

    def late(descriptor):
        monkeypatch.setattr(durable, "_lock_exclusively", real)
        real(descriptor)
        path.with_suffix(".new").write_bytes(b"new\n")
        path.with_suffix(".new").replace(path)

    monkeypatch.setattr(durable, "_lock_exclusively", late)
    file = Appended(path)
    assert file.open() == b"new\n"
    with pytest.raises(SurefootError, match="being written by another"):
        Appended(path).open()
    file.append(b"more\n")
    file.close()
    assert path.read_bytes() == b"new\nmore\n"


@posix
def test_a_file_system_without_locks_says_so(tmp_path, monkeypatch):
    def none(descriptor):
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(durable, "_lock_exclusively", none)
    with pytest.raises(OSError, match="no locks available"):
        RandomSearch(BOX, seed=1, journal=tmp_path / "run.jsonl")


@posix
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_only_regular_files_are_written(tmp_path, kind):
    path = tmp_path / "pipe"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(ValueError, match="is not a regular file"):
        Appended(path).open()


FORKED = """
    import os, sys
    from surefoot import Box, Journal, RandomSearch, SurefootError
    path = sys.argv[1]
    policy = RandomSearch(Box([(0.0, 1.0)]), seed=1, journal=path)
    policy.tell([0.5], 1.0)
    if (child := os.fork()) == 0:
        if sys.argv[2] == "closes":
            policy.close()
        else:
            policy.tell([0.6], 2.0)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    if sys.argv[2] == "closes":
        try:
            RandomSearch(Box([(0.0, 1.0)]), seed=1, journal=path)
        except SurefootError as error:
            assert "being written" in str(error)
        else:
            raise AssertionError("the lock is gone")
        policy.tell([0.7], 3.0)
    else:
        try:
            policy.tell([0.7], 3.0)
        except SurefootError as error:
            assert "somebody else" in str(error)
        else:
            raise AssertionError("two wrote")
    assert len(Journal(path).read()[1]) == 2
"""


@posix
@pytest.mark.parametrize("child", ["closes", "writes"])
def test_a_forked_copy_neither_frees_the_lock_nor_writes_unnoticed(tmp_path, child):
    words = [sys.executable, "-c", textwrap.dedent(FORKED), tmp_path / "run.jsonl", child]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# -- whole files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", ERRORS, ids=name_of)
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_file_that_could_not_be_replaced_is_as_it_was_and_nothing_lies_beside_it(tmp_path, monkeypatch, call, error):
    path = tmp_path / "state.json"
    write_atomically(path, "old")

    def fail(*_):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(type(error)):
            write_atomically(path, "new")
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["state.json"]
    write_atomically(path, "new")
    assert path.read_text() == "new"


def test_text_and_bytes_are_written_as_they_are(tmp_path):
    for content, expected in (("größer\n", "größer\n".encode()), (b"\x00\r\n", b"\x00\r\n")):
        write_atomically(tmp_path / "file", content)
        assert (tmp_path / "file").read_bytes() == expected


@posix
def test_names_of_new_files_and_folders_are_durable_too(tmp_path, monkeypatch):
    synced = []
    real = os.fsync

    def seen(descriptor):
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}") if sys.platform == "linux" else "")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", seen)
    RandomSearch(BOX, seed=1, journal=tmp_path / "a" / "b" / "run.jsonl").close()
    write_atomically(tmp_path / "state.json", "whole")
    if sys.platform == "linux":
        folders = [str(tmp_path), str(tmp_path / "a"), str(tmp_path / "a" / "b")]
        assert [place for place in synced if os.path.isdir(place)] == [*folders, str(tmp_path)]
