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
    (("arm", "--", "-5s"), "-5s is in the past; did you mean +5s?"),
    (("arm", "5s"),
     "5s: did you mean +5s? A span from now begins with +"),
    (("arm", "2h 30min"),
     "2h 30min: did you mean '+2h 30min'? A span from now begins with +"),
    (("refresh", "1", "5s"),
     "5s: did you mean +5s? A span from now begins with +"),
    (("arm", "5 min ago"), "5 min ago: that is in the past; write now, or a "
     "span as in +5s"),
    (("arm", "yesterday"),
     "yesterday: that has passed; write now, or a time to come"),
    (("arm", "today"),
     "today: that has passed; write now, or a time to come"),
    (("arm", "2027-02-30"), "2027-02-30: there is no such date"),
    (("arm", "25:00"), "25:00: there is no such time of day"),
    (("arm", "Mon 2027-02-28"),
     "Mon 2027-02-28: that date is another day of the week"),
    (("arm", "12:00 Nowhere"), "12:00 Nowhere: there is no such zone; "
     "expected UTC, +HH:MM or a name as in Europe/Berlin"),
    (("arm", "2027-01-31T12:00+1"), "2027-01-31T12:00+1: expected a zone "
     "behind the time: UTC, Z, +HH:MM, -HH:MM or a name as in "
     "Europe/Berlin"),
    (("arm", "2027-06-30T12:00:60Z"), "2027-06-30T12:00:60Z: a leap second "
     "can only be the last one of June or December in UTC"),
    (("arm", "12:00:00.x"),
     "12:00:00.x: expected one to nine decimals behind the point"),
    (("arm", "9999-01-01"), "9999-01-01: too large: 2^64 nanoseconds are "
     "584 years; write never"),
    (("arm", "noon"), "noon: expected a deadline as in +5s, 18:30, "
     "'tomorrow 09:00', 'Mon 09:00', '2027-01-31 12:00', "
     "2027-01-31T12:00:00Z or never"),
    (("arm", "+5"),
     "+5: a number wants a unit: ns us ms s min h d w month y"),
    (("arm", "+5x"),
     "+5x: a number wants a unit: ns us ms s min h d w month y"),
    (("arm", "+"),
     "+: expected a span as in 250ms, 5s, 1h30min or '2 days'"),
    (("arm", "+1.s"),
     "+1.s: expected one to nine decimals behind the point"),
    (("arm", "@x"), "@x: expected seconds with at most nine decimals, as in "
     "@1700000000.25"),
    (("arm", "+5s", "--period", "5"), "--period 5: a number wants a unit: "
     "ns us ms s min h d w month y"),
    (("arm", "+5s", "--period", "1us"),
     "--period 1us: expected whole milliseconds, from 1ms to 49d"),
    (("run", "true"), "run: say when, by --in SPAN or --at TIME"),
    (("run", "--in", "1s", "-q", "x", "true"), "run: it has a queue of its "
     "own; leave --queue, --clock, --keyed and --ack out"),
    (("run", "--in", "tomorrow 09:00", "true"),
     "--in tomorrow 09:00: expected a span as in 5min; did you mean --at "
     "'tomorrow 09:00'?"),
    (("run", "--in", "5", "true"), "--in 5: a number wants a unit: ns us ms "
     "s min h d w month y"),
    (("run", "--in", "18446744073s", "true"), "--in 18446744073s: that is "
     "never; 2^64 nanoseconds are 584 years"),
    (("run", "--at", "5s", "true"),
     "5s: did you mean +5s? A span from now begins with +"),
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
