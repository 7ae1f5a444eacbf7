#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""expiryctl metrics: text that a reader of OpenMetrics takes; and top."""

import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "socket"))
import tap  # noqa: E402
from client import CONSUME, HOUR, REALTIME, arm, attach  # noqa: E402
from daemon import ROOT, Daemon  # noqa: E402

CTL = os.path.join(ROOT, "build", "expiryctl")
SAMPLE = re.compile(r'(expiry_[a-z_]+)(?:\{(.*)\})? ([0-9.e+-]+)$')
SUFFIXES = {"counter": ["_total"], "gauge": [""],
            "histogram": ["_bucket", "_count"]}


def metrics(daemon, *arguments):
    """{(name, labels): value}; every line must be in its place."""
    text = subprocess.run([CTL, "--socket", daemon.path, "metrics",
                           *arguments], stdout=subprocess.PIPE, text=True,
                          check=True).stdout
    lines = text.splitlines()
    assert lines.pop() == "# EOF", text
    values, family, kind = {}, None, None
    for line in lines:
        if line.startswith("# TYPE "):
            _, _, family, kind = line.split(" ", 3)
        elif line.startswith("# HELP "):
            assert line.split(" ")[2] == family, line
        else:
            name, labels, value = SAMPLE.match(line).groups()
            assert name in [family + end for end in SUFFIXES[kind]], line
            assert (name, labels) not in values, line
            values[name, labels] = float(value)
    return values


def buckets(values, name, queue=""):
    """Of a histogram, in order of what they are below."""
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
            assert counts[-1] == values["expiry_%s_count" % name, None]


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
        assert values["expiry_queue_lateness_seconds_count", label] == 3


def test_overdue():
    """Nobody takes it: for how long it has been waiting can be seen."""
    with Daemon() as daemon, attach(daemon.path, "late", 0,
                                    REALTIME) as queue:
        queue.batch([arm(0)])
        label = 'queue="late"'
        first = metrics(daemon, "--queue", "late")
        second = metrics(daemon, "--queue", "late")
        key = "expiry_queue_overdue_seconds", label
        assert 0 < first[key] < second[key], (first[key], second[key])


def test_top():
    with Daemon() as daemon, \
            attach(daemon.path, "one", CONSUME, REALTIME) as one, \
            attach(daemon.path, "two", 0, REALTIME) as two:
        one.credit(7)
        one.batch([arm(HOUR)] * 5)
        two.batch([arm(0)])
        top = subprocess.Popen(
            [CTL, "--socket", daemon.path, "--json", "top", "--count", "2",
             "one", "two"], stdout=subprocess.PIPE, text=True)
        first = json.loads(top.stdout.readline())
        assert first["queue"] == "one" and first["armed"] == 5, first
        assert first["consumer"] and first["credit"] == 7, first
        assert first["requests_per_second"] == 0, first
        late = json.loads(top.stdout.readline())
        assert late["queue"] == "two" and late["overdue_ns"] > 0, late
        assert not late["consumer"], late
        one.batch([arm(HOUR)] * 500)
        second = json.loads(top.stdout.readline())
        assert second["armed"] == 505, second
        assert 0 < second["requests_per_second"] <= 600, second
        later = json.loads(top.stdout.readline())
        assert later["overdue_ns"] > late["overdue_ns"], later
        assert top.stdout.read() == "" and top.wait() == 0


if __name__ == "__main__":
    tap.main()
