#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""expiryctl metrics, top and status: their values are true, and a reader of
OpenMetrics accepts the text."""

import json
import os
import pwd
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "socket"))
import support_fields as fields  # noqa: E402
import tap  # noqa: E402
from client import (CONSUME, DROP, HOUR, KEYED, REALTIME,  # noqa: E402
                    Record, arm, attach, wait_for)
from daemon import ROOT, Daemon  # noqa: E402

CTL = os.path.join(ROOT, "build", "expiryctl")
SAMPLE = re.compile(r'(expiry_[a-z_]+)(?:\{(.*)\})? ([0-9.e+-]+)$')
SUFFIXES = {"counter": ["_total"], "gauge": [""], "histogram": ["_bucket"]}


def ctl(daemon, *arguments):
    return subprocess.run([CTL, "--socket", daemon.path, *arguments],
                          stdout=subprocess.PIPE, text=True, check=True).stdout


def metrics(daemon, *arguments):
    """{(name, labels): value}; every line must be in its place, and each family
    of its type."""
    expected = fields.families()
    lines = ctl(daemon, "metrics", *arguments).splitlines()
    assert lines.pop() == "# EOF", lines
    values, family, kind, families = {}, None, None, set()
    for line in lines:
        if line.startswith("# TYPE "):
            _, _, family, kind = line.split(" ", 3)
            assert family not in families, line
            families.add(family)
            assert kind == expected[family][0], line
        elif line.startswith("# UNIT "):
            assert line.split(" ")[2:] == [family, expected[family][1]], line
        elif line.startswith("# HELP "):
            assert line.split(" ", 3)[2:] == [family, expected[family][2]], \
                line
        else:
            name, labels, value = SAMPLE.match(line).groups()
            assert name in [family + end for end in SUFFIXES[kind]], line
            # A whole bound is a float, too.
            assert kind != "histogram" or \
                re.search(r'le="(\+Inf|.*[.e].*)"', labels), line
            assert (name, labels) not in values, line
            values[name, labels] = float(value)
    # Without a queue its families are absent.
    assert families in (set(expected),
                        set(fields.families(fields.SERVER))), families
    return values


def buckets(values, name, queue=""):
    """Returns a histogram's buckets, in order of their bounds."""
    label = re.compile(re.escape(queue) + r'le="(.*)"$')
    return sorted((float(label.match(labels)[1]), value)
                  for (other, labels), value in values.items()
                  if other == name + "_bucket")


def test_daemon():
    with Daemon() as daemon, attach(daemon.path) as connection:
        for _ in range(20):
            assert connection.request(arm(HOUR)).status == 0
        values = metrics(daemon)
        assert values["expiry_connections", None] == 2
        assert values["expiry_requests_total", None] >= 20
        for what in "connections", "queues", "timers", "busy", "credit":
            assert values["expiry_refused_%s_total" % what, None] == 0, what
        sizes = buckets(values, "expiry_batch_requests")
        assert (1.0, 20) in sizes and (0.0, 0) in sizes, sizes
        for name in "turn_seconds", "batch_requests", "request_seconds":
            counts = [count for _, count in
                      buckets(values, "expiry_" + name)]
            assert counts == sorted(counts) and counts[-1] >= 20, name


def test_queue():
    with Daemon() as daemon, attach(daemon.path, "leases", CONSUME,
                                    REALTIME) as queue:
        queue.credit(100)
        queue.batch([arm(HOUR)] * 5 + [arm(0)] * 3)
        while len(queue.expired) < 3:
            queue.expired.append(queue.record())
        values = metrics(daemon, "--queue", "leases")
        label = 'queue="leases"'
        assert values["expiry_queue_armed", label] == 5
        assert values["expiry_queue_delivered_total", label] == 3
        assert values["expiry_queue_consumers", label] == 1
        assert values["expiry_queue_credit", label] == 97
        assert values["expiry_queue_overdue_seconds", label] == 0
        late = buckets(values, "expiry_queue_lateness_seconds", label + ",")
        assert late[-1] == (float("inf"), 3), late


def test_every_queue_with_a_name_to_a_limit():
    with Daemon() as daemon, attach(daemon.path, "b") as two, \
            attach(daemon.path, "a") as one, attach(daemon.path):
        two.batch([arm(HOUR)] * 2)
        one.batch([arm(HOUR)])

        def armed(*arguments):
            return {labels: value for (name, labels), value
                    in metrics(daemon, *arguments).items()
                    if name == "expiry_queue_armed"}
        assert armed() == {'queue="a"': 1, 'queue="b"': 2}, armed()
        assert armed("--limit", "1") == {'queue="a"': 1}
        assert armed("--queue", "b") == {'queue="b"': 2}
        # Looking for the queue has not made it.
        assert armed("--queue", "c") == {} and len(armed()) == 2


