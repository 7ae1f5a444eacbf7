# SPDX-License-Identifier: LGPL-2.1-or-later
"""Refused calls of expiryctl, and the message for each: one cause and its remedy."""

import errno
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "socket"))
from client import ARM, DROP, HELLO, QUERY                      # noqa: E402

# Wrong command lines: status 2, without a request to the daemon.
WRONG_CALLS = (
    ((), "name a command; see: expiryctl --help"),
    (("lst",), "lst: no such command; see: expiryctl --help"),
    (("help", "lst"), "lst: no such command; see: expiryctl --help"),
    (("list", "--durable"), "list does not take --durable; see: expiryctl list --help"),
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
     "yesterday: that time has passed; write now, or a future time"),
    (("arm", "today"),
     "today: that time has passed; write now, or a future time"),
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
    (("arm", "tomorrow", "09:00"), "09:00: did you mean 'tomorrow 09:00'? A "
     "time with blanks needs quotes"),
    (("arm", "+2h", "30min"),
     "30min: did you mean '+2h 30min'? A time with blanks needs quotes"),
    (("arm", "+5s", "--keyed"), "arm: a keyed or durable queue wants ids of "
     "your own; give the timer's --id"),
    (("arm", "+5s", "--durable", "-q", "x"), "arm: a keyed or durable queue "
     "wants ids of your own; give the timer's --id"),
    (("arm", "2027-01-31 12:00", "--clock", "monotonic"), "2027-01-31 12:00: "
     "clock monotonic knows no dates; expected +SPAN, @SECONDS or never"),
    (("arm", "09:00", "--clock", "boottime", "-q", "x"), "09:00: clock "
     "boottime knows no dates; expected +SPAN, @SECONDS or never"),
    (("run", "--in", "2h", "30min", "--", "true"),
     "30min: did you mean '2h 30min'? A time with blanks needs quotes"),
    (("run", "--at", "tomorrow", "09:00", "true"), "09:00: did you mean "
     "'tomorrow 09:00'? A time with blanks needs quotes"),
    (("run", "true"), "run: say when, by --in SPAN or --at TIME"),
    (("run", "--in", "1s", "-q", "x", "true"), "run: it has a queue of its "
     "own; leave --queue, --clock, --keyed and --ack out"),
    (("run", "--in", "5", "true"), "--in 5: a number wants a unit: ns us ms "
     "s min h d w month y"),
    (("run", "--in", "1:30", "true"), "--in 1:30: a number wants a unit: ns "
     "us ms s min h d w month y"),
    (("run", "--in", "never", "true"), "--in never: expected a span as in "
     "250ms, 5s, 1h30min or '2 days'"),
    (("run", "--in", "yesterday", "true"), "--in yesterday: that time has "
     "passed; write now, or a future time"),
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
    (("list", "x"), "usage: expiryctl [OPTION...] list"),
    (("load", "a", "b"), "usage: expiryctl [OPTION...] load [FILE|-]"),
    (("arm",), "usage: expiryctl [OPTION...] arm DEADLINE [COOKIE]"),
    (("arm", "+1h", "1", "2"),
     "usage: expiryctl [OPTION...] arm DEADLINE [COOKIE]"),
    (("refresh", "1"), "usage: expiryctl [OPTION...] refresh ID DEADLINE"),
    (("refresh", "x", "+1h"),
     "x: expected an id: a number from 1 to 2^64-1"),
    (("query", "18446744073709551616"),
     "18446744073709551616: expected an id: a number from 1 to 2^64-1"),
    (("list", "-q", ""), "--queue : expected 1 to 24 of A-Z a-z 0-9 . _ -"),
    (("list", "-q", "x" * 25), "--queue %s: expected 1 to 24 of "
     "A-Z a-z 0-9 . _ -" % ("x" * 25)),
    (("--device", "/dev/expiry", "arm", "+1h"), "arm: a device's queue ends "
     "with the command; leave --device out"),
    (("--device", "/dev/expiry", "status", "-q", "x"),
     "status: a device's queues have no names; leave --queue out"),
    (("--device", "/dev/expiry", "stats", "-q", "x"),
     "stats: a device's queues have no names; leave --queue out"),
    (("query",), "usage: expiryctl [OPTION...] query ID..."),
    (("query", "x"), "x: expected an id: a number from 1 to 2^64-1"),
    (("drop",), "drop: name the queue with --queue"),
    (("arm", "+1s", "x"),
     "x: expected a cookie: a number from 0 to 2^64-1"),
)


# Calls without an existing queue: status 1, and no queue is made.
MAKES = "no queue leases; arm, load and watch --create make it"
LEASES = "-q", "leases"
NO_QUEUE = tuple((command + LEASES, MAKES) for command in (
    ("list",), ("stats",), ("status",), ("watch",), ("query", "1"),
    ("cancel", "1"), ("refresh", "1", "+1s"), ("drop",),
    ("list", "--keyed", "--ack", "--clock", "boottime"),
    ("watch", "--ack"))) + (
    (("top", "--count", "1", "leases"), "leases: you have no such queue"),
    (("list",), MAKES.replace("leases", "default")))

