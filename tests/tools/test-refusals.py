#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every refusal of expiryctl names one cause and its remedy: a table of calls and
their messages."""

import errno
import glob
import grp
import os
import pwd
import re
import shutil
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "socket"))

import tap                                                      # noqa: E402
from client import (ACKING, ARM, BOOTTIME, DURABLE, EXISTING,   # noqa: E402
                    KEYED, MONOTONIC, REALTIME, WAIT, attach, wait_for)
from daemon import ROOT, Daemon                                 # noqa: E402
from listing import listing                                     # noqa: E402
import support_fields as fields                                 # noqa: E402
from support_fake import Server                                 # noqa: E402
from support_refusals import (ANOTHERS, DECLARED,               # noqa: E402
                              FROM_DAEMON, KEYED_WANTS_ID, LEASES, LINES,
                              LINES_KEYED, MAKES, NO_QUEUE, NOT_HERE,
                              OTHER_KIND, WRONG_CALLS)

CTL = os.environ.get("EXPIRYCTL", os.path.join(ROOT, "build", "expiryctl"))
NOWHERE = "/nonexistent/socket"

SEEN = set()    # lines of the standard error


def ctl(*arguments, path=NOWHERE, program=CTL, stdin="", **more):
    """Returns status and both outputs of a call."""
    done = subprocess.run(
        [program, *arguments], input=stdin, capture_output=True,
        text=True, timeout=WAIT, check=False,
        env=dict(os.environ, EXPIRY_SOCKET=path), **more)
    SEEN.update(done.stderr.splitlines())
    return done.returncode, done.stdout, done.stderr


def check(table, status, **more):
    """Expects @status and only this line from each call of @table."""
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
    """Returns the names of all queues, by the protocol."""
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
    with tempfile.TemporaryDirectory() as folder, \
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        path = os.path.join(folder, "socket")
        other.bind(path)
        check([(("status",), "%s: that is no socket of expiryd's; name its "
                "socket with --socket" % path)], 1, path=path)


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


def test_lines_of_load(daemon):
    for table, options in (LINES, ()), \
            (LINES_KEYED, ("--keyed", "--clock", "monotonic")):
        status, _, err = ctl(
            "load", "-q", "lines", *options, path=daemon.path,
            stdin="".join(line + "\n" for line, _ in table))
        assert status == 1, err
        for number, (line, text) in enumerate(table, 1):
            wanted = "expiryctl: stdin:%d: %s" % (number, text)
            assert wanted in err.splitlines(), (line, wanted, err)
        made(daemon, "drop", "-q", "lines")
    check([(("load", "/nonexistent"),
            "/nonexistent: No such file or directory")], 1, path=daemon.path)


class HangsUp(Server):
    """A server that ends the connection instead of arming."""

    def arm(self, record):
        raise ConnectionError


def test_a_lost_connection_and_a_full_disk(daemon):
    made(daemon, "arm", "never", "-q", "full")
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([CTL, "--socket", daemon.path, "list", "-q",
                               "full"], stdout=full, stderr=subprocess.PIPE,
                              text=True, timeout=WAIT, check=False)
    assert done.stderr == "expiryctl: standard output: No space left on " \
        "device\n", done
    SEEN.update(done.stderr.splitlines())
    made(daemon, "drop", "-q", "full")
    with Server(errors={ARM: errno.ECONNRESET}) as fake:
        status, _, err = ctl("load", path=os.fsdecode(fake.path),
                             stdin="+1s 1\n")
        assert (status, err) == (1, "expiryctl: stdin:1: the connection broke "
                                 "before the answer came: it may be armed; "
                                 "look for it, or arm it again\n"), err
    with HangsUp() as fake:
        status, _, err = ctl("load", path=os.fsdecode(fake.path),
                             stdin="+1s 1\n")
        assert (status, err) == (1, "expiryctl: stdin:1: from here on nothing "
                                 "is known to be armed: the connection broke "
                                 "before the answer came: it may be armed; "
                                 "look for it, or arm it again\n"), err


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


class FullJournal(Server):
    """A server whose journal has no space."""

    def refusal(self, name, flags):
        return errno.ENOSPC if flags & DURABLE else 0


def test_a_durable_queue():
    full = "queue default: the daemon's journal is full; "
    space = "free space on its disk, or raise journal_size in expiryd.conf"
    with FullJournal() as fake:
        check([(("load", "--durable"), full + space)], 1,
              path=os.fsdecode(fake.path))
    # Below its limit a queue is not full.
    for armed, text in (4, full + "cancel and acknowledge timers, " + space), \
            (5, "queue default is full; cancel or acknowledge timers, or raise "
             "timers_per_queue in expiryd.conf"):
        row = ("default", fields.STAT.pack({"armed": armed, "unacked": 5, "limit": 10}),
               fields.DAEMON.pack({}))
        with Server(mode=KEYED | ACKING, commit_ms=0, errors={ARM: errno.ENOSPC},
                    queues=[[row]]) as fake:
            check([(("arm", "--durable", "--id", "7", "+1h"), text)], 1,
                  path=os.fsdecode(fake.path))
    with tempfile.TemporaryDirectory() as folder, \
            Daemon(options=["--journal", folder]) as daemon:
        made(daemon, "load", "--durable", "-q", "lasting")
        made(daemon, "load", "--keyed", "--ack", "-q", "keyed")
        assert " durable " in made(daemon, "queues", "-q", "lasting")
        assert ", durable\n  commit       flushed before each answer\n" in \
            made(daemon, "status", "-q", "lasting")
        check(OTHER_KIND[:1] + ((("load", "--clock", "monotonic", "--durable", "-q", "lasting"),
                                 "queue lasting is on clock realtime; leave --clock out, or "
                                 "name another queue with --queue"),), 1, path=daemon.path)
        made(daemon, "arm", "--id", "1", "+1h", "-q", "lasting", "--durable")
        made(daemon, "arm", "--id", "2", "+1h", "-q", "lasting")


def test_a_queue_that_changes_meanwhile():
    row = ("default", fields.STAT.pack({"clock_id": MONOTONIC}),
           fields.DAEMON.pack({}))
    with Server(BOOTTIME, queues=[[row]]) as fake:
        check([(("list",), "queue default was dropped meanwhile and made anew "
                "with another clock or mode; try again")], 1,
              path=os.fsdecode(fake.path))
        assert len(fake.hellos) == 3, fake.hellos


def test_another_users():
    """The message names the owner if this user may know it. It advises group expiry only
    where that helps: for access to the socket."""
    tap.need_root()
    nobody = pwd.getpwnam("nobody")
    as_nobody = {"user": nobody.pw_uid, "group": nobody.pw_gid,
                 "extra_groups": []}
    with Daemon() as daemon:
        # Other users may have no access to the checkout.
        program = shutil.copy(CTL, daemon.folder)
        as_nobody.update(path=daemon.path, program=program)
        made(daemon, "load", "-q", "roots", "--keyed")
        os.chmod(daemon.path, 0o666)
        check([((command, "-q", "roots"), ANOTHERS % "roots")
               for command in ("list", "drop", "load", "watch")], 1,
              **as_nobody)
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


def test_declared_queues_and_their_rights():
    tap.need_root()
    nobody = pwd.getpwnam("nobody")
    with tempfile.TemporaryDirectory(prefix="expiryd-") as folder:
        for mode in sorted({row[0] for row in DECLARED}):
            with open(os.path.join(folder, "leases.conf"), "w",
                      encoding="ascii") as file:
                file.write("owner = daemon\ngroup = mail\nmode = %d\n" % mode)
            with Daemon("queue_files = %s\nundeclared = nobody\n" % folder) \
                    as daemon:
                os.chmod(daemon.path, 0o666)
                as_nobody = {"path": daemon.path, "user": nobody.pw_uid,
                             "group": nobody.pw_gid, "extra_groups": [],
                             "program": shutil.copy(CTL, daemon.folder)}
                check([(command + LEASES, text) for row, command, text
                       in DECLARED if row == mode], 1, **as_nobody)
                check([(("load", "-q", "mine"), "no queue mine, and the "
                        "setting undeclared in expiryd.conf does not let you "
                        "make it; ask the administrator for "
                        "queues.d/mine.conf"),
                       (("list", "-q", "mine"), MAKES.replace("leases",
                                                              "mine"))],
                      1, **as_nobody)


def connections(daemon, *arguments):
    """Returns the number of connections that a call makes."""
    with tempfile.NamedTemporaryFile("r") as file:
        done = subprocess.run(
            ["strace", "-qq", "-e", "trace=connect", "-o", file.name, CTL,
             "--socket", daemon.path, *arguments], capture_output=True,
            text=True, timeout=WAIT, check=False)
        if "ptrace" in done.stderr:
            raise tap.Skip("may not be traced: " + done.stderr)
        return sum(daemon.path in line for line in file)


def test_how_many_connections_it_takes(daemon):
    """One connection if the queue matches the command line or a new queue. Otherwise
    three: the attempt, the look, the attachment."""
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


CALL = re.compile(
    r'ctl_(?:error|usage)\(((?:\s*(?:"(?:[^"\\]|\\.)*"|PRI\w+))+)')
TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|PRI(\w)')
CONVERSION = re.compile(r"%(?:\.\*|0\d|z)?[sucdo]")


def formats():
    """Returns all formats of ctl_error() and ctl_usage() that expiryctl has;
    test-exporter.py has the exporter's."""
    for path in sorted(glob.glob(os.path.join(ROOT, "tools", "**", "*.c"),
                                 recursive=True)):
        if "/exporter/" in path:
            continue
        with open(path, encoding="utf-8") as file:
            for literals in CALL.findall(file.read()):
                yield "".join(text or kind
                              for text, kind in TOKEN.findall(literals))


