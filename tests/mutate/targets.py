# SPDX-License-Identifier: LGPL-2.1-or-later
"""The mutated folders: their builds, and the programs that test them."""

import glob
import os
import subprocess

# Without debug information, which has columns: equal code shall give equal files.
PLAIN = ["OPTIMIZE=-O1"]

SOCKET = ["build/expiryd", "build/slow/expiryd"]
LIBRARY = ["build/libexpiry.so.0", "build/libexpiry.a", "build/expiryctl"]

SIMULATION = "tests/sim/test-seeds"
CRASHES = "tests/sim/test-crashes"
SIMULATOR = "build/tests/sim/sim"

# The journal on a disk that loses power: so often, to be as quick as other programs.
JOURNAL = "tests/journal/test-crash"
JOURNAL_PROGRAMS = ["build/tests/journal/crash", "build/asan/tests/journal/crash"]
JOURNAL_STATES = 5000

# What programs of tests/packaging/ use besides.
BESIDE = ["all", "build/demo/storm"]

# What a program needs to be built again with each mutant.
BUILT_FOR = {SIMULATION: [SIMULATOR], CRASHES: [SIMULATOR], JOURNAL: JOURNAL_PROGRAMS}

# Libraries that programs are preloaded with.
PRELOADED = ["build/tests/socket/count-calls.so",
             "build/tests/socket/fail-calls.so",
             "build/tests/socket/fail-disk.so",
             "build/tests/socket/fail-submit.so",
             "build/tests/socket/log-random.so",
             "build/tests/socket/refuse-uring.so",
             "build/tests/socket/step-clock.so",
             "build/tests/tools/fixed-time.so"]

# Programs that also run on the second loop.
ON_EPOLL = " on epoll"
EPOLL = [f"tests/socket/test-{name}.py{ON_EPOLL}" for name in
         ("backlog", "clock", "credit", "half-close", "hello", "hostile",
          "requests", "steady-state", "threads")]

# Duration of programs above one second: quick programs run first.
SECONDS = {
    "test-backlog.py": 2, "test-overload.py": 23, "test-credit.py": 6,
    "test-declared.py": 5,
    "test-access.py": 4,
    "test-fairness.py": 2, "test-hostile.py": 9, "test-limits.py": 2,
    "test-manager.py": 18, "test-steady-state.py": 4, "test-service.py": 6,
    "test-threads.py": 28, "test-exporter.py": 33, "test-metrics.py": 9,
    "test-refusals.py": 4, "test-restart.py": 2, "test-run.py": 6, "test-reconnect-server": 6,
    "test-replies": 2, "test-seeds": 4, "test-crashes": 30, "test-crash": 4,
    "test-disk-errors.py": 40, "test-disk-trouble.py": 40, "test-disk-full.py": 25,
    "test-kills.py": 60, "test-durable.py": 28, "test-durable-times.py": 16,
    "test-durable-space.py": 10,
}

