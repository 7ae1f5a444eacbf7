# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a second thread of the daemon brings: as many clients as queues, each
busy with its own; and the same clients with one queue between them.

Daemons with one and with two threads stand side by side and are measured in
turns; the figures are medians of the rounds, the last one of all of them. The
clients take their part of the same processors, so that two threads cannot be twice
as fast on two: the processor time of both sides says how fast they can be."""

import os
import statistics

from report.figures import Results
from report.tables import Aims, text
from servers import Driver, Server, say

TIMERS = 10**6
AIM = 1.6               # two threads by one, independent queues, batch 512
IDLE = 1.8              # the least for an idle machine, threads that only count
BURN = 10**8            # steps of a loop, a fraction of a second
BATCHES = 512, 16, 1
CASES = {("refresh", 2): "2, a queue each", ("shared", 2): "2, one queue",
         ("refresh", 1): "1, one queue"}


def options(parser):
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--requests", type=int, default=10**6)


def one_round(drivers, requests, round):
    """Each in turn; who comes first changes."""
    def row(driver, op, threads, batch, clients, requests):
        return driver.measure(op, batch, clients, requests, threads=threads,
                              clients=clients, round=round)

    for clients in 1, 2:
        yield row(drivers[1], "burn", 1, 1, clients, clients * BURN)
    yield row(drivers["echo"], "arm", 0, 512, 1, requests)
    for batch in BATCHES:
        each = requests if batch > 1 else requests // 50
        for op, clients in CASES:
            for threads in (1, 2) if round % 2 else (2, 1):
                yield row(drivers[threads], op, threads, batch, clients,
                          clients * each)


def measure(options, folder):
    drivers = {threads: Driver("scaling", TIMERS, Server(
        "expiryd", folder, ["--threads", str(threads)])) for threads in (1, 2)}
    drivers["echo"] = Driver("echo", 0, Server("echo", folder))
    rows = []
    # The first round is for nothing: heaps settle, caches fill.
    for round in range(-1, options.rounds):
        say(f"round {round + 1} of {options.rounds}")
        measured = list(one_round(drivers, options.requests, round))
        rows += measured if round >= 0 else []
    for driver in drivers.values():
        driver.close()
    return {"rows": rows}


def two(value):
    return f"{value:.2f}"


def million(rate):
    return two(rate / 1e6)


def table(results):
    rows = []
    for batch in BATCHES:
        for (op, clients), what in CASES.items():
            here = results.where(op=op, batch=batch, clients=clients)
            ratio = here.ratio({"threads": 2}, {"threads": 1}, "per_second")
            for threads in 1, 2:
                own = here.where(threads=threads)
                rows.append([what, batch, threads,
                             own.figure("per_second").text(million) + " M",
                             f"{own.median('server_ns'):.0f} + "
                             f"{own.median('client_ns'):.0f}",
                             ratio.text(two) if threads == 2 else ""])
    return text(["clients and queues", "batch", "threads",
                 "requests a second (least\u2013most)",
                 "ns of processor, daemon + clients", "by one thread"], rows)


def verdict(results):
    each = results.where(op="refresh", batch=512, clients=2)
    rates = {threads: statistics.harmonic_mean(
        each.all("per_second", threads=threads)) for threads in (1, 2)}
    cost = sum(statistics.mean(each.all(field, threads=2))
               for field in ("server_ns", "client_ns"))
    processors = min(os.cpu_count(), 2)
    print("batch 512, a queue each: with two threads a request takes %.0f ns "
          "of processor, the client's included;\nso %d processors could do "
          "%.2f M a second, %.2f times what one thread does"
          % (cost, processors, processors * 1e3 / cost,
             processors * 1e9 / cost / rates[1]))
    floor = results.median("server_ns", op="arm", threads=0)
    whole = results.median("server_ns", op="refresh", threads=1, batch=512,
                           clients=1)
    print("of %.0f ns that one thread takes, %.1f are the floor's; threads "
          "that took turns with a queue for the rest\ncould do %.2f times "
          "what one does with it\n" % (whole, floor, whole / (whole - floor)))
    # A sweep of the heap takes some of the rounds, not the same of both.
    aims = Aims()
    aims.at_least("two threads by one, a queue each, all rounds", AIM,
                  rates[2] / rates[1])
    print(aims.text())


def show(results):
    results = Results(results["rows"])
    burns = results.where(op="burn").ratio({"clients": 2}, {"clients": 1},
                                           "per_second")
    print("%d processors, %d rounds, %d timers a queue; two threads that "
          "only count do %s of one's work\n"
          % (os.cpu_count(), len(results.values("round")), TIMERS,
             burns.text(two)))
    print(table(results))
    verdict(results)
    if burns.median < IDLE:
        print("but there were no two processors to be had: threads that only "
              f"count came to {burns.median:.2f}")
