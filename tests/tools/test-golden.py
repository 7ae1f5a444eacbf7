#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compares expiryctl's whole output with the files in golden/, at a fixed time. Each
field of the structs has a unique value. --write replaces the files: then compare each
change with the fields by eye (support_fields.py has their places)."""

import errno
import os
import re
import sys
from decimal import Decimal

import support_fields as fields
from support_fields import (DAEMON, NEVER, SERVER, STAT, queue,
                            stats)
from support_fake import NOW, Server
from support_golden import (WRITE, compare, run, run_on_terminal, shown)

sys.path.insert(0, os.path.join(fields.ROOT, "tests", "socket"))
import tap  # noqa: E402
from client import (ACKING, ARM, BOOTTIME, CANCEL, CLOCK_SET,  # noqa: E402
                    DROP, EXPIRED, HELLO, KEYED, LATE, MISSED, MONOTONIC, QUERY,
                    QUEUES, REALTIME, REDELIVERED, REFRESH, SCAN, STAT as OP_STAT,
                    Record)

KERNEL, EMBEDDED = 2, 1
QUEUE_DURABLE = 0x4000
EPOLL = 2
SECOND = 10**9
DAY = 86400 * SECOND
NO_GROUP = 2**32 - 1
NO_PID = 2**22 + 1      # the kernel's limit is 2^22
LEASES = ("--queue", "leases")


def session(server, *calls, **more):
    """Returns all calls and their results."""
    return "".join(shown(call, *run(server, *call, **more)) for call in calls)


def only(place, count=1):
    """A histogram of one bucket."""
    return [count if n == place else 0 for n in range(fields.BUCKETS)]


# ---------------------------------------------------------------------------

def test_status():
    with Server(mode=ACKING, stats=[stats()]) as server:
        text = session(server, ("status",), ("status", *LEASES),
                       ("--json", "status"), ("--json", "status", *LEASES))
    for commit_ms in 0, 100:
        with Server(mode=KEYED | ACKING, commit_ms=commit_ms,
                    stats=[stats({"mode": KEYED | ACKING})]) as server:
            text += session(server, ("status", *LEASES), ("--json", "status", *LEASES))
    # An empty queue: no timer, no consumer.
    nothing = STAT.zeros(), SERVER.zeros()
    nothing[0].update(next_ns=NEVER, clock_id=BOOTTIME, mode=KEYED | ACKING,
                      now_ns=NOW[BOOTTIME])
    nothing[1].update(engine=EMBEDDED, loop=EPOLL, next_ns=NEVER)
    with Server(BOOTTIME, KEYED | ACKING, stats=[stats(*nothing)]) as server:
        text += session(server, ("status", *LEASES),
                        ("--json", "status", *LEASES))
    # Too many queues; due timers; an unknown engine and loop.
    other = {"next_ns": NOW[MONOTONIC] - 1, "now_ns": NOW[MONOTONIC],
             "clock_id": MONOTONIC, "mode": 0}
    with Server(MONOTONIC, stats=[stats(
            other, {"engine": 3, "loop": 3, "next_ns": 0})]) \
            as server:
        text += session(server, ("status", *LEASES),
                        ("--json", "status", *LEASES))
    compare("status", text)


def test_stats():
    with Server(mode=ACKING, stats=[stats()]) as server:
        text = session(server, ("stats", *LEASES), ("stats", "--json"))
    with Server(MONOTONIC, KEYED, stats=[stats(
            dict(STAT.zeros(), clock_id=MONOTONIC, mode=KEYED),
            SERVER.zeros())]) as server:
        text += session(server, ("stats",), ("--json", "stats"))
    # The median, the 99th percentile and the maximum all differ.
    counts = [0] * fields.BUCKETS
    counts[12], counts[21], counts[33] = 600, 395, 5
    with Server(stats=[stats(
            {"mode": 0, "lateness": counts, "lateness_max_ns": 7 * SECOND},
            {"turn_ns": counts, "batch": only(39), "request_ns": only(0)})]) \
            as server:
        text += session(server, ("stats",), ("--json", "stats"))
    compare("stats", text)


def looks():
    """Returns two samples of three queues, two and a half seconds apart."""
    busy = {"arms": 10000, "refreshes": 2000, "cancels": 300, "acks": 40,
            "refused": 5, "delivered": 1111, "redelivered": 77}
    now = NOW[REALTIME]
    before = STAT.values()
    after = {name: before[name] + more for name, more in busy.items()}
    late = list(before["lateness"])
    late[14] += 90
    late[20] += 9
    late[25] += 1
    quiet = {"next_ns": NEVER, "armed": 7, "unacked": 0}
    due = {"next_ns": now - 90 * SECOND, "armed": 8, "unacked": 9,
           "lateness": only(39, 4)}
    nobody = {"consumers": 0, "credit": 0, "consumer_pid": 0}
    first = [queue("busy"), queue("due", due, {"number": 2, **nobody}),
             queue("", quiet, {"number": 1, "uid": 1000, **nobody})]
    second = [queue("", quiet, {"number": 1, "uid": 1000, **nobody}),
              # It was late without an end, and delivered one.
              queue("due", dict(due, lateness=only(39, 5),
                                delivered=before["delivered"] + 1),
                    {"number": 2, **nobody}),
              queue("busy", dict(after, lateness=late)),
              queue("a.name-of_24-characters.",
                    {"next_ns": now - 1, "armed": 6},
                    {"number": 3, "consumer_pid": 4194304, "credit": 0})]
    was = SERVER.values()
    moved = {"uptime_ns": was["uptime_ns"] + 5 * SECOND // 2,
             "records": was["records"] + 25000,
             "expirations": was["expirations"] - 500,
             "turn_ns": [n + more for n, more in
                         zip(was["turn_ns"], only(11, 100))],
             "request_ns": [n + more for n, more in
                            zip(was["request_ns"], only(17, 100))]}
    return {"stats": [stats(None, {"expirations": was["expirations"] - 5500}),
                      stats(None, moved)],
            "queues": [first, second]}


def test_top():
    calls = (("top", "--count", "1"), ("--json", "top", "--count", "1"),
             ("--json", "top", "--count", "1", "--limit", "2"),
             ("top", "--count", "1", "busy", "due"),
             ("top", "--count", "1", "--queue", "due"),
             ("top", "--count", "1", "absent"),
             # Nothing happens between the last two samples.
             ("top", "--count", "2", "busy"))
    text = ""
    for call in calls:
        with Server(page=2, **looks()) as server:
            text += session(server, call)
    compare("top", text)


def test_queues():
    """Owners: a user without a name here, and root."""
    nobody = {"consumers": 0, "credit": 0, "consumer_pid": 0}
    # There is no process of that number.
    rows = [queue("leases", {"mode": ACKING | KEYED}, {"consumer_pid": NO_PID}),
            queue("outlives", {"mode": ACKING | KEYED},
                  {"access": 0o700 | QUEUE_DURABLE, "consumer_pid": NO_PID}),
            queue("", {"next_ns": NEVER, "armed": 0},
                  {"uid": 0, "access": 0o700, "gid": NO_GROUP, **nobody}),
            queue("a.name-of_24-characters.",
                  {"next_ns": NOW[BOOTTIME] - 3 * SECOND // 1000, "armed": 6,
                   "now_ns": NOW[BOOTTIME], "clock_id": BOOTTIME,
                   "mode": KEYED}, {"number": 3, "gid": 0, **nobody}),
            # A daemon older than rights of queues.
            queue("$(reboot)", {"mode": 0}, dict(nobody, access=0, gid=0))]
    with Server(queues=[rows], page=2) as server:
        text = session(server, ("queues",), ("queues", "--json"),
                       ("queues", "--names"),
                       ("queues", "--queue", "leases"),
                       ("queues", "--queue", "absent"))
    with Server(queues=[[]]) as server:
        text += session(server, ("queues",), ("queues", "--names"))
    compare("queues", text)


def test_metrics():
    with Server(**metrics_server()) as server:
        text = session(server, ("metrics",))
        compare("metrics", text)
    with Server(**metrics_server()) as server:
        text = session(server, ("metrics", *LEASES),
                       ("metrics", "--limit", "1"))
    # One metric of each queue shows which queues are listed.
    compare("metrics-chosen", "".join(
        line + "\n" for line in text.splitlines()
        if line.startswith(("$", "expiry_queue_unacked", "# EOF"))))


def metrics_server():
    quiet = {"unacked": 1, "next_ns": NEVER}
    due = {"unacked": 2, "next_ns": NOW[REALTIME] - 1234567890,
           "lateness": only(0, 9)}
    return {"stats": [stats()], "page": 2, "queues": [[
        queue("quiet", quiet, {"consumers": 0, "credit": 0}),
        queue("leases"), queue(""), queue("a.name-of_24-characters.", due),
        # The protocol does not allow this name.
        queue('a"} 1')]]}


# ---------------------------------------------------------------------------

def some_timers(clock):
    """Returns timers with each unit of a distance, at its least and most."""
    now = NOW[clock]
    near = [0, 999, 1000, 10**6 - 100, 10**6, 10**9 - 10**5, 10**9,
            120 * SECOND - 1, 120 * SECOND, 7200 * SECOND - 1, 7200 * SECOND,
            2 * DAY - 1, 2 * DAY, 20000 * DAY]
    deadlines = [now + ns for ns in near] + \
        [now - ns for ns in near if 0 < ns <= now] + [0, NEVER, NEVER - 1]
    return [Record(0, flags=REDELIVERED if n % 5 == 3 else 0, period=period,
                   id=(4294967297 * (n + 1) * (n + 2)), deadline=deadline,
                   cookie=18446744073709551615 - 3**n)
            for n, (deadline, period) in enumerate(zip(
                deadlines, [0, 1, 999, 1000, 1500, 120000, 7200000, 172800000,
                            4294967295] * 4))]


def test_timers():
    text = ""
    for clock in REALTIME, MONOTONIC, BOOTTIME:
        with Server(clock, page=7, timers=some_timers(clock)) as server:
            text += session(server, ("list",), ("--json", "list"),
                            ("list", "--limit", "8"))
    with Server(timers=some_timers(REALTIME)) as server:
        text += session(
            server, ("arm", "+1h30m", "42"),
            ("arm", "--json", "never", "0xff"),
            ("arm", "2033-05-18T03:33:19.5Z", "--period", "250ms"),
            ("refresh", "0x100000001", "+5s"),
            ("--json", "refresh", "4294967297", "@4000000000.000000001"),
            ("query", "8589934594", "1", "25769803782"),
            ("--json", "query", "8589934594"),
            ("cancel", "8589934594", "51539607564"),
            ("--json", "cancel", "51539607564"),
            ("drop", *LEASES), ("--json", "drop", *LEASES))
        text += shown(("load", "--ids"), *run(
            server, "load", "--ids", stdin="+1h 1\n@5 2 # two\n"))
        text += shown(("--json", "load", "--ids", "-"), *run(
            server, "--json", "load", "--ids", "-", stdin="+1h 1\nnever 2\n"))
        text += shown(("load",), *run(
            server, "load", stdin="+1h 1\n+1h 2 3\n\n@x 4\nnever 5\n"))
    # The message names the refused line.
    with Server(errors={ARM: errno.ENOSPC}) as server:
        text += shown(("load",), *run(server, "load",
                                      stdin="# two\n+1h 1\n\n+2h 2\n"))
    compare("timers", text)


def expirations(clock):
    now = NOW[clock]
    return [Record(EXPIRED, id=1, deadline=now - 1, cookie=11),
            Record(EXPIRED, REDELIVERED, id=2, deadline=now - 90 * SECOND,
                   cookie=22, period=1),
            Record(CLOCK_SET, deadline=now + SECOND),
            Record(EXPIRED, id=NEVER, deadline=0, cookie=NEVER,
                   period=2**32 - 1),
            Record(EXPIRED, REDELIVERED, id=4, deadline=now + 1, cookie=44),
            Record(EXPIRED, LATE, id=5, deadline=now - SECOND, cookie=55),
            Record(EXPIRED, LATE | REDELIVERED, id=6, deadline=now - 3600 * SECOND, cookie=66)]


def test_watch():
    text = ""
    for clock in REALTIME, MONOTONIC:
        for option in (), ("--json",):
            with Server(clock, ACKING,
                        expirations=expirations(clock)) as server:
                text += session(server, (*option, "watch", "--count", "6"))
    compare("watch", text)


def test_tail():
    """Copies, and the number of missed ones."""
    text = ""
    for option in (), ("--json",):
        copies = expirations(REALTIME)
        copies[2:2] = [Record(MISSED, cookie=2**53 + 1)]
        with Server(mode=ACKING, expirations=copies) as server:
            text += session(server, (*option, "tail", "--count", "4"))
    compare("tail", text)


def test_nothing_is_late_by_less_than_nothing():
    """Timers and expirations before and after now, in the table's format."""
    for clock in REALTIME, MONOTONIC:
        with Server(clock, timers=some_timers(clock),
                    expirations=expirations(clock)) as server:
            _, out, _ = run(server, "list")
            late = [line for line in out.splitlines() if "  late " in line]
            assert len(late) >= 13 and not re.search(r" -\d", out), out
            _, out, _ = run(server, "watch", "--count", "4")
            rows = [line for line in out.splitlines() if "clock" not in line]
            assert [re.search(r"  (late \w+(\.\d+)?\w+) ", row)[1]
                    for row in rows[:2]] == ["late 1ns", "late 1.5m"], out
            assert " late 0s " in rows[3], out


