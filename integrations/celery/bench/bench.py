#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Celery's tasks with an ETA, three ways: held by the worker (stock), by a relay over a
sorted set, and by expiry. Prints a table, and whether the figures aimed at are reached.

usage: bench.py [--quick] [TASKS] [PART...]

PART: memory, behind, handed_over or visibility; without one, all of them
"""

import json
import os
import platform
import sys
import time
from base64 import b64decode
from datetime import datetime, timedelta, timezone

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "tests"), HERE]

from setup import ROOT, SOURCES, Setup, wait_until      # first: it finds Celery

sys.path.append(os.path.join(ROOT, "bench"))

import celery                           # noqa: E402
import sorted_set                       # noqa: E402,F401 - makes zset:// known
from report.tables import Aims          # noqa: E402

QUICK = "--quick" in sys.argv
NUMBERS = [int(word) for word in sys.argv[1:] if word.isdigit()]
TASKS = NUMBERS[0] if NUMBERS else 5000 if QUICK else 100000
PARTS = [word for word in sys.argv[1:] if word.isidentifier()]
VISIBLE = 130 if QUICK else 420         # seconds until the tasks beyond visibility_timeout
BEHIND = 10 if QUICK else 40            # seconds until the tasks before one due now
HANDED = 500 if QUICK else 3000         # tasks of the hand-over, 100 a second
SUBJECTS = {"stock": "redis", "sorted set": "zset", "expiry": "expiry"}
LATE = "late p50 / p99 / max, ms (stock: run; others: handed over)"
# How each figure is printed, in the order of the table.
FORMS = {
    "publishing, tasks/s": "%.0f", "worker idle, MB": "%.0f", "worker then, MB": "%.0f",
    "worker's processor time, s": "%.1f", "Redis, bytes a task": "%.0f", "relay, MB": "%.0f",
    "relay's processor time, s": "%.1f", "expiryd, MB": "%.0f",
    "in unacked after kill -9": "%d", "due now behind 200 with ETA, s": "%.2f",
    LATE: "%.0f / %.0f / %.0f",
    "300 tasks beyond visibility_timeout ran": "%d times"}
HAS_LIMIT = tuple(int(part) for part in celery.__version__.split(".")[:2]) >= (5, 6)


def subject(name, **variables):
    scheme = SUBJECTS[name]
    module = "sorted_set" if scheme == "zset" else "expiry_celery"
    on = Setup(transport=scheme, TRANSPORT_MODULE=module, **variables)
    on.environment["PYTHONPATH"] = os.pathsep.join([SOURCES, HERE])
    on.relay_program = None
    if scheme == "expiry":
        on.relay_program = on.relay()
    elif scheme == "zset":
        on.relay_program = on.program("relay", [sys.executable, "-B", "-m", "sorted_set"])
    return on


def publisher(on):
    """Returns a function that publishes a task, by one connection."""
    app = celery.Celery("tasks", broker=on.environment["BROKER"])
    producer = app.amqp.Producer(app.connection_for_write().default_channel)

    def publish(number, queue="celery", **options):
        app.send_task("tasks.run", (number,), producer=producer, ignore_result=True,
                      queue=queue, **options)
    return publish


def in_seconds(seconds):
    return datetime.now(timezone.utc) + timedelta(seconds=seconds)


def settle(worker):
    """Waits until a worker no longer takes processor time; returns its time."""
    while True:
        before = worker.processor()
        time.sleep(3)
        if worker.processor() - before < 0.15:
            return worker.processor()


def memory(name):
    """TASKS tasks that are due tomorrow; then the worker is killed."""
    with subject(name, VISIBILITY_TIMEOUT="3600") as on:
        worker = on.worker()
        publish = publisher(on)
        idle, empty = worker.resident(), on.client.info("memory")["used_memory"]
        began_work = worker.processor()
        began = time.monotonic()
        for number in range(TASKS):
            publish(number, eta=in_seconds(86400))
        published = time.monotonic() - began
        worked = settle(worker) - began_work
        row = {"publishing, tasks/s": TASKS / published,
               "worker idle, MB": idle / 1e6,
               "worker then, MB": worker.resident() / 1e6,
               "worker's processor time, s": worked,
               "Redis, bytes a task":
                   (on.client.info("memory")["used_memory"] - empty) / TASKS}
        if on.relay_program:
            wait_until(lambda: not on.client.exists("expiry:inbox", "expiry:taken"), 600)
            row["relay, MB"] = on.relay_program.resident() / 1e6
            row["relay's processor time, s"] = on.relay_program.processor()
        if name == "expiry":
            row["expiryd, MB"] = on.daemon.resident() / 1e6
        worker.kill()
        row["in unacked after kill -9"] = on.client.zcard("unacked_index")
        return row


def visibility():
    """300 tasks that wait longer than visibility_timeout, with three workers. The ways
    run at the same time."""
    rows, running = {}, {}
    try:
        for name in SUBJECTS:
            on = running[name] = subject(name, VISIBILITY_TIMEOUT="8").__enter__()
            for number in range(3):
                on.worker("-n", "worker%d@localhost" % number)
        for on in running.values():
            publish = publisher(on)
            for number in range(300):
                publish(number, eta=in_seconds(VISIBLE))
        time.sleep(VISIBLE)
        for name, on in running.items():
            wait_until(lambda: len({line[1] for line in on.notes()}) == 300, 120)
        time.sleep(5)
        for name, on in running.items():
            rows[name] = {"300 tasks beyond visibility_timeout ran": len(on.notes())}
    finally:
        for on in running.values():
            on.__exit__(None)
    return rows


def behind(name):
    """A task due now, behind 200 with an ETA; the worker holds 100 of these at most."""
    if not HAS_LIMIT:
        return {}
    with subject(name, ETA_LIMIT="100") as on:
        publish = publisher(on)
        for number in range(200):
            publish(number, eta=in_seconds(BEHIND))
        on.worker("--prefetch-multiplier", "1")
        time.sleep(2)
        sent = time.time_ns()
        publish(1000)
        wait_until(lambda: any(line[1] == "1000" for line in on.notes()), 4 * BEHIND + 60)
        (ran,) = [line[0] for line in on.notes() if line[1] == "1000"]
        return {"due now behind 200 with ETA, s": (ran - sent) / 1e9}


def percentiles(late):
    late = sorted(late)
    return tuple(value / 1e6 for value in
                 (late[len(late) // 2], late[len(late) * 99 // 100], late[-1]))


def handed_over(name):
    """Tasks that are due 100 a second, and when they are in the workers' list. For stock,
    where no list has them, when they run."""
    with subject(name) as on:
        worker = on.worker() if name == "stock" else None
        publish = publisher(on)
        begin = time.time() + HANDED * 0.002 + 5
        etas = []
        for number in range(HANDED):
            eta = datetime.fromtimestamp(begin + number / 100, timezone.utc)
            etas.append(round(eta.timestamp() * 1e6) * 1000)
            publish(number, eta=eta)
        late = []
        if worker:
            wait_until(lambda: len(on.notes()) == HANDED, HANDED / 100 + 120)
            late = [line[0] - etas[int(line[1])] for line in on.notes()]
        while len(late) < HANDED:
            _, text = on.client.brpop("celery", 60)
            args, _, _ = json.loads(b64decode(json.loads(text)["body"]))
            late.append(time.time_ns() - etas[args[0]])
        assert min(late) >= 0, min(late)
        return {LATE: percentiles(late)}


def is_wanted(part):
    return not PARTS or part.__name__ in PARTS


def table(rows):
    print("| | %s |\n|---%s|" % (" | ".join(SUBJECTS), "|---" * len(SUBJECTS)))
    for title, form in FORMS.items():
        if not any(title in row for row in rows.values()):
            continue
        print("| %s | %s |" % (title, " | ".join(
            form % rows[name][title] if title in rows[name] else "-" for name in SUBJECTS)))


def aims(row):
    """What is aimed at with expiry. @row: its figures"""
    told = Aims()
    full, idle = row.get("worker then, MB"), row.get("worker idle, MB")
    told.at_most("worker with all tasks waiting, MB", 55, full, "{:.0f}")
    told.at_most("of these more than idle, MB", 2, full and full - idle, "{:.1f}")
    told.at_most("in unacked after kill -9", 0, row.get("in unacked after kill -9"), "{:.0f}")
    told.at_most("due now behind 200 with ETA, s", 0.02,
                 row.get("due now behind 200 with ETA, s"), "{:.3f}")
    told.at_most("handed over late, p99, ms", 100, row[LATE][1] if LATE in row else None,
                 "{:.1f}")
    ran = row.get("300 tasks beyond visibility_timeout ran")
    told.add("300 tasks beyond visibility_timeout ran", "300", str(ran or ""),
             ran and ran == 300)
    print("\n" + told.text(), end="")


def main():
    print("Celery %s, %s, Redis %s, Linux %s, %d processors, expiry: embedded engine" % (
        celery.__version__, platform.python_version(), redis_version(),
        platform.release(), os.cpu_count()))
    print("%d tasks; load %.1f at the begin" % (TASKS, os.getloadavg()[0]), end="")
    sys.stdout.flush()
    rows = {name: {} for name in SUBJECTS}
    for part in memory, behind, handed_over:
        for name in SUBJECTS if is_wanted(part) else ():
            rows[name].update(part(name))
    for name, row in (visibility() if is_wanted(visibility) else {}).items():
        rows[name].update(row)
    print(", %.1f at the end\n" % os.getloadavg()[0])
    table(rows)
    aims(rows["expiry"])


def redis_version():
    with Setup(transport="redis") as on:
        return on.client.info("server")["redis_version"]


if __name__ == "__main__":
    main()
