#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""expiryctl top on terminals of several sizes: what fits, keys, signals, and the
terminal's settings afterwards."""

import os
import re
import signal
import sys
import time

from support_fake import Server
from support_fields import NEVER, ROOT, STAT, queue, stats
from support_golden import CTL
from support_terminal import (DOWN, HOME, LAST, PAGE_DOWN, PAGE_UP, UP,
                              Terminal)

sys.path.insert(0, os.path.join(ROOT, "tests", "socket"))
import tap  # noqa: E402

QUEUES = 40
LONG = "a.name-of_24-characters."
NOW = STAT.values()["now_ns"]


def queues():
    """Returns queues with a different sequence in each order. Numbers have twenty digits
    or one."""
    rows = []
    for n in range(QUEUES):
        overdue = (n * 7) % QUEUES
        late = [0] * 40
        late[(n * 3) % 38 + 1] = 5
        rows.append(queue(
            LONG if n == 3 else "q%02d" % n,
            {"armed": 2**64 - 1 - n * 11 % QUEUES if n < 20 else n,
             "lateness": late, "lateness_max_ns": 2**39,
             "next_ns": NOW - overdue if overdue else NEVER,
             "delivered": n, "unacked": 2**63},
            {"number": n, "consumer_pid": 4194304 + n, "consumers": n % 2}))
    return rows


def before():
    return [(name, STAT.pack(dict(STAT.values(), lateness=[0] * 40,
                                  delivered=0)), daemon)
            for name, _, daemon in queues()]


def server():
    return Server(stats=[stats(None, {"uptime_ns": 10**9}),
                         stats(None, {"uptime_ns": 2 * 10**9})],
                  queues=[before(), queues()])


def top(fake, rows, columns, *arguments):
    return Terminal([CTL, "--socket", os.fsdecode(fake.path), "top",
                     *arguments], rows, columns)


def names(terminal):
    """Returns the names below the table's head."""
    lines = terminal.lines
    head = [n for n, line in enumerate(lines) if line.startswith("queue ")]
    return [line.split()[0] for line in lines[head[0] + 1:] if line] \
        if head else []


def drawn(terminal):
    """Returns whether a frame is complete, with queues in it."""
    return terminal.complete and len(names(terminal)) > 2


def columns_of(terminal):
    head, = [line for line in terminal.lines if line.startswith("queue ")]
    return re.split(r"  +| (?=armed|expired|overdue|late|unacked|credit|consumer)",
                    head)


def check_table(terminal, rows):
    """Cells end where their titles end, and nothing is wider than the window."""
    lines = [line for line in terminal.lines if line]
    at = [n for n, line in enumerate(lines) if line.startswith("queue ")][0]
    titles = re.findall(r"late p99|\S+", lines[at])
    ends, place = [], 0
    for title in titles:
        place = lines[at].index(title, place) + len(title)
        ends.append(place)
    for line in lines[at + 1:]:
        cells = re.finditer(r"\S+", line)
        assert [cell.end() for cell in cells][1:] == ends[1:], \
            (line, lines[at])
    assert len(lines) <= rows - 1, lines
    assert len(lines) - at - 1 >= rows - 8, lines
    return titles


ALL = ["queue", "requests/s", "expired/s", "armed", "unacked", "overdue",
       "late p99", "credit", "consumer"]


def test_sizes():
    """Columns of high rank are hidden first; visible ones never overlap."""
    for rows, columns, without in (
            (24, 132, []), (24, 80, ["credit"]),
            (20, 60, ["credit", "unacked", "late p99"]),
            (10, 30, ["unacked", "credit", "late p99", "expired/s", "consumer",
                      "requests/s"])):
        with server() as fake, top(fake, rows, columns) as terminal:
            terminal.until(lambda: drawn(terminal))
            titles = check_table(terminal, rows)
            assert titles == [title for title in ALL if title not in without], \
                titles
            terminal.press(b"ssss")
            terminal.until(lambda: "by name" in terminal.text() and
                           drawn(terminal))
            name = names(terminal)[0]
            assert name == LONG if columns == 132 else \
                re.fullmatch(r"a\.nam.*\.\..*rs\.", name), name
            check_table(terminal, rows)
            terminal.press(b"q")
            assert terminal.report("end") == 0
            assert terminal.is_restored()


def test_tiny_windows():
    """Nothing fits, and nothing breaks."""
    for rows, columns in (1, 80), (2, 80), (3, 10), (5, 1), (24, 4):
        with server() as fake, top(fake, rows, columns, "--count",
                                   "2") as terminal:
            assert terminal.report("end") == 0
            assert terminal.is_restored()


def test_resize():
    """A new size redraws the screen at once."""
    with server() as fake, top(fake, 24, 132) as terminal:
        terminal.until(lambda: drawn(terminal) and
                       len(check_table(terminal, 24)) == 9)
        for rows, columns, count in (20, 60, 6), (40, 80, 8), (24, 132, 9):
            terminal.resize(rows, columns)
            terminal.until(lambda: terminal.strict and drawn(terminal))
            assert len(check_table(terminal, rows)) == count
        # There are more frames than seconds.
        began, before_it = time.monotonic(), terminal.pictures
        for n in range(20):
            seen = terminal.pictures
            terminal.resize(24, 80 + n)
            terminal.until(lambda: terminal.pictures > seen)
        took = time.monotonic() - began
        assert terminal.pictures - before_it > took + 5, took
        terminal.press(b"q")
        assert terminal.report("end") == 0