def test_terminal():
    """Headings and emphasis; a full window leaves rows out."""
    with Server(stats=[stats({"mode": 0}, {"engine": EMBEDDED})],
                queues=[[queue("leases", None, {"consumers": 0})]],
                timers=some_timers(REALTIME)[:2],
                expirations=expirations(REALTIME)[:3]) as server:
        text = "".join(
            shown(call, 0, run_on_terminal(server, *call), "")
            for call in (("list",), ("status", *LEASES), ("stats",),
                         ("queues",), ("watch", "--count", "2")))
        # An empty NO_COLOR has no effect.
        for more in {"NO_COLOR": "1"}, {"NO_COLOR": ""}, {"TERM": "dumb"}:
            text += "# %s\n" % more + shown(
                ("list",), 0, run_on_terminal(server, "list", **more), "")
    # The progress of a file.
    with Server() as server:
        with open(os.path.join(server.folder, "timers"), "w",
                  encoding="utf-8") as file:
            file.write("+1h 1234567890\n" * 20000)
        text += shown(("load", "timers"), 0,
                      run_on_terminal(server, "load", "timers"), "")
    with Server(**looks()) as server:
        call = "top", "--count", "1"
        text += shown(call, 0, run_on_terminal(server, *call, rows=6), "")
    compare("terminal", re.sub(r"(?m)^(  module +)(\\e.*)?$", r"\1", text))


