# SPDX-License-Identifier: LGPL-2.1-or-later
"""The clients of other languages beside libexpiry: processor time of the client for each
operation, in rounds that alternate, beside pipelined ZADD and ZREM of the same language.
Then each aim, its value, and whether it is met.

libexpiry is measured directly before and after each of the others, and their ratio is
formed there. All run on one processor: where the scheduler wakes the server, on this
processor or on another one, makes more of a difference than the client."""

import json
import os
import statistics
import subprocess
import sys

from report.figures import Results
from report.tables import number, text
from servers import ROOT, Missing, Server, say

# By client: styles and ops. Redis' are left out where there is none.
ORDERS = {
    "C": [("blocking", op) for op in ("single", "batch", "consume")],
    "Python": [("sync", "single"), ("sync", "batch"), ("sync", "consume"),
               ("asyncio", "single"), ("asyncio", "batch"), ("asyncio", "tasks"),
               ("asyncio", "consume"), ("sync", "floor"), ("asyncio", "floor"),
               ("redis", "batch"), ("redis-asyncio", "tasks")],
    "Go": [("blocking", op) for op in ("single", "batch", "tasks", "consume")],
    "go-redis": [("redis", "batch"), ("redis", "tasks")],
    "Rust": [("blocking", "single"), ("blocking", "batch"), ("blocking", "consume"),
             ("redis", "batch")],
    "tokio": [("tokio", op) for op in ("single", "batch", "tasks", "consume", "floor")],
}
UVLOOP = [("uvloop", op) for op in ("single", "batch", "tasks", "consume", "floor")]

# What libexpiry is measured by beside an op that it does not have.
BESIDE = {"floor": "single"}

# Client and op, what of it, beside which client and op, at most (times), or at least
# (times less). Without another one: at most that many ns.
AIMS = [
    ("Rust blocking", "batch", "ns", "C blocking", "batch", "most", 1.1),
    ("tokio", "batch", "ns", "C blocking", "batch", "most", 1.5),
    ("Go blocking", "batch", "ns", "C blocking", "batch", "most", 3.5),
    ("Python sync", "batch", "ns", "C blocking", "batch", "most", 6),
    ("Python asyncio", "batch", "ns", "C blocking", "batch", "most", 9),
    ("Python sync", "batch", "ns", "Python redis", "batch", "less", 20),
    ("Go blocking", "batch", "ns", "go-redis", "batch", "less", 5),
    ("Rust blocking", "batch", "ns", "Rust redis", "batch", "less", 10),
    ("Rust blocking", "single", "p50", "C blocking", "single", "most", 1.1),
    ("tokio", "single", "p50", "C blocking", "single", "most", 1.3),
    ("Go blocking", "single", "p50", "C blocking", "single", "most", 2),
    ("Python sync", "single", "p50", "C blocking", "single", "most", 1.4),
    ("Python uvloop", "single", "p50", "C blocking", "single", "most", 1.8),
    ("Python asyncio", "single", "p50", "C blocking", "single", "most", 4.5),
    ("Python asyncio", "tasks", "ns", "Python redis-asyncio", "tasks", "less", 12),
    ("Go blocking", "tasks", "ns", "go-redis", "tasks", "less", 4),
    ("Python sync", "consume", "ns", None, None, "most", 800),
    ("Go blocking", "consume", "ns", None, None, "most", 100),
    ("Rust blocking", "consume", "ns", None, None, "most", 40),
]


BASE = "C blocking"


def options(parser):
    parser.add_argument("--rounds", type=int, default=15)


class Client:
    """The driver of a language, running. @command: it, and its arguments."""

    def __init__(self, language, *command):
        self.language = language
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def measure(self, style, op):
        self.process.stdin.write("%s %s\n" % (style, op))
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the driver of %s ended" % self.language)
        return json.loads(line) | {"client": "%s %s" % (self.language, style), "op": op}

    def close(self):
        self.process.stdin.close()
        self.process.wait()


PROGRAMS = {"C": "build/bench/daemon/client-c", "Go": "build/clients/bench-go",
            "go-redis": "build/clients/bench-go-redis", "Rust": "build/clients/bench-rust",
            "tokio": "build/clients/bench-rust-tokio"}
HOW = {"go-redis": "PEERS=1, with the network",
       "tokio": "packages cargo, librust-tokio-dev and librust-futures-core-dev"}
MODULES = "redis", "uvloop"     # of Python, and what they are measured for


def compiled(sockets):
    """Returns the clients whose compilers and libraries were there."""
    clients = []
    for language, name in PROGRAMS.items():
        program = ROOT / name
        if program.exists():
            clients.append(Client(language, program, *sockets))
        else:
            say("without %s: it is not built (%s)"
                % (language, HOW.get(language, "its compiler is missing")))
    return clients


def modules_of(python):
    """Returns those of MODULES that this Python has."""
    code = "import importlib.util as u, sys; print(*filter(u.find_spec, sys.argv[1:]))"
    done = subprocess.run([python, "-c", code, *MODULES], stdout=subprocess.PIPE, text=True,
                          check=False)
    return set(done.stdout.split())


