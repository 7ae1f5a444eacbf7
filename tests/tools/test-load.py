#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""expiryctl load: its progress, and the end of the daemon."""

import os
import pty
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "socket"))

import tap                                                      # noqa: E402
from client import REALTIME, WAIT, attach, scaled, wait_for     # noqa: E402
from daemon import ROOT, Daemon                                 # noqa: E402

CTL = os.environ.get("EXPIRYCTL", os.path.join(ROOT, "build", "expiryctl"))
BATCH = 512         # records that are sent at a time


def lines(count):
    return "".join("+1h %d\n" % number for number in range(count))


def test_a_daemon_that_goes_away_is_a_failure():
    """Status 1, and the number of the first line that may be lost."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        daemon = Daemon(path=os.path.join(folder, "socket"))
        assert daemon.wait_ready(), daemon.log()
        process = subprocess.Popen(
            [CTL, "--socket", daemon.path, "load", "--queue", "q"], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        process.stdin.write(lines(BATCH))
        process.stdin.flush()
        with attach(daemon.path, "q", clock=REALTIME) as queue:
            assert wait_for(lambda: queue.stat().armed == BATCH)
        daemon.process.kill()
        daemon.process.wait()
        out, err = process.communicate(lines(10), timeout=WAIT)
        daemon.remove()
        assert process.returncode == 1, (process.returncode, out, err)
        assert out == "%d loaded, 0 failed\n" % BATCH, out
        assert "stdin:%d: from here on nothing is known" % (BATCH + 1) in err, err
        assert err.count("\n") == 1, err


def read_all(fd):
    """What a terminal was shown until its last program ended."""
    said = b""
    try:
        while data := os.read(fd, 1 << 16):
            said += data
    except OSError:
        pass
    os.close(fd)
    return said


def test_percentages_are_of_the_files_length(daemon):
    """On a terminal percentages rise, end near a hundred, and are cleared."""
    count = scaled(100000)
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(lines(count))
        file.flush()
        pid, fd = pty.fork()
        if not pid:
            os.execv(CTL, [CTL, "--socket", daemon.path, "load", file.name])
        said = read_all(fd)
        assert os.waitpid(pid, 0)[1] == 0, said
    steps = [(len(bar), int(percent), int(loaded)) for bar, percent, loaded in
             re.findall(rb"\r\[(#*) *\] +(\d+)% (\d+) loaded", said)]
    assert steps, said
    for bar, percent, loaded in steps:
        # Reading is at most a buffer ahead of loading.
        share = 100 * loaded / count
        assert share - 2 <= percent <= share + 100 * 16 * BATCH / count, steps
        assert abs(bar - 40 * percent / 100) <= 1, steps
    assert said.endswith(b"\r\033[K%d loaded, 0 failed\r\n" % count), said[-80:]


def test_a_pipe_has_no_percentages(daemon):
    """Its length is not known: there are numbers alone."""
    main, side = pty.openpty()
    process = subprocess.Popen([CTL, "--socket", daemon.path, "load"],
                               stdin=subprocess.PIPE, stdout=side, stderr=side)
    os.close(side)
    process.communicate(lines(3 * BATCH).encode(), timeout=WAIT)
    said = read_all(main)
    assert process.returncode == 0, said
    assert said.startswith(b"\r%d loaded" % BATCH), said
    assert b"%" not in said and b"[" not in said.replace(b"\033[K", b""), said


if __name__ == "__main__":
    tap.main()
