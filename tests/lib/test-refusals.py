#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every refusal of expiryctl names its one cause and the way out: a table of
calls and what is printed for each."""

import errno
import grp
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "socket"))

import tap                                                      # noqa: E402
from client import (ARM, DROP, EXISTING, HELLO, QUERY, REALTIME,  # noqa: E402
                    WAIT, attach, wait_for)
from daemon import ROOT, Daemon                                 # noqa: E402
from listing import listing                                     # noqa: E402
from support_fake import Server                                 # noqa: E402

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
    (("query",), "usage: expiryctl [OPTION...] query ID..."),
    (("query", "x"), "x: expected an id: a number from 1 to 2^64-1"),
    (("drop",), "drop: name the queue with --queue"),
    (("arm", "+1s", "x"),
     "x: expected a cookie: a number from 0 to 2^64-1"),
)


# What there is no queue for: status 1, and no queue is made.
MAKES = "no queue leases; arm, load and watch --create make it"
LEASES = "-q", "leases"
NO_QUEUE = tuple((command + LEASES, MAKES) for command in (
    ("list",), ("stats",), ("status",), ("watch",), ("query", "1"),
    ("cancel", "1"), ("refresh", "1", "+1s"), ("drop",),
    ("list", "--keyed", "--ack", "--clock", "boottime"),
    ("watch", "--ack"))) + (
    (("top", "--count", "1", "leases"), "leases: you have no such queue"),
    (("list",), MAKES.replace("leases", "default")))

# What the queues "plain", "keyed", "acks" and "mono" are not: status 1 or 2.
OTHER_KIND = (
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

# What only a server made for the test answers: each errno of HELLO, of the look
# that follows, and of the request.
FROM_DAEMON = (
    ({HELLO: errno.EINVAL}, errno.EINVAL, ("list",),
     "{path}: the daemon is older than this expiryctl; restart it with: "
     "systemctl restart expiryd"),
    ({}, errno.EINVAL, ("top",),
     "{path}: the daemon is older than this expiryctl; restart it with: "
     "systemctl restart expiryd"),
    ({HELLO: errno.EACCES}, 0, ("list",),
     "queue default belongs to another user, whose name only root may see; "
     "run this as that user or as root, or take another name with --queue"),
    ({HELLO: errno.EBUSY}, errno.EBUSY, ("watch",),
     "{path}: the daemon has as many connections as it allows; try again "
     "later, or raise connections in expiryd.conf"),
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
     "{path}: library and daemon are of different versions: restart the "
     "daemon; or a device was asked for a name"),
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
     "queue default: the engine failed; the daemon's log says why"),
    ({QUERY: errno.EOPNOTSUPP}, 0, ("query", "1"),
     "queue default: the daemon is older than this expiryctl and does not "
     "know this request; restart it with: systemctl restart expiryd"),
    ({QUERY: errno.EIO}, 0, ("query", "1"), "timer 1 in queue default: the "
     "engine failed; the daemon's log says why"),
    ({DROP: errno.EBUSY}, 0, ("drop", "-q", "default"),
     "queue default has other connections; end their programs first, see: "
     "expiryctl top default"),
    ({DROP: errno.ENOENT}, 0, ("drop", "-q", "default"),
     "no queue default any more: it was dropped meanwhile"),
)


def ctl(*arguments, path=NOWHERE, program=CTL, **more):
    """Status and both outputs of a call."""
    done = subprocess.run(
        [program, *arguments], stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=WAIT, check=False,
        env=dict(os.environ, EXPIRY_SOCKET=path), **more)
    return done.returncode, done.stdout, done.stderr


def check(table, status, **more):
    """Each call of @table ends with @status and prints this line alone."""
    wrong = ""
    for arguments, text in table:
        got = ctl(*arguments, **more)
        wanted = status, "", "expiryctl: %s\n" % text
        if got != wanted:
            wrong += "%s:\n  got    %s\n  wanted %s\n" % (
                " ".join(arguments), got, wanted)
    assert not wrong, wrong


def made(daemon, *arguments):
    status, out, err = ctl(*arguments, path=daemon.path)
    assert status == 0, err
    return out


def queues_of(daemon):
    """The names of all there are, by the protocol."""
    with attach(daemon.path, "", EXISTING, REALTIME) as client:
        return sorted(row.name for row in listing(client))


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


def test_no_daemon():
    advice = "no daemon answers; start it with: systemctl start expiryd, or " \
        "name its socket with --socket"
    check([(command, "%s: %s" % (NOWHERE, advice)) for command in (
        ("status",), ("arm", "+1s"), ("top",), ("run", "--in", "1s", "true"))],
          1)
    check([(("--device", "/nonexistent", "status"),
            "/nonexistent: there is no such device; load the module with: "
            "modprobe expiry")], 1)
    with tempfile.NamedTemporaryFile() as file:
        status, _, err = ctl("status", path=file.name)
        assert status == 1 and "no daemon answers" in err, err
    check([(("status",), "/%s: the path is longer than the 107 bytes that a "
            "socket's may have; name a shorter one with --socket" %
            ("x" * 200))], 1, path="/" + "x" * 200)
    with tempfile.TemporaryDirectory() as folder, \
            socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        path = os.path.join(folder, "socket")
        listener.bind(path)     # and does not listen
        check([(("status",), "%s: %s" % (path, advice))], 1, path=path)


def test_looking_makes_no_queue(daemon):
    check(NO_QUEUE, 1, path=daemon.path)
    made(daemon, "status")
    made(daemon, "metrics")
    made(daemon, "top", "--count", "1")
    assert queues_of(daemon) == [], queues_of(daemon)
    made(daemon, "watch", "--create", "-q", "watched", "--count", "1",
         "--help")
    made(daemon, "load", "-q", "loaded")
    made(daemon, "arm", "never", "-q", "armed")
    assert sorted(queues_of(daemon)) == ["armed", "loaded"]
    for name in "armed", "loaded":
        made(daemon, "drop", "-q", name)


def test_drop_does_not_leave_one_of_another_kind(daemon):
    made(daemon, "load", "-q", "once", "--keyed", "--clock", "boottime")
    made(daemon, "drop", "-q", "once")
    check([(("drop", "-q", "once"), MAKES.replace("leases", "once"))], 1,
          path=daemon.path)
    assert queues_of(daemon) == []


def test_queues_of_another_kind(daemon):
    made(daemon, "load", "-q", "plain")
    made(daemon, "load", "-q", "acks", "--ack")
    made(daemon, "load", "-q", "mono", "--clock", "monotonic")
    made(daemon, "load", "-q", "boot", "--clock", "boottime")
    made(daemon, "arm", "never", "--id", "7", "-q", "keyed")
    check(OTHER_KIND, 1, path=daemon.path)
    check(KEYED_WANTS_ID, 2, path=daemon.path)
    for name in queues_of(daemon):
        made(daemon, "drop", "-q", name)


def test_a_second_consumer(daemon):
    with subprocess.Popen(
            [CTL, "--socket", daemon.path, "watch", "--create", *LEASES],
            stdout=subprocess.PIPE) as watch:
        try:
            assert wait_for(lambda: ctl("status", *LEASES, path=daemon.path)[0]
                            == 0)
            check([(("watch", *LEASES), "queue leases has a consumer already: "
                    "process %d (expiryctl); a queue has one at a time: end "
                    "that one first" % watch.pid),
                   (("drop", *LEASES), "queue leases has other connections; "
                    "end their programs first, see: expiryctl top leases")],
                  1, path=daemon.path)
        finally:
            watch.terminate()
    # It has gone when the daemon has read that.
    assert wait_for(lambda: ctl("drop", *LEASES, path=daemon.path)[0] == 0)


def test_each_errno_of_the_daemons():
    wrong = ""
    for errors, looking, arguments, text in FROM_DAEMON:
        with Server(errors=errors, looking=looking) as fake:
            path = os.fsdecode(fake.path)
            got = ctl(*arguments, path=path)
            wanted = 1, "", "expiryctl: %s\n" % text.format(path=path)
            if got != wanted:
                wrong += "%s %s:\n  got    %s\n  wanted %s\n" % (
                    errors, " ".join(arguments), got, wanted)
    assert not wrong, wrong


def test_another_users():
    """The queue's owner is named where that can be known, and group expiry is
    advised only where it helps: to reach the socket."""
    tap.need_root()
    nobody = pwd.getpwnam("nobody")
    as_nobody = {"user": nobody.pw_uid, "group": nobody.pw_gid,
                 "extra_groups": []}
    with Daemon() as daemon:
        # The checkout may be where nobody else can look.
        program = shutil.copy(CTL, daemon.folder)
        as_nobody.update(path=daemon.path, program=program)
        made(daemon, "load", "-q", "roots", "--keyed")
        os.chmod(daemon.path, 0o666)
        check([((command, "-q", "roots"), "queue roots belongs to another "
                "user, whose name only root may see; run this as that user or "
                "as root, or take another name with --queue")
               for command in ("list", "drop", "load")], 1, **as_nobody)
        os.chmod(daemon.path, 0o660)
        os.chown(daemon.path, 0, grp.getgrnam("daemon").gr_gid)
        check([(("list",), "%s: only user root (uid 0) and group daemon may "
                "use it; to join that group: sudo adduser NAME daemon, then "
                "log in anew" % daemon.path)], 1, **as_nobody)
        os.chmod(daemon.path, 0o600)
        check([(("list",), "%s: only user root (uid 0) may use it; run this "
                "as that user or as root" % daemon.path)], 1, **as_nobody)
        os.chmod(daemon.folder, 0o700)
        elsewhere = shutil.copy(CTL, "/tmp/expiry-test-%d" % os.getpid())
        try:
            as_nobody["program"] = elsewhere
            check([(("list",), "%s: you may not look into the folder it is "
                    "in; run this as root" % daemon.path)], 1, **as_nobody)
        finally:
            os.unlink(elsewhere)


def connections(daemon, *arguments):
    """How many a call makes."""
    with tempfile.NamedTemporaryFile("r") as file:
        done = subprocess.run(
            ["strace", "-qq", "-e", "trace=connect", "-o", file.name, CTL,
             "--socket", daemon.path, *arguments], capture_output=True,
            text=True, timeout=WAIT, check=False)
        if "ptrace" in done.stderr:
            raise tap.Skip("may not be traced: " + done.stderr)
        return sum(daemon.path in line for line in file)


def test_how_many_connections_it_takes(daemon):
    """One where the queue is as the command line says or as a new one is, else
    three: it is asked for, looked at, attached."""
    if not shutil.which("strace"):
        raise tap.Skip("no strace")
    for clock in "realtime", "monotonic", "boottime":
        for mode in [], ["--keyed"], ["--ack"], ["--keyed", "--ack"]:
            name = "-".join(["c", clock] + [word[2:] for word in mode])
            kind = ["--clock", clock, *mode]
            made(daemon, "load", "-q", name, *kind)
            assert connections(daemon, "list", "-q", name, *kind) == 1
            plain = clock == "realtime" and not mode
            assert connections(daemon, "list", "-q", name) == \
                (1 if plain else 3), name
    for command in ("status",), ("metrics",), ("list", "-q", "absent"), \
            ("arm", "never"):
        assert connections(daemon, *command) == 1, command


if __name__ == "__main__":
    tap.main()
