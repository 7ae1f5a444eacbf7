# SPDX-License-Identifier: LGPL-2.1-or-later
"""Durable queues: the daemon with and without a journal, databases in the journal's
place, other servers that make requests durable, and the disk by itself.

A request is ARM or CANCEL with probability 1/4 each, else REFRESH, of a keyed queue.
--quick ends in about two minutes; --timers 10000000 is for the databases, too."""

import os
import pathlib
import shutil
import socket
import struct
import subprocess
import tempfile
import time

from report import machine
from report.figures import Figure, Results
from report.tables import Aims, count, number, text
from servers import BUILD, STORES, Driver, Missing, Server, end_all, say

FLUSHED, INTERVAL, MEMORY = "flushed", "100ms", "not durable"
OWN = MEMORY, FLUSHED, INTERVAL
OTHERS = "redis always", "beanstalkd sync", "postgresql"
ONE = 512, 1, 1         # batch, connections, batches in flight of each
# Requests a round by those three, of the daemon.
CELLS = {(512, 8, 8): 512000, (512, 1, 8): 512000, ONE: 128000, (64, 1, 1): 32000,
         (1, 1, 1): 1000, (1, 64, 1): 32000}
PEER_REQUESTS = {"none": 128000, "rocksdb": 51200, "sqlite": 20480, "lmdb": 10240,
                 "redis always": 20480, "beanstalkd sync": 1024, "postgresql": 5120}
BEANSTALKD_TIMERS = 2000   # each is a flush
START_ROUNDS = 7
# Least ratios at 10^6 and at 10^7 timers.
STORE_AIMS = {"rocksdb": (8, 5), "sqlite": (20, 25), "lmdb": (25, 30)}
OTHERS_AIM = 10
CYCLE = 2 * 10**6       # requests, about one checkpoint's worth of journal
HELLO, ACK, DURABLE, KEYED = 64, 2, 4, 8


def options(parser):
    parser.add_argument("--quick", action="store_true", help="fewer rounds, and 10^6 "
                        "timers at the start")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--timers", type=int, default=10**6)
    parser.add_argument("--start-timers", type=int, metavar="N",
                        help="timers at the start (10^7)")
    parser.add_argument("--start-rounds", type=int, metavar="N",
                        help=f"rounds of the start ({START_ROUNDS})")
    parser.add_argument("--part", choices=("rates", "peers", "checkpoints", "start"),
                        action="append", help="only this; may be repeated")
    parser.add_argument("--disk", metavar="DIR", default=BUILD,
                        help="where the journals are (build/bench/daemon)")


