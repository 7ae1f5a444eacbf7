#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every refusal of expiryctl names its one cause and the way out: a table of
calls and what is printed for each."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "socket"))

import tap                                                      # noqa: E402
from client import WAIT                                         # noqa: E402
from daemon import ROOT                                         # noqa: E402

CTL = os.environ.get("EXPIRYCTL", os.path.join(ROOT, "build", "expiryctl"))
NOWHERE = "/nonexistent/socket"

# What is wrong with the call itself: status 2, without asking the daemon.
WRONG_CALLS = (
    ((), "name a command; see: expiryctl --help"),
    (("lst",), "lst: no such command; see: expiryctl --help"),
    (("help", "lst"), "lst: no such command; see: expiryctl --help"),
    (("--frobnicate", "list"),
     "--frobnicate: no such option; see: expiryctl --help"),
    (("arm", "+1s", "--i", "7"),
     "--i may be any of --id, --ids, --in; write it in full"),
    (("list", "--json=1"),
     "--json takes no value; write it without the ="),
    (("list", "--limit"), "--limit wants a value; see: expiryctl --help"),
    (("list", "-q"), "-q wants a value; see: expiryctl --help"),
    (("list", "-x"), "-x: no such option; see: expiryctl --help"),
    (("list", "-xh"), "-x in -xh: no such option; see: expiryctl --help"),
    (("list", "-hxq", "y"),
     "-x in -hxq: no such option; see: expiryctl --help"),
    (("arm", "-5s", "1"), "-5s is in the past; did you mean +5s?"),
    (("arm", "-1.5h"), "-1.5h is in the past; did you mean +1.5h?"),
    (("arm", "+5s", "-1"),
     "-1: no number or time begins with a minus sign"),
    (("list", "--limit", "0"), "--limit 0: expected a number from 1 on"),
    (("watch", "--count", "x"), "--count x: expected a number from 1 on"),
    (("arm", "+1s", "--id", "-5"),
     "--id -5: expected a number from 1 to 2^64-1"),
    (("list", "-q", "a b"),
     "--queue a b: expected 1 to 24 of A-Z a-z 0-9 . _ -"),
    (("list", "--clock", "tai"),
     "--clock tai: expected realtime, monotonic or boottime"),
    (("list", "--socket", ""), "--socket wants a path"),
    (("list", "--ids"),
     "list does not take --ids; see: expiryctl list --help"),
    (("query",), "usage: expiryctl [OPTION...] query ID..."),
    (("query", "x"), "x: expected an id: a number from 1 to 2^64-1"),
    (("drop",), "drop: name the queue with --queue"),
    (("arm", "+1s", "x"),
     "x: expected a cookie: a number from 0 to 2^64-1"),
)


def ctl(*arguments, **variables):
    """Status and both outputs of a call."""
    done = subprocess.run(
        [CTL, *arguments], stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=WAIT, check=False,
        env=dict(os.environ, EXPIRY_SOCKET=NOWHERE, **variables))
    return done.returncode, done.stdout, done.stderr


def check(table, status, *more, **variables):
    """Each call of @table ends with @status and prints this line alone."""
    wrong = ""
    for arguments, text in table:
        got = ctl(*more, *arguments, **variables)
        wanted = status, "", "expiryctl: %s\n" % text
        if got != wanted:
            wrong += "%s:\n  got    %s\n  wanted %s\n" % (
                " ".join(arguments), got, wanted)
    assert not wrong, wrong


def test_wrong_calls():
    check(WRONG_CALLS, 2)


def test_the_socket_is_the_options_then_the_environments():
    for arguments, variables, path in (
            ((), {}, NOWHERE),
            (("--socket", "/nonexistent/other"), {}, "/nonexistent/other"),
            ((), {"EXPIRY_SOCKET": ""}, None)):
        environment = dict(os.environ, EXPIRY_SOCKET=NOWHERE)
        environment.update(variables)
        done = subprocess.run([CTL, *arguments, "status"], env=environment,
                              capture_output=True, text=True, timeout=WAIT,
                              check=False)
        if path:
            assert done.stderr.startswith("expiryctl: %s: " % path), done
        else:
            assert NOWHERE not in done.stderr, done


def test_help_is_a_command():
    whole = ctl("--help")
    assert whole[0] == 0 and whole[1].startswith("Usage: "), whole
    assert ctl("help") == ctl("-h") == whole
    assert ctl("help", "arm") == ctl("arm", "-h") == ctl("arm", "--help")
    assert "arm DEADLINE" in ctl("help", "arm")[1]


if __name__ == "__main__":
    tap.main()
