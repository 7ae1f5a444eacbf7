# SPDX-License-Identifier: LGPL-2.1-or-later
"""The daemon beside its floor and what people use instead: capacity, drain,
lateness, memory, and cost at rest."""

import statistics
import subprocess
import time

import lateness
from report import plots
from report.figures import Results
from report.tables import Aims, count, number, text
from servers import BUILD, Driver, Missing, Server, say

PLAIN = "arm", "refresh", "cancel"
OPS = *PLAIN, "fire"
LOCAL = "libevent", "libev", "timerfd"
OWN = "expiryd", "expiryd epoll", "echo"
PEERS = "redis zset", "beanstalkd", *LOCAL
FLOOR_TIMERS = 10**4
REST_SECONDS = 3

# Batches and connections, by timers.
CELLS = {
    10**4: [(1, 1), (1, 10), (1, 100), (1, 1000), (16, 1), (16, 100),
            (512, 1), (512, 10), (512, 100)],
    10**6: [(1, 1), (16, 1), (512, 1), (512, 10)],
    10**7: [(1, 1), (16, 1), (512, 1), (512, 10)],
}
FULL = [(b, c) for b in (1, 16, 512) for c in (1, 10, 100, 1000)]


def options(parser):
    parser.add_argument("--full", action="store_true",
                        help="every size of batch with every number of connections")
    parser.add_argument("--quick", action="store_true",
                        help="a look, one round of the least")


def requests(name, batch, connections):
    """As many as take a fraction of a second."""
    if name in LOCAL:
        return 5000 if name == "timerfd" else 200000
    if name in OWN:
        least = {1: 10000, 16: 160000, 512: 512000}[batch]
        return max(least, 2 * batch * connections)
    return {1: 4000, 16: 16000, 512: 40960}[batch]


class Run:
    def __init__(self, options, folder):
        self.folder, self.options = folder, options
        self.results = {"capacity": [], "memory": {}, "lateness": [],
                        "notify": [], "skipped": []}

    def rounds(self, nr):
        return 1 if self.options.quick else nr

    def driver(self, name, timers):
        """None where it is missing, which is noted."""
        try:
            server = None if name in LOCAL else Server(name, self.folder)
            return Driver(name, timers, server)
        except Missing as why:
            if str(why) not in self.results["skipped"]:
                self.results["skipped"].append(str(why))
            return None

    def cells(self, name, timers):
        if name in LOCAL:
            return [(1, 1)]
        if self.options.full:
            return FULL
        return CELLS[timers if name in OWN else 10**6]

    def capacity(self, timers, names, rounds):
        """Every driver in every round, one after the other."""
        say(f"capacity with {number(timers)} timers")
        own = {"timerfd": FLOOR_TIMERS, "echo": 0}
        drivers = [self.driver(name, own.get(name, timers)) for name in names]
        drivers = [driver for driver in drivers if driver]
        for driver in drivers:
            if driver.bytes:
                self.results["memory"].setdefault(driver.name, {})[
                    timers] = driver.bytes
        for round in range(self.rounds(rounds)):
            for driver in drivers:
                for cell in self.cells(driver.name, timers):
                    self.cell(driver, timers, *cell, round)
        if timers == 10**7:
            self.rest(drivers[0].server)
        for driver in drivers:
            driver.close()

    def cell(self, driver, timers, batch, connections, round):
        ops = {"echo": ["arm"], "beanstalkd": ["arm", "cancel", "fire"]}
        for op in ops.get(driver.name, OPS):
            self.results["capacity"].append(driver.measure(
                op, batch, connections,
                requests(driver.name, batch, connections),
                subject=driver.name, timers=driver.timers, of=timers,
                round=round))

    def core(self, timers):
        """What there is to do, without a daemon or a socket."""
        say(f"the core alone with {number(timers)} timers")
        done = subprocess.run(
            [BUILD.parent / "heap/timers-core", "--subject", "radix-plain",
             "--workload", "mix", "--timers", str(timers)],
            stdout=subprocess.PIPE, text=True, check=True)
        core = Results.parse(done.stdout)
        self.results["core"] = {op: core.median(work=op) for op in PLAIN}

    def rest(self, server):
        """What it costs while nothing is due."""
        say("at rest")
        time.sleep(0.5)
        cpu, switches = server.cpu_ns(), server.switches()
        time.sleep(REST_SECONDS)
        self.results["rest"] = {"cpu_s": (server.cpu_ns() - cpu) / 1e9,
                                "switches": server.switches() - switches}

    def drain(self, timers, rounds):
        say(f"{number(timers)} timers due at once")
        for round in range(self.rounds(rounds)):
            driver = Driver("lateness", 0, Server("expiryd", self.folder))
            self.results["lateness"].append(driver.measure(
                "drain", requests=timers, timers=0, round=round))
            driver.close()

    def notify(self, timers):
        say(f"Redis' notifications beside {number(timers)} keys")
        driver = self.driver("redis keys", timers)
        if not driver:
            return
        self.results["notify"].append(
            driver.measure("notify", requests=1000, timers=timers))
        self.results["capacity"].append(driver.measure(
            "arm", 512, 1, 40960, timers=timers, of=timers, round=0))
        driver.close()


