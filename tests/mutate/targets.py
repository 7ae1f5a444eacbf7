# SPDX-License-Identifier: LGPL-2.1-or-later
"""What is mutated, by folder: how it is made, and which programs are asked."""

import glob
import os
import subprocess

# Without debug information, which knows columns: the same code is to be the same
# file.
PLAIN = ["OPTIMIZE=-O1"]

SOCKET = ["build/expiryd", "build/tests/socket/expiryd-slow"]
LIBRARY = ["build/libexpiry.so.0", "build/libexpiry.a", "build/expiryctl"]

# Programs made of tools' own sources, under the sanitizers.
OF_TOOLS = ["test-parse", "test-local-time", "test-module"]

# Seconds that a program takes, if more than one: the quick are asked first.
SECONDS = {
    "test-backlog.py": 2, "test-busy.py": 23, "test-credit.py": 6,
    "test-fairness.py": 2, "test-hostile.py": 9, "test-limits.py": 2,
    "test-manager.py": 18, "test-needless.py": 4, "test-service.py": 6,
    "test-threads.py": 28, "test-http.py": 12, "test-metrics.py": 9,
    "test-restart.py": 2, "test-run.py": 6, "test-reconnect-server": 6,
    "test-replies": 2,
}

# Who is likely to notice, by the beginning of a path; the first that fits.
LIKELY = {
    "daemon/account": ["test-limits.py", "test-hostile.py"],
    "daemon/alarm": ["test-clock.py", "test-requests.py", "test-needless.py"],
    "daemon/arena": ["test-backlog.py", "test-needless.py"],
    "daemon/arrival": ["test-hello.py", "test-hostile.py"],
    "daemon/buffer": ["test-backlog.py", "test-credit.py", "test-hostile.py"],
    "daemon/client": ["test-hello.py", "test-requests.py", "test-hostile.py"],
    "daemon/clock": ["test-clock.py", "test-requests.py"],
    "daemon/config": ["test-limits.py", "test-service.py"],
    "daemon/consumer": ["test-credit.py", "test-backlog.py"],
    "daemon/directory": ["test-queues.py", "test-threads.py"],
    "daemon/engine-embedded": ["test-requests.py", "test-credit.py",
                               "test-limits.py"],
    "daemon/hello": ["test-hello.py"],
    "daemon/histogram": ["test-histograms.py"],
    "daemon/listen": ["test-hostile.py", "test-limits.py", "test-service.py"],
    "daemon/listing": ["test-queues.py"],
    "daemon/log": ["test-journal.py", "test-service.py"],
    "daemon/loop": ["test-hello.py", "test-needless.py"],
    "daemon/mailbox": ["test-threads.py"],
    "daemon/main": ["test-service.py"],
    "daemon/notify": ["test-manager.py", "test-service.py"],
    "daemon/pool": ["test-busy.py", "test-hostile.py"],
    "daemon/probe": ["test-needless.py", "test-busy.py"],
    "daemon/queue": ["test-queues.py", "test-hello.py"],
    "daemon/requests": ["test-requests.py", "test-fairness.py"],
    "daemon/round": ["test-manager.py", "test-queues.py"],
    "daemon/server": ["test-hello.py", "test-threads.py"],
    "daemon/service": ["test-service.py", "test-manager.py"],
    "daemon/shards": ["test-threads.py", "test-service.py"],
    "daemon/store": ["test-manager.py"],
    "daemon/user": ["test-limits.py"],
    "lib/lasting": ["test-reconnect-server", "test-reconnect", "test-cuts"],
    "lib/re": ["test-reconnect-server", "test-reconnect", "test-cuts",
               "test-replies"],
    "lib/unix": ["test-stream", "test-replies", "test-timers"],
    "lib/stream": ["test-stream", "test-replies", "test-timers"],
    "lib/": ["test-timers", "test-handle", "test-api", "test-stream"],
    "tools/cmd-metrics": ["test-metrics.py"],
    "tools/cmd-run": ["test-run.py"],
    "tools/cmd-s": ["test-ctl.py", "test-metrics.py"],
    "tools/cmd-top": ["test-metrics.py"],
    "tools/histogram": ["test-metrics.py"],
    "tools/http": ["test-http.py"],
    "tools/lines": ["test-parse", "test-ctl.py"],
    "tools/local-time": ["test-local-time"],
    "tools/metrics": ["test-metrics.py"],
    "tools/module": ["test-module"],
    "tools/parse": ["test-parse", "test-ctl.py"],
    "tools/": ["test-ctl.py"],
}