CALLS = {ARM: ("arm", "+1s"), REFRESH: ("refresh", "1", "+1s"),
         CANCEL: ("cancel", "1"), QUERY: ("query", "1"), SCAN: ("list",),
         OP_STAT: ("stats",), QUEUES: ("top",), DROP: ("drop", *LEASES),
         HELLO: ("list", *LEASES)}
ERRORS = (errno.EINVAL, errno.ENOENT, errno.EEXIST, errno.ENOSPC, errno.EDQUOT,
          errno.ENOMEM, errno.EBUSY, errno.EACCES, errno.EOPNOTSUPP,
          errno.EPROTO, errno.EMFILE, errno.EPROTONOSUPPORT)


def test_refusals():
    """The message for each errno of each command."""
    text = ""
    for op, call in CALLS.items():
        for error in ERRORS:
            with Server(stats=[stats({"mode": 0})], errors={op: error}) \
                    as server:
                text += "# %s\n" % errno.errorcode[error]
                text += session(server, call)
    compare("refusals", text)


# ---------------------------------------------------------------------------

def test_each_field_has_a_row_and_a_value_of_its_own():
    seen = {}
    for table in STAT, SERVER, DAEMON:
        table.check()
        for name, value in table.values().items():
            if value in (0, 1, 2):      # a word or a switch
                continue
            other = seen.setdefault(str(value), (table.name, name))
            assert other == (table.name, name), (table.name, name, other)
    # In the protocol's format.
    assert len(STAT.pack({})) == 512, len(STAT.pack({}))
    for table in SERVER, DAEMON:
        assert len(table.pack({})) % 32 == 0, table.name