# Programs that are likely to notice, by the first matching start of a path.
LIKELY = {
    "daemon/client/permission": ["test-access.py", "test-hello.py"],
    "daemon/queue/access": ["test-access.py", "test-hello.py"],
    "daemon/util/account": ["test-limits.py", "test-hostile.py"],
    "daemon/engine/alarm": ["test-clock.py", "test-requests.py", "test-steady-state.py"],
    "daemon/engine/arena": ["test-backlog.py", "test-steady-state.py"],
    "daemon/server/handshake": ["test-hello.py", "test-hostile.py"],
    "daemon/loop/buffer": ["test-backlog.py", "test-credit.py", "test-hostile.py"],
    "daemon/client/connection": ["test-hello.py", "test-requests.py", "test-hostile.py"],
    "daemon/client/input": ["test-backlog.py", "test-credit.py"],
    "daemon/client/output": ["test-credit.py", "test-backlog.py"],
    "daemon/loop/clock-watch": ["test-clock.py", "test-requests.py"],
    "daemon/util/config": ["test-limits.py", "test-service.py"],
    "daemon/client/delivery": ["test-credit.py", "test-backlog.py"],
    "daemon/queue/decla": ["test-declared.py"],
    "daemon/client/daemon-op": ["test-requests.py", "test-queues.py"],
    "daemon/client/declare": ["test-declared.py"],
    "daemon/queue/directory": ["test-queues.py", "test-threads.py"],
    "daemon/engine/embedded": ["test-requests.py", "test-credit.py",
                               "test-limits.py"],
    "daemon/client/hello": ["test-hello.py"],
    "daemon/util/histogram": ["test-histograms.py"],
    "daemon/journal/": ["test-crash", "test-crashes"],
    "daemon/queue/durable": ["test-crashes", "test-durable.py"],
    "daemon/queue/restore": ["test-crashes", "test-durable-times.py"],
    "daemon/util/key-file": ["test-declared.py", "test-service.py"],
    "daemon/server/listen": ["test-hostile.py", "test-limits.py", "test-service.py"],
    "daemon/client/listing": ["test-queues.py"],
    "daemon/util/log": ["test-journal.py", "test-service.py"],
    "daemon/loop/loop": ["test-hello.py", "test-steady-state.py"],
    "daemon/loop/uring": ["test-hello.py", "test-steady-state.py"],
    "daemon/loop/epoll": ["test-hello.py on epoll", "test-requests.py on epoll"],
    "daemon/queue/loss": ["test-loss.py"],
    "daemon/loop/mailbox": ["test-threads.py"],
    "daemon/main": ["test-service.py"],
    "daemon/util/notify": ["test-manager.py", "test-service.py"],
    "daemon/util/pool": ["test-overload.py", "test-hostile.py"],
    "daemon/loop/probe": ["test-steady-state.py", "test-overload.py"],
    "daemon/queue/queue-file": ["test-declared.py"],
    "daemon/client/session": ["test-hello.py", "test-limits.py"],
    "daemon/queue/charge": ["test-limits.py"],
    "daemon/queue/queue": ["test-queues.py", "test-hello.py"],
    "daemon/client/requests": ["test-requests.py", "test-fairness.py"],
    "daemon/client/summary": ["test-manager.py", "test-queues.py"],
    "daemon/server/heartbeat": ["test-watchdog.py", "test-manager.py",
                                "test-queues.py"],
    "daemon/server/worker": ["test-hello.py", "test-threads.py"],
    "daemon/server/service": ["test-service.py", "test-manager.py"],
    "daemon/server/server": ["test-threads.py", "test-service.py"],
    "daemon/queue/store": ["test-manager.py"],
    "daemon/util/user": ["test-limits.py"],
    "lib/transport-reconnect": ["test-reconnect-server", "test-reconnect",
                                "test-reconnect-consume", "test-cuts"],
    "lib/link": ["test-reconnect-server", "test-reconnect",
                 "test-reconnect-consume", "test-cuts", "test-replies"],
    "lib/exchange": ["test-hostile", "test-stream", "test-replies", "test-timers"],
    "lib/id": ["test-durable", "test-timers"],
    "lib/inbox": ["test-hostile", "test-stream", "test-replies", "test-timers"],
    "lib/restore": ["test-restore"],
    "lib/re": ["test-reconnect-server", "test-reconnect",
               "test-reconnect-consume", "test-cuts", "test-replies"],
    "lib/transport-unix": ["test-stream", "test-replies", "test-timers"],
    "lib/stream": ["test-stream", "test-replies", "test-timers"],
    "lib/": ["test-timers", "test-handle", "test-api", "test-stream"],
    "tools/commands/journal": ["test-journal.py"],
    "tools/commands/metrics": ["test-metrics.py"],
    "tools/commands/run": ["test-run.py"],
    "tools/commands/s": ["test-ctl.py", "test-metrics.py"],
    "tools/commands/top": ["test-metrics.py"],
    "tools/output/histogram": ["test-metrics.py"],
    "tools/exporter": ["test-exporter.py"],
    "tools/input/lines": ["test-parse", "test-ctl.py"],
    "tools/input/local-time": ["test-local-time"],
    "tools/output/metrics": ["test-metrics.py"],
    "tools/module": ["test-module"],
    "tools/input/digits": ["test-parse", "test-span", "test-local-time"],
    "tools/input/parse-span": ["test-span"],
    "tools/input/arguments": ["test-refusals.py", "test-options.py"],
    "tools/access": ["test-refusals.py"],
    "tools/address": ["test-refusals.py", "test-options.py"],
    "tools/options": ["test-refusals.py", "test-options.py"],
    "tools/commands/help": ["test-options.py"],
    "tools/expiryctl": ["test-refusals.py", "test-options.py"],
    "tools/refusals": ["test-refusals.py"],
    "tools/scrape": ["test-metrics.py"],
    "tools/session": ["test-options.py", "test-refusals.py"],
    "tools/input/timestamp": ["test-local-time", "test-parse"],
    "tools/input/parse": ["test-parse", "test-ctl.py"],
    "tools/": ["test-ctl.py"],
}


