# SPDX-License-Identifier: LGPL-2.1-or-later
"""Mutants of core/: compiled into one shared object, tried on tests/core/."""

import glob
import hashlib
import multiprocessing
import os
import resource
import shutil
import signal
import subprocess
import sys
import time

ROOT = "build/mutate/core"
BUILD = f"{ROOT}/{os.getpid()}"         # each process has its own
FLAGS = ["-std=gnu11", "-O1", "-fPIC", "-w", "-fno-strict-aliasing",
         "-D_GNU_SOURCE", "-Iinclude/uapi", "-Iinclude"]
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
CPU_SECONDS = 2         # least limit of a program
CPU_TIMES = 4           # limit, as a multiple of the original's time
START = 0.02            # seconds that each program takes to begin and end
MEMORY = 4 << 30
WATCHED_S = 1           # longer programs do not run under the sanitizers
SHIFT, SHIFT_HEAP = 6, 10

# Arguments that make the programs quick and still thorough.
ARGUMENTS = {"test-model": ["1", "60"]}

# Programs of the heap alone, which also run with pages of SHIFT_HEAP.
HEAP = ["test-bheap", "test-bheap-fold", "test-bheap-order", "test-bheap-scales",
        "test-bheap-steps", "test-bheap-sweep", "test-bheap-take"]


def run(command, seconds=None, memory=MEMORY):
    def limit():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if seconds:
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    # Stop at the first failing test.
    return subprocess.run(command, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, preexec_fn=limit,
                          env=dict(os.environ, LC_ALL="C",
                                   CMOCKA_TEST_ABORT="1"))