def measure(options, folder):
    run = Run(options, folder)
    run.capacity(10**4, OWN + (PEERS if options.full else LOCAL[:2]), 9)
    run.core(FLOOR_TIMERS)
    run.capacity(10**6, OWN + PEERS, 5)
    if not options.quick:
        run.capacity(10**7, ("expiryd", "echo") + LOCAL[:2], 5)
    run.results["lateness"] += lateness.measure(options, folder)["lateness"]
    run.drain(10**6, 3)
    if not options.quick:
        run.drain(10**7, 3)
    for timers in 0, 10**6:
        run.notify(timers)
    return run.results


# ------------------------------------------------------------------------
# Tables


def mixed(results, **what):
    """Requests a second where arming, refreshing and cancelling take turns."""
    rates = [results.median("per_second", op=op, **what) for op in PLAIN]
    return statistics.harmonic_mean(rates) if all(rates) else None


def show_capacity(results):
    keys = "of", "subject", "batch", "connections", "op"
    cells = {}
    for row in results.rows:
        cells.setdefault(tuple(row[key] for key in keys), []).append(row)
    rows = []
    for (_, subject, batch, connections, op), found in cells.items():
        here = Results(found)
        rates = here.figure("per_second")
        rows.append([subject, count(found[0]["timers"]), op, batch, connections,
                     number(rates.median), rates.spread(number)] +
                    [number(here.median(key))
                     for key in ("server_ns", "client_ns")] +
                    [f"{here.median(key):.1f}" for key in ("p50_us", "p99_us")])
    print("Capacity: requests a second, processor time of server and client a"
          " request,\nand of a batch from being sent to being answered\n")
    print(text(["subject", "timers", "op", "batch", "conns", "a second",
                "slowest to fastest", "server ns", "client ns", "p50 us",
                "p99 us"], rows))


def show_drain(results):
    rows = []
    for timers in sorted(results.values("requests")):
        here = results.where(requests=timers)
        last = here.figure("max_us")
        rows.append([count(timers), f"{here.median('p50_us') / 1e3:.1f}",
                     f"{last.median / 1e3:.0f}",
                     last.spread(lambda us: f"{us / 1e3:.0f}"),
                     number(here.median("per_second"))])
    print("Drain: timers due within the same millisecond, in order, to one"
          " client\n")
    print(text(["timers", "first ms", "last ms", "fastest to slowest",
                "a second"], rows))