def expected_samples(field, value, labels):
    """Returns the lines of one metric, of one queue or the daemon."""
    name, kind = field.metric.split()
    name = "expiry_" + name
    before = labels + "," if labels else ""
    labels = "{%s}" % labels if labels else ""
    if kind == "gauge":
        return ["%s%s %d" % (name, labels, value)]
    if kind == "counter":
        return ["%s_total%s %d" % (name, labels, value)]
    if kind == "seconds":
        return ["%s%s %s" % (name, labels, Decimal(value).scaleb(-9)
                             .quantize(Decimal("1e-9")))]
    lines, total = [], 0
    for n, count in enumerate(value):
        total += count
        # An integer below 2^n is at most 2^n - 1.
        bound = Decimal(2**n - 1).scaleb(-9 if kind == "times" else 0)
        lines.append((bound if n < 39 else None, total))
    return [(name, before, bound, total) for bound, total in lines]


def check_metric(lines, field, value, labels=""):
    """Removes the samples of @field from the front of @lines."""
    for expected in expected_samples(field, value, labels):
        line = lines.pop(0)
        if isinstance(expected, str):
            assert line == expected, (line, expected)
            continue
        name, before, bound, total = expected
        match = re.fullmatch(
            re.escape(name + "_bucket{" + before) + r'le="([^"]+)"} (\d+)',
            line)
        assert match and int(match[2]) == total, (line, expected)
        if bound is None:
            assert match[1] == "+Inf", line
        else:
            # A float has a decimal point.
            assert Decimal(match[1]) == bound and \
                re.search("[.e]", match[1]), (line, bound)


