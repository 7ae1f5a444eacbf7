# SPDX-License-Identifier: LGPL-2.1-or-later
"""The clients of other languages beside libexpiry: processor time of the client for each
operation, in rounds that alternate, beside pipelined ZADD and ZREM of the same language.
Then each aim, its value, and whether it is met."""

import importlib.util
import json
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
               ("asyncio", "consume"), ("redis", "batch"), ("redis-asyncio", "tasks")],
    "Go": [("blocking", op) for op in ("single", "batch", "tasks", "consume")],
    "go-redis": [("redis", "batch"), ("redis", "tasks")],
    "Rust": [("blocking", "single"), ("blocking", "batch"), ("blocking", "consume"),
             ("redis", "batch")],
    "tokio": [("tokio", op) for op in ("single", "batch", "tasks", "consume")],
}
UVLOOP = [("uvloop", op) for op in ("single", "batch", "tasks", "consume")]

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


def options(parser):
    parser.add_argument("--rounds", type=int, default=7)


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


def compiled(sockets):
    """Returns the clients whose compilers and libraries were there."""
    clients = []
    for language, name in PROGRAMS.items():
        program = ROOT / name
        if program.exists():
            clients.append(Client(language, program, *sockets))
        else:
            say("without %s: it is not built" % language)
    return clients


def has_module(name):
    return importlib.util.find_spec(name) is not None


def orders_of(client, has_redis):
    orders = ORDERS[client.language]
    if client.language == "Python" and has_module("uvloop"):
        orders = orders + UVLOOP
    return [order for order in orders if has_redis or not order[0].startswith("redis")]


def redis_socket(folder):
    """Returns the socket of a Redis, None without it or redis-py."""
    try:
        import redis            # noqa: F401
        return Server("redis zset", folder).socket
    except (ImportError, Missing) as reason:
        say("without Redis: %s" % reason)
        return None


def measure(options, folder):
    server = Server("expiryd", folder)
    redis = redis_socket(folder)
    sockets = [server.socket, *([redis] if redis else [])]
    clients = compiled(sockets)
    clients.append(Client("Python", sys.executable, ROOT / "bench/daemon/client-python.py",
                          *sockets))
    rows = []
    for _ in range(options.rounds):
        for client in clients:
            rows += [client.measure(*order) for order in orders_of(client, redis)]
    for client in clients:
        client.close()
    return {"rows": rows, "rounds": options.rounds}


def name_of(client):
    return {"tokio tokio": "tokio", "go-redis redis": "go-redis"}.get(client, client)


def show_aims(rows, known):
    """Prints each aim beside its value. The spread is that of rounds."""
    lines = []
    for client, op, what, other, other_op, kind, aim in AIMS:
        if (client, op) not in known or other and (other, other_op) not in known:
            lines.append([client, op, what, other or "", "%g" % aim, "", "", "not measured"])
            continue
        here = [row[what] for row in rows if (row["client"], row["op"]) == (client, op)]
        there = [row[what] for row in rows if (row["client"], row["op"]) == (other, other_op)]
        values = [a if not other else a / b if kind == "most" else b / a
                  for a, b in zip(here, there or here)]
        value = statistics.median(values)
        met = value <= aim if kind == "most" else value >= aim
        digits = "%.0f" if not other else "%.2f"
        lines.append([client, op, what, other or "", ("≤ %g" if kind == "most" else "≥ %g") % aim,
                      digits % value, "%s to %s" % (digits % min(values), digits % max(values)),
                      "ok" if met else "MISSED"])
    print(text(["client", "", "", "beside", "aim", "value", "least to most", ""], lines))


def show(results):
    rows = [row | {"client": name_of(row["client"])} for row in results["rows"]]
    figures = Results(rows)
    print("Processor time of the client an operation, ns, median of %d rounds. single: one "
          "by one;\nbatch: of 512; tasks: 100 with one operation each; consume: expirations "
          "one by one\n" % results["rounds"])
    known = list(dict.fromkeys((row["client"], row["op"]) for row in rows))
    base = {op: figures.where(client="C blocking", op=op).median("ns")
            for client, op in known if client == "C blocking"}
    lines = []
    for client, op in sorted(known, key=lambda pair: pair[0]):
        here = figures.where(client=client, op=op)
        figure, p50 = here.figure("ns"), here.median("p50")
        lines.append([client, op, number(figure.median), figure.spread(number),
                      "%.1f" % (figure.median / base[op]) if op in base else "",
                      number(p50 / 1000) if p50 else ""])
    print(text(["client", "", "ns", "least to most", "to C", "p50 us"], lines))
    print()
    show_aims(rows, known)
