# SPDX-License-Identifier: LGPL-2.1-or-later
"""Mutants of daemon/, lib/, tools/ and kmod/: made in a copy of the checkout by
its own Makefile, tried on the programs that `make check` runs."""

import contextlib
import hashlib
import importlib.machinery
import importlib.util
import json
import os
import select
import shutil
import signal
import subprocess
import threading
import time

import reach

BUILD = "build/mutate"
CACHE = BUILD + "/verdicts"
LEFT_OUT = (".git", "build", "__pycache__")

# The limits of a program's silence and duration: this many times those without a
# mutation, and at least this many seconds.
TIMES = 5
SILENCE_S, DURATION_S = 8, 20

# A quick run leaves out longer programs, unless they are likely to notice.
QUICK_S = 6

# A 1 s program runs before a 10 s program that notices five times as many mutants.
LIKELY_TRIES = 4

# Limits of one process, which ends with the thread that tries it. An address
# sanitizer needs more memory.
LIMITS = ["setpriv", "--pdeathsig", "KILL", "prlimit", "--core=0",
          "--fsize=4294967296:"]
DATA = "--data=4294967296"

# All processes that a program starts end with the program.
NAMESPACE = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]


def load(name, path):
    """Loads a program as a module."""
    loader = importlib.machinery.SourceFileLoader(name, path)
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


class Broken(Exception):
    """The unmutated code cannot be built, or fails its tests."""


class Run:
    """One run of a test program, ended at the first failure."""

    def __init__(self, runner, command, where, name, silence, duration,
                 variables=(), abort="1"):
        self.count = runner.Count(name)
        self.longest = 0.0
        self.failure = ""
        begin = last = time.monotonic()
        namespace = NAMESPACE if os.geteuid() == 0 else []
        child = subprocess.Popen(
            [*LIMITS, *namespace, *command], cwd=where,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True,
            env=dict(os.environ, LC_ALL="C", CMOCKA_MESSAGE_OUTPUT="TAP",
                     CMOCKA_TEST_ABORT=abort, PYTHONDONTWRITEBYTECODE="1",
                     **dict(variables)))
        rest = b""
        try:
            while not self.failure:
                now = time.monotonic()
                left = min(last + silence, begin + duration) - now
                ready = left > 0 and \
                    select.select([child.stdout], [], [], left)[0]
                if not ready:
                    self.failure = "timed out"
                    break
                data = os.read(child.stdout.fileno(), 1 << 16)
                now = time.monotonic()
                self.longest = max(self.longest, now - last)
                last = now
                if not data:
                    break
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    self.count.read(line.decode("utf-8", "replace"))
                if self.count.failed:
                    self.failure = "failed"
            status = None
            if not self.failure:
                # The program closed its output: it has ended, or is about to.
                with contextlib.suppress(subprocess.TimeoutExpired):
                    status = child.wait(SILENCE_S)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            child.stdout.close()
        self.seconds = time.monotonic() - begin
        if not self.failure:
            self.count.end(1 if status is None else
                           128 - status if status < 0 else status)
            self.failure = "failed" if self.count.failed else ""


class Copy:
    """A built copy of the checkout in which one file at a time is changed."""

    def __init__(self, where, target):
        self.where, self.target = where, target
        self.begun = 0

    def of_checkout(self, flags="-w"):
        shutil.rmtree(self.where, ignore_errors=True)
        shutil.copytree(".", self.where, symlinks=True,
                        ignore=shutil.ignore_patterns(*LEFT_OUT))
        done = self.make(["-j2", *self.target.base], flags)
        if done.returncode:
            raise Broken(f"make {' '.join(self.target.base)}: {done.stdout}")

    def of_copy(self, base):
        shutil.rmtree(self.where, ignore_errors=True)
        shutil.copytree(base.where, self.where, symlinks=True)

    def make(self, goals, flags="-w"):
        return subprocess.run(
            ["make", "-s", *self.target.variables, *goals], cwd=self.where,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, check=False,
            env=dict(os.environ, CFLAGS=flags))

    def mutate(self, mutant):
        self.begun = time.time_ns()
        with open(f"{self.where}/{mutant.path}", "w", encoding="utf-8") as file:
            file.write(mutant.source())

    def restore(self, mutant, base):
        """Restores the file and its products."""
        shutil.copy2(f"{base.where}/{mutant.path}",
                     f"{self.where}/{mutant.path}")
        for folder, _, files in os.walk(f"{self.where}/build"):
            for name in files:
                path = os.path.join(folder, name)
                original = base.where + path[len(self.where):]
                if os.path.islink(path) or not os.path.exists(original):
                    continue
                if os.stat(path).st_mtime_ns >= self.begun - 10**7:
                    # Replace the file: a process may still run the old one.
                    shutil.copy2(original, path + ".new")
                    os.replace(path + ".new", path)

    def digest(self):
        """Returns a digest of the code of all products."""
        total = hashlib.sha256()
        for path in self.target.products:
            with open(f"{self.where}/{path}", "rb") as file:
                total.update(hashlib.sha256(file.read()).digest())
        return total.hexdigest()


