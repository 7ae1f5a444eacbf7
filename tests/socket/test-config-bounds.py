#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every key of the configuration at both ends of its range: the daemon starts,
serves, and keeps its other limits."""

import errno
import os
import re
import subprocess
import tempfile

import tap
from client import CONSUME, HOUR, WAIT, arm, attach
from daemon import PROGRAM, ROOT, Daemon

EXAMPLE = os.path.join(ROOT, "packaging", "expiryd.conf")
TOO_LARGE = 10**20


def check(text):
    """What --check-config says."""
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(text)
        file.flush()
        return subprocess.run([PROGRAM, "--check-config", "--config",
                               file.name], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True,
                              timeout=WAIT)


def ranges():
    """The keys that are numbers, with least and most."""
    found = {}
    with open(EXAMPLE, encoding="utf-8") as file:
        for key in re.findall(r"^#(\w+) = \d+$", file.read(), re.M):
            done = check("%s = %d\n" % (key, TOO_LARGE))
            said = re.search(r"is not in (\d+) to (\d+)", done.stdout)
            assert said and done.returncode == 2, (key, done)
            found[key] = int(said[1]), int(said[2])
    return found


def setting(key, value):
    return "%s = %s\n" % (key, "%o" % value if key == "socket_mode" else value)


def serve(text):
    with Daemon(text, threads=None) as daemon:
        with attach(daemon.path, "queue", flags=CONSUME) as queue:
            queue.credit(1)
            reply = queue.request(arm(0, 5))
            assert reply.status == 0, (text, reply)
            assert queue.expiration().cookie == 5, text
            assert queue.stat().queues == 1


def test_each_key_at_its_least_and_its_most():
    keys = ranges()
    assert len(keys) >= 17, keys
    for key, ends in keys.items():
        for value in ends:
            serve(setting(key, value))


def test_just_outside_is_refused():
    for key, (least, most) in ranges().items():
        for value in (least - 1, most + 1):
            if value < 0:
                continue
            done = check(setting(key, value))
            assert done.returncode == 2 and key in done.stdout, (key, done)
        for value in (least, most):
            done = check(setting(key, value))
            assert done.returncode == 0, (key, done)


def test_most_backlog_memory_leaves_the_limit_of_timers_as_it_is():
    """What may be on its way is part of what a user is charged with near the
    limit: as a sum, it must not wrap to little."""
    most = ranges()["backlog_memory"][1]
    batch, limit = 64, 600
    with tap.slow(300, "backlog_memory = %d\ntimers_per_user = %d\n"
                  "buffers = 4\nbuffer_size = %d\n" %
                  (most, limit, batch * 32)) as daemon:
        queues = [attach(daemon.path) for _ in range(40)]
        for queue in queues:
            queue.send(*[arm(HOUR)] * batch)
        statuses = [r.status for queue in queues
                    for r in queue.replies(batch)]
        assert set(statuses) == {0, -errno.EDQUOT}, set(statuses)
        # A batch may be refused for what another turns out not to need.
        assert limit // 2 < statuses.count(0) <= limit, \
            "%d of %d timers" % (statuses.count(0), limit)
        for queue in queues:
            queue.close()


if __name__ == "__main__":
    tap.main()