def must(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.stderr.write(done.stderr)
        sys.exit(2)
    return done.stdout


def is_heap(path):
    return os.path.basename(path).startswith(("bheap", "insert_heap", "runs"))


class Build:
    """core/ and its programs with one page size. Programs find core/ in a
    library, so that one object and one link make a mutant of all of them."""

    def __init__(self, shift, sources, names, sanitize=()):
        self.where = f"{BUILD}/p{shift}{'s' if sanitize else ''}"
        self.shift = shift
        self.sanitize = list(sanitize)
        self.flags = [*FLAGS, f"-I{BUILD}/core", f"-DCORE_PAGE_SHIFT={shift}",
                      *sanitize]
        self.sources = sources
        os.makedirs(self.where + "/base")
        os.makedirs(self.where + "/new")
        for path in sources:
            self.compile(path, "base")
        self.link({})
        support = []
        for path in sorted(glob.glob("tests/core/support*.c")):
            support.append(self.object(path, "base"))
            must(["gcc", *self.flags, "-Itests/core", "-c", "-o", support[-1],
                  path])
        self.used, self.seconds = {}, {}
        for name in names:
            must(["gcc", *self.flags, "-Itests/core", "-o",
                  f"{self.where}/{name}", f"tests/core/{name}.c", *support,
                  f"-L{self.where}", "-lcore", "-lcmocka",
                  "-Wl,-rpath,$ORIGIN"])
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            if self.test(name, 600):
                print(f"{name} fails without a mutation", file=sys.stderr)
                sys.exit(2)
            used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
            self.used[name] = used
            self.seconds[name] = max(CPU_SECONDS, int(CPU_TIMES * used) + 1)

    def object(self, path, kind):
        return f"{self.where}/{kind}/{os.path.basename(path)[:-2]}.o"

    def compile(self, path, kind):
        return run(["gcc", *self.flags, "-c", "-o", self.object(path, kind),
                    f"{BUILD}/{path}"]).returncode == 0

    def link(self, replaced):
        must(["gcc", "-shared", *self.sanitize, "-o", f"{self.where}/libcore.so",
              *[self.object(path, "new" if path in replaced else "base")
                for path in self.sources]])

    def prepare(self, paths):
        """Compiles the mutated files. Returns "" if there is something to test."""
        same = True
        for path in paths:
            if not self.compile(path, "new"):
                return "not compiled"
            with open(self.object(path, "new"), "rb") as a, \
                    open(self.object(path, "base"), "rb") as b:
                same &= a.read() == b.read()
        if same:
            return "the same"
        self.link(paths)
        return ""

    def test(self, name, seconds=None):
        done = run([f"{self.where}/{name}", *ARGUMENTS.get(name, [])],
                   seconds or self.seconds[name],
                   resource.RLIM_INFINITY if self.sanitize else MEMORY)
        if done.returncode in (-9, -24):
            return "timed out"
        return f"killed by {name}" if done.returncode else ""


class Bench:
    """The builds of a process, and the trial of one mutant."""

    def __init__(self, with_heap):
        os.makedirs(BUILD + "/core")
        for path in glob.glob("core/*.[ch]"):
            shutil.copy(path, BUILD + "/core")
        sources = sorted(glob.glob("core/*.c"))
        self.depends = {}
        for path in sources:
            out = must(["gcc", *FLAGS, f"-I{BUILD}/core", "-MM",
                        f"{BUILD}/{path}"])
            self.depends[path] = {os.path.relpath(name, BUILD) for name in
                                  out.replace("\\\n", " ").split()[1:]
                                  if BUILD in name}
        self.names = [os.path.basename(path)[:-2] for path in
                      sorted(glob.glob("tests/core/test-*.c"))]
        self.small = Build(SHIFT, sources, self.names)
        self.heap = Build(SHIFT_HEAP, sources, HEAP) if with_heap else None
        self.watched = None
        self.noticed = {}
        self.sources = sources

    def order(self, path):
        """Returns the order of trials: pairs of a build and a program. Quick programs
        are first, and those that noticed many mutants of this file: most mutants cost
        less than a second so, and only survivors cost all programs."""
        pairs = [(self.small, name) for name in self.names]
        if is_heap(path):
            pairs += [(self.heap, name) for name in HEAP]
        return sorted(pairs, key=lambda pair: (pair[0].used[pair[1]] + START) /
                      (1 + self.noticed.get((path, *pair), 0)))

    def watched_build(self, build):
        return Build(build.shift, self.sources,
                     [name for name, used in build.used.items() if used < WATCHED_S],
                     SANITIZE)

    def watch(self, mutant, paths):
        """Runs a survivor under the sanitizers, which find wrong memory
        accesses.
        """
        if not self.watched:
            shutil.copy(mutant.path, f"{BUILD}/core")
            self.watched = [self.watched_build(build)
                            for build in (self.small, self.heap) if build]
            self.mutate(mutant)
        for build in self.watched[:2 if is_heap(mutant.path) else 1]:
            verdict = build.prepare(paths)
            for name in [] if verdict else sorted(build.used, key=build.used.get):
                verdict = verdict or build.test(name)
            if verdict not in ("", "the same"):
                return verdict
        return ""

    def mutate(self, mutant):
        with open(f"{BUILD}/{mutant.path}", "w") as target:
            target.write(mutant.source())

    def judge(self, mutant):
        self.mutate(mutant)
        paths = [path for path in self.small.sources
                 if mutant.path in self.depends[path]]
        prepared = {}
        try:
            for build, name in self.order(mutant.path):
                if build not in prepared:
                    prepared[build] = build.prepare(paths)
                verdict = prepared[build] or build.test(name)
                if verdict not in ("", "the same"):
                    which = (mutant.path, build, name)
                    self.noticed[which] = self.noticed.get(which, 0) + 1
                    return verdict
            if set(prepared.values()) == {"the same"}:
                return "the same"
            return self.watch(mutant, paths) or "survived"
        finally:
            shutil.copy(mutant.path, f"{BUILD}/core")


class Worker:
    """One of the processes that try mutants at the same time."""
    bench = None
    trouble = None

    @classmethod
    def begin(cls, with_heap, until):
        global BUILD
        BUILD = f"{ROOT}/{os.getpid()}"
        cls.until = until
        # The pool ends its processes by SIGTERM. A handler in Python would not run if
        # the signal came just before the wait for the next mutant.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        try:
            cls.bench = Bench(with_heap)
        except SystemExit:
            cls.trouble = "core/ or its tests fail without a mutation"

    @classmethod
    def judge(cls, mutant):
        if cls.trouble:
            raise RuntimeError(cls.trouble)
        if cls.until and time.monotonic() >= cls.until:
            return mutant, None
        return mutant, cls.bench.judge(mutant)


def key_of(mutant):
    return hashlib.sha256(f"{mutant.path}\n{mutant.source()}".encode()).hexdigest()


def judge_all(mutants, report, until, jobs, cache, stamp):
    """Calls report(mutant, verdict) for each. A verdict is valid while core/ and its
    tests are the same."""
    keys = {str(mutant): key_of(mutant) for mutant in mutants}
    todo = []
    for mutant in mutants:
        known = cache.get(keys[str(mutant)], [stamp])
        if known:
            report(mutant, known)
        else:
            todo.append(mutant)
    if not todo:
        return
    shutil.rmtree(ROOT, ignore_errors=True)
    with multiprocessing.Pool(
            min(jobs, len(todo)), Worker.begin,
            (any(is_heap(mutant.path) for mutant in todo), until)) as pool:
        for mutant, verdict in pool.imap_unordered(Worker.judge, todo):
            if verdict:
                cache.put(keys[str(mutant)], stamp, verdict)
            report(mutant, verdict)
