#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every option of every command of expiryctl has an effect: a fake server compares the
requests to the byte. The time is fixed."""

import os
import re
import subprocess
import sys
import tempfile

from support_fake import NOW, Server
from support_fields import NEVER, ROOT, STAT as STATS, all_stats, DAEMON
from support_golden import CTL, WAIT, compare, run, shown, start, WRITE

sys.path.insert(0, os.path.join(ROOT, "tests", "socket"))
import tap  # noqa: E402
from client import (ACK, ACKING, ARM, BOOTTIME, CANCEL, CONSUME,  # noqa: E402
                    CREDIT, DROP, DURABLE, EXISTING, EXPIRED, KEYED, LATE, LATER, MONOTONIC,
                    NEW, OBSERVE, QUERY, QUEUES, REALTIME, REDELIVERED, REFRESH,
                    RELATIVE, SCAN, STAT, Record, wait_for)

SECOND = 10**9
HOUR = 3600 * SECOND
DEFAULT = ("default", 0, REALTIME)
# The requests that find the queue's clock and mode.
MODES = (0, KEYED, ACKING, ACKING | KEYED)
CLOCKS = (REALTIME, MONOTONIC, BOOTTIME)


def asks(arguments, hello, *records, stdin="", status=0, **server):
    """Expects this HELLO only, and these requests only. Some commands make no
    queue."""
    mode = hello[1] & (ACKING | KEYED)
    if not {"arm", "load", "run", "--create"} & set(arguments):
        hello = hello[0], hello[1] | EXISTING, hello[2]
    with Server(hello[2], mode, **all_stats(), **server) as fake:
        result = run(fake, *arguments, stdin=stdin)
        assert result[0] == status, result
        assert fake.hellos == [hello], (arguments, fake.hellos)
        assert fake.asked == list(records), (arguments, fake.asked)
    return result


def arm(deadline, cookie=0, flags=RELATIVE, **more):
    return Record(ARM, flags, deadline=deadline, cookie=cookie, **more)


def test_arm():
    asks(["arm", "+5s"], DEFAULT, arm(5 * SECOND))
    asks(["arm", "+5ms", "42"], DEFAULT, arm(5 * 10**6, 42))
    asks(["arm", "+5us", "0x2a"], DEFAULT, arm(5000, 42))
    asks(["arm", "never"], DEFAULT, arm(NEVER, flags=0))
    asks(["arm", "now"], DEFAULT, arm(0))
    asks(["arm", "+2h 30min"], DEFAULT, arm(9000 * SECOND))
    asks(["arm", "1 month left"], DEFAULT, arm(2629800 * SECOND))
    # The eighteenth of May is a Wednesday.
    midnight = 2000000000 - (5 * 60 + 33) * 60 - 20
    asks(["arm", "tomorrow 09:00"], DEFAULT,
         arm((midnight + 33 * 3600) * SECOND, flags=0))
    asks(["arm", "Fri 09:00"], DEFAULT,
         arm((midnight + 57 * 3600) * SECOND, flags=0))
    asks(["arm", "2033-05-20"], DEFAULT,
         arm((midnight + 48 * 3600) * SECOND, flags=0))
    asks(["arm", "2033-05-20 07:00 UTC"], DEFAULT,
         arm((midnight + 57 * 3600) * SECOND, flags=0))
    asks(["refresh", "7", "today 18:00"], DEFAULT,
         Record(REFRESH, 0, id=7, deadline=(midnight + 18 * 3600) * SECOND))
    asks(["arm", "@12.5"], DEFAULT, arm(12500000000, flags=0))
    asks(["arm", "2033-05-18T03:33:20+01:00"], DEFAULT,
         arm(2000000000 * SECOND - HOUR, flags=0))
    # It is half past five there, in summer.
    asks(["arm", "05:33"], DEFAULT,
         arm((2000000000 + 86400 - 20) * SECOND, flags=0))
    asks(["arm", "05:33:21"], DEFAULT, arm(2000000001 * SECOND, flags=0))
    asks(["arm", "2033-05-18 05:34"], DEFAULT,
         arm((2000000000 + 40) * SECOND, flags=0))
    for period, ms in ("250ms", 250), ("1.5s", 1500), ("2m", 120000), \
            ("1d", 86400000):
        asks(["arm", "+1s", "--period", period], DEFAULT,
             arm(SECOND, period=ms))
    for id in "7", "0xffffffffffffffff":
        asks(["arm", "+1s", "--id", id], ("default", KEYED, REALTIME),
             arm(SECOND, id=int(id, 0)))
    keyed = "--id", "7"
    for options, flags in (["--new"], NEW), (["--later"], LATER), \
            (["--new", "--later"], NEW | LATER):
        asks(["arm", "+1s", *keyed, *options], ("default", KEYED, REALTIME),
             arm(SECOND, id=7, flags=RELATIVE | flags))
    # A wrong command line makes no queue.
    with Server() as fake:
        for wrong in ["+1s", "--keyed"], ["+1s", "--durable", "-q", "x"], \
                ["2033-05-20", "--clock", "boottime"]:
            assert run(fake, "arm", *wrong)[0] == 2, wrong
            assert not fake.hellos, wrong
    # A plain queue gets no request that it cannot do.
    asks(["arm", "+1s", "--new"], DEFAULT, status=1)
    asks(["arm", "+1s", "--later"], DEFAULT, status=1)


def test_which_queue():
    for clock, name in (REALTIME, "realtime"), (MONOTONIC, "monotonic"), \
            (BOOTTIME, "boottime"):
        for mode, options in (0, []), (KEYED, ["--keyed"]), \
                (ACKING, ["--ack"]), (ACKING | KEYED, ["--keyed", "--ack"]):
            asks(["list", "--queue", "a.b_c-D9", "--clock", name, *options],
                 ("a.b_c-D9", mode, clock), Record(SCAN, period=512))
    asks(["-q", "a.b_c-D9", "list"], ("a.b_c-D9", 0, REALTIME),
         Record(SCAN, period=512))


LOOK = "", EXISTING, REALTIME


def tried(command, clock, mode, seen=True):
    """Returns the command's HELLOs and its output."""
    rows = {} if seen else {"queues": [[("another", STATS.pack({}),
                                         DAEMON.pack({}))]]}
    with Server(clock, mode, **rows) as fake:
        status, _, err = run(fake, *command)
        return fake.hellos, status, err