def check_head(lines, name, kind, text):
    name = "expiry_" + name
    metric, unit = fields.KINDS[kind]
    head = ["# TYPE %s %s" % (name, metric)]
    if unit:
        head.append("# UNIT %s %s" % (name, unit))
        assert name.endswith("_" + unit), name
    head.append("# HELP %s %s" % (name, text))
    assert lines[:len(head)] == head, (lines[:3], head)
    del lines[:len(head)]


def test_each_metric_is_its_fields():
    """Name, type, unit, help, labels and value; and there are no others."""
    with Server(stats=[stats()], queues=[[queue("leases")]]) as server:
        _, out, _ = run(server, "metrics")
    lines = out.splitlines()
    families = {}
    for line in lines:
        if line.startswith("# TYPE "):
            families[line.split()[2]] = []
        families[list(families)[-1]].append(line)
    assert families[list(families)[-1]].pop() == "# EOF"
    for table, labels in (SERVER, ""), (STAT, 'queue="leases"'), \
            (DAEMON, 'queue="leases"'):
        values = table.values()
        for field in table.fields:
            if field.metric.startswith("-"):
                assert len(field.metric) > 2, "say why %s is no metric" % \
                    field.name
                continue
            name, kind = field.metric.split()
            lines = families.pop("expiry_" + name, None)
            assert lines, "there is no metric expiry_%s" % name
            check_head(lines, name, kind, field.help)
            check_metric(lines, field, values[field.name], labels)
            assert not lines, lines
    for name, (kind, text) in fields.DERIVED.items():
        lines = families.pop("expiry_" + name)
        check_head(lines, name, kind, text)
    assert not families, "these metrics have no row: %s" % list(families)


if __name__ == "__main__":
    if WRITE:
        sys.argv.remove("--write")
    tap.main()