class Target:
    """A folder whose mutants are made by the Makefile in a copy of the tree.

    @base: goals of the first build, @goals: those of a mutant
    @products: files that differ in a mutant with an effect
    """
    variables = PLAIN
    records = True          # which program reaches which line
    jobs = 3 * os.cpu_count()   # most programs wait

    def __init__(self, name, goals, first, then):
        self.name, self.products = name, goals
        self.goals = sorted({*goals, *(goal for path in first
                                       for goal in BUILT_FOR.get(path, []))})
        self.paths = {}
        for path in [*first, *then]:
            folder, base = path.split("/")[-2:]
            self.paths[f"{folder}/{base}" if base in self.paths else base] = path
        programs = [path for path in self.paths.values()
                    if path.startswith("build/")]
        self.base = sorted({*SOCKET, *LIBRARY, *BESIDE, *self.goals, *programs, *PRELOADED})

    def programs(self):
        return list(self.paths)

    def command(self, name):
        path, *loop = self.paths[name].split(ON_EPOLL)
        # A mutant's seed need not be shrunk.
        first = ["env", "SHRINK=0"] if path in (SIMULATION, CRASHES) else \
            ["env", f"STATES={JOURNAL_STATES}"] if path == JOURNAL else \
            ["env", "EXPIRY_LOOP=epoll"] if loop else []
        return [*first, path]

    def is_sanitized(self, name):
        return self.paths[name].startswith(("build/tests/daemon/",
                                            "build/tests/tools/", *BUILT_FOR))

    def seconds(self, name):
        return SECONDS.get(name, 1)

    def likely(self, path):
        for begin, names in LIKELY.items():
            if path.startswith(begin):
                return names
        return []

    def source(self, name):
        path = self.paths[name].split(ON_EPOLL)[0]
        return path[len("build/"):] + ".c" if path.startswith("build/") else path

    def sources(self, name):
        """Returns the files that a program's result depends on."""
        if self.paths[name] in (SIMULATION, CRASHES):
            return glob.glob("tests/sim/*")
        if self.paths[name] == JOURNAL:
            return glob.glob("tests/journal/*")
        return [self.source(name)]

    def all_sources(self):
        return [path for folder in ("daemon", "journal", "sim", "socket", "lib",
                               "tools", "packaging")
                for path in glob.glob(f"tests/{folder}/*")]


def programs_of(folder):
    return [f"build/{path[:-2]}"
            for path in sorted(glob.glob(f"tests/{folder}/test-*.c"))]


def scripts(*folders, ends=("py", "sh")):
    return [path for end in ends for folder in folders
            for path in sorted(glob.glob(f"tests/{folder}/test-*.{end}"))]