def test_a_queue_that_is_there_is_taken_as_it_is():
    """For each clock and mode: guess, look, attach."""
    for clock in CLOCKS:
        for mode in MODES:
            for command, flags in (["list"], EXISTING), \
                    (["arm", "+1h", "--id", "7"], KEYED), (["load"], 0):
                if flags & KEYED and not mode & KEYED:
                    continue
                hellos, status, err = tried(command, clock, mode)
                right = "default", flags | mode, clock
                guess = "default", flags, REALTIME
                assert hellos == ([right] if guess == right else
                                  [guess, LOOK, right]), (command, hellos)
                assert status == 0, err


def test_what_is_said_is_not_to_be_guessed():
    hellos, status, err = tried(["list", "--clock", "monotonic"], BOOTTIME, 0)
    assert hellos == [("default", EXISTING, MONOTONIC), LOOK], hellos
    assert status == 1 and "is on clock boottime" in err, err
    hellos, status, err = tried(["list", "--ack"], REALTIME, KEYED)
    assert hellos == [("default", EXISTING | ACKING, REALTIME), LOOK], hellos
    assert status == 1 and "delivers at most once" in err, err
    hellos, status, err = tried(["list"], REALTIME, KEYED, seen=False)
    assert hellos == [DEFAULT[:1] + (EXISTING, REALTIME), LOOK], hellos
    assert status == 1 and "you may not see which" in err, err


def test_refresh_query_cancel():
    timers = [Record(0, id=7, deadline=NEVER), Record(0, id=8)]
    asks(["refresh", "7", "+1h"], DEFAULT,
         Record(REFRESH, RELATIVE, id=7, deadline=HOUR))
    asks(["refresh", "0x7", "@1.25", "--later"], DEFAULT,
         Record(REFRESH, LATER, id=7, deadline=1250000000))
    asks(["refresh", "7", "+1h", "--later"], DEFAULT,
         Record(REFRESH, RELATIVE | LATER, id=7, deadline=HOUR))
    asks(["query", "7", "0x8"], DEFAULT, Record(QUERY, id=7),
         Record(QUERY, id=8), timers=timers)
    asks(["cancel", "8", "9", "7"], DEFAULT, Record(CANCEL, id=8),
         Record(CANCEL, id=9), Record(CANCEL, id=7), status=1, timers=timers)
    asks(["drop", "--queue", "q"], ("q", 0, REALTIME), Record(DROP))


def test_list():
    timers = [Record(0, id=n + 1, deadline=n) for n in range(1300)]
    for limit, pages in (None, [512, 512, 512]), (1, [1]), (512, [512]), \
            (513, [512, 1]), (2000, [512, 512, 512]):
        option = ["--limit", str(limit)] if limit else []
        _, out, _ = asks(["list", *option], DEFAULT, *[
            Record(SCAN, id=512 * n, period=period)
            for n, period in enumerate(pages)], timers=timers)
        assert len(out.splitlines()) == min(limit or 1300, 1300)