class Run:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.data = tempfile.mkdtemp(prefix="durable.", dir=options.disk)
        os.chmod(self.data, 0o711)      # PostgreSQL is another user
        self.rounds = options.rounds or (5 if options.quick else 15)
        self.skipped = []
        self.drivers = []

    def sub_folder(self, name):
        return tempfile.mkdtemp(prefix=name.split()[0] + ".", dir=self.data)

    def server(self, name, data=None):
        """A daemon; with @data, its journal."""
        config = os.path.join(self.folder, "interval.conf")
        pathlib.Path(config).write_text("commit = 100ms\n", encoding="utf-8")
        return Server("expiryd", self.folder, ["--journal", data] if data else [],
                      config if name == INTERVAL else "/dev/null")

    def own(self, name, timers):
        if name == MEMORY:
            driver = Driver("expiryd keyed", timers, self.server(name))
        else:
            data = self.sub_folder(name)
            driver = Driver("expiryd", timers, self.server(name, data),
                            ["--journal", data])
        return self.keep(name, driver)

    def keep(self, name, driver):
        driver.name = name
        self.drivers.append(driver)
        return driver

    def peer(self, name, timers):
        """None where it is missing, which is noted."""
        say(f"filling {name}")
        if name == "beanstalkd sync":
            timers = BEANSTALKD_TIMERS
        more = ["--relaxed", str(timers)] if name in STORES else []
        try:
            server = Server(name, self.folder, more, data=self.sub_folder(name))
            driver = self.keep(name, Driver(name, timers, server))
            say(f"filled in {driver.filled['fill_s']:.0f} s")
            return driver
        except Missing as why:
            self.skipped.append(str(why))
            return None

    def measure(self, driver, op, cell, requests, **more):
        batch, connections, depth = cell
        written = driver.server.written() if driver.server else 0
        row = driver.measure(op, batch, connections, requests, depth,
                             subject=driver.name, timers=driver.timers, **more)
        row["depth"] = depth
        if driver.server:
            row["bytes"] = (driver.server.written() - written) / row["done"]
        return row

    def close(self):
        for driver in self.drivers:
            driver.close()
        self.drivers = []

    # ------------------------------------------------------------ the parts

    def rates(self):
        """The daemon beside itself, and the disk."""
        say(f"the daemon with {number(self.options.timers)} timers")
        disk = Driver("disk", 0, None, ["--socket", os.path.join(self.data, "flush")])
        own = [self.own(name, self.options.timers) for name in OWN]
        self.keep("disk", disk)
        for round in range(self.rounds):
            for cell, requests in CELLS.items():
                if cell[1] == 1 and cell[2] == 1:
                    yield self.measure(disk, "flush", (cell[0], 1, 1),
                                       300 * cell[0], round=round)
                # The next one first, in each round.
                turn = round % len(own)
                for driver in own[turn:] + own[:turn]:
                    yield self.measure(driver, "mix", cell, requests, round=round)
        self.close()

    def peers(self):
        """One batch in flight, one durable commit each."""
        timers = self.options.timers
        names = STORES + (OTHERS if timers <= 10**6 else ())
        own = [self.own(name, timers) for name in (FLUSHED, INTERVAL)]
        peers = [self.peer(name, timers) for name in names]
        say("the daemon and others")
        for round in range(self.rounds):
            for driver in own + [peer for peer in peers if peer]:
                yield self.measure(driver, "mix", ONE,
                                   PEER_REQUESTS.get(driver.name, CELLS[ONE]),
                                   round=round)
        self.close()

    def checkpoints(self):
        """From the end of a checkpoint on, so that segments are used again."""
        say("commits during checkpoints")
        driver = self.own(FLUSHED, self.options.timers)
        for _ in range(2):
            driver.measure("checkpoint", 512, 1, 10**8, 8)
        for round in range(4 if self.options.quick else self.rounds):
            yield self.measure(driver, "commits", ONE, CYCLE, round=round)
        self.close()

    def start(self):
        """A start after SIGKILL, with nothing of the journal in memory: behind a
        checkpoint, and with as many requests behind that as do not begin the next.
        """
        timers = self.options.start_timers or (
            10**6 if self.options.quick else 10**7)
        say(f"the start with {number(timers)} timers")
        data = self.sub_folder("start")
        driver = Driver("expiryd", timers, self.server(FLUSHED, data),
                        ["--journal", data])
        driver.measure("checkpoint", 512, 1, 10**9, 8)
        alone = os.path.join(self.data, "alone")
        shutil.copytree(data, alone)
        left = timers * 9 // 10
        while left:
            part = min(left, 200000)
            driver.measure("mix", 512, 1, part, 8)
            left -= part
        kill(driver.server)
        driver.process.stdin.close()
        driver.process.wait()
        rounds = self.options.start_rounds or (
            3 if self.options.quick else START_ROUNDS)
        for round in range(rounds):
            for what, folder in ("a checkpoint", alone), ("as much journal", data):
                yield self.one_start(what, folder, timers) | {"round": round}

    def one_start(self, what, data, timers):
        say(f"start: {what}")
        fill_ns = core_fill_ns(timers)
        size = forget(data)
        began = time.monotonic()
        server = self.server(FLUSHED, data)
        found = hello(server.socket)
        took = time.monotonic() - began
        cpu_s, late_ns = server.cpu_s(), server.late_ns()
        kill(server)
        own = took - late_ns / 1e9
        return {"start": what, "s": took, "own_s": own, "cpu_s": cpu_s,
                "bytes": size, "timers": found, "core_s": fill_ns * timers / 1e9,
                "ratio": own / (fill_ns * timers / 1e9)}


def kill(server):
    server.process.kill()
    server.process.wait()