def read_by_others(text):
    """Returns the families that prometheus_client reads. Debian's interpreter runs it if
    this one does not have the package."""
    reader = os.path.join(HERE, "read-metrics")
    for interpreter in sys.executable, "/usr/bin/python3":
        if not os.path.exists(interpreter):
            continue
        there = subprocess.run([interpreter, "-c", "import prometheus_client"],
                               stderr=subprocess.DEVNULL, check=False)
        if there.returncode == 0:
            return json.loads(subprocess.run(
                [interpreter, "-B", reader], input=text, text=True,
                stdout=subprocess.PIPE, check=True).stdout)
    raise tap.Skip("needs python3-prometheus-client")


def test_a_parser_of_others_takes_it():
    with Daemon() as daemon, attach(daemon.path, "leases", CONSUME,
                                    REALTIME) as queue, \
            attach(daemon.path, "other"):
        queue.credit(100)
        queue.batch([arm(0)] * 3)
        while len(queue.expired) < 3:
            queue.expired.append(queue.record())
        read = read_by_others(ctl(daemon, "metrics"))
        # Compare type, unit and help; there are no other families.
        assert {name: (family["type"], family["unit"], family["help"])
                for name, family in read.items()} == fields.families(), read
        late = read["expiry_queue_lateness_seconds"]["samples"]
        assert len(late) == 80, late
        assert [value for _, labels, value in late
                if labels["le"] == "+Inf"] == [3, 0], late
        assert read["expiry_queue_delivered"]["samples"] == [
            ["expiry_queue_delivered_total", {"queue": "leases"}, 3],
            ["expiry_queue_delivered_total", {"queue": "other"}, 0]], read


def test_overdue():
    """Without a consumer the metric is the time since the deadline."""
    with Daemon() as daemon, attach(daemon.path, "late") as queue:
        before = time.monotonic()
        queue.batch([arm(0)])
        after = time.monotonic()
        label = 'queue="late"'
        # In seconds: no less than since it was armed, and no more.
        for _ in range(2):
            least = time.monotonic() - after
            values = metrics(daemon, "--queue", "late")
            most = time.monotonic() - before
            overdue = values["expiry_queue_overdue_seconds", label]
            assert least <= overdue <= most, (least, overdue, most)


