#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A client with reconnect sees a pause where its connection ends, whichever byte was the
last, in either direction. On a durable queue the daemon is killed with -9 at that byte,
and another one started. EXPIRY_TEST_CUTS is the distance between two cuts,
EXPIRY_TEST_KILL_CUTS that between two kills."""

import os
import sys
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "socket"))

import agents                           # noqa: E402
from daemon import Daemon               # noqa: E402
from mortal import Mortal               # noqa: E402
from proxy import DOWN, UP, Proxy       # noqa: E402

STEP = int(os.environ.get("EXPIRY_TEST_CUTS", "11"))
KILL_STEP = int(os.environ.get("EXPIRY_TEST_KILL_CUTS", "701"))
HOUR = 3600 * 10**9
SIZE = 32           # of a record
ACK, EXPIRED = 4, 16


def was_cut_before_ack(carried):
    """Returns whether the connection that was cut carried an expiration, and no byte of
    an ACK. The daemon repeats such an expiration on the next connection. A client that
    reconnects before the program acknowledges may hold both."""
    down = carried[DOWN]
    return EXPIRED in down[:len(down) // SIZE * SIZE:SIZE] and ACK not in carried[UP][::SIZE]


def work(agent, proxy, queue, more=""):
    """One of each call. Where the connection broke, what ends a timer may answer that it
    is gone: it was carried out before. @more: flags of the queue"""
    line = "open path=%s queue=%s clock=monotonic flags=consume,keyed,ack,reconnect%s" % (
        proxy.path, queue, more)
    opened = agent.command(line)
    if opened.error == "ECONNRESET":        # cut inside the first HELLO
        assert proxy.is_cut
        # The daemon may not yet know that the connection before is closed, or be dead.
        end = time.monotonic() + agents.PATIENCE
        opened = agent.command(line)
        while opened.error in ("EBUSY", "ECONNRESET") and time.monotonic() < end:
            opened = agent.command(line)
    assert opened.word == "ok", opened
    gone = "ok", "ENOENT"
    agent.ok("arm id=1 ttl=%d cookie=10" % HOUR)
    agent.ok("batch op=arm from=3 count=3 ttl=%d cookie=3" % HOUR)
    agent.ok("arm id=2 ttl=0 cookie=20")
    answer = agent.ok("receive max=1 timeout_ms=20000")
    assert answer.before[0]["id"] == "2" and answer.before[0]["cookie"] == "20", answer
    acked = agent.command("ack id=2")
    moved = agent.ok("refresh id=1 ttl=%d" % (2 * HOUR)).number("deadline")
    timer = agent.ok("query id=1")
    assert timer.number("deadline") == moved and timer["cookie"] == "10", timer
    cancelled = agent.command("cancel id=1")
    batch = agent.ok("batch op=cancel from=3 count=3")
    assert (acked.error or "ok") in gone and (cancelled.error or "ok") in gone
    if not proxy.is_cut:
        assert acked.word == cancelled.word == "ok" and batch["done"] == "3"
    agent.refused("query id=1", "ENOENT")
    # Nothing is left, and nothing comes again that was acknowledged.
    left = agent.ok("stat")
    assert left["armed"] == left["unacked"] == "0", left
    held = agent.ok("receive max=2 timeout_ms=0")
    assert held["count"] == "0" or held["count"] == "1" and proxy.is_cut and \
        was_cut_before_ack(proxy.carried) and answer.before[0]["redelivered"] == "0" and \
        held.before[0]["id"] == "2" and held.before[0]["redelivered"] == "1", held
    dropped = agent.command("drop")
    # It was carried out, and its answer was cut: what HELLO made is another queue.
    assert dropped.word == "ok" or dropped.error == "ESTALE" and proxy.is_cut, dropped
    agent.close()


def row_of(table, name, proxy, direction, more, step):
    """Cuts after each byte of one direction."""
    what = "a kill of the daemon, durable queue," if more else "a cut"
    row = "%s after each byte of those that go %s" % (what, direction)
    where = "uncut"
    try:
        with agents.Agent(name) as agent:
            proxy.cut(None, None)
            work(agent, proxy, "uncut", more)
            proxy.settle()
            total = proxy.seen[direction]
            assert total > 10 * SIZE, proxy.seen
            cuts = range(1, total + 1, step)
            for after in cuts:
                where = "cut after byte %d of %d" % (after, total)
                proxy.cut(direction, after)
                work(agent, proxy, "q%d" % after, more)
                proxy.settle()
        print("# %s: %d cuts %s" % (name, len(cuts), direction))
        table.report(row, name, "ok")
    except Exception:
        table.report(row, name, "FAILED", where + "\n" + traceback.format_exc(limit=-2))


def main():
    names = agents.found()
    table = agents.Table(names)
    with Daemon() as daemon, Mortal() as mortal:
        plain = Proxy(daemon.path)
        durable = Proxy(mortal.path, mortal.kill, mortal.start)
        try:
            for direction in UP, DOWN:
                for name in names:
                    row_of(table, name, plain, direction, "", STEP)
                for name in names:
                    row_of(table, name, durable, direction, ",durable", KILL_STEP)
        finally:
            plain.close()
            durable.close()
    return table.end()


if __name__ == "__main__":
    sys.exit(main())