def test_load():
    lines = "".join("@%d %d\n" % (n, 2 * n) for n in range(1100))
    records = [arm(n * SECOND, 2 * n, flags=0) for n in range(1100)]
    _, out, _ = asks(["load"], DEFAULT, *records, stdin=lines)
    assert out == "1100 loaded, 0 failed\n", out
    _, out, _ = asks(["load", "--ids", "-"], DEFAULT, *records, stdin=lines)
    assert out == "4294967297\n" * 1100
    with tempfile.NamedTemporaryFile("w") as file:
        file.write("+1m 0x10 3\n+1ms 1 0x4\n")
        file.flush()
        asks(["load", "--keyed", file.name], ("default", KEYED, REALTIME),
             arm(60 * SECOND, 16, id=3), arm(10**6, 1, id=4))


def expirations(count, **more):
    return [Record(EXPIRED, id=n + 1, deadline=5, cookie=n, **more)
            for n in range(count)]


def test_watch():
    consume = ("default", CONSUME, REALTIME)
    asks(["watch", "--count", "3"], consume, Record(CREDIT, period=3),
         expirations=expirations(3))
    asks(["watch", "--create", "--count", "3"], consume,
         Record(CREDIT, period=3), expirations=expirations(3))
    # The command requests only what it prints.
    asks(["watch", "--count", "300"], consume, Record(CREDIT, period=256),
         Record(CREDIT, period=44), expirations=expirations(300))
    # It acknowledges each, marked as redelivered or not.
    acks = ("default", CONSUME | ACKING, REALTIME)
    for flags in 0, REDELIVERED:
        asks(["watch", "--ack", "--count", "2"], acks,
             Record(CREDIT, period=2), Record(ACK, id=1), Record(ACK, id=2),
             expirations=expirations(2, flags=flags))


def test_durable():
    """It implies the mode, and is asked for in HELLO."""
    durable = "default", DURABLE | KEYED | ACKING, REALTIME
    asks(["arm", "+5s", "--id", "7", "--durable"], durable, arm(5 * SECOND, id=7),
         commit_ms=0)
    asks(["load", "--durable"], durable, commit_ms=0)
    # A command that reconnects asks for the queue's number.
    hello = "default", durable[1] | CONSUME, REALTIME
    for more in [], ["--create"]:
        asks(["watch", "--durable", "--count", "1", *more], hello, Record(STAT),
             Record(CREDIT, period=1), Record(ACK, id=1), commit_ms=100,
             expirations=expirations(1, flags=LATE))


def test_tail():
    """Copies need no credit and no request."""
    for mode, options in (0, []), (ACKING, ["--ack"]):
        _, out, _ = asks(["tail", "--count", "3", *options],
                         ("default", OBSERVE | mode, REALTIME),
                         expirations=expirations(4))
        assert len(out.splitlines()) == 3, out


def test_looking_on():
    """HELLO has no name, so no queue is made."""
    nobody = "", EXISTING, REALTIME
    look = Record(STAT), Record(QUEUES, period=64)
    asks(["queues"], nobody, look[1])
    asks(["queues", "--names"], nobody, look[1])
    asks(["metrics"], nobody, *look)
    asks(["top", "--count", "2"], nobody, *look * 3)
    asks(["status"], nobody, Record(STAT))
    asks(["status", "--queue", "q"], ("q", 0, REALTIME), Record(STAT))
    asks(["stats"], DEFAULT, Record(STAT))
    asks(["stats", "--queue", "q"], ("q", 0, REALTIME), Record(STAT))
    _, out, _ = asks(["top", "--count", "1", "--queue", "q"], nobody,
                     *look * 2)
    assert out.splitlines()[-1].startswith("q "), out


def test_many_queues_take_several_pages():
    """By default the first thousand by name."""
    names = sorted("q%d" % n for n in range(1100))
    queues = [(name, STATS.pack({}), DAEMON.pack({"number": n}))
              for n, name in enumerate(reversed(names))]
    for options, most in ([], 1000), (["--limit", "140"], 140), \
            (["--limit", "2000"], 1100):
        with Server(stats=all_stats()["stats"], queues=[queues]) as fake:
            _, out, _ = run(fake, "metrics", *options)
            assert [record.id for record in fake.asked[1:]] == \
                list(range(0, 1100, 64))
        shown_of = re.findall(r'expiry_queue_armed\{queue="(\w+)"\}', out)
        assert shown_of == names[:most], (options, len(shown_of))


# ---------------------------------------------------------------------------

class Notes:
    """Pauses that were not slept, or time limits of sockets, in ns."""

    def __init__(self):
        self.file = tempfile.NamedTemporaryFile("r")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()

    def to(self):
        return {"EXPIRY_TEST_NOTES": self.file.name}

    def read(self, what="pause"):
        self.file.seek(0)
        lines = [line.split() for line in self.file.read().splitlines()]
        return [int(ns) for kind, ns in lines if kind == what]