def digest_of(paths):
    total = hashlib.sha256()
    for path in sorted(paths):
        if os.path.isfile(path):
            with open(path, "rb") as file:
                total.update(path.encode() + file.read())
    return total.hexdigest()


class Cache:
    """Verdicts by digest of the code. A failure is valid while the failed program is the
    same, a survival while all programs are."""

    def __init__(self, use):
        self.lock = threading.Lock()
        self.verdicts = {}
        self.file = None
        if not use:
            return
        os.makedirs(BUILD, exist_ok=True)
        with contextlib.suppress(FileNotFoundError), \
                open(CACHE, encoding="utf-8") as lines:
            for line in lines:
                with contextlib.suppress(ValueError):
                    key, stamp, verdict = json.loads(line)
                    self.verdicts[key, stamp] = verdict
        # Write whole lines, since several processes may append.
        self.file = open(CACHE, "a", buffering=1, encoding="utf-8")

    def get(self, key, stamps):
        for stamp in stamps:
            if (key, stamp) in self.verdicts:
                return self.verdicts[key, stamp]
        return ""

    def put(self, key, stamp, verdict):
        with self.lock:
            self.verdicts[key, stamp] = verdict
            if self.file:
                self.file.write(json.dumps([key, stamp, verdict]) + "\n")


