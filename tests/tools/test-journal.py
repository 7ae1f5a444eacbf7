#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""expiryctl journal: a stopped daemon's queues are checked, exported and imported.

$EXPIRY_TEST_SEED is the seed of what is in the queues."""

import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "socket"))

import tap
from client import (ACK, ARM, CANCEL, CONSUME, DROP, EXISTING, HOUR, REFRESH, RELATIVE,
                    Connection, Record, arm, attach, wait_for)
from durable import FLAGS, JOURNAL_QUEUE, LATE, Disk, blocks, kill, refused

EXPIRYCTL = os.environ.get("EXPIRYCTL", os.path.join(ROOT, "build/expiryctl"))
SEED = int(os.environ.get("EXPIRY_TEST_SEED", "1"))
CLOCKS = {"realtime": 0, "monotonic": 1, "boottime": 7}
WAIT = 100
DAMAGED = 3


def ctl(*args, stdin="", status=0):
    run = subprocess.run([EXPIRYCTL, *args], input=stdin, capture_output=True, text=True,
                         timeout=WAIT, check=False)
    assert run.returncode == status, (args, run)
    assert bool(run.stderr) == bool(status), (args, run)
    return run.stderr if status else run.stdout


def journal(what, folder, *options, **more):
    return ctl(*options, "journal", what, folder, **more)


def parsed(lines):
    return [json.loads(line) for line in lines.splitlines()]


def fill(daemon, chance):
    """Fills a queue on each clock with timers in each state that a journal knows."""
    for clock, number in CLOCKS.items():
        with attach(daemon.path, clock, FLAGS | CONSUME, number) as connection:
            connection.batch([arm(1, id, id=id, period=chance.choice((0, 3600000)))
                              for id in range(1, 41)])
            connection.credit(30)
            delivered = [connection.expiration().id for _ in range(30)]
            for id in delivered:
                # An acknowledged one, a cancelled one, one that is neither.
                op = chance.choice((ACK, CANCEL, REFRESH, None))
                if op is not None:
                    connection.request(Record(
                        op, RELATIVE if op == REFRESH else 0, id=id,
                        deadline=chance.randint(1, 9) * HOUR if op == REFRESH else 0))
            connection.batch([
                Record(ARM, chance.choice((0, RELATIVE)), id=chance.getrandbits(64) or 1,
                       deadline=chance.choice((2 ** 64 - 1, chance.randint(1, 99) * HOUR)),
                       cookie=chance.getrandbits(64), period=chance.choice((0, 0, 86400000)))
                for _ in range(300)])
    attach(daemon.path, "empty", FLAGS).close()
    with attach(daemon.path, "dropped", FLAGS) as connection:
        assert connection.request(arm(HOUR, id=1)).status == 0
        assert connection.request(Record(DROP)).status == 0


def deliveries(daemon, name):
    """Returns what a consumer gets of all that is due, and the timers that are left."""
    with attach(daemon.path, name, FLAGS | CONSUME | EXISTING, CLOCKS[name]) as connection:
        connection.credit(1000)
        due = []
        while not connection.quiet(0.2):
            due.append(connection.expiration())
        deadlines = [record.deadline for record in due]
        assert deadlines == sorted(deadlines)
        # A periodic timer's delivery that waits for its ACK is due at the start. Timers
        # of the same deadline have no order.
        due = sorted(record if record.flags & LATE else record._replace(deadline=0)
                     for record in due)
        return due, sorted((row.id, row.cookie, row.period, row.deadline)
                           for row in connection.scan(100))


def test_export_import_export():
    with Disk() as disk, tempfile.TemporaryDirectory() as folder:
        with disk.daemon() as daemon:
            fill(daemon, random.Random(SEED))
            kill(daemon)
        first = journal("export", disk.folder)
        assert first == journal("export", disk.folder)
        names = [row["queue"] for row in parsed(first) if "clock" in row]
        assert names == sorted([*CLOCKS, "empty"]), names
        timers = [row for row in parsed(first) if "id" in row]
        assert any(row["cancelled"] for row in timers), "none is cancelled"
        assert any(row["delivered"] and not row["cancelled"] for row in timers)
        target = os.path.join(folder, "new")
        assert journal("import", target, stdin=first) == \
            "queues 4, timers %d\n" % len(timers)
        assert os.stat(target).st_mode & 0o777 == 0o700
        assert journal("export", target) == first
        assert journal("check", target) == \
            "thread 0: OK: queues 4, timers %d\n" % len(timers)
        assert not [name for name in os.listdir(target) if name.endswith(".new")]


def test_the_imported_one_delivers_the_same():
    with Disk() as disk, tempfile.TemporaryDirectory() as folder:
        with disk.daemon() as daemon:
            fill(daemon, random.Random(SEED))
            kill(daemon)
        target = os.path.join(folder, "new")
        journal("import", target, stdin=journal("export", disk.folder))
        found = []
        for where in (disk, Disk(folder=target)):
            with where.daemon() as daemon:
                found.append([deliveries(daemon, name) for name in CLOCKS])
        for (due, left), (due_again, left_again) in zip(*found):
            assert len(due) >= 10, due
            assert due == due_again, set(due) ^ set(due_again)
            assert left == left_again


def test_after_a_clean_stop():
    with Disk() as disk, tempfile.TemporaryDirectory() as folder:
        with disk.daemon() as daemon, attach(daemon.path, "queue", FLAGS) as connection:
            assert connection.request(arm(HOUR, 5, id=7)).status == 0
        lines = journal("export", disk.folder)
        assert parsed(lines)[0]["clean"] is True, lines
        journal("import", folder, stdin=lines)
        assert journal("export", folder) == lines


def test_one_queue_of_several():
    with Disk() as disk:
        with disk.daemon() as daemon:
            for name in ("one", "two"):
                with attach(daemon.path, name, FLAGS) as connection:
                    assert connection.request(arm(HOUR, 5, id=7)).status == 0
        lines = journal("export", disk.folder, "--queue", "two")
        assert [row.get("queue") for row in parsed(lines)] == [None, "two", "two"], lines
        assert journal("export", disk.folder, "--queue", "three") == ""


def head(thread=0, boot="0" * 32, realtime=10 ** 18, monotonic=10 ** 12,
         boottime=2 * 10 ** 12, **more):
    return {"journal": 1, "thread": thread, "boot_id": boot, "clean": True,
            "realtime_ns": str(realtime), "monotonic_ns": str(monotonic),
            "boottime_ns": str(boottime), **more}


def queue(name, clock="realtime", **more):
    return {"queue": name, "number": str(zlib.crc32(name.encode()) + 1), "clock": clock, "uid": os.getuid(), **more}


def timer(name, number, deadline, **more):
    return {"queue": name, "id": str(number), "deadline_ns": str(deadline), "cookie": "3",
            "period_ms": 0, "delivered": False, "cancelled": False, **more}


def text(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_two_machines_in_one():
    """Deadlines of the second one move, as if it had been started anew."""
    with tempfile.TemporaryDirectory() as folder:
        journal("import", folder, stdin=text(
            head(), queue("near"), timer("near", 1, 10 ** 18 + 5),
            head(boot="1" * 32, realtime=10 ** 18 + 100, monotonic=7000, boottime=9000),
            *[row for clock in CLOCKS for row in (
                queue(clock, clock), timer(clock, 1, 20000), timer(clock, 2, 2 ** 64 - 1))]))
        rows = parsed(journal("export", folder))
        assert rows[0]["realtime_ns"] == str(10 ** 18 + 100), rows[0]
        # On MONOTONIC the time between the two does not count.
        assert rows[0]["monotonic_ns"] == str(10 ** 12), rows[0]
        assert rows[0]["boottime_ns"] == str(2 * 10 ** 12 + 100), rows[0]
        found = {(row["queue"], row["id"]): int(row["deadline_ns"])
                 for row in rows if "id" in row}
        assert found == {
            ("near", "1"): 10 ** 18 + 5, ("realtime", "1"): 20000,
            # 13 us were left on MONOTONIC, and are.
            ("monotonic", "1"): 10 ** 12 + 13000,
            # On BOOTTIME 11 us were left, 100 ns later.
            ("boottime", "1"): 2 * 10 ** 12 + 11000 + 100,
            **{(clock, "2"): 2 ** 64 - 1 for clock in CLOCKS}}, found


def test_two_directories_of_one_start():
    """The clocks are the same ones, so that no deadline moves."""
    with tempfile.TemporaryDirectory() as folder:
        boot = "1" * 32
        journal("import", folder, stdin=text(
            head(boot=boot), queue("near", "monotonic"), timer("near", 1, 10 ** 12 + 500),
            # The wall clock was set meanwhile.
            head(boot=boot, realtime=10 ** 18 + 7, monotonic=10 ** 12 + 100,
                 boottime=2 * 10 ** 12 + 100),
            *[row for clock in CLOCKS for row in (
                queue(clock, clock), timer(clock, 1, 3 * 10 ** 12))]))
        rows = parsed(journal("export", folder))
        assert rows[0]["realtime_ns"] == str(10 ** 18 + 7), rows[0]
        assert rows[0]["monotonic_ns"] == str(10 ** 12 + 100), rows[0]
        assert rows[0]["boottime_ns"] == str(2 * 10 ** 12 + 100), rows[0]
        found = {row["queue"]: int(row["deadline_ns"]) for row in rows if "id" in row}
        assert found == {"near": 10 ** 12 + 500, **dict.fromkeys(CLOCKS, 3 * 10 ** 12)}, found


def test_threads():
    with tempfile.TemporaryDirectory() as folder:
        lines = text(head(), queue("a"), timer("a", 1, 5),
                     head(thread=3), queue("b"), timer("b", 1, 5))
        journal("import", folder, stdin=lines)
        assert journal("check", folder) == \
            "thread 0: OK: queues 1, timers 1\nthread 3: OK: queues 1, timers 1\n"
        with Disk(folder=folder).daemon(threads=4) as daemon:
            for name in "ab":
                with attach(daemon.path, name, FLAGS | EXISTING, 0) as connection:
                    assert len(connection.scan(9)) == 1


def test_lines_that_are_refused():
    good = [head(), queue("q"), timer("q", 1, 5)]
    cases = [
        (1, "", "there is no queue"),
        (1, text(good[0]), "there is no queue"),
        (1, "{\n", "line 1: "),
        (1, "\0\n", "line 1: "),
        (1, "[]\n", "line 1: "),
        (1, "\x1b[31m\n", "line 1: "),
        (1, "[" * 70000 + "\n", "line 1: "),
        (1, '{"queue": "a", "queue": "b"}\n', "line 1: duplicate"),
        (1, text(good[1]), "line 1: a queue comes behind the line of its journal"),
        (1, text(good[0], good[2]), "line 2: a timer comes behind the line of its queue"),
        (1, text(*good, good[1]), "line 4: the queue is there twice"),
        (1, text(*good, {**good[1], "queue": "r"}),
         "line 4: the number is that of another queue"),
        (1, text(head(), queue("q", number="0")), "line 2: number: "),
        (1, text(head(), queue("q", number=1)), "line 2: "),
        (1, text(head(journal=2)), "line 1: journal: expected 1"),
        # No daemon has as many.
        (1, text(head(thread=64)), "line 1: thread: expected a number below 64"),
        (1, text(head(thread=256)), "line 1: thread: "),
        (1, text(head(thread=-1)), "line 1: thread: "),
        (1, text(head(boot="0" * 31)), "line 1: boot_id: "),
        (1, text(head(boot="g" * 32)), "line 1: boot_id: "),
        (1, text(head(realtime=2 ** 63)), "line 1: a time after the year 2262"),
        (1, text(head(), queue("")), "line 2: queue: "),
        (1, text(head(), queue("a" * 25)), "line 2: queue: "),
        (1, text(head(), queue("a/b")), "line 2: queue: "),
        (1, text(head(), queue("q", "tai")), "line 2: clock: "),
        (1, text(head(), queue("q", uid=-1)), "line 2: uid: "),
        (1, text(head(), queue("q", uid=2 ** 32)), "line 2: uid: "),
        (1, text(head(), queue("q", more=1)), "line 2: "),
    ]
    for change in ({"id": "0"}, {"id": "-1"}, {"id": "1x"}, {"id": ""}, {"id": 1},
                   {"id": str(2 ** 64)}, {"deadline_ns": "1.5"}, {"cookie": " 1"},
                   {"period_ms": -1}, {"period_ms": 2 ** 32}, {"period_ms": "1"},
                   {"delivered": True}, {"cancelled": True}, {"delivered": 1}, {"more": 1}):
        cases.append((1, text(*good[:2], {**good[2], **change}), "line 3: "))
    for status, lines, words in cases:
        for is_new in (True, False):
            with tempfile.TemporaryDirectory() as folder:
                target = os.path.join(folder, "new") if is_new else folder
                said = journal("import", target, stdin=lines, status=status)
                assert words in said, (lines, said)
                assert said.endswith("\n") and said[:-1].isprintable(), said
                # Nothing is left.
                assert not os.listdir(folder), (lines, os.listdir(folder))


def test_a_directory_in_use():
    with Disk() as disk:
        with disk.daemon() as daemon:
            attach(daemon.path, "queue", FLAGS).close()
            before = set(disk.files())
            for what in ("check", "dump", "export", "import"):
                said = journal(what, disk.folder, status=1)
                assert "another process uses it" in said, said
            assert before <= set(disk.files())
        said = journal("import", disk.folder, stdin=text(head(), queue("q")), status=1)
        assert "it has a journal" in said, said
        assert "queues 1," in journal("check", disk.folder)
        os.chmod(disk.folder, 0o777)
        assert "others may write" in journal("check", disk.folder, status=1)
        journal("check", os.path.join(disk.folder, "none"), status=1)


def test_an_import_that_was_killed():
    """It is known as a part, no daemon starts from it, and the next one begins anew."""
    good = text(head(), queue("q"), timer("q", 1, 5))
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.Popen([EXPIRYCTL, "journal", "import", folder], text=True,
                               stdin=subprocess.PIPE)
        with run:
            run.stdin.write(text(head(), queue("lost"), *[
                timer("lost", number, 5) for number in range(1, 20001)]))
            run.stdin.flush()
            assert wait_for(lambda: any(name.endswith(".new") and name.startswith("checkpoint")
                                        for name in os.listdir(folder)))
            run.kill()
        for what in ("check", "export", "dump"):
            assert "an import was not completed: repeat it" in journal(what, folder, status=3)
        refused(Disk(folder=folder), "an import was not completed: repeat it")
        journal("import", folder, stdin=good)
        assert [row.get("queue") for row in parsed(journal("export", folder))] == \
            [None, "q", "q"]
        assert not [name for name in os.listdir(folder) if name.endswith(".new")]


def test_a_directory_without_a_journal():
    """One of a wrong path must not look like a good journal, or an empty one."""
    with tempfile.TemporaryDirectory() as folder:
        for what in ("check", "dump", "export"):
            assert journal(what, folder, status=1) == \
                "expiryctl: %s: there is no journal in it\n" % folder


def test_usage():
    for args in (("journal",), ("journal", "check"), ("journal", "mend", "/tmp"),
                 ("journal", "check", "/tmp", "x"),
                 ("--queue", "q", "journal", "check", "/tmp")):
        ctl(*args, status=2)


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def check_place(folder, path, offset, place, words):
    """Breaks a byte, and looks for the place in what check, dump and export say."""
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 0x10]))
    named = "%s at byte %d: %s" % (os.path.basename(path), place, words)
    for what in ("check", "dump", "export"):
        run = subprocess.run([EXPIRYCTL, "journal", what, folder], capture_output=True,
                             text=True, timeout=WAIT, check=False)
        assert run.returncode == DAMAGED, (what, offset, run)
        assert named in run.stderr, (what, offset, named, run.stderr)
        assert what != "export" or not run.stdout, run.stdout
    row = json.loads(subprocess.run(
        [EXPIRYCTL, "--json", "journal", "check", folder], capture_output=True, text=True,
        timeout=WAIT, check=False).stdout)
    assert row["file"] == os.path.basename(path) and row["offset"] == str(place), row
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(bytes([byte]))


def test_damage_at_each_place():
    """Each block in turn, of a segment and of a checkpoint, in its head and behind."""
    with Disk() as disk, tempfile.TemporaryDirectory() as folder:
        with disk.daemon() as daemon, attach(daemon.path, "queue", FLAGS) as connection:
            for number in range(1, 9):
                assert connection.request(arm(HOUR, number, id=number)).status == 0
        path = disk.files()[0]
        found = list(blocks(path))
        assert len(found) >= 9, found
        for place, size in found[:-1]:
            for offset in (8, 12, 16, size - 1):
                check_place(disk.folder, path, place + offset, place, "a bad block")
        assert "queues 1, timers 8" in journal("check", disk.folder)
        # Another version's.
        with open(path, "r+b") as file:
            file.seek(3)
            file.write(b"\x09")
        said = journal("check", disk.folder, status=DAMAGED)
        assert "at byte 0: another version's file" in said, said

        journal("import", folder, stdin=text(
            head(), queue("q"), *[timer("q", number, 5) for number in range(1, 20001)]))
        path = Disk(folder=folder).files("checkpoint")[0]
        found = list(blocks(path))
        assert len(found) >= 3, found
        for place, size in found:
            for offset in (8, 12, 16, size - 1):
                check_place(folder, path, place + offset, place, "a bad block")
        assert "timers 20000" in journal("check", folder)
        os.truncate(path, found[-1][0])
        said = journal("check", folder, status=DAMAGED)
        assert "at byte %d: a bad block" % found[-1][0] in said, said


def test_a_torn_end_is_cut():
    with Disk() as disk:
        with disk.daemon() as daemon, attach(daemon.path, "queue", FLAGS) as connection:
            for number in range(1, 9):
                assert connection.request(arm(HOUR, number, id=number)).status == 0
            kill(daemon)
        path = disk.files()[0]
        last = list(blocks(path))[-1]
        with open(path, "r+b") as file:
            file.seek(last[0] + 40)
            file.write(b"\xff" * 8)
        assert "queues 1, timers 7" in journal("check", disk.folder)


def seal(file, number, kind, records, lsn, durable=0):
    """Writes a block as the daemon does."""
    body = b"".join(records)
    size = (32 + len(body) + 4095) // 4096 * 4096
    rest = struct.pack("<IIQQ", size, len(records), lsn, durable) + \
        body.ljust(size - 32, b"\0")
    crc = crc32c(struct.pack("<Q", number << 8 | kind) + rest)
    file.write(struct.pack("<II", 0x014a5845, crc) + rest)


def make(name, uid, clock=1, mode=0x0a):
    return struct.pack("<BBBBI24s", 134, mode, clock, 0, uid, name)


def about(number, rows=0):
    return bytes(Record(JOURNAL_QUEUE, id=number, cookie=rows))


def mark(op, lsn, number, count):
    return struct.pack("<B7xQQQ", op, lsn, number, count)


def written(folder, first, checkpoint):
    """Writes a segment whose block 1 has records, and perhaps a checkpoint."""
    segment = struct.pack("<BBHIQ16s", 128, 1, 0, 4096, 1, b"b" * 16)
    clock = struct.pack("<BB6xQQQ", 132, 0, 10 ** 18, 10, 10)
    os.umask(0o077)
    with open(os.path.join(folder, "journal-00-%016x" % 1), "wb") as file:
        seal(file, 1, 0, [segment, clock], 0)
        seal(file, 1, 0, first, 1)
        file.write(bytes(1 << 20))
    if checkpoint:
        with open(os.path.join(folder, "checkpoint-00-%016x" % 2), "wb") as file:
            seal(file, 2, 1, [mark(130, 1, 1, 0), segment, clock, *checkpoint,
                              mark(131, 1, 1, len(checkpoint))], 1)


def test_a_queue_that_was_dropped_in_the_block_of_a_checkpoint():
    """Its name is that of a later one, which the checkpoint has."""
    uid = os.getuid()
    first = [about(1), make(b"name", uid), bytes(Record(ARM, id=1, deadline=7)),
             bytes(Record(135)), about(2), make(b"name", uid),
             bytes(Record(ARM, id=2, deadline=2 ** 63))]
    with tempfile.TemporaryDirectory() as folder:
        written(folder, first, [about(2), make(b"name", uid),
                                bytes(Record(5, id=2, deadline=2 ** 63))])
        assert journal("check", folder) == "thread 0: OK: queues 1, timers 1\n"
        with Disk(folder=folder).daemon() as daemon, \
                attach(daemon.path, "name", FLAGS | EXISTING) as connection:
            assert [row.id for row in connection.scan(9)] == [2]


def test_a_checkpoint_that_promises_more_rows_than_it_has():
    """A start takes no more memory for it."""
    uid = os.getuid()
    most = []
    for rows in 0, 1, 2 ** 30, 2 ** 64 - 1:
        with tempfile.TemporaryDirectory() as folder:
            written(folder, [about(1)], [about(2, rows), make(b"name", uid),
                                         bytes(Record(5, id=2, deadline=2 ** 63))])
            with Disk(folder=folder).daemon() as daemon, \
                    attach(daemon.path, "name", FLAGS | EXISTING) as connection:
                assert [row.id for row in connection.scan(9)] == [2]
                with open("/proc/%d/status" % daemon.process.pid) as status:
                    most += [int(line.split()[1]) for line in status
                             if line.startswith("VmHWM:")]
    assert max(most) - min(most) < 16 << 10, most


def test_records_that_no_daemon_writes():
    uid = os.getuid()
    for records, words in (
            ([about(1), make(b"a", uid), about(2), make(b"a", uid)],
             "a queue is there twice"),
            ([about(1), make(b"", uid)], "a record that no daemon writes"),
            ([about(1), make(b"a/b", uid)], "a record that no daemon writes"),
            ([about(1), make(b"a\0b", uid)], "a record that no daemon writes"),
            ([about(1), make(b"a", uid, clock=3)], "a record that no daemon writes"),
            ([about(1), make(b"a", uid, mode=0x08)], "a record that no daemon writes"),
            ([about(1), make(b"a", uid, mode=0x4a)], "a record that no daemon writes"),
            ([make(b"a", uid)], "a record that no daemon writes"),
            ([about(1), make(b"a", uid), bytes(Record(ARM, id=0))],
             "a record that no daemon writes"),
            ([about(1), make(b"a", uid), bytes(Record(CANCEL, id=0))],
             "a record that no daemon writes"),
            ([about(1), make(b"a", uid), bytes(Record(99, id=1))],
             "a record that no daemon writes")):
        with tempfile.TemporaryDirectory() as folder:
            written(folder, records, None)
            said = journal("check", folder, status=DAMAGED)
            assert said == "expiryctl: journal-00-%016x at byte 4096: %s\n" % (1, words), said
            # A start refuses what a check refuses.
            refused(Disk(folder=folder), "the queues of thread 0 cannot be made")


def test_dump():
    with Disk() as disk:
        with disk.daemon() as daemon, \
                attach(daemon.path, "queue", FLAGS | CONSUME) as connection:
            armed = connection.request(arm(HOUR, 5, id=7))
            assert connection.request(Record(CANCEL, id=7)).status == 0
        lines = journal("dump", disk.folder).splitlines()
        number = parsed(journal("export", disk.folder))[1]["number"]
        for words in ("segment 0000000000000001, thread 0, boot ", " clock realtime ",
                      "queue %s make queue clock monotonic mode 10 uid %d" %
                      (number, os.getuid()),
                      "queue %s arm id 7 deadline %d cookie 5 period 0" %
                      (number, armed.deadline), "queue %s cancel id 7 " % number,
                      ", the daemon stopped"):
            assert sum(words in line for line in lines) >= 1, (words, lines)
        assert all(line.startswith("journal-00-") for line in lines), lines


tap.main()