def test_top_looks_once_a_second():
    with Notes() as notes, Server(**all_stats()) as fake:
        run(fake, "top", "--count", "3", **notes.to())
        assert notes.read() == [SECOND] * 3, notes.read()


def test_run():
    own = "", CONSUME, BOOTTIME
    due = expirations(1)
    now = NOW[BOOTTIME]
    # Each taken expiration makes credit for one more.
    credit = Record(CREDIT, period=1)
    for text, ns in ("5s", 5 * SECOND), ("250ms", 25 * 10**7), \
            ("1h30m", 5400 * SECOND), ("+5s", 5 * SECOND), \
            ("2h 30min", 9000 * SECOND), ("5min", 300 * SECOND), \
            ("1w", 604800 * SECOND), ("1 month", 2629800 * SECOND):
        _, out, _ = asks(["run", "--in", text, "--", "echo", "tea"], own,
                         credit, arm(now + ns, flags=0), credit,
                         expirations=due)
        assert out == "tea\n", out
    asks(["run", "--at", "+5s", "--", "true"], own, credit,
         arm(now + 5 * SECOND, flags=0), credit, expirations=due)
    # It is 5:33:20 there.
    for option in "--at", "--in":
        for text, later in ("tomorrow 09:00", 27 * 3600 + 1600), \
                ("Fri 09:00", 51 * 3600 + 1600), \
                ("2033-05-19", 18 * 3600 + 1600):
            asks(["run", option, text, "--", "true"],
                 ("", CONSUME, REALTIME), credit,
                 arm((2000000000 + later) * SECOND, flags=0), credit,
                 expirations=due)
    asks(["run", "--at", "05:34", "--", "true"], ("", CONSUME, REALTIME),
         credit, arm((2000000000 + 40) * SECOND, flags=0), credit,
         expirations=due)


def test_run_looks_for_a_daemon_at_most_two_seconds_apart():
    with Notes() as notes, Server() as fake:
        process = start(fake, "run", "--in", "5s", "--", "echo", "tea",
                        **notes.to())
        assert wait_for(lambda: len(fake.asked) == 2), fake.asked
        fake.halt()
        fake.hang_up()
        assert wait_for(lambda: len(notes.read()) >= 10), notes.read()
        fake.expirations = expirations(1)
        fake.listen()
        out, err = process.communicate(timeout=WAIT)
        assert (out, err, process.returncode) == (b"tea\n", b"", 0), err
        ms = [ns // 10**6 for ns in notes.read()]
        assert ms[:6] == [100, 200, 400, 800, 1600, 2000], ms[:6]
        assert set(ms[5:]) == {2000}, set(ms[5:])
        # Each attempt arms the timer for the same time.
        assert {record.deadline for record in fake.asked
                if record.op == ARM} == {NOW[BOOTTIME] + 5 * SECOND}


def test_a_daemon_that_says_nothing_is_left():
    """After a minute."""
    with Notes() as notes, Server(**all_stats()) as fake:
        for call in (["list"], ["status"], ["metrics"]):
            run(fake, *call, **notes.to())
        assert notes.read("limit") == [60 * SECOND] * 6, notes.read("limit")


COMMANDS = ("status", "stats", "top", "metrics", "queues", "arm", "refresh", "cancel",
            "query", "watch", "tail", "list", "load", "run", "drop")


def test_help():
    text = ""
    for call in (["--help"], ["-h", "status"], ["help", "drop"],
                 *([name, "--help"] for name in COMMANDS)):
        out = subprocess.run([CTL, *call], stdout=subprocess.PIPE, text=True,
                             check=True).stdout
        text += shown(call, 0, out, "")
    compare("help", text)
    with open(os.path.join(ROOT, "VERSION"), encoding="utf-8") as file:
        version = file.read().strip()
    out = subprocess.run([CTL, "--version"], stdout=subprocess.PIPE,
                         text=True, check=True).stdout
    assert out == "expiryctl %s\n" % version, out


def test_no_option_is_left_out():
    """Each option in any --help is in a call of this file."""
    with open(os.path.abspath(__file__), encoding="utf-8") as file:
        here = file.read()
    options = set()
    for call in ([], *([name] for name in COMMANDS)):
        out = subprocess.run([CTL, *call, "--help"], stdout=subprocess.PIPE,
                             text=True, check=True).stdout
        options |= set(re.findall(r"^  .*?(--[a-z]+)",
                                  out.split("Examples:")[0], re.M))
    # test-golden covers these, and test-ctl on a kernel with the module.
    options -= {"--json", "--socket", "--device"}
    assert {"--limit", "--later", "--create", "--ack"} < options, options
    missing = {option for option in options if '"%s"' % option not in here}
    assert not missing, missing


if __name__ == "__main__":
    if WRITE:
        sys.argv.remove("--write")
    tap.main()
