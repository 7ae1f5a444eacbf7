# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run a file's tests in the order they are written and say so in TAP.

A function test_...(daemon) is handed the daemon that the file's tests share;
one without parameter starts what it needs itself. When all are done the shared
daemon must still be there and end by SIGTERM with status 0, which is one test
more: what killed or leaked cannot pass.
"""

import inspect
import os
import sys
import traceback

from daemon import ENGINE, PROGRAM, ROOT, Daemon

SKIPPED = 4
SLOW = os.path.join(ROOT, "build", "slow", "expiryd")


class Skip(Exception):
    """Raised by a test that cannot be done here."""


def need_root():
    if os.geteuid() != 0:
        raise Skip("needs root")


# Set by a test that leaves something out here: it does not count as passed.
left_out = []


def have_root():
    """Whether what needs another user can be tried, too."""
    if os.geteuid() != 0:
        left_out.append("in part, the rest needs root")
    return os.geteuid() == 0


def need_slow():
    if not os.path.exists(SLOW):
        raise Skip("no " + SLOW)
    if ENGINE == "kernel":
        raise Skip("nothing of the module is in it")


def slow(milliseconds, config=None, fail_after=None):
    """A daemon whose engine takes so long for each batch and each read; one
    thread, for each has buffers of its own. @fail_after: of each batch it does
    so many records only."""
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


def main(config=None, kind=Group):
    names = vars(sys.modules["__main__"])
    tests = [(name[5:].replace("_", " "), function)
             for name, function in names.items()
             if name.startswith("test_") and callable(function)]
    wanted = sys.argv[1:]
    if wanted:
        tests = [test for test in tests
                 if any(word in test[0] for word in wanted)]
    print("TAP version 13")
    if not os.access(PROGRAM, os.X_OK):
        sys.exit("Bail out! %s is not there: build it first" % PROGRAM)
    if ENGINE == "kernel" and not os.path.exists("/dev/expiry"):
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