def choose_python():
    """Returns a Python and its modules: this one, or the system's if that has more."""
    pythons = [sys.executable]
    if os.access("/usr/bin/python3", os.X_OK):
        pythons.append("/usr/bin/python3")
    modules = {python: modules_of(python) for python in pythons}
    best = max(pythons, key=lambda python: len(modules[python]))
    for name in MODULES:
        if name not in modules[best]:
            say("without %s: %s has no such module (package python3-%s)" % (name, best, name))
    return best, modules[best]


def redis_socket(folder):
    """Returns the socket of a Redis, None without it."""
    try:
        return Server("redis zset", folder).socket
    except Missing as reason:
        say("without Redis: %s" % reason)
        return None


def orders_of(client, modules, redis):
    """Returns what is measured of a client: pairs of style and op."""
    orders = ORDERS[client.language]
    if client.language == "Python":
        if "uvloop" in modules:
            orders = orders + UVLOOP
        if "redis" not in modules:
            redis = None
    return [order for order in orders if redis or not order[0].startswith("redis")]


def one_round(base, others):
    """Measures each once, and libexpiry before and after each of the same op: the mean of
    both is the row's "beside". @others: by op, pairs of a client and a style"""
    rows = []
    for op, clients in others.items():
        base_op = BESIDE.get(op, op)
        has_base = ("blocking", base_op) in ORDERS["C"]
        before = has_base and base.measure("blocking", base_op)
        for client, style in clients:
            row = client.measure(style, op)
            if has_base:
                after = base.measure("blocking", base_op)
                row["beside"] = {what: (before[what] + after[what]) / 2
                                 for what in ("ns", "p50")}
                rows.append(before)
                before = after
            rows.append(row)
        if has_base:
            rows.append(before)
    return rows


def measure(options, folder):
    os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])
    server = Server("expiryd", folder)
    redis = redis_socket(folder)
    sockets = [server.socket, *([redis] if redis else [])]
    base, *clients = compiled(sockets)
    python, modules = choose_python()
    clients.append(Client("Python", python, ROOT / "bench/daemon/client-python.py",
                          *sockets))
    others = {}
    for client in clients:
        for style, op in orders_of(client, modules, redis):
            others.setdefault(op, []).append((client, style))
    rows = []
    for _ in range(options.rounds):
        rows += one_round(base, others)
    for client in base, *clients:
        client.close()
    return {"rows": rows, "rounds": options.rounds}


def name_of(client):
    return {"tokio tokio": "tokio", "go-redis redis": "go-redis"}.get(client, client)


def ratios(rows, client, op, other, other_op, what):
    """Returns the ratios of each round, of libexpiry by what was measured beside."""
    here = [row for row in rows if (row["client"], row["op"]) == (client, op)]
    if other == BASE:
        return [row[what] / row["beside"][what] for row in here]
    there = [row for row in rows if (row["client"], row["op"]) == (other, other_op)]
    return [a[what] / b[what] for a, b in zip(here, there)]


def show_aims(rows, known):
    """Prints each aim beside its value. The spread is the middle half of the rounds."""
    lines = []
    for client, op, what, other, other_op, kind, aim in AIMS:
        if (client, op) not in known or other and (other, other_op) not in known:
            lines.append([client, op, what, other or "", "%g" % aim, "", "", "not measured"])
            continue
        values = ratios(rows, client, op, other, other_op, what) if other else [
            row[what] for row in rows if (row["client"], row["op"]) == (client, op)]
        if kind == "less":
            values = [1 / value for value in values]
        value = statistics.median(values)
        met = value <= aim if kind == "most" else value >= aim
        digits = "%.0f" if not other else "%.2f"
        lines.append([client, op, what, other or "", ("≤ %g" if kind == "most" else "≥ %g") % aim,
                      digits % value, "%s to %s" % tuple(digits % v for v in middle(values)),
                      "ok" if met else "MISSED"])
    print(text(["client", "", "", "beside", "aim", "value", "middle half", ""], lines))


def ratio(rows, client, op, what, known):
    """Returns the median of the ratios to libexpiry, as text; "" without one."""
    if client == BASE or (BASE, BESIDE.get(op, op)) not in known:
        return ""
    return "%.2f" % statistics.median(ratios(rows, client, op, BASE, op, what))


def middle(values):
    """Returns the quartiles: two."""
    if len(values) < 2:
        return values * 2
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def show(results):
    rows = [row | {"client": name_of(row["client"])} for row in results["rows"]]
    figures = Results(rows)
    print("Processor time of the client an operation, ns, median of %d rounds. single: one "
          "by one;\nbatch: of 512; tasks: 100 with one operation each; consume: expirations "
          "one by one;\nfloor: single without the client, by the language's own sockets. to "
          "C: libexpiry is measured before\nand after each. All on one processor\n"
          % results["rounds"])
    known = list(dict.fromkeys((row["client"], row["op"]) for row in rows))
    lines = []
    for client, op in sorted(known, key=lambda pair: pair[0]):
        here = figures.where(client=client, op=op)
        figure, p50 = here.figure("ns"), here.median("p50")
        lines.append([client, op, number(figure.median), figure.spread(number),
                      ratio(rows, client, op, "ns", known),
                      "%.1f" % (p50 / 1000) if p50 else "",
                      ratio(rows, client, op, "p50", known) if p50 else ""])
    print(text(["client", "", "ns", "least to most", "to C", "p50 us", "to C"], lines))
    print()
    show_aims(rows, known)
