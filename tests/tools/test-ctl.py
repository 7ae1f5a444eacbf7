#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""expiryctl against a daemon of its own: commands, output, exit status.

$EXPIRYD and $EXPIRYCTL, else those in build/, with the engine $EXPIRY_ENGINE,
else embedded. TAP on the standard output.
"""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
EXPIRYD = os.environ.get("EXPIRYD", os.path.join(ROOT, "build/expiryd"))
EXPIRYCTL = os.environ.get("EXPIRYCTL", os.path.join(ROOT, "build/expiryctl"))
ENGINE = os.environ.get("EXPIRY_ENGINE", "embedded")
THREADS = os.environ.get("EXPIRY_THREADS", "1")
WAIT = 100              # seconds for what must come
SOCKET = None           # of the daemon


class Result:
    def __init__(self, args, status, out, err):
        self.args, self.status, self.out, self.err = args, status, out, err

    def rows(self):
        """The JSON objects of the output, one a line."""
        return [json.loads(line) for line in self.out.splitlines()]

    def __repr__(self):
        return "expiryctl %s: status %d\n%s%s" % (
            " ".join(self.args), self.status, self.out, self.err)


def command(*args):
    return [EXPIRYCTL, "--socket", SOCKET] + list(args)


def ctl(*args, stdin="", status=0):
    """Runs expiryctl and expects an exit status. An error is one line."""
    run = subprocess.run(command(*args), input=stdin, capture_output=True,
                         text=True, timeout=WAIT, check=False)
    result = Result(args, run.returncode, run.stdout, run.stderr)
    assert run.returncode == status, result
    if status == 0:
        assert run.stderr == "", result
    else:
        lines = run.stderr.splitlines()
        assert lines, result
        assert all(line.startswith("expiryctl: ") for line in lines), result
    return result


def usage(*args):
    """A wrong call: status 2, one line, nothing on the standard output."""
    result = ctl(*args, status=2)
    assert result.out == "", result
    assert result.err.count("\n") == 1, result
    return result.err


def refused(*args, **kwargs):
    result = ctl(*args, status=1, **kwargs)
    assert result.err.count("\n") == 1, result
    return result.err


def arm(*args):
    row, = ctl("arm", "--json", *args).rows()
    return row


# ---------------------------------------------------------------------------

def test_arm_query_refresh_cancel():
    q = ("--queue", "basic")
    timer = arm("+1h", "42", *q)
    assert timer["cookie"] == "42" and timer["period_ms"] == 0, timer
    assert 3500e9 < int(timer["deadline_ns"]) - time.time_ns() <= 3600e9, timer
    assert timer["deadline"].endswith("Z"), timer
    id = timer["id"]
    assert ctl("query", id, "--json", *q).rows() == [timer]

    moved, = ctl("refresh", id, "2033-05-18T03:33:20.5Z", "--json", *q).rows()
    assert moved["deadline_ns"] == "2000000000500000000", moved
    assert moved["deadline"] == "2033-05-18T03:33:20.500000000Z", moved
    kept, = ctl("refresh", id, "+1s", "--later", "--json", *q).rows()
    assert kept["deadline_ns"] == moved["deadline_ns"], kept

    gone, = ctl("cancel", id, "--json", *q).rows()
    assert gone == moved, gone
    assert "no timer " in refused("cancel", id, *q)
    assert "no timer " in refused("query", id, *q)
    assert "no timer " in refused("refresh", id, "+1s", *q)


def test_several_ids():
    q = ("--queue", "several")
    ids = [arm("+1h", str(i), *q)["id"] for i in range(3)]
    result = ctl("cancel", ids[0], "1", ids[2], "--json", *q, status=1)
    assert [row["cookie"] for row in result.rows()] == ["0", "2"], result
    assert result.err.count("\n") == 1, result
    # a wrong command line does nothing
    usage("cancel", ids[1], "x", *q)
    assert len(ctl("list", *q).out.splitlines()) == 1


def test_plain_output():
    q = ("--queue", "plain-output")
    line = ctl("arm", "never", "18446744073709551615", *q).out
    fields = line.split()
    assert fields[1:] == ["never", "-", "-", "18446744073709551615"], line
    line = ctl("arm", "@4000000000", "7", "--period", "1500ms", *q).out
    fields = line.split()
    assert fields[1] == "2096-10-02T07:06:40.000Z", line
    assert fields[3:] == ["1.5s", "7"], line
    # no heading and no colours without a terminal
    out = ctl("list", *q).out
    assert "DEADLINE" not in out and "\033" not in out, out
    assert len({l.index(l.split()[1]) for l in out.splitlines()}) == 1, out


def test_watch_count():
    q = ("--queue", "watch")
    first = arm("+0s", "1", *q)
    arm("+10ms", "2", *q)
    arm("+20ms", "3", *q)
    rows = ctl("watch", "--count", "2", "--json", *q).rows()
    assert [row["cookie"] for row in rows] == ["1", "2"], rows
    assert rows[0]["event"] == "expired" and rows[0]["id"] == first["id"]
    assert all(int(row["late_ns"]) >= 0 and not row["redelivered"]
               for row in rows), rows
    # the other expirations are still in the queue
    rows = ctl("watch", "--count", "1", "--json", *q).rows()
    assert rows[0]["cookie"] == "3", rows


def test_watch_until_interrupted():
    q = ("--queue", "interrupted")
    for signum in (signal.SIGINT, signal.SIGTERM):
        watch = subprocess.Popen(command("watch", "--create", "--json", *q),
                                 text=True,
                                 stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
        arm("+0s", "5", *q)
        row = json.loads(watch.stdout.readline())
        assert row["cookie"] == "5", row
        watch.send_signal(signum)
        out, err = watch.communicate(timeout=WAIT)
        assert (watch.returncode, out, err) == (0, "", ""), (out, err)
    wait_no_consumer("interrupted")


def wait_no_consumer(queue):
    while ctl("status", "--json", "--queue", queue).rows()[0]["consumer"]:
        pass


def test_one_consumer():
    q = ("--queue", "one")
    watch = subprocess.Popen(command("watch", "--create", *q),
                             stdout=subprocess.PIPE)
    arm("+0s", "1", *q)
    assert watch.stdout.readline()
    assert "has a consumer" in refused("watch", *q)
    watch.terminate()
    watch.communicate(timeout=WAIT)
    assert watch.returncode == 0


def test_acknowledging():
    q = ("--queue", "acks", "--ack")
    arm("+0s", "1", *q)
    arm("+1h", "2", *q)
    # without --ack the command uses the queue's mode
    rows = ctl("watch", "--count", "1", "--json", "--queue", "acks").rows()
    assert rows[0]["cookie"] == "1", rows
    status, = ctl("status", "--queue", "acks", "--json").rows()
    assert status["ack"] and not status["keyed"], status
    assert (status["armed"], status["unacked"]) == ("1", "0"), status


def test_attaches_to_what_is_there():
    for clock in ("realtime", "monotonic", "boottime"):
        for mode in ([], ["--keyed"], ["--ack"], ["--keyed", "--ack"]):
            name = "-".join([clock] + [m[2:] for m in mode])
            id = ["--id", "9"] if "--keyed" in mode else []
            made = arm("+1h", "3", "--queue", name, "--clock", clock, *mode,
                       *id)
            rows = ctl("list", "--json", "--queue", name).rows()
            assert [row["id"] for row in rows] == [made["id"]], rows
            assert rows[0]["deadline_ns"] == made["deadline_ns"], rows
    # given options must match the queue
    err = refused("list", "--queue", "realtime", "--clock", "monotonic")
    assert "is on clock realtime" in err, err
    err = refused("list", "--queue", "realtime", "--keyed")
    assert "is plain" in err, err


def test_other_clocks():
    q = ("--queue", "mono", "--clock", "monotonic")
    row = arm("@1000000.5", "1", *q)
    assert row["deadline_ns"] == "1000000500000000", row
    assert row["deadline"] is None, row
    assert "@1000000.500" in ctl("query", row["id"], *q).out
    assert "knows no dates" in usage("arm", "2033-05-18T03:33:20Z", *q)
    assert "knows no dates" in usage("refresh", row["id"],
                                     "2033-05-18T03:33:20Z", *q)


def test_keyed():
    q = ("--queue", "keyed", "--keyed")
    assert "--id" in usage("arm", "+1h", "1", *q)
    first = arm("+1h", "1", "--id", "0xffffffffffffffff", *q)
    assert first["id"] == "18446744073709551615", first
    second = arm("+2h", "2", "--id", first["id"], *q)
    assert int(second["deadline_ns"]) > int(first["deadline_ns"])
    assert "armed already" in refused("arm", "+1h", "--new", "--id",
                                      first["id"], *q)
    later = arm("+1h", "2", "--later", "--id", first["id"], *q)
    assert later["deadline_ns"] == second["deadline_ns"], later
    assert len(ctl("list", *q).out.splitlines()) == 1
    # an id makes a new queue keyed
    arm("+1h", "1", "--id", "5", "--queue", "keyed-too")
    assert ctl("status", "--json", "--queue", "keyed-too").rows()[0]["keyed"]


def test_list():
    q = ("--queue", "list")
    lines = "".join("+1h %d\n" % i for i in range(2000))
    assert ctl("load", *q, stdin=lines).out == "2000 loaded, 0 failed\n"
    rows = ctl("list", "--json", *q).rows()
    assert sorted(int(row["cookie"]) for row in rows) == list(range(2000))
    assert not any(row["delivered"] for row in rows)
    assert len(ctl("list", "--limit", "700", *q).out.splitlines()) == 700
    assert len(ctl("list", "--limit", "1", *q).out.splitlines()) == 1


def test_load():
    text = """# leases

