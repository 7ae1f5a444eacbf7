# SPDX-License-Identifier: LGPL-2.1-or-later
"""The clients of other languages beside libexpiry: processor time of the client for each
operation, in rounds that alternate. With redis-py, pipelined ZADD and ZREM beside them."""

import json
import subprocess
import sys

from report.figures import Results
from report.tables import number, text
from servers import ROOT, Driver, Missing, Server, say

TIMERS = 10**6
ORDERS = [("sync", "single"), ("sync", "batch"), ("sync", "consume"),
          ("asyncio", "single"), ("asyncio", "batch"), ("asyncio", "tasks"),
          ("asyncio", "consume")]
COMPILED = [("blocking", "single"), ("blocking", "batch")]
LIBRARY = {"single": ("mix", 1, 9000), "batch": ("mix", 512, 500 * 512)}


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


def compiled(server):
    """Returns the clients in Go and Rust whose compilers were there."""
    clients = []
    for language in "Go", "Rust":
        program = ROOT / "build/clients" / ("bench-" + language.lower())
        if program.exists():
            clients.append(Client(language, program, server.socket))
        else:
            say("without %s: it is not installed" % language)
    return clients


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
    library = Driver("library keyed", TIMERS, server)
    redis = redis_socket(folder)
    python = Client("Python", sys.executable, ROOT / "bench/daemon/client-python.py",
                    server.socket, *([redis] if redis else []))
    others = compiled(server)
    orders = ORDERS + ([("redis", "batch")] if redis else [])
    rows = []
    for _ in range(options.rounds):
        for op, order in LIBRARY.items():
            row = library.measure(*order[:2], 1, order[2])
            rows.append({"client": "libexpiry", "op": op,
                         "ns": row["client_ns"], "p50": 0})
        rows += [python.measure(*order) for order in orders]
        rows += [client.measure(*order) for client in others for order in COMPILED]
    for client in python, *others:
        client.close()
    library.close()
    return {"rows": rows, "rounds": options.rounds}


def show(results):
    rows = Results(results["rows"])
    print("Processor time of the client an operation, median of %d rounds. single: one by "
          "one;\nbatch: of 512; tasks: 100 with one operation each; consume: expirations "
          "one by one\n" % results["rounds"])
    base = {op: rows.where(client="libexpiry", op=op).median("ns") for op in LIBRARY}
    lines = []
    for client in dict.fromkeys(row["client"] for row in rows.rows):
        for op in dict.fromkeys(row["op"] for row in rows.rows if row["client"] == client):
            here = rows.where(client=client, op=op)
            figure, p50 = here.figure("ns"), here.median("p50")
            lines.append([client.replace("Python redis", "redis-py"), op,
                          number(figure.median), figure.spread(number),
                          "%.1f" % (figure.median / base[op]) if op in base else "",
                          number(p50 / 1000) if p50 else ""])
    print(text(["client", "", "ns", "least to most", "to libexpiry", "p50 us"], lines))