def top(daemon, *arguments):
    return subprocess.Popen(
        [CTL, "--socket", daemon.path, "--json", "top", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_top():
    with Daemon() as daemon, \
            attach(daemon.path, "one", CONSUME, REALTIME) as one, \
            attach(daemon.path, "two", 0, REALTIME) as two, \
            attach(daemon.path):
        one.credit(7)
        one.batch([arm(HOUR)] * 5)
        two.batch([arm(0)])
        begun = time.monotonic()
        process = top(daemon, "--count", "2", "one", "two")
        first = json.loads(process.stdout.readline())
        assert first["queue"] == "one" and first["armed"] == "5", first
        assert first["consumer"] and first["credit"] == 7, first
        assert first["consumer_pid"] == os.getpid(), first
        assert first["uid"] == os.getuid(), first
        assert first["requests_per_second"] == 0, first
        late = json.loads(process.stdout.readline())
        assert late["queue"] == "two" and int(late["overdue_ns"]) > 0, late
        assert late["due"] and not first["due"], (first, late)
        assert not late["consumer"], late
        two.batch([arm(HOUR)] * 500)
        # The busiest queue is first.
        second = json.loads(process.stdout.readline())
        assert second["queue"] == "two" and second["armed"] == "501", second
        # 500 in no less than a second, and no more than it was there.
        least = 500 / (time.monotonic() - begun)
        assert least <= second["requests_per_second"] + 0.1 and \
            second["requests_per_second"] <= 500, (least, second)
        assert int(second["overdue_ns"]) - int(late["overdue_ns"]) >= 10**9, second
        assert json.loads(process.stdout.readline())["queue"] == "one"
        assert process.communicate() == ("", "") and process.returncode == 0


def test_top_of_all_queues():
    with Daemon() as daemon, attach(daemon.path, "one") as one, \
            attach(daemon.path, flags=CONSUME):
        process = top(daemon, "--count", "1")
        rows = [json.loads(line) for line in process.communicate()[0].split("\n")
                if line]
        # The command's own connection does not count.
        assert {row["queue"] for row in rows} == {"one", ""}, rows
        process = top(daemon, "--count", "1", "--queue", "one")
        assert len(process.communicate()[0].splitlines()) == 1
        process = top(daemon, "--count", "1", "--limit", "1")
        assert len(process.communicate()[0].splitlines()) == 1
        # Looking neither makes a queue nor prevents DROP.
        process = top(daemon, "--count", "1", "absent")
        out, err = process.communicate()
        assert process.returncode == 1 and not out and "absent" in err, err
        process = top(daemon, "--count", "3", "one")
        process.stdout.readline()
        assert one.request(Record(DROP)).status == 0
        process.communicate()
        assert process.returncode == 0


def test_stats_has_the_daemons_histograms():
    with Daemon() as daemon, attach(daemon.path, "one") as one:
        one.batch([arm(HOUR)] * 100)
        stats = json.loads(ctl(daemon, "--json", "stats", "--queue", "one"))
        batch = [int(count) for count in stats["batch"]]
        assert sum(size * count for size, count in
                   zip([0] + [2**i for i in range(39)], batch)) \
            <= 102 and sum(batch) >= 1, batch
        for name in "turn_ns", "request_ns":
            assert sum(map(int, stats[name])), stats
        text = ctl(daemon, "stats", "--queue", "one")
        assert "turns of the daemon: half below" in text, text
        assert "requests in one batch: half below" in text, text


def test_queues():
    """Owner and consumer match the system's; looking makes no queue."""
    with Daemon() as daemon, \
            attach(daemon.path, "one", CONSUME, REALTIME) as one, \
            attach(daemon.path, "two", KEYED):
        one.batch([arm(HOUR)] * 3)
        rows = [json.loads(line) for line in
                ctl(daemon, "--json", "queues").splitlines()]
        assert [row["queue"] for row in rows] == ["one", "two"], rows
        assert {(row["uid"], row["user"]) for row in rows} == \
            {(os.getuid(), pwd.getpwuid(os.getuid()).pw_name)}, rows
        assert rows[0]["consumer_pid"] == os.getpid(), rows
        with open("/proc/self/comm", encoding="utf-8") as file:
            assert rows[0]["consumer_name"] == file.read().strip(), rows
        assert not rows[1]["consumer"] and rows[1]["keyed"], rows
        assert rows[0]["armed"] == "3", rows
        assert ctl(daemon, "queues", "--names") == "one\ntwo\n"


def span(text):
    """Returns a time in the service manager's status, in nanoseconds, and its
    precision."""
    number, unit = re.match(r"(\d+)(us|ms|s)\b", text).groups()
    unit = {"us": 1000, "ms": 10**6, "s": 10**9}[unit]
    return int(number) * unit, unit


def test_status_is_what_the_service_manager_is_told():
    """Timers of all queues, next deadline, worst lateness: the same."""
    hour = int(time.time()) // 3600 * 3600 + 7200
    with Daemon(environment={"WATCHDOG_USEC": "100000"}) as daemon, \
            attach(daemon.path, "one", 0, REALTIME) as one, \
            attach(daemon.path, "two", CONSUME) as two:
        one.batch([arm(hour * 10**9, flags=0)] * 4)
        two.credit(1)
        # Six timers, then five and something that was late.
        two.batch([arm(10**6), arm(10 * HOUR)])
        two.expiration()
        told = wait_for(lambda: [message for message in daemon.manager.messages
                                 if "5 timers in 2 queues" in message])
        assert told, daemon.manager.messages
        status = json.loads(ctl(daemon, "--json", "status"))
        assert status["timers"] == "5", status
        assert status["next_of_all_ns"] == str(hour * 10**9), status
        assert time.strftime("next %Y-%m-%dT%H:%M:%SZ,", time.gmtime(hour)) \
            in told[-1], told[-1]
        late, unit = span(told[-1].split("worst lateness ")[1])
        assert late <= int(status["lateness_max_ns"]) < late + unit, status
        text = ctl(daemon, "status")
        assert "  timers       5\n" in text and " at worst\n" in text, text
        assert time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(hour)) \
            in text, text


def test_status_counts_what_was_just_armed():
    with Daemon() as daemon:
        for nr in range(1, 21):
            ctl(daemon, "status")
            ctl(daemon, "arm", "+1h")
            status = json.loads(ctl(daemon, "--json", "--queue", "default", "status"))
            assert (status["timers"], status["armed"]) == (str(nr), str(nr)), status


if __name__ == "__main__":
    tap.main()