# Calls that contradict the queues "plain", "keyed", "acks" and "mono": status 1 or 2.
OTHER_KIND = (
    (("load", "--durable", "-q", "keyed"), "queue keyed is not durable; leave --durable out, "
     "or name another queue with --queue"),
    (("watch", "--durable", "-q", "plain"), "queue plain is not durable; leave --durable out, "
     "or name another queue with --queue"),
    (("arm", "+5s", "1", "--id", "7", "-q", "plain"),
     "queue plain is plain: it gives ids itself; leave --id out, or use "
     "--keyed --queue NAME"),
    (("list", "--keyed", "-q", "plain"),
     "queue plain is plain: it gives ids itself; leave --keyed out, or name "
     "another queue with --queue"),
    (("load", "--ack", "-q", "plain"), "queue plain delivers at most once; "
     "leave --ack out, or name another queue with --queue"),
    (("watch", "--clock", "monotonic", "-q", "plain"),
     "queue plain is on clock realtime; leave --clock out, or name another "
     "queue with --queue"),
    (("query", "1", "--clock", "boottime", "-q", "mono"),
     "queue mono is on clock monotonic; leave --clock out, or name another "
     "queue with --queue"),
    (("arm", "+5s", "--new", "-q", "plain"), "queue plain is plain: each arm "
     "makes a new timer; leave --new out, or use --keyed --queue NAME"),
    (("arm", "+5s", "--later", "-q", "acks"), "queue acks is plain: each arm "
     "makes a new timer; leave --later out, or use --keyed --queue NAME"),
    (("arm", "+5s", "--new", "--id", "7", "-q", "keyed"),
     "queue keyed: timer 7 is armed already; leave --new out to change it"),
    (("cancel", "9", "-q", "keyed"), "no timer 9 in queue keyed: it expired, "
     "was cancelled, or never was; see: expiryctl list --queue keyed"),
    (("refresh", "9", "+1s", "-q", "keyed"), "no timer 9 in queue keyed: it "
     "expired, was cancelled, or never was; see: expiryctl list --queue "
     "keyed"),
)
KEYED_WANTS_ID = (
    (("arm", "+5s", "-q", "keyed"),
     "queue keyed is keyed: give the timer's --id"),
    (("arm", "09:00", "-q", "mono"), "09:00: the queue is on clock "
     "monotonic, which knows no dates; expected +SPAN, @SECONDS or never"),
    (("refresh", "1", "2027-02-28", "-q", "boot"), "2027-02-28: the queue is "
     "on clock boottime, which knows no dates; expected +SPAN, @SECONDS or "
     "never"),
)

ANOTHERS = "queue %s belongs to another user; only root may see whose: sudo " \
    "expiryctl queues; run this as that user or as root, or take another name " \
    "with --queue"

