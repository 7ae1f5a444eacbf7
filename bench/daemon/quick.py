# SPDX-License-Identifier: LGPL-2.1-or-later
"""One client of the daemon through the library: requests a second, bytes a live
timer, and the core without a daemon. In about a minute."""

import subprocess

from report.figures import Results
from report.tables import count, number, text
from servers import BUILD, Driver, Server, say

RATE_TIMERS = 10**6
MEMORY_TIMERS = 10**7
CORE_TIMERS = 10**6, 10**7
QUEUES = "plain", "keyed"
# Order, batch, requests.
KINDS = [("mix", 1, 20000), ("mix", 16, 160000), ("mix", 512, 10**6),
         ("mix-ahead", 512, 10**6)]
IN_FLIGHT = {"mix": 1, "mix-ahead": 8}
STATES = {"arm": "all were armed", "refresh": "as many refreshes"}


def options(parser):
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--small", action="store_true",
                        help="a tenth of the timers")


def rates(folder, timers, rounds):
    """Every kind once a round, on either queue of one daemon."""
    say(f"{number(timers)} timers a queue")
    server = Server("expiryd", folder)
    drivers = [Driver("library " + queue, timers, server) for queue in QUEUES]
    rows = [driver.measure(op, batch, 1, min(requests, timers), round=round)
            for round in range(rounds) for driver in drivers
            for op, batch, requests in KINDS]
    for driver in drivers:
        driver.close()
    return rows


def memory(folder, timers):
    """Each in a daemon of its own: what one leaves in memory is none of the
    next's."""
    for queue in QUEUES:
        say(f"{number(timers)} timers of a {queue} queue")
        server = Server("expiryd", folder)
        driver = Driver("library " + queue, 0, server)
        empty = server.resident()
        for op in STATES:
            row = driver.measure(op, 512, 1, timers)
            yield row | {"bytes": (server.resident() - empty) / timers}
        driver.close()


def core(sizes):
    say("the core alone")
    for workload in "mix", "uniform":
        done = subprocess.run(
            [BUILD.parent / "heap/timers-core", "--subject", "radix-plain",
             "--subject", "radix-keyed", "--workload", workload] +
            [word for nr in sizes for word in ("--timers", str(nr))],
            stdout=subprocess.PIPE, text=True, check=True)
        yield from Results.parse(done.stdout).having("work").rows


def measure(options, folder):
    less = 10 if options.small else 1
    return {"rates": rates(folder, RATE_TIMERS // less, options.rounds),
            "memory": list(memory(folder, MEMORY_TIMERS // less)),
            "core": list(core([nr // less for nr in CORE_TIMERS])),
            "timers": RATE_TIMERS // less}


def show_rates(results, timers):
    rows = []
    for queue in QUEUES:
        for op, batch, _ in KINDS:
            here = results.where(subject=queue, op=op, batch=batch)
            rate = here.figure("per_second")
            rows.append([queue, batch, IN_FLIGHT[op], number(rate.median),
                         rate.spread(number), number(here.median("server_ns")),
                         number(here.median("client_ns"))])
    print(f"{number(timers)} live timers; half ARM, a quarter REFRESH, a quarter "
          f"CANCEL;\nmedian of {len(results.values('round'))} rounds, and the "
          "processor time a request takes\n")
    print(text(["queue", "batch", "in flight", "a second", "slowest to fastest",
                "daemon ns", "client ns"], rows))


def show(results):
    show_rates(Results(results["rates"]), results["timers"])
    print("Bytes a live timer\n")
    print(text(["queue", "timers", "after", "resident", "in pages", "a second"],
               [[row["subject"], count(row["requests"]), STATES[row["op"]],
                 f"{row['bytes']:.1f}", f"{row['page_bytes']:.1f}",
                 number(row["per_second"])] for row in results["memory"]]))
    core, rows = Results(results["core"]), []
    for row in core.rows:
        key = {name: row[name] for name in ("subject", "timers", "workload",
                                            "work")}
        cells = [key["subject"], count(key["timers"]), key["workload"],
                 key["work"], str(core.figure(**key))]
        if cells not in rows:
            rows.append(cells)
    print("The core alone, batches of 512: nanoseconds of processor time\n")
    print(text(["", "timers", "workload", "", "ns"], rows))