def test_order():
    """s selects each order in turn, and the screen names it."""
    rows = queues()
    with server() as fake, top(fake, 60, 80) as terminal:
        terminal.until(lambda: drawn(terminal))
        orders = {}
        for word in "activity", "armed", "overdue", "late p99", "name":
            terminal.until(lambda: " by %s; " % word in terminal.text() and
                           drawn(terminal) and len(names(terminal)) == QUEUES)
            orders[word] = names(terminal)
            terminal.press(b"s")
        terminal.until(lambda: " by activity; " in terminal.text())
        numbers = {name: n for n, (name, _, _) in enumerate(rows)}
        got = {word: [numbers.get(name, 3) for name in order]
               for word, order in orders.items()}
        assert got["overdue"][:3] == [n for n in sorted(
            range(QUEUES), key=lambda n: -((n * 7) % QUEUES))][:3], got
        assert got["activity"] == list(range(QUEUES))[::-1], got
        assert got["armed"] == sorted(
            range(20), key=lambda n: n * 11 % QUEUES) + \
            list(range(20, QUEUES))[::-1], got
        late = [n * 3 % 38 for n in got["late p99"]]
        assert late == sorted(late, reverse=True), late
        assert got["name"] == [3] + [n for n in range(QUEUES) if n != 3], got
        terminal.press(b"Q")
        assert terminal.report("end") == 0


def test_scrolling():
    with server() as fake, top(fake, 24, 80) as terminal:
        terminal.until(lambda: drawn(terminal))
        terminal.press(b"ssss")
        terminal.until(lambda: "by name" in terminal.text() and
                       drawn(terminal))
        page = len(names(terminal))
        everything = [names(terminal)[0]] + \
            ["q%02d" % n for n in range(QUEUES) if n != 3]

        def shows(first):
            terminal.until(lambda: drawn(terminal) and
                           "%d-%d of 40 " % (first + 1, first + page) in
                           terminal.text())
            assert names(terminal) == everything[first:first + page]
        shows(0)
        for keys, first in ((DOWN, 1), (DOWN * 2, 3), (UP, 2), (UP * 9, 0),
                            (PAGE_DOWN, page), (PAGE_DOWN * 5, QUEUES - page),
                            (DOWN * 3, QUEUES - page),
                            (UP, QUEUES - page - 1),
                            (PAGE_UP, max(0, QUEUES - 2 * page - 1)),
                            (LAST, QUEUES - page), (HOME, 0),
                            # Keys that mean nothing, a part of a key.
                            (b"x\033[24~\033[1;5C\033OPz" + DOWN, 1),
                            (b"\033[10~" + DOWN, 2)):
            terminal.press(keys)
            shows(first)
        # A sequence may come in pieces.
        terminal.press(b"\033")
        terminal.press(b"[B")
        shows(3)
        terminal.press(b"q")
        assert terminal.report("end") == 0


def test_signals_end_it():
    """The process ends by the signal itself, with the terminal restored."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT,
                   signal.SIGHUP):
        with server() as fake, top(fake, 24, 80) as terminal:
            terminal.until(lambda: drawn(terminal))
            assert not terminal.cursor_shown and not terminal.is_restored()
            if number == signal.SIGINT:
                terminal.press(b"\x03")
            else:
                os.kill(terminal.pid, number)
            assert terminal.report("end") == -number
            assert terminal.is_restored(), number


def test_stop_and_go_on():
    """Ctrl-Z restores the terminal; fg redraws the screen."""
    with server() as fake, top(fake, 24, 80) as terminal:
        terminal.until(lambda: drawn(terminal))
        for _ in range(2):
            terminal.press(b"\x1a")
            assert terminal.report("stop") == signal.SIGTSTP
            assert terminal.is_restored()
            terminal.lines = [""] * 24
            terminal.go_on()
            terminal.until(lambda: drawn(terminal))
            assert not terminal.cursor_shown
        # SIGSTOP cannot be handled, so it leaves the terminal as it is.
        os.kill(terminal.pid, signal.SIGSTOP)
        assert terminal.report("stop") == signal.SIGSTOP
        terminal.lines = [""] * 24
        terminal.go_on()
        terminal.until(lambda: drawn(terminal))
        terminal.press(b"q")
        assert terminal.report("end") == 0
        assert terminal.is_restored()


def test_the_last_picture_stays():
    with server() as fake, top(fake, 24, 80, "--count", "1", "--limit",
                               "3") as terminal:
        assert terminal.report("end") == 0
        assert len(names(terminal)) == 3 and terminal.is_restored(), \
            terminal.text()
        assert "1-3 of 3 by activity; q: quit, s: sort, arrows: scroll" in terminal.text(), terminal.text()


def test_the_daemon_goes():
    """The reason is on a line of its own, and the terminal is restored."""
    with server() as fake, top(fake, 24, 80) as terminal:
        terminal.until(lambda: drawn(terminal))
        # The message may be longer than a line.
        terminal.old_pictures = 9
        fake.halt()
        fake.hang_up()
        assert terminal.report("end") == 1
        assert terminal.is_restored()
        assert any(line.startswith("expiryctl: ")
                   for line in terminal.lines), terminal.text()


if __name__ == "__main__":
    tap.main()