class Target:
    """A folder whose mutants are made by the Makefile in a copy of the tree.

    @base: what is made once, @goals: what is made of a mutant
    @products: files in which a mutant that is one differs
    """
    variables = PLAIN

    def __init__(self, name, goals, first, then):
        self.name, self.goals = name, goals
        self.products = goals
        self.paths = {os.path.basename(path): path for path in [*first, *then]}
        programs = [path for path in self.paths.values()
                    if path.startswith("build/")]
        self.base = sorted({*SOCKET, *LIBRARY, *goals, *programs,
                            "build/tests/socket/count-calls.so"})

    def programs(self):
        return list(self.paths)

    def command(self, name):
        return [self.paths[name]]

    def is_sanitized(self, name):
        return name in OF_TOOLS

    def seconds(self, name):
        return SECONDS.get(name, 1)

    def likely(self, path):
        for begin, names in LIKELY.items():
            if path.startswith(begin):
                return names
        return []

    def source(self, name):
        path = self.paths[name]
        return path[len("build/"):] + ".c" if path.startswith("build/") else path

    def sources(self, name):
        """What decides about a program's failure."""
        return [self.source(name)]

    def all_sources(self):
        return [path for folder in ("socket", "lib")
                for path in glob.glob(f"tests/{folder}/*")]


def library_programs():
    return [f"build/tests/lib/{os.path.basename(path)[:-2]}"
            for path in sorted(glob.glob("tests/lib/test-*.c"))]


def scripts(folder, ends=("py", "sh")):
    return [path for end in ends
            for path in sorted(glob.glob(f"tests/{folder}/test-*.{end}"))]


def daemon():
    clients = [path for path in library_programs()
               if os.path.basename(path) not in OF_TOOLS]
    return Target("daemon", SOCKET, scripts("socket"),
                  [*clients, *scripts("lib", ["py"])])


def lib():
    return Target("lib", LIBRARY,
                  [path for path in library_programs()
                   if os.path.basename(path) not in OF_TOOLS],
                  scripts("lib"))


def tools():
    own = [f"build/tests/lib/{name}" for name in OF_TOOLS]
    return Target("tools", ["build/expiryctl", *own], own, scripts("lib"))


class Module(Target):
    """kmod/: the module, built for a kernel of User Mode Linux. Programs of
    tests/device are run in one machine, the quick ones."""
    variables = []
    quick = ["config", "layout", "batch", "badinput", "keyed", "ack", "read",
             "poll", "uring", "lifetime", "holders", "namespaces", "compat",
             "periodic", "clock", "scan-stat", "limits", "trace", "killed",
             "read-fault", "batch-memory"]

    def __init__(self):
        super().__init__("kmod", ["uml-module-fast"], [], [])
        self.kernel = subprocess.run(
            ["make", "-s", "uml-kernel-fast"], check=True, text=True,
            stdout=subprocess.PIPE).stdout.strip()
        with open(self.kernel + "/release", encoding="ascii") as file:
            self.products = [f"build/kmod/{file.read().strip()}/expiry.ko"]
        self.paths = {"tests/device": ""}
        self.base = ["uml-module-fast", "device-tests"]

    def command(self, name):
        return ["tests/uml/run", "--kernel", self.kernel, "--silence", "60",
                "--memory", "1024", "--", "sh", "-c",
                "for name; do build/tests/device/test-$name || "
                "[ $? = 4 ] || exit; done", "sh", *self.quick]

    def is_sanitized(self, name):
        return True             # a machine's memory is no limit of this kind

    def sources(self, name):
        return self.all_sources()

    def all_sources(self):
        return glob.glob("tests/device/*")


TARGETS = {"daemon": daemon, "lib": lib, "tools": tools, "kmod": Module}
