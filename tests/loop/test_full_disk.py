"""A disk that is really full: a file system of 64 KB where one may be mounted, and a limit of the size of files."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import textwrap

import pytest

posix = pytest.mark.skipif(os.name != "posix", reason="limits and mounts of POSIX")

FULL = """
    import errno, os, resource, sys
    folder, how = sys.argv[1:]

    def fill():
        if how == "limit":
            resource.setrlimit(resource.RLIMIT_FSIZE, (6000, resource.RLIM_INFINITY))
            return
        with open(folder + "/filler", "wb", buffering=0) as filler:
            try:
                while True:
                    filler.write(b"x" * 512)
            except OSError:
                pass

    def room():
        if how == "limit":
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        else:
            os.unlink(folder + "/filler")

    def until_full(act):
        for done in range(1000):
            try:
                act(done)
            except OSError as error:
                assert error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT), error
                return done
        raise AssertionError("it was never full")
"""
JOURNAL = """
    from surefoot import Box, Journal, RandomSearch, load
    path = folder + "/run.jsonl"
    policy = RandomSearch(Box([(0.0, 1.0)]), seed=0, journal=path)
    fill()
    for again in range(3):  # full, and full again
        done = until_full(lambda number: policy.tell([0.5], number + 0.123456789))
        assert Journal(path).read()[1] == policy.events
    room()
    policy.tell([0.5], -1.0)
    policy.close()
    with load(path) as again:
        assert again.events == policy.events
        assert [o.value for o in again.history][-1] == -1.0
        assert len({o.value for o in again.history[:-1]}) == len(again.history) - 1, "nothing is there twice"
"""
LEDGER = """
    from surefoot.private import GaussianEvent, Ledger
    path = folder + "/ledger.jsonl"
    made = lambda: Ledger(epsilon=500.0, delta=1e-5, path=path, method="rdp")
    ledger = made()
    ledger.charge(GaussianEvent(50.0), step=-1)
    fill()
    done = until_full(lambda number: ledger.charge(GaussianEvent(50.0), step=number))
    room()
    with made() as again:
        assert [entry.note["step"] for entry in again.entries] == list(range(-1, done))
        assert again.spent() == ledger.spent()
        again.charge(GaussianEvent(50.0), step=done)
"""
STATE = """
    from pathlib import Path
    from surefoot.loop.journal import write_atomically
    path = Path(folder) / "state.json"
    write_atomically(path, "old")
    fill()
    assert until_full(lambda number: write_atomically(path, "new" * 30_000)) == 0
    assert path.read_text() == "old"
    room()
    assert [file.name for file in Path(folder).iterdir()] == ["state.json"], "nothing lies beside it"
    write_atomically(path, "new")
"""


@contextlib.contextmanager
def small_disk(folder):
    """A file system of 64 KB; skips where this user may not mount one, since the test by limits never is."""
    if sys.platform != "linux":
        pytest.skip("only Linux mounts a tmpfs")
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("this user may not mount a tmpfs; the limit of the size of files is tested instead")
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


# Finding 2 of the review of 0.1.0
@posix
@pytest.mark.parametrize("what", [JOURNAL, LEDGER, STATE], ids=["journal", "ledger", "state"])
@pytest.mark.parametrize("how", ["disk", "limit"])
def test_a_full_disk_harms_nothing(tmp_path, what, how):
    with small_disk(tmp_path) if how == "disk" else contextlib.nullcontext():
        code = textwrap.dedent(FULL) + textwrap.dedent(what)
        done = subprocess.run([sys.executable, "-c", code, tmp_path, how], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