class Bench:
    """The mutants of one target (targets.py), several at a time."""

    def __init__(self, target, jobs, options):
        self.target = target
        self.quick, self.patience = options.quick, options.patience
        self.runner = load("runner", "tests/run")      # which defines a failure
        self.cache = Cache(not options.no_cache)
        self.base = Copy(f"{BUILD}/{target.name}/base", target)
        self.base.of_checkout()
        self.original = self.base.digest()
        self.copies = []
        for number in range(jobs):
            copy = Copy(f"{BUILD}/{target.name}/{number}", target)
            copy.of_copy(self.base)
            self.copies.append(copy)
        self.programs = target.programs()
        self.stamps = {name: digest_of(target.sources(name))
                       for name in self.programs}
        self.stamp = digest_of(target.all_sources()) + \
            (" quick" if self.quick else "")
        self.limits = {}
        self.locks = {name: threading.Lock() for name in self.programs}
        self.tries = {}         # by program and file or function: noticed, tried
        self.reach = None
        if target.records and not options.no_reach:
            self.reach = reach.reach_of(
                f"{BUILD}/reach-{target.name}", self.stamps,
                lambda names: self.record(names, jobs))

    def record(self, names, jobs):
        """Records the lines that these programs reach."""
        def once(copy, name, variables):
            return self.run(copy, name, 120, 600, variables, "0")
        return reach.record(Copy(f"{BUILD}/{self.target.name}/reach",
                                 self.target), names, once, jobs)

    def run(self, copy, name, silence, duration, variables=(), abort="1"):
        command = self.target.command(name)
        if not self.target.is_sanitized(name):
            command = ["prlimit", DATA, *command]
        return Run(self.runner, command, copy.where, name,
                   silence * self.patience, duration * self.patience,
                   variables, abort)

    def limit(self, name):
        """Returns the limits of a program's silence and duration. They come from the
        record of its lines, else from a first run. A program that fails without a
        mutation runs once more."""
        with self.locks[name]:
            if name not in self.limits:
                recorded = self.reach and self.reach.times.get(name)
                longest, seconds = recorded or self.measure(name)
                self.limits[name] = (max(SILENCE_S, TIMES * longest),
                                     max(DURATION_S, TIMES * seconds), seconds)
        return self.limits[name]

    def measure(self, name):
        for _ in range(3):
            run = self.run(self.base, name, 120, 600)
            if not run.failure:
                return run.longest, run.seconds
        raise Broken(f"{name} fails without a mutation:\n" +
                     "\n".join(run.count.lines[-20:] + run.count.trouble))

    def seconds(self, name):
        if name in self.limits:
            return self.limits[name][2]
        if self.reach and self.reach.times.get(name):
            return self.reach.times[name][1]
        return self.target.seconds(name)

    def order(self, mutant):
        """Returns the programs that reach the mutant, in order of mutants noticed a
        second: in its function and file, and by likelihood."""
        names = set(self.programs)
        if self.reach:
            reached = self.reach.programs(mutant, self.stamps)
            names = names if reached is None else names & reached
        likely = self.target.likely(mutant.path)
        if self.quick:
            names = {name for name in names if name in likely or
                     self.target.seconds(name) <= QUICK_S}

        def rate(name):
            noticed, tried = self.tries.get((name, mutant.path), (0, 0))
            share = (noticed + (2 if name in likely else 0.5)) / \
                (tried + LIKELY_TRIES)
            noticed, tried = self.tries.get((name, mutant.where), (0, 0))
            share = (noticed + share) / (tried + 1)
            return share / (self.seconds(name) + 0.3)
        return sorted(names, key=lambda name: (-rate(name), name))

    def note(self, mutant, name, is_noticed):
        for key in (name, mutant.path), (name, mutant.where):
            noticed, tried = self.tries.get(key, (0, 0))
            self.tries[key] = noticed + is_noticed, tried + 1

    def judge(self, copy, mutant, until):
        copy.mutate(mutant)
        try:
            if copy.make(self.target.goals).returncode:
                return "not compiled"
            key = copy.digest()
            if key == self.original:
                return "the same"
            known = self.cache.get(key, [self.stamp, *self.stamps.values()])
            if known and not (self.patience > 1 and
                              known.startswith("timed out")):
                return known
            verdict, stamp = self.try_all(copy, mutant, until)
            if verdict:
                self.cache.put(key, stamp, verdict)
            return verdict
        finally:
            copy.restore(mutant, self.base)

    def try_all(self, copy, mutant, until):
        """Returns the mutant's verdict and its validity, or None after the time limit."""
        doubtful = []
        names = self.order(mutant)
        for name in names:
            silence, duration, _ = self.limit(name)
            left = until - time.monotonic() if until else duration
            if left <= 0:
                return None, None
            first = self.run(copy, name, silence, min(duration, left))
            if first.failure == "timed out" and until and \
                    time.monotonic() >= until:
                return None, None
            # A failure by chance or load seldom occurs twice.
            if first.failure == "failed" and \
                    not self.run(copy, name, silence, duration).failure:
                doubtful.append(name)
                first.failure = ""
            self.note(mutant, name, bool(first.failure))
            if first.failure:
                what = "killed" if first.failure == "failed" else "timed out"
                return f"{what} by {name}", self.stamps[name]
        if doubtful:
            return f"survived: now and then noticed by {doubtful[0]}", \
                self.stamp
        if not names:
            return "survived: no test reaches it", self.stamp
        return "survived", self.stamp

    def judge_all(self, mutants, report, until):
        """Calls report(mutant, verdict) for each; the verdict is None after @until."""
        todo = list(reversed(mutants))
        lock = threading.Lock()
        trouble = []

        def work(copy):
            while not trouble:
                with lock:
                    if not todo:
                        return
                    mutant = todo.pop()
                verdict = None
                try:
                    if not until or time.monotonic() < until:
                        verdict = self.judge(copy, mutant, until)
                except Exception as problem:    # to the main thread with it
                    trouble.append(problem)
                    return
                with lock:
                    report(mutant, verdict)

        threads = [threading.Thread(target=work, args=(copy,), daemon=True)
                   for copy in self.copies]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if trouble:
            raise trouble[0]

    def remove(self):
        for copy in [self.base, *self.copies]:
            shutil.rmtree(copy.where, ignore_errors=True)
