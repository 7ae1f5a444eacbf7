# SPDX-License-Identifier: LGPL-2.1-or-later
"""A command run by a kernel of its own: what every such machine needs.

tests/vm/run and tests/uml/run say how a machine is made and started; here it is
watched, ended when it is over its time, and judged by the command's exit status
and by what the kernel had to say.
"""

import argparse
import contextlib
import ctypes
import fcntl
import os
import re
import resource
import select
import shlex
import signal
import subprocess
import sys
import time

from reports import REPORT

HERE = os.path.dirname(os.path.abspath(__file__))
CHECKOUT = os.path.dirname(os.path.dirname(HERE))

OK, COMMAND_FAILED, KERNEL_REPORT, HANG, HARNESS = range(5)

EXCERPT_LINES = 60
NEXT_LINES = 3      # of a report that are repeated at the very end

# What the kernel puts before each line.
TIME = re.compile(r"^\[ *\d+\.\d+\] ?")

# Whatever the kernel says that must not be said: the run ends there.
KERNEL_ARGS = "ignore_loglevel panic=-1 oops=panic panic_on_warn=1"

# One emulated processor runs the int3 that another has just taken back (docs/kernels.md).
EMULATOR_OOPS = "Oops: int3"

BEGIN, END = "expiry-vm: begin", "expiry-vm: end"


class HarnessError(Exception):
    """Something outside the guest is missing or broken."""


def output_of(*command):
    """Standard output of a helper program; its complaints go to our stderr."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise HarnessError(f"{os.path.basename(command[0])} failed")
    return done.stdout.strip()


def arguments(description, silence):
    """A parser of what every machine can be asked for."""
    parser = argparse.ArgumentParser(
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--time", type=int, default=600, metavar="SECONDS",
                        help="limit for the whole run (default %(default)s)")
    parser.add_argument("--silence", type=int, default=silence, metavar="SECONDS",
                        help="limit for saying nothing (default %(default)s)")
    parser.add_argument("--memory", type=int, default=1024, metavar="MB",
                        help="default %(default)s")
    parser.add_argument("--no-module", action="store_true", help="do not load a module")
    parser.add_argument("--module", metavar="FILE",
                        help="default: build/kmod/RELEASE/expiry.ko")
    parser.add_argument("--module-args", default="", metavar="'NAME=VALUE ...'")
    parser.add_argument("--append", default="", metavar="'NAME=VALUE ...'",
                        help="more for the kernel's command line")
    parser.add_argument("command", nargs="+", metavar="COMMAND")
    return parser


def add_root(parser):
    """A root file system that is not the host's."""
    parser.add_argument("--root", metavar="DIR",
                        help="a root file system of the guest's own, modules and all: "
                        "its /sbin/init is process 1, and has to run build/NAME/job")


def module_of(options):
    """The module asked for: its path, or None."""
    if options.no_module:
        return None
    module = os.path.abspath(options.module or os.path.join(
        CHECKOUT, "build", "kmod", options.release, "expiry.ko"))
    if not os.path.exists(module):
        raise HarnessError(f"no {module}: make module")
    return module


def main(function, name):
    """Exit with the status of function(), a program of the machine NAME."""
    try:
        sys.exit(function())
    except HarnessError as error:
        print(f"{name}: {error}", file=sys.stderr)
        sys.exit(HARNESS)
    except KeyboardInterrupt:
        sys.exit(130)