def show_rest(results):
    print("Resident bytes of the server a live timer\n")
    print(text(["subject", "timers", "bytes"],
               [[name, count(int(timers)), f"{size:.1f}"]
                for name, sizes in results["memory"].items()
                for timers, size in sizes.items()]))
    for row in results["notify"]:
        # All came where none is said to have come.
        done = row["done"] if row["p50_us"] or row["done"] < row["requests"] \
            else 0
        print(f"Redis, SET EX: of {row['requests']} keys due at once beside "
              f"{number(row['timers'])} others {done} were reported in 5 s, half "
              f"of those within {row['p50_us'] / 1e3:.0f} ms")
    core = results["core"]
    rate = 1e9 / statistics.mean(core.values())
    floor = Results(results["capacity"]).median(
        "per_second", subject="echo", of=10**4, op="arm", batch=512,
        connections=1)
    print("The core alone with 10^4 timers, no daemon and no socket: arm"
          f" {core['arm']:.0f} ns, refresh {core['refresh']:.0f},\ncancel"
          f" {core['cancel']:.0f}; {number(rate)} a second, {rate / floor:.2f} of"
          " the floor")
    if "rest" in results:
        rest = results["rest"]
        print(f"At rest with 10^7 timers armed: {rest['cpu_s']:.6f} s of processor"
              f" time in {REST_SECONDS} s, {rest['switches']} times awake")
    for why in results["skipped"]:
        print("skipped: " + why)
    print()


def aims_of(capacity, late):
    def ratio(above, below):
        return above / below if above and below else None

    own = {"subject": "expiryd"}
    few = {"of": 10**4, "batch": 512, "connections": 1}
    many = few | {"of": 10**6}
    trip = {"of": 10**4, "batch": 1, "connections": 1, "op": "arm"}
    last = late.median("max_us", op="drain", requests=10**7)
    aims = Aims()
    aims.at_least("capacity at batch 512, 10^4 timers, of the floor", 0.6, ratio(
        mixed(capacity, **own, **few), capacity.median(
            "per_second", subject="echo", op="arm", **few)))
    aims.at_least("capacity at batch 512, 10^4 timers, on epoll, of io_uring's",
                  0.7, ratio(mixed(capacity, subject="expiryd epoll", **few),
                             mixed(capacity, **own, **few)))
    aims.at_least("capacity at batch 512, 10^6 timers, of Redis' sorted set", 10,
                  ratio(mixed(capacity, **own, **many),
                        mixed(capacity, subject="redis zset", **many)))
    aims.at_most("round trip at batch 1, one connection, of the floor's", 1.25,
                 ratio(capacity.median("p50_us", **own, **trip),
                       capacity.median("p50_us", subject="echo", **trip)),
                 "{:.2f}")
    aims.at_most("seconds until the last of 10^7 due at once", 5,
                 last / 1e6 if last else None, "{:.2f}")
    lateness.aim(aims, late)
    return aims


def show(results):
    capacity, late = (Results(results[name]) for name in ("capacity", "lateness"))
    show_capacity(capacity)
    lateness.show_table(late.having("late_us"))
    show_drain(late.where(op="drain"))
    show_rest(results)
    print(aims_of(capacity, late).text())


def pictures(results):
    capacity = Results(results["capacity"])
    picture = plots.Plot(
        "Requests a second over one connection",
        "arm, refresh and cancel by turns; beanstalkd and the floor: arm",
        "requests in a batch", "requests a second",
        ticks=[(batch, str(batch)) for batch in (1, 16, 512)])
    for subject, of, name in (
            ("echo", 10**4, "the floor: echo"),
            ("expiryd", 10**4, "expiryd, $10^4$ timers"),
            ("expiryd epoll", 10**4, "the same on epoll"),
            ("expiryd", 10**6, "expiryd, $10^6$ timers"),
            ("expiryd", 10**7, "expiryd, $10^7$ timers"),
            ("redis zset", 10**6, "Redis, sorted set of $10^6$"),
            ("beanstalkd", 10**6, "beanstalkd, $10^6$ jobs"),
            ("libev", 10**6, "libev in process, $10^6$ timers"),
            ("libevent", 10**6, "libevent in process, $10^6$ timers")):
        what = {"subject": subject, "of": of, "connections": 1}
        points = [(batch, mixed(capacity, batch=batch, **what) or
                   capacity.median("per_second", batch=batch, op="arm", **what))
                  for batch in (1, 16, 512)]
        points = [point for point in points if point[1]]
        if len(points) == 1:
            points.append((512, points[0][1]))
        if points:
            picture.line(points, name)
    return {"daemon-capacity.svg": picture} | lateness.pictures(results)