def test_observers_beyond_the_limit():
    with Daemon("observers_per_queue = 0\n") as other, \
            attach(other.path, "one", clock=REALTIME):
        check([(("tail", "-q", "one"), "queue one has as many observers as it "
                "may; end one, or raise observers_per_queue in expiryd.conf")],
              1, path=other.path)


def test_journals():
    """test-journal.py has the faults of files and lines."""
    first = '{"journal": 1, "thread": 0, "boot_id": "%s", "clean": true, ' \
        '"realtime_ns": "1", "monotonic_ns": "1", "boottime_ns": "1"}\n' % ("0" * 32)
    with tempfile.TemporaryDirectory() as folder:
        check([(("--queue", "q", "journal", "check", folder),
                "journal check: it is about all queues; leave --queue out"),
               (("journal", "mend", folder), "journal mend: expected check, dump, "
                "export or import")], 2)
        check([(("journal", "check", folder), folder + ": there is no journal in it")], 1)
        check([(("journal", "import", folder),
                "standard input: there is no queue in it")], 1, stdin=first)
        check([(("journal", "import", folder), "line 2: a timer comes behind the line "
                "of its queue")], 1, stdin=first + '{"queue": "q", "id": "1", '
              '"deadline_ns": "1", "cookie": "1", "period_ms": 0, "delivered": false, '
              '"cancelled": false}\n')
        check([(("-c", 'exec "$0" journal import "$1" <"$1"', CTL, folder),
                "standard input: Is a directory")], 1, program="sh")
        segment = os.path.join(folder, "journal-00-0000000000000001")
        os.mkdir(segment)
        check([(("journal", "import", folder), folder + ": it has a journal; export "
                "that, and import both into another directory")], 1)
        check([(("journal", "check", folder), os.path.basename(segment) +
                " at byte 0: Operation not permitted")], 1)
        os.rmdir(segment)
        with open(segment, "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(b"EXJ\x09".ljust(1 << 16, b"\xff"))
        check([(("journal", "check", folder), os.path.basename(segment) +
                " at byte 0: another version's file")], 3)
        with open(os.path.join(folder, "import"), "wb") as file:
            os.fchmod(file.fileno(), 0o600)
        check([(("journal", "check", folder), folder +
                ": an import was not completed: repeat it")], 3)


def test_each_refusal_of_the_source_was_seen():
    tap.need_root()
    if len(sys.argv) > 1:
        raise tap.Skip("not all tests were run")
    missing = set()
    number = 0
    for text in formats():
        number += 1
        pattern = ".*".join(re.escape(part)
                            for part in CONVERSION.split(text))
        if text not in NOT_HERE and not any(
                re.fullmatch("expiryctl: " + pattern, line) for line in SEEN):
            missing.add(text)
    assert number > 60, number
    assert not missing, "\n".join(sorted(missing))


if __name__ == "__main__":
    tap.main()