def in_child():
    """A guest ends with a harness that is killed, and a harness with the program that
    runs several. Neither leaves a core."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


class Guest:
    """One run after the other, with all their files in build/NAME.

    console.log is the kernel's, status what guest-init tells ("begin", then
    "exit N"), job and guest.conf what it is told, errors.log what the program
    that is the machine complains of, report the title of the kernel's first report.
    """

    def __init__(self, name):
        self.name = name
        self.work = os.path.join(CHECKOUT, "build", name)
        os.makedirs(self.work, exist_ok=True)

    def say(self, text):
        print(f"{self.name}: {text}", file=sys.stderr, flush=True)

    def path(self, name):
        return os.path.join(self.work, name)

    def read(self, name):
        try:
            with open(self.path(name), encoding="utf-8", errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    @contextlib.contextmanager
    def lock(self):
        """One guest a checkout: there is one console.log."""
        with open(self.path("lock"), "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def write_job(self, options, scale):
        """What guest-init reads."""
        with open(self.path("job"), "w", encoding="utf-8") as file:
            file.write("exec " + shlex.join(options.command) + "\n")
        with open(self.path("guest.conf"), "w", encoding="utf-8") as file:
            file.write(f"module={shlex.quote(options.module or '')}\n"
                       f"module_args={shlex.quote(options.module_args)}\n"
                       f"EXPIRY_TEST_SCALE={scale}\n")

    def run(self, command, options, console=False):
        """Run the machine, which is command, and judge; one of the statuses. A machine
        that dies of its emulator before it runs anything is started once more.

        console: its standard error is the kernel's log.
        """
        ended, booted, seconds = self.start(command, options, console)
        if self.died_of_emulator():
            self.say(f"the emulator's fault, \"{EMULATOR_OOPS}\", in booting: once more")
            ended, booted, seconds = self.start(command, options, console)
        if options.quiet:
            return OK if self.read("status").endswith("exit 0\n") else HARNESS
        return self.judge(ended, booted, seconds)

    def died_of_emulator(self):
        return not self.read("status") and EMULATOR_OOPS in self.read("console.log")

    def start(self, command, options, console):
        """Run the machine. Returns what watch() does, and how long it ran."""
        for name in ("console.log", "status", "report"):
            if os.path.exists(self.path(name)):
                os.unlink(self.path(name))
        with open(self.path("console.log" if console else "errors.log"),
                  "wb") as errors:
            machine = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=errors, preexec_fn=in_child)
        started = time.monotonic()
        try:
            ended, booted = self.watch(machine, options)
        finally:
            if machine.poll() is None:
                machine.kill()
                machine.wait()
        return ended, booted, time.monotonic() - started

    def watch(self, machine, options):
        """Pass the guest's output on until it ends or has to be ended.

        Returns why it was ended, or None, and the seconds it took to boot.
        """
        started = active = time.monotonic()
        booted = None
        console_size = 0
        while True:
            readable, _, _ = select.select([machine.stdout], [], [], 0.2)
            now = time.monotonic()
            if readable:
                data = os.read(machine.stdout.fileno(), 65536)
                if not data:
                    machine.wait()
                    return None, booted
                active = now
                if not options.quiet:
                    sys.stdout.buffer.write(data)
                    sys.stdout.buffer.flush()
            try:
                size = os.stat(self.path("console.log")).st_size
            except FileNotFoundError:
                size = 0
            if size != console_size:
                console_size, active = size, now
            if booted is None:
                if self.read("status").startswith("begin"):
                    booted = now - started
                elif now - started > options.boot:
                    return f"not booted after {options.boot} s", None
            elif now - started > options.time:
                return f"still running after {options.time} s", booted
            if now - active > options.silence:
                return f"silent for {options.silence} s", booted

    def judge(self, ended, booted, seconds):
        """What the run comes to, with a word on standard error."""
        log, status = self.read("console.log"), self.read("status").split()
        if booted is None and "begin" not in status:
            self.say(ended or "the guest ended before it ran the command")
            self.show_errors()
            self.show_log(log.splitlines()[-EXCERPT_LINES:])
            return HARNESS
        report = kernel_report(log)
        if report:
            self.say("the kernel reported:")
            first, lines = report
            self.show_log(lines[max(0, first - 2):first + EXCERPT_LINES])
            # Of a long report one sees the end alone.
            title, *more = [TIME.sub("", line)
                            for line in lines[first:first + 1 + NEXT_LINES]]
            with open(self.path("report"), "w", encoding="utf-8") as file:
                file.write(title + "\n")
            self.say("the kernel's first report: " + title)
            for line in more:
                self.say("    " + line)
            return KERNEL_REPORT
        if ended:
            self.say(f"hang: {ended}")
            self.show_log(log.splitlines()[-20:])
            return HANG
        if len(status) != 3:
            self.say("the guest ended without telling the command's exit status")
            self.show_errors()
            self.show_log(log.splitlines()[-20:])
            return HARNESS
        self.say(f"booted in {booted or 0:.1f} s, ran {seconds - (booted or 0):.1f} s, "
                 f"exit status {status[2]}")
        if status[2] == "0":
            return OK
        self.show_log(log.partition(BEGIN)[2].partition(END)[0].splitlines()[1:-1][-20:])
        return COMMAND_FAILED

    def show_errors(self):
        sys.stderr.write(self.read("errors.log"))

    def show_log(self, lines):
        for line in lines:
            print("| " + line, file=sys.stderr)
        self.say(f"the whole log: {os.path.relpath(self.path('console.log'))}")


def kernel_report(log):
    """The number of the first line with a report, and the lines of the log after the
    begin line; None without one."""
    lines = log.partition(BEGIN)[2].splitlines()
    for number, line in enumerate(lines):
        if REPORT.search(line):
            return number, lines
    return None