def core_fill_ns(timers):
    """Processor time of the core's own ARM into an empty keyed queue."""
    done = subprocess.run(
        [BUILD.parent / "heap/timers-core", "--subject", "radix-keyed", "--workload",
         "uniform", "--timers", str(timers), "--rounds", "1", "--ops", "512"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    return Results.parse(done.stdout).median(work="fill")


def forget(folder):
    """Removes the files from the page cache, and returns their bytes."""
    size = 0
    for path in pathlib.Path(folder).iterdir():
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            size += path.stat().st_size
    return size


def hello(path):
    """Waits for the queue, and returns how many timers it has."""
    record = struct.pack("=BBhI24s", HELLO, ACK | DURABLE | KEYED, 1,
                         time.CLOCK_MONOTONIC, b"bench")
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(record)
        reply = connection.recv(32, socket.MSG_WAITALL)
    _, _, status, _, timers, _, _ = struct.unpack("=BBhIQQQ", reply)
    if status:
        raise RuntimeError(f"HELLO is refused: {status}")
    return timers


def measure(options, folder):
    run = Run(options, folder)
    parts = options.part or ("rates", "peers", "checkpoints", "start")
    results = {"disk": machine.disk(run.data), "load": [machine.load()],
               "timers": options.timers, "rounds": run.rounds}
    try:
        for part in ("rates", "peers", "checkpoints", "start"):
            results[part] = list(getattr(run, part)()) if part in parts else []
    finally:
        end_all()
        shutil.rmtree(run.data, ignore_errors=True)
    results["load"].append(machine.load())
    return results | {"skipped": run.skipped}


# ------------------------------------------------------------------------
# Tables


def show_rates(rates):
    rows = []
    for batch, connections, depth in CELLS:
        for name in ("disk",) + OWN:
            here = rates.where(subject=name, batch=batch, connections=connections,
                               depth=depth)
            if not here:
                continue
            rate = here.figure("per_second")
            ratio = rates.where(batch=batch, connections=connections,
                                depth=depth).ratio(
                {"subject": name}, {"subject": MEMORY}, "per_second")
            rows.append([name, f"{connections} x {batch} x {depth}",
                         number(rate.median), rate.spread(number),
                         ratio.text("{:.2f}".format) if ratio and name != MEMORY
                         else "", str(here.figure("p50_us")),
                         str(here.figure("p99_us"))])
    print("Connections x batch x batches in flight: requests a second, as a share of "
          "the daemon\nthat is not durable, and microseconds of a batch. The disk: one "
          "write and flush of as much.\n")
    print(text(["", "", "a second", "slowest to fastest", "share", "p50 us", "p99 us"],
               rows))


def show_peers(peers):
    rows = []
    for name in peers.values("subject"):
        here = peers.where(subject=name)
        rate, ratio = here.figure("per_second"), peers.ratio(
            {"subject": FLUSHED}, {"subject": name}, "per_second")
        rows.append([NAMES.get(name, name), count(here.rows[0]["timers"]),
                     number(rate.median), rate.spread(number),
                     "" if name == FLUSHED else ratio.text("{:.2f}".format),
                     str(here.figure("p50_us")), str(here.figure("p99_us")),
                     number(here.median("bytes"))])
    print("One connection, one batch of 512 in flight, one durable commit each; bytes "
          "that\nthe server's process wrote a request; expiryd: flushed by this one\n")
    print(text(["", "timers", "a second", "slowest to fastest", "expiryd by it",
                "p50 us", "p99 us", "bytes"], rows))


def show_checkpoints(rows):
    last = rows.rows[-1]
    for key in "outside", "during":
        if last[key]:
            print(f"a commit of 512 {key} checkpoints: p50 {last[key + '_p50_us']}, p99 "
                  f"{last[key + '_p99_us']}, most {last[key + '_max_us']} us; "
                  f"{number(last[key])} of them")
    print(f"checkpoints: {last['checkpoints']}, bytes written a request: "
          f"{bytes_of(rows):.1f} ({rows.figure('bytes').spread('{:.1f}'.format)})\n")


def bytes_of(rows):
    """Of all rounds: a checkpoint is not in each."""
    return sum(rows.all("bytes")) / len(rows.rows)


def two(rows, key):
    return rows.figure(key).text("{:.2f}".format)


def show_start(rows):
    table = []
    for what in rows.values("start"):
        here = rows.where(start=what)
        table.append([what, count(here.rows[0]["timers"]),
                      number(here.median("bytes") / 2**20), two(here, "s"), two(here, "own_s"),
                      two(here, "cpu_s"), two(here, "core_s"),
                      here.figure("ratio").text("{:.2f}".format)])
    print("A start after SIGKILL until HELLO is answered, files not in memory: seconds; "
          "without\nthose that it waited for a processor; processor time of all its "
          "threads; and of the core's\nfill. The ratio is of the second to the last: both "
          "are without the machine's other load.\n")
    print(text(["behind", "timers", "MiB", "seconds", "not waiting", "processor",
                "the core's fill", "ratio"], table))


NAMES = {"none": "the core, no store", "redis always": "Redis, appendfsync always",
         "beanstalkd sync": "beanstalkd -f 0", "rocksdb": "RocksDB", "sqlite":
         "SQLite, FULL", "lmdb": "LMDB", "postgresql": "PostgreSQL"}


def middle(figure):
    return figure.median if figure else None


def rate_aims(aims, rates):
    def share(cell, name, base):
        batch, connections, depth = cell
        return middle(rates.where(batch=batch, connections=connections,
                                  depth=depth).ratio(
            {"subject": name}, {"subject": base}, "per_second"))

    for name, least in (FLUSHED, (0.7, 0.5)), (INTERVAL, (0.85, 0.7)):
        for cell, aim in zip(((512, 8, 8), (512, 1, 8)), least):
            aims.at_least(f"{cell[1]} x 512 x 8, {name}, of not durable", aim,
                          share(cell, name, MEMORY))
    one = rates.where(batch=1, connections=1)
    flush = one.median("p50_us", subject="disk")
    aims.at_most("1 x 1 x 1 p50 us, the disk's flush and 40",
                 (flush or 0) + 40, one.median("p50_us", subject=FLUSHED), "{:.0f}")
    per_round = [(middle(rates.where(round=round, batch=1, connections=64,
                                     subject=FLUSHED).figure("per_second")),
                  middle(one.where(round=round, subject=FLUSHED).figure("per_second")))
                 for round in rates.values("round")]
    aims.at_least("64 x 1 x 1, requests a second by 1 x 1 x 1", 8,
                  middle(Figure([a / b for a, b in per_round])) if per_round else None)


def peer_aims(aims, peers, timers):
    large = timers > 10**6

    def by(name):
        return middle(peers.ratio({"subject": FLUSHED}, {"subject": name},
                                  "per_second"))

    for name, least in STORE_AIMS.items():
        aims.at_least(f"512, one in flight, by {NAMES[name]}", least[large], by(name))
    for name in () if large else OTHERS:
        aims.at_least(f"512, one in flight, by {NAMES[name]}", OTHERS_AIM, by(name))


def aims_of(results):
    parts = {part: Results(results[part]) for part in
             ("rates", "peers", "checkpoints", "start")}
    aims = Aims()
    rate_aims(aims, parts["rates"])
    peer_aims(aims, parts["peers"], results["timers"])
    rows = parts["checkpoints"]
    aims.at_most("bytes written a request, with checkpoints", 64,
                 bytes_of(rows) if rows else None, "{:.1f}")
    last = rows.rows[-1] if rows else {}
    aims.at_most("p99 of a commit during a checkpoint by outside", 2,
                 last["during_p99_us"] / last["outside_p99_us"]
                 if last.get("during") else None, "{:.2f}")
    for what, aim in ("a checkpoint", 1.2), ("as much journal", 2.5):
        aims.at_most(f"start behind {what} by the core's fill", aim,
                     parts["start"].median("ratio", start=what), "{:.2f}")
    return aims


def show(results):
    print(f"disk: {results['disk']}; load {' and '.join(results['load'])} before and "
          f"after;\n{results['rounds']} rounds, {number(results['timers'])} timers\n")
    for part, table in (("rates", show_rates), ("peers", show_peers),
                        ("checkpoints", show_checkpoints), ("start", show_start)):
        if results[part]:
            table(Results(results[part]))
    for why in results["skipped"]:
        print("skipped: " + why)
    print(aims_of(results).text())