# Errnos that only the fake server answers: to HELLO, to the following look, and to the
# request.
FROM_DAEMON = (
    ({HELLO: errno.EINVAL}, errno.EINVAL, ("list",),
     "{path}: the daemon is older than this expiryctl; restart it with: "
     "systemctl restart expiryd"),
    ({}, errno.EINVAL, ("top",),
     "{path}: the daemon is older than this expiryctl; restart it with: "
     "systemctl restart expiryd"),
    ({HELLO: errno.EACCES}, 0, ("list",), ANOTHERS % "default"),
    ({DROP: errno.EACCES}, 0, ("drop", "-q", "default"),
     ANOTHERS % "default"),
    ({HELLO: errno.EBUSY}, errno.EBUSY, ("watch",),
     "{path}: the daemon has as many connections as it allows; try again "
     "later, or raise connections in expiryd.conf"),
    ({HELLO: errno.EBUSY}, 0, ("watch",), "queue default has a consumer "
     "already; a queue has one at a time: end that one first"),
    ({HELLO: errno.EBUSY}, 0, ("list",),
     "{path}: the daemon has as many connections as it allows; try again "
     "later, or raise connections in expiryd.conf"),
    ({}, errno.EBUSY, ("metrics",),
     "{path}: the daemon has as many connections as it allows; try again "
     "later, or raise connections in expiryd.conf"),
    ({HELLO: errno.EDQUOT}, errno.EDQUOT, ("arm", "+1s"),
     "{path}: you have as many connections as one user may; end some, or "
     "raise connections_per_user in expiryd.conf"),
    ({HELLO: errno.EDQUOT}, 0, ("list",),
     "{path}: you have as many connections as one user may; end some, or "
     "raise connections_per_user in expiryd.conf"),
    ({HELLO: errno.EDQUOT}, 0, ("arm", "+1s"),
     "queue default: you have as many queues as one user may; drop one, or "
     "raise queues_per_user in expiryd.conf"),
    ({HELLO: errno.ENOSPC}, 0, ("arm", "+1s"),
     "queue default: the daemon has as many queues as it may; drop one, or "
     "raise queues in expiryd.conf"),
    ({HELLO: errno.EMFILE}, 0, ("arm", "+1s"),
     "{path}: no file descriptor is left, here or in the daemon; raise the "
     "limit: ulimit -n here, LimitNOFILE= of the service"),
    ({HELLO: errno.EPROTONOSUPPORT}, 0, ("list",),
     "{path}: library and daemon are of different versions; restart the "
     "daemon with: systemctl restart expiryd"),
    ({HELLO: errno.EOPNOTSUPP}, 0, ("load", "--durable"),
     "queue default: the daemon has no journal, which a durable queue needs; set journal in "
     "expiryd.conf and restart it, or leave --durable out"),
    ({HELLO: errno.EIO}, 0, ("load", "--durable"),
     "{path}: the engine or the journal failed; the daemon's log says why"),
    ({HELLO: errno.ENOSPC}, 0, ("load", "--durable"),
     "queue default: the daemon has as many queues as it may; drop one, or "
     "raise queues in expiryd.conf"),
    ({ARM: errno.ENOSPC}, 0, ("arm", "+1s"),
     "queue default is full; cancel or acknowledge timers, or raise "
     "timers_per_queue in expiryd.conf"),
    ({ARM: errno.EDQUOT}, 0, ("arm", "+1s"),
     "queue default: you have as many timers as one user may; cancel some, "
     "or raise timers_per_user in expiryd.conf"),
    ({ARM: errno.ENOMEM}, 0, ("arm", "+1s"), "queue default: the machine is "
     "short of memory; nothing was changed"),
    ({ARM: errno.EBUSY}, 0, ("arm", "+1s"), "queue default: the daemon is "
     "overloaded and did nothing; try again"),
    ({ARM: errno.EIO}, 0, ("arm", "+1s"),
     "queue default: the engine or the journal failed; the daemon's log says why"),
    ({QUERY: errno.EOPNOTSUPP}, 0, ("query", "1"),
     "queue default: the daemon is older than this expiryctl and does not "
     "know this request; restart it with: systemctl restart expiryd"),
    ({QUERY: errno.EIO}, 0, ("query", "1"), "timer 1 in queue default: the "
     "engine or the journal failed; the daemon's log says why"),
    ({DROP: errno.EBUSY}, 0, ("drop", "-q", "default"),
     "queue default has other connections; end their programs first, see: "
     "expiryctl top default"),
    ({DROP: errno.ENOENT}, 0, ("drop", "-q", "default"),
     "no queue default any more: it was dropped meanwhile"),
)


# Wrong lines for load, on a plain and on a keyed queue.
LINES = (
    ("5s 1", "a span from now begins with +, as in +5s"),
    ("tomorrow 1", "expected a date with time and zone, as in "
     "2027-01-31T12:00:00Z"),
    ("yesterday 1", "expected a date with time and zone, as in "
     "2027-01-31T12:00:00Z"),
    ("-5s 1", "that is in the past; write now, or a span as in +5s"),
    ("+1h", "expected a cookie after the deadline"),
    ("+1h x", "expected a cookie: a number from 0 to 2^64-1"),
    ("+1h 1 0", "expected an id: a number from 1 to 2^64-1"),
    ("+1h 1 2 3", "expected nothing after DEADLINE COOKIE ID"),
    ("+1h 1 2", "an id needs a queue made with --keyed: expected nothing "
     "behind the cookie"),
    ("+1h \0 1", "there is a NUL byte: expected text"),
    ("#" * 2000, "the line is too long: expected DEADLINE COOKIE [ID]"),
)
LINES_KEYED = (
    ("+1h 1", "the queue is keyed: expected an id behind the cookie"),
    ("2027-02-28T12:00Z 1 2", "the queue is on clock monotonic, which knows "
     "no dates; expected +SPAN, @SECONDS or never"),
)

# Messages of the source that no call here causes.
NOT_HERE = {
    "no memory", "no memory for %zu queues",
    "thread %u: %s",            # of journal, without memory
    "output: %s",               # of top, on a full disk
}

# A declared queue whose mode lets no other user look: owner daemon (uid 1).
DECLARED = (
    (744, ("watch",), "queue leases belongs to user daemon (uid 1), and its "
     "mode 744 does not let you take expirations; run this as that user or as "
     "root, or take another name with --queue"),
    (744, ("arm", "+1s"), "queue leases belongs to user daemon (uid 1), and "
     "its mode 744 does not let you arm, refresh or cancel; run this as that "
     "user or as root, or take another name with --queue"),
    (664, ("cancel", "1"), "queue leases belongs to user daemon (uid 1), and "
     "its group mail may arm, refresh or cancel; to join that group: sudo "
     "adduser NAME mail, then log in anew"),
    (646, ("drop",), "queue leases belongs to user daemon (uid 1), and its "
     "mode 646 does not let you drop it; run this as root, or take another "
     "name with --queue"),
    (642, ("list",), ANOTHERS % "leases"),
    (642, ("arm", "+1s", "--ack"), "queue leases has another clock or mode, "
     "and you may not see which; give --clock, --keyed and --ack as its owner "
     "has them"),
    (700, ("status",), ANOTHERS % "leases"),
)
