#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""When Redis says that keys have expired: alone, and with the bridge. Prints a table, and
whether the figures aimed at are reached.

usage: bench.py [--quick] [KEYS]
"""

import os
import platform
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))), "tests"))

from bridge import ROOT, Listener, Setup, populate      # first: it finds redis

sys.path.append(os.path.join(ROOT, "bench"))

from report.tables import Aims          # noqa: E402

QUICK = "--quick" in sys.argv
NUMBERS = [int(word) for word in sys.argv[1:] if word.isdigit()]
OTHERS = NUMBERS[0] if NUMBERS else 100000 if QUICK else 1000000
PROBES = 1000
WAIT = 10 if QUICK else 30      # seconds until probes are counted
RATE = 2000                     # keys a second that are written
WRITING = 10 if QUICK else 30   # seconds of it
TICK = os.sysconf("SC_CLK_TCK")


def processor(process):
    with open("/proc/%d/stat" % process.pid, encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def lateness(listener, keys):
    """Returns milliseconds, in order, of keys that were told."""
    return sorted(listener.told[key] / 1e6 - at for key, at in keys.items()
                  if key in listener.told)


def of(late, part):
    return late[min(int(len(late) * part), len(late) - 1)] if late else float("nan")


def probes(on, listener):
    """Keys that expire at once, beside the others."""
    at = int(time.time() * 1000) + 2000
    keys = {"probe:%d" % number: at for number in range(PROBES)}
    pipe = on.client.pipeline(transaction=False)
    for key in keys:
        pipe.set(key, "x", pxat=at)
    pipe.execute()
    time.sleep(2 + WAIT)
    late = lateness(listener, keys)
    return {"%d at once: told within 100 ms" % PROBES: "%d" % sum(ms <= 100 for ms in late),
            "told within %d s" % WAIT: "%d" % len(late),
            "late p50 / p99 / max of these, ms": "%.1f / %.1f / %.1f" % (
                of(late, 0.5), of(late, 0.99), of(late, 1)),
            "early": "%d" % sum(ms < 0 for ms in late)}


def writes(on, listener):
    """Keys that are written all the time, and live for 1 to 5 seconds."""
    keys, work = {}, processor(on.redis.process)
    bridge = on.bridge.processor() if on.bridge else 0
    begin = time.time()
    for turn in range(WRITING * 100):
        pipe = on.client.pipeline(transaction=False)
        for _ in range(RATE // 100):
            key = "written:%d" % len(keys)
            keys[key] = int(time.time() * 1000) + 1000 + len(keys) * 7919 % 4000
            pipe.set(key, "x", pxat=keys[key])
        pipe.execute()
        time.sleep(max(0.0, begin + (turn + 1) / 100 - time.time()))
    took = time.time() - begin
    time.sleep(6)
    late = lateness(listener, keys)
    row = {"%d written at %d/s: told 6 s after the last" % (len(keys), len(keys) / took):
           "%d" % len(late),
           "late p50 / p99 / max of these, ms ": "%.1f / %.1f / %.1f" % (
               of(late, 0.5), of(late, 0.99), of(late, 1)),
           "early ": "%d" % sum(ms < 0 for ms in late),
           "Redis' processor time meanwhile, s": "%.1f" % (
               processor(on.redis.process) - work)}
    row["the bridge's, s"] = "%.1f" % (on.bridge.processor() - bridge) if on.bridge else "-"
    return row


def subject(bridged):
    with Setup(settings=("notify-keyspace-events", "Egx")) as on:
        populate(on.client, OTHERS)
        row = {"all keys read in, s": "-", "bridge, MB": "-", "expiryd, MB": "-"}
        if bridged:
            on.start()
            row["all keys read in, s"] = re.search(r"read in ([0-9.]+) s",
                                                   on.bridge.log()).group(1)
            row["bridge, MB"] = "%.0f" % (on.bridge.resident() / 1e6)
            row["expiryd, MB"] = "%.0f" % (on.daemon.resident() / 1e6)
        listener = Listener(on.redis.port)
        return {**probes(on, listener), **writes(on, listener), **row}


def main():
    with Setup() as on:
        version = on.client.info("server")["redis_version"]
    print("Redis %s, Linux %s, %d processors, expiry: embedded engine\n"
          "%d other volatile keys; load %.1f at the begin" % (
              version, platform.release(), os.cpu_count(), OTHERS, os.getloadavg()[0]), end="")
    sys.stdout.flush()
    alone, bridged = subject(False), subject(True)
    print(", %.1f at the end\n\n| | Redis alone | with the bridge |\n|---|---|---|" %
          os.getloadavg()[0])
    # The rate is part of a row's name, and differs a little.
    for (name, value), other in zip(alone.items(), bridged.values()):
        print("| %s | %s | %s |" % (name.strip(), value, other))
    aims(bridged)


def aims(row):
    """What is aimed at with the bridge. @row: its figures"""
    told = Aims()
    title = "%d at once: told within 100 ms" % PROBES
    told.add(title, str(PROBES), row[title], int(row[title]) == PROBES)
    early = int(row["early"]) + int(row["early "])
    told.add("early", "0", "%d" % early, not early)
    (written,) = [(int(name.split()[0]), int(value)) for name, value in row.items()
                  if " written at " in name]
    told.add("of those written told", str(written[0]), str(written[1]),
             written[0] == written[1])
    print("\n" + told.text(), end="")


if __name__ == "__main__":
    main()
