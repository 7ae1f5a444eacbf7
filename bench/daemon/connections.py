# SPDX-License-Identifier: LGPL-2.1-or-later
"""One working client of a daemon that holds very many idle named consumers and
of one that holds none, in turns; then what 1,000 connections that come and go
so many times leave behind."""

import json
import os
import pathlib
import subprocess
import time

from report.figures import Results
from report.tables import Aims, number, text
from servers import BUILD, ROOT, Driver, Server

AIM = 0.05
TIMERS = 10**5
CELLS = {1: 10000, 16: 160000, 512: 512000}     # batch: requests
FIELDS = {"per_second": "requests a second", "p50_us": "round trip p50, us",
          "p99_us": "round trip p99, us"}
VISITORS = 1000
SETTLE = 5              # seconds


def options(parser):
    parser.add_argument("--idle", type=int, default=15000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--visits", type=int, default=100)


def slab():
    """Bytes of the kernel's own memory."""
    lines = pathlib.Path("/proc/meminfo").read_text(encoding="utf-8")
    return sum(int(line.split()[1]) * 1024 for line in lines.splitlines()
               if line.startswith(("Slab:", "KernelStack:", "Percpu:")))


def churn(server, *arguments):
    process = subprocess.Popen(
        [BUILD / "churn", "--socket", server.socket, *map(str, arguments)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    if process.stdout.readline() != "ready\n":
        raise RuntimeError("churn ended")
    return process


def leave(process):
    process.stdin.close()
    if process.wait():
        raise RuntimeError(f"churn: exit status {process.returncode}")


def status(server):
    done = subprocess.run(
        [ROOT / "build/expiryctl", "--socket", server.socket, "--json",
         "status"], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def settled(server):
    """What it has when the last of those that went is closed."""
    end = time.monotonic() + SETTLE
    while int(status(server)["connections"]) and time.monotonic() < end:
        time.sleep(0.01)
    said = status(server)
    return {"connections": int(said["connections"]),
            "queues": int(said["queues"]),
            "files": len(os.listdir("/proc/%d/fd" % server.process.pid)),
            "pss": server.resident()}


def idle(new_server, idlers, rounds):
    """Each half of the rounds the other daemon has the idle consumers."""
    drivers = [Driver("expiryd", TIMERS, new_server()) for _ in range(2)]
    rows, memory = [], []
    for half in range(2):
        crowded = drivers[half].server
        before = crowded.resident(), slab()
        crowd = churn(crowded, "--hold", idlers)
        memory.append({"daemon": (crowded.resident() - before[0]) / idlers,
                       "kernel": (slab() - before[1]) / idlers})
        for round in range(half * rounds // 2, (half + 1) * rounds // 2):
            for batch, requests in CELLS.items():
                for i in (0, 1) if round % 2 else (1, 0):
                    rows.append(drivers[i].measure(
                        "refresh", batch, 1, requests, round=round,
                        crowded=i == half))
        leave(crowd)
    for driver in drivers:
        driver.close()
    return rows, memory


def visits(server, rounds):
    # What the first ones leave, pools and stacks, the next ones find.
    leave(churn(server, "--visit", VISITORS, "--rounds", 2))
    before = settled(server)
    began = time.monotonic()
    leave(churn(server, "--visit", VISITORS, "--rounds", rounds))
    return {"rounds": rounds, "seconds": time.monotonic() - began,
            "before": before, "after": settled(server)}


def measure(options, folder):
    # All connections are of one user.
    config = pathlib.Path(folder, "config")
    config.write_text("connections_per_user = 16384\n", encoding="utf-8")

    def new_server():
        return Server("expiryd", folder, config=config)

    rows, memory = idle(new_server, options.idle, options.rounds)
    return {"nr_idle": options.idle, "idle": rows, "memory": memory,
            "visits": visits(new_server(), options.visits)}


def show_idle(results, nr_idle, aims):
    print("REFRESH over one connection, 10^5 timers; beside "
          f"{number(nr_idle)} idle named consumers and\nbeside none; medians of "
          f"{len(results.values('round'))} rounds, ratios round by round and "
          "their quarters\n")
    rows = []
    for batch in CELLS:
        for field, what in FIELDS.items():
            here = results.where(batch=batch)
            ratio = here.ratio({"crowded": True}, {"crowded": False}, field)
            rows.append([f"batch {batch}, {what}"] +
                        [f"{here.median(field, crowded=crowded):.4g}"
                         for crowded in (False, True)] +
                        [f"{ratio.median:.3f}",
                         ratio.spread("{:.3f}".format, 0.25)])
            if field != "p50_us":
                worse = 1 / ratio.median - 1 if field == "per_second" \
                    else ratio.median - 1
                aims.at_most(f"worse: batch {batch}, {what}", 100 * AIM,
                             100 * worse, "{:+.1f} %")
    print(text(["", "none", "idle", "ratio", "quarters"], rows))


def show(results):
    aims = Aims()
    show_idle(Results(results["idle"]), results["nr_idle"], aims)
    for row in results["memory"]:
        print("Bytes an idle consumer with its queue and a timer: "
              f"{row['daemon']:.0f} in the daemon,\n{row['kernel']:.0f} of the "
              "kernel's for both ends of it")
    gone = results["visits"]
    before, after = gone["before"], gone["after"]
    print(f"\n{number(VISITORS)} connections, {number(gone['rounds'])} times: "
          f"{gone['seconds']:.0f} s")
    print(text(["", "before", "after"],
               [[key, number(before[key]), number(after[key])]
                for key in before]))
    for key in "connections", "queues", "files":
        aims.at_most(key + " left", 0, after[key] - before[key], "{:d}")
    print(aims.text())
    print(f"memory left: {(after['pss'] - before['pss']) // 1024:+d} KiB")
