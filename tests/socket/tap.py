# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run a file's tests in their order and report in TAP.

A function test_...(daemon) gets the daemon that the file's tests share. A function
without parameter starts its own. At the end the shared daemon must still run, and end
by SIGTERM with status 0. That is one more test: a crash or a leak fails it.
"""

import contextlib
import inspect
import os
import sys
import tempfile
import traceback

from client import SCALE
from daemon import ENGINE, PROGRAM, ROOT, SHADOW, Daemon

SKIPPED = 4
SLOW = os.path.join(ROOT, "build", "slow", "expiryd")


class Skip(Exception):
    """Raised by a test that cannot run here."""


def need_root():
    if os.geteuid() != 0:
        raise Skip("needs root")


# Set by a test that leaves out a part here: it does not count as passed.
left_out = []


def have_root():
    """Returns whether tests with another user can run."""
    if os.geteuid() != 0:
        left_out.append("in part, the rest needs root")
    return os.geteuid() == 0


def need_undisturbed():
    if os.environ.get("EXPIRY_TEST_SHAKEN"):
        raise Skip("a frozen process is late, and wakes up once more")


def preload(name, shadowed=None):
    """Returns the path of an object that is preloaded into a daemon. @shadowed: why that
    cannot be beside a sanitizer."""
    path = os.path.join(ROOT, "build", "tests", "socket", name)
    if not os.path.exists(path):
        raise Skip("no %s: make check-socket builds it" % name)
    if shadowed and SHADOW:
        raise Skip(shadowed)
    return path


@contextlib.contextmanager
def new_path(name):
    """Yields a path in a folder of its own, where nothing is."""
    with tempfile.TemporaryDirectory() as folder:
        yield os.path.join(folder, name)


def need_slow():
    if not os.path.exists(SLOW):
        raise Skip("no " + SLOW)
    if ENGINE == "kernel":
        raise Skip("nothing of the module is in it")


def slow(milliseconds, config=None, fail_after=None):
    """Returns a daemon with a slow engine: each batch and each read takes this time. It
    has one thread, since each has buffers of its own. @fail_after: number of records
    done in each batch."""
    need_slow()
    environment = {"EXPIRY_SLOW_MS": str(milliseconds)}
    if fail_after is not None:
        environment["EXPIRY_FAIL_AFTER"] = str(fail_after)
    return Daemon(config, program=SLOW, threads=1, environment=environment)


class Group:
    def __init__(self, config):
        self.config = config
        self.daemon = None
        self.number = 0
        self.failed = 0

    def shared(self):
        if self.daemon and not self.daemon.alive():
            self.daemon.remove()
            self.daemon = None
        if not self.daemon:
            self.daemon = Daemon(self.config).__enter__()
        return self.daemon

    def run(self, name, function, *args):
        self.number += 1
        left_out.clear()
        try:
            function(*args)
            if left_out:
                raise Skip(left_out[0])
        except Skip as reason:
            print("ok %d - %s # SKIP %s" % (self.number, name, reason))
        except Exception:
            self.failed += 1
            print("not ok %d - %s" % (self.number, name))
            text = traceback.format_exc()
            if self.daemon:
                text += "\n".join(self.daemon.log().splitlines()[-10:])
            print("\n".join("# " + line for line in text.splitlines()))
        else:
            print("ok %d - %s" % (self.number, name))
        sys.stdout.flush()

    def test(self, function):
        if inspect.signature(function).parameters:
            daemon = self.shared()
            function(daemon)
            assert daemon.alive(), "the daemon died of it"
        else:
            function()

    def end_shared(self):
        status = self.daemon.end()
        assert status == 0, "exit status %s" % status


def main(config=None, kind=Group, above_the_engine=(), needs_daemon=True):
    """@above_the_engine: tests that do the same whatever the engine is. A guest leaves
    them out where it does few things of a kind. @needs_daemon: or they start none."""
    names = vars(sys.modules["__main__"])
    if ENGINE == "kernel" and SCALE > 1:
        names = {name: function for name, function in names.items()
                 if function not in above_the_engine}
    tests = [(name[5:].replace("_", " "), function)
             for name, function in names.items()
             if name.startswith("test_") and callable(function)]
    wanted = sys.argv[1:]
    if wanted:
        tests = [test for test in tests
                 if any(word in test[0] for word in wanted)]
    print("TAP version 13")
    if needs_daemon and not os.access(PROGRAM, os.X_OK):
        sys.exit("Bail out! %s is not there: build it first" % PROGRAM)
    if needs_daemon and ENGINE == "kernel" and not os.path.exists("/dev/expiry"):
        print("1..0 # SKIP no /dev/expiry")
        sys.exit(SKIPPED)
    group = kind(config)
    for name, function in tests:
        group.run(name, group.test, function)
    if group.daemon:
        group.run("the daemon served all that and ends by SIGTERM",
                  group.end_shared)
        group.daemon.remove()
    print("1..%d" % group.number)
    sys.exit(1 if group.failed else 0)