+1h 1
  +1h30m\t0x2   # the second
bad 3
2033-05-18T03:33:20+00:00 4\r
2033-02-30T03:33:20Z 5
@2000000000.25 6
+1h
+1h 7 1001
+1h 8 9 9
never 10"""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(text)
        file.flush()
        result = ctl("load", file.name, "--queue", "load", status=1)
        assert result.out == "5 loaded, 5 failed\n", result
        errors = result.err.splitlines()
        numbers = [int(line.split(":")[2]) for line in errors]
        assert numbers == [5, 7, 9, 10, 11], result
        assert all("expiryctl: %s:" % file.name in line for line in errors)
        assert "expected" in errors[0] and "no such date" in errors[1]
        assert "--keyed" in errors[3], errors
    rows = ctl("list", "--json", "--queue", "load").rows()
    assert sorted(row["cookie"] for row in rows) == ["1", "10", "2", "4", "6"]
    assert "No such file" in refused("load", "/nonexistent", "--queue", "load")


def test_load_keyed():
    q = ("--queue", "load-keyed", "--keyed")
    result = ctl("load", "-", *q, stdin="+1h 1 11\n+1h 2\n+1h 3 0\n+1h 4 11\n",
                 status=1)
    assert result.out == "2 loaded, 2 failed\n", result
    assert "stdin:2: " in result.err and "stdin:3: " in result.err, result
    row, = ctl("list", "--json", *q).rows()
    assert (row["id"], row["cookie"]) == ("11", "4"), row


def test_load_ids():
    q = ("--queue", "load-ids")
    lines = "".join("+1h %d\n" % i for i in range(1300))
    ids = ctl("load", "--ids", *q, stdin=lines).out.split()
    assert len(set(ids)) == 1300
    assert ctl("query", ids[1299], "--json", *q).rows()[0]["cookie"] == "1299"
    rows = ctl("load", "--ids", "--json", *q, stdin="+1h 1\n+1h 2\n").rows()
    assert [row.get("cookie") for row in rows] == ["1", "2", None], rows
    assert rows[2] == {"loaded": "2", "failed": "0"}, rows
    assert ctl("load", *q, stdin="").out == "0 loaded, 0 failed\n"
    assert ctl("load", *q, stdin="x" * 300000, status=1).out


def test_load_many():
    count = 200000
    with tempfile.NamedTemporaryFile("w") as file:
        for i in range(count):
            file.write("@%d.%09d %d\n" % (4000000000 + i, i, i))
        file.flush()
        out = ctl("load", file.name, "--queue", "many").out
    assert out == "%d loaded, 0 failed\n" % count, out
    status, = ctl("status", "--queue", "many", "--json").rows()
    assert status["armed"] == str(count), status
    assert status["next_ns"] == str(4000000000 * 10**9), status
    ctl("drop", "--queue", "many")


def test_drop():
    arm("+1h", "1", "--queue", "doomed")
    assert "--queue" in usage("drop")
    assert ctl("drop", "--queue", "doomed", "--json").rows() == [
        {"dropped": "doomed"}]
    assert "no queue doomed" in refused("list", "--queue", "doomed")
    assert "no queue doomed" in refused("drop", "--queue", "doomed")


def test_status():
    status, = ctl("status", "--json").rows()
    assert status["engine"] == ENGINE and "queue" not in status, status
    arm("2033-05-18T03:33:20Z", "1", "--queue", "status")
    out = ctl("status", "--queue", "status").out
    for text in ("expiryd at " + SOCKET, ENGINE, "queue status",
                 "realtime", "1 armed", "2033-05-18T03:33:20.000Z"):
        assert text in out, out


def test_device():
    if ENGINE != "kernel":
        usage("--device", "/dev/expiry", "status", "--queue", "x")
        return
    device = ("--device", "/dev/expiry", "--clock", "boottime", "--keyed")
    status, = ctl("status", "--json", *device).rows()
    assert status["address"] == "device:/dev/expiry", status
    assert status["clock"] == "boottime" and status["keyed"], status
    assert status["armed"] == "0" and "engine" not in status, status
    assert "/dev/expiry answers" in ctl("status", *device).out
    assert ctl("stats", "--json", *device).rows()[0]["arms"] == "0"


def test_stats():
    q = ("--queue", "stats")
    ctl("load", *q)
    assert "lateness: none measured yet" in ctl("stats", *q).out
    # Due before there is a consumer, and after.
    for i in range(4):
        arm("+0s", str(i), *q)
    arm("+5s", "4", *q)
    refused("cancel", "1", *q)
    ctl("watch", "--count", "5", *q)
    stats, = ctl("stats", "--json", *q).rows()
    assert (stats["arms"], stats["delivered"], stats["refused"]) == \
        ("5", "5", "1"), stats
    assert len(stats["lateness"]) == 40
    if ENGINE == "kernel":
        assert sum(map(int, stats["lateness"])) == 5 and \
            stats["held"] == "0", stats
    else:
        assert sum(map(int, stats["lateness"])) == 1 and \
            stats["held"] == "4", stats
    spans = [int(stats["lateness_%s_ns" % name])
             for name in ("p50", "p99", "max")]
    assert spans == sorted(spans), stats
    out = ctl("stats", *q).out
    assert "lateness: half below" in out and "#" in out, out


def test_default_queue():
    row = arm("+1h", "1")
    assert ctl("list", "--json").rows() == [dict(row, delivered=False)]
    assert ctl("list", "--json", "--queue", "default").rows()
    ctl("cancel", row["id"])


def test_options_anywhere():
    for args in (("--json", "--queue", "any", "arm", "+1h", "1"),
                 ("arm", "--queue=any", "+1h", "--json", "1"),
                 ("arm", "+1h", "1", "--queue", "any", "--json")):
        assert ctl(*args).rows()[0]["cookie"] == "1"


def test_help():
    out = ctl("--help").out
    assert "Examples:" in out and "Exit status" in out
    for name in ("status", "stats", "arm", "refresh", "cancel", "query",
                 "watch", "list", "load", "drop"):
        assert "  %s " % name in out, name
        own = ctl(name, "--help").out
        assert own.startswith("Usage: expiryctl") and "Examples:" in own
        assert "expiryctl %s" % name in own.split("Examples:")[1], own
    assert ctl("--version").out.startswith("expiryctl ")


def test_full_disk():
    arm("+1h", "1", "--queue", "full")
    with open("/dev/full", "w", encoding="ascii") as full:
        run = subprocess.run(command("list", "--queue", "full"), stdout=full,
                             stderr=subprocess.PIPE, text=True, timeout=WAIT,
                             check=False)
    assert run.returncode == 1 and "standard output" in run.stderr, run


def on_terminal(args, stdin=b"", **env):
    """Returns the output of a command on a terminal, both streams together."""
    env = dict(os.environ, TERM="xterm", **env)
    pid, fd = pty.fork()
    if pid == 0:
        if stdin:
            with tempfile.TemporaryFile() as file:
                file.write(stdin)
                file.seek(0)
                os.dup2(file.fileno(), 0)
        os.execvpe(EXPIRYCTL, command(*args), env)
    out = b""
    while select.select([fd], [], [], WAIT)[0]:
        try:
            data = os.read(fd, 65536)
        except OSError:
            break
        if not data:
            break
        out += data
    _, status = os.waitpid(pid, 0)
    os.close(fd)
    assert status == 0, out
    return out.decode()


def test_terminal():
    os.environ.pop("NO_COLOR", None)
    q = ("--queue", "terminal")
    arm("+1h", "1", *q)
    out = on_terminal(("list",) + q)
    assert "\033[1mID" in out and "DEADLINE" in out, out
    out = on_terminal(("list",) + q, NO_COLOR="1")
    assert "\033" not in out and "DEADLINE" in out, out
    out = on_terminal(("arm", "+1h", "2") + q)
    assert "\033[1mID" in out and "DEADLINE" in out, out
    lines = b"".join(b"+1h %d\n" % i for i in range(2000))
    with tempfile.NamedTemporaryFile() as file:
        file.write(lines)
        file.flush()
        out = on_terminal(("load", file.name) + q)
    assert "[" in out and "%" in out and "2000 loaded, 0 failed" in out, out


# ---------------------------------------------------------------------------

def daemon_start(directory):
    global SOCKET
    SOCKET = os.path.join(directory, "socket")
    daemon = subprocess.Popen(
        [EXPIRYD, "--engine", ENGINE, "--threads", THREADS, "--socket", SOCKET],
        stdout=sys.stderr)
    end = time.monotonic() + WAIT
    while daemon.poll() is None and time.monotonic() < end:
        if not subprocess.run(command("status"), capture_output=True,
                              check=False).returncode:
            return daemon
        time.sleep(0.01)
    daemon.kill()
    raise RuntimeError("%s does not answer" % EXPIRYD)


def main():
    tests = [value for name, value in sorted(globals().items())
             if name.startswith("test_")]
    failed = 0
    with tempfile.TemporaryDirectory(prefix="expiry-test-") as directory:
        daemon = daemon_start(directory)
        print("1..%d" % (len(tests) + 1))
        for number, test in enumerate(tests, 1):
            trouble = ""
            try:
                test()
            except Exception:   # the other tests still run
                trouble = traceback.format_exc()
            failed += bool(trouble)
            for line in trouble.splitlines():
                print("# " + line)
            print("%sok %d - %s" % ("not " if trouble else "", number,
                                    test.__name__[len("test_"):]), flush=True)
        daemon.terminate()
        status = daemon.wait(WAIT)
        failed += bool(status)
        print("%sok %d - the daemon ends well"
              % ("not " if status else "", len(tests) + 1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