def daemon():
    own = programs_of("daemon")
    return Target("daemon", [*SOCKET, *own],
                  [SIMULATION, CRASHES, JOURNAL, *scripts("socket"), *EPOLL],
                  [*own, *programs_of("lib"),
                   *scripts("lib", "tools", "packaging", ends=["py"])])


def lib():
    return Target("lib", LIBRARY, [SIMULATION, *programs_of("lib")],
                  scripts("lib", "tools", "packaging"))


def tools():
    own = programs_of("tools")
    return Target("tools", ["build/expiryctl", "build/expiry-exporter", *own], own,
                  scripts("lib", "tools", "packaging"))


class Module(Target):
    """kmod/, and what of daemon/ and lib/ needs the module: made for a kernel of
    User Mode Linux. Quick programs are run in one machine after the other: those
    of tests/device/, those of them about memory, and clients on the kernel engine."""
    variables = []
    records = False
    jobs = os.cpu_count()
    device = ["config", "layout", "batch", "badinput", "keyed", "ack", "read",
              "poll", "uring", "lifetime", "holders", "namespaces", "compat",
              "periodic", "clock", "scan-stat", "limits", "trace", "killed",
              "read-fault", "batch-memory"]
    memory = ["sizes", "pins", "give-back", "memcg"]
    clients = ["build/tests/lib/test-timers", "build/tests/lib/test-handle",
               "tests/socket/test-requests.py", "tests/socket/test-credit.py",
               "tests/socket/test-queues.py", "tests/socket/test-limits.py",
               "tests/socket/test-clock.py", "tests/tools/test-ctl.py"]

    def __init__(self):
        # The debug kernel, with KERNEL=debug.
        flavour = os.environ.get("KERNEL", "fast")
        module = f"uml-module-{flavour}"
        super().__init__("kmod", [module, *SOCKET, *LIBRARY], [], [])
        done = subprocess.run(["make", "-s", f"uml-kernel-{flavour}"],
                              text=True, stdout=subprocess.PIPE, check=True)
        self.kernel = done.stdout.strip()
        with open(self.kernel + "/release", encoding="ascii") as file:
            release = file.read().strip()
        self.products = [f"build/kmod/{release}/expiry.ko", *SOCKET, *LIBRARY]
        self.base += [module, "device-tests", *self.clients[:2]]
        self.lists = {"device": [f"build/tests/device/test-{name}"
                                 for name in self.device],
                      "memory": [f"build/tests/device/test-{name}"
                                 for name in self.memory],
                      "clients": self.clients}

    def programs(self):
        return list(self.lists)

    def command(self, name):
        # A failure of the machine itself has the status of a skipped test.
        return ["sh", "-c", '"$@"; s=$?; [ $s != 4 ] || exit 5; exit $s', "sh",
                "tests/uml/run", "--kernel", self.kernel, "--silence", "100",
                "--memory", "1024", "--", "env", "EXPIRY_ENGINE=kernel",
                "EXPIRY_TEST_SETTIME=1", "sh", "-c",
                'for program; do "$program" || [ $? = 4 ] || exit; done', "sh",
                *self.lists[name]]

    def is_sanitized(self, name):
        return True             # the limit of memory is not for machines

    def seconds(self, name):
        return 10

    def likely(self, path):
        return ["device", "memory"] if path.startswith("kmod/") else ["clients"]

    def sources(self, name):
        if name != "clients":
            return glob.glob("tests/device/*")
        return self.all_sources()

    def all_sources(self):
        return super().all_sources() + glob.glob("tests/device/*")


TARGETS = {"daemon": daemon, "lib": lib, "tools": tools, "kmod": Module}

# Code that the host's tests do not reach.
ON_MODULE = ["daemon/engine/kernel.c", "lib/transport-device.c"]


def target_of(path):
    return "kmod" if path in ON_MODULE else path.split("/")[0]
