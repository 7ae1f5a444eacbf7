#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Declared queues: files say which there are, what they are like and what changes."""

import errno
import os
import re
import subprocess

import tap
from client import (ACKING, BOOTTIME, CONSUME, DROP, DURABLE, HOUR, KEYED, MONOTONIC,
                    OBSERVE, REALTIME, Connection, Record, arm, attach,
                    wait_for)
from daemon import ENGINE, PROGRAM, Daemon
from durable import Disk, kill
from declared import (APP, OTHER, GROUP, THREADS, be, files, hello, said,
                      rows)

# ------------------------------------------------------------------------
# What a queue is


def test_they_are_there_from_the_start_and_stay():
    for threads in THREADS:
        with files() as at:
            for i in range(10):
                at.write("q%d" % i, mode=700 if i % 2 else 770,
                         owner=APP + i)
            with Daemon(at.config(), threads=threads) as daemon:
                wanted = {"q%d" % i: APP + i for i in range(10)}
                seen = rows(daemon)
                assert {name: row.uid for name, row in seen.items()} == wanted
                numbers = {row.number for row in seen.values()}
                attach(daemon.path, "q1", clock=REALTIME).close()
                assert wait_for(lambda: not rows(daemon)["q1"].connections)
                assert {row.number for row in rows(daemon).values()} == numbers
                assert "declared queues: 10" in daemon.log()


def kind(daemon, name):
    """A queue's clock, mode and limit, as root finds them out."""
    for clock in (REALTIME, MONOTONIC, BOOTTIME):
        for mode in (0, ACKING, KEYED, ACKING | KEYED):
            with Connection(daemon.path) as connection:
                if connection.hello(name, mode, clock).status:
                    continue
                more = {"id": 1} if mode & KEYED else {}
                connection.request(arm(HOUR, **more))
                stat = connection.stat()
                return clock, mode, stat.limit
    return None


def test_they_are_as_the_file_says():
    limit = 1 << 24
    table = {
        "": (REALTIME, 0, limit),
        "clock = monotonic\n": (MONOTONIC, 0, limit),
        "clock = boottime\nack = yes\n": (BOOTTIME, ACKING, limit),
        "clock = realtime\nkeyed = yes # by lease\n": (REALTIME, KEYED, limit),
        "keyed = yes\nack = yes\nlimit = 1000\n": (REALTIME, ACKING | KEYED,
                                                   1000),
        "keyed = yes\nkeyed = no\nack=no\n": (REALTIME, 0, limit),
        "layout = subtree\nslack = 10ms\n": (REALTIME, 0, limit),
        "layout = sorted\nslack = 0\nlimit = 1\n": (REALTIME, 0, 1),
        "layout = radix\n": (REALTIME, 0, limit),
        "slack = 3600s\n": (REALTIME, 0, limit),
        "slack = 3600000000000ns\n": (REALTIME, 0, limit),
    }
    with files() as at:
        for i, text in enumerate(table):
            at.write("q%d" % i, "owner = %d\n%s" % (APP, text))
        with Daemon(at.config()) as daemon:
            for i, (text, wanted) in enumerate(table.items()):
                assert kind(daemon, "q%d" % i) == wanted, text


def test_a_queue_may_have_the_most_timers_in_each_layout():
    most = 1 << 30
    with files() as at:
        for layout in ("sorted", "subtree", "radix"):
            at.write(layout, "owner = 0\nlayout = %s\nlimit = %d\n" % (layout, most))
        with Daemon(at.config("timers_per_queue = %d\n" % most)) as daemon:
            for layout in ("sorted", "subtree", "radix"):
                assert kind(daemon, layout) == (REALTIME, 0, most), layout


def heap_pages(daemon, name):
    with attach(daemon.path, name) as queue:
        queue.batch([arm(HOUR - i * 7919 % 600) for i in range(600)])
        return queue.stat().pages_heap


def test_the_heap_is_laid_out_as_the_file_says():
    # Of sorted pages one is for what was armed last, one for the sweep. Radix pages
    # begin after eight that are not for chains.
    pages = {"sorted": range(5, 9), "subtree": range(2, 5),
             "radix": range(9, 40)}
    with files() as at:
        for layout in pages:
            at.write(layout, layout=layout, clock="monotonic")
        at.write("neither", clock="monotonic")
        for default in pages:
            with Daemon(at.config("layout = %s\n" % default)) as daemon:
                for layout in pages:
                    assert heap_pages(daemon, layout) in pages[layout], layout
                assert heap_pages(daemon, "neither") in pages[default], default


def test_owner_and_group_by_name():
    with files() as at:
        at.write("one", "owner = daemon\n")
        with Daemon(at.config()) as daemon:
            assert rows(daemon)["one"].uid == 1


# ------------------------------------------------------------------------
# Files


def check(at, config=""):
    path = os.path.join(os.path.dirname(at.folders["etc"]), "conf")
    with open(path, "w", encoding="utf-8") as file:
        file.write(at.config(config))
    return subprocess.run([PROGRAM, "--check-config", "--config", path],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)


BAD = {
    "owner = nosuchuser": "1: owner: 'nosuchuser' is not a user",
    "owner = 4294967295": "1: owner: '4294967295' is not a user",
    "owner =": "1: owner: '' is not a user",
    "\n\nowner = 1\ngroup = nosuch": "4: group: 'nosuch' is not a group",
    "owner = 1\nmode = 8": "2: mode: '8' is not three octal digits",
    "owner = 1\nmode = 70": "2: mode: '70' is not three octal digits",
    "owner = 1\nmode = 1777": "2: mode: '1777' is not three octal digits",
    "owner = 1\nmode = rwx": "2: mode: 'rwx' is not three octal digits",
    "owner = 1\nclock = tai": "2: clock: 'tai' is not realtime, monotonic",
    "owner = 1\nkeyed = maybe": "2: keyed: 'maybe' is not yes or no",
    "owner = 1\nack = 1": "2: ack: '1' is not yes or no",
    "owner = 1\ndurable = 1": "2: durable: '1' is not yes or no",
    "owner = 1\ndurable = yes": " durable needs keyed = yes and ack = yes",
    "owner = 1\nkeyed = yes\ndurable = yes": " durable needs keyed = yes and ack",
    "owner = 1\nlimit = 0": "2: limit: '0' is not in 1 to 1073741824",
    "owner = 1\nlimit = 1073741825": "2: limit: '1073741825' is not in 1",
    "owner = 1\nlimit = many": "2: limit: 'many' is not in 1",
    "owner = 1\nslack = 10": "2: slack: '10' is not a time with its unit",
    "owner = 1\nslack = ms": "2: slack: 'ms' is not a time with its unit",
    "owner = 1\nslack = 3601s": "2: slack: '3601s' is not a time",
    "owner = 1\nslack = 3600000000001ns": "2: slack: '3600000000001ns' is not a time",
    "owner = 1\nslack = 18446744073709551616ns": "2: slack: ",
    "owner = 1\nlayout = round": "2: layout: 'round' is not radix, sorted or subtree",
    "owner = 1\nname = x": "2: 'name' is not a key",
    "owner = 1\n[Queue]": "2: '[Queue]' is not 'key = value'",
    "mode = 700": " owner is missing",
    "owner = 1 " + 1100 * "x": "1: line too long",
}


def test_faults_are_told_each_with_file_and_line():
    with files() as at:
        at.write("good", mode=700)
        done = check(at)
        assert (done.returncode, done.stdout) == (
            0, "expiryd: the configuration is good\n"), done
        names = {}
        for i, (text, line) in enumerate(BAD.items()):
            names["q%d" % i] = line
            at.write("q%d" % i, text)
        at.write("two", "ack = 2\nkeyed = 2\nowner = 1\n")
        at.write("not a name", mode=700)
        at.write("n" * 25, mode=700)
        os.mkfifo(at.path("pipe"))
        os.mkdir(at.path("folder"))
        done = check(at)
        assert done.returncode == 2, done
        for name, line in names.items():
            assert "%s:%s" % (at.path(name), line) in done.stdout, \
                (name, line, done.stdout)
        for line in (at.path("two") + ":1: ack", at.path("two") + ":2: keyed",
                     at.path("not a name") + ": a queue's name",
                     at.path("n" * 25) + ": a queue's name",
                     at.path("pipe") + ": is not a file",
                     at.path("folder") + ": is not a file"):
            assert line in done.stdout, (line, done.stdout)
        assert "good.conf" not in done.stdout


def test_a_fault_costs_its_queue_alone_and_keeps_the_name():
    for threads in THREADS:
        with files() as at:
            at.write("good", mode=777, clock="monotonic")
            at.write("bad", "owner = nosuchuser\nmode = 777\n")
            with Daemon(at.config(), threads=threads) as daemon:
                assert sorted(rows(daemon)) == ["good"]
                line = said(daemon, at.path("bad") + ":1:", "nosuchuser")
                assert line and daemon.log().count("nosuchuser") == 1, \
                    daemon.log()
                # Nobody gets it meanwhile.
                assert hello(daemon.path, "bad") == "EACCES"
                assert said(daemon, "queue bad", at.path("bad"), "fault")
                at.write("bad", mode=700, clock="monotonic")
                daemon.reload()
                assert hello(daemon.path, "bad") == 0
                assert rows(daemon)["bad"].uid == APP


def test_a_file_hides_those_of_its_name_further_on():
    with files() as at:
        at.write("a", where="lib", owner=1)
        at.write("a", where="run", owner=2)
        at.write("a", where="etc", owner=3)
        at.write("b", where="lib", owner=1)
        at.write("b", where="run", owner=2)
        at.write("c", where="lib", owner=1)
        at.write("masked", where="lib", owner=1)
        os.symlink("/dev/null", at.path("masked", "run"))
        at.write("emptied", where="lib", owner=1)
        at.write("emptied", where="etc")
        # What is hidden may be wrong.
        at.write("d", "nonsense\n", where="lib")
        at.write("d", where="etc", owner=3)
        with open(at.folders["etc"] + "/e.conf.dpkg-old", "w",
                  encoding="utf-8") as file:
            file.write("nonsense\n")
        at.write(".hidden", "nonsense\n")
        assert check(at).returncode == 0, check(at)
        with Daemon(at.config()) as daemon:
            owners = {"a": 3, "b": 2, "c": 1, "d": 3}

            def seen():
                return {name: row.uid for name, row in rows(daemon).items()}
            assert seen() == owners
            # A queue that is dropped is made again from the same file.
            for name in owners:
                with attach(daemon.path, name, clock=REALTIME) as queue:
                    assert queue.request(Record(DROP)).status == 0
                assert seen() == owners


# In a mount namespace, so that the machine's own files stay as they are.
SYSTEMS = """
mount -t tmpfs none "$1" && mkdir -p "$2" && echo nonsense >"$2/one.conf" ||
	exit 99
shift 2
exec "$@"
"""


def check_systems(base, folder, *options):
    """What --check-config says where the system has a faulty file in @folder."""
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", SYSTEMS, "sh", base, folder, PROGRAM,
         "--check-config", *options], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        check=False)
    if done.returncode not in (0, 2):
        raise tap.Skip("no mount namespace: " + done.stdout)
    return done


def test_the_systems_folders_are_for_the_systems_settings():
    tap.need_root()
    for base, folder in (("/etc", "/etc/expiry/queues.d"),
                         ("/run", "/run/expiry/queues.d"),
                         ("/usr/local/lib", "/usr/local/lib/expiry/queues.d")):
        done = check_systems(base, folder)
        assert done.returncode == 2, (folder, done)
        assert folder + "/one.conf:1: 'nonsense'" in done.stdout, done
        # A daemon with settings of its own has no queues of the system's.
        for option in ("--config", "/dev/null"), ("--socket", "/tmp/socket"):
            done = check_systems(base, folder, *option)
            assert done.returncode == 0, (folder, done)


# ------------------------------------------------------------------------
# Changes


def test_a_reload_adds_and_changes_and_forgets():
    tap.need_root()
    for threads in THREADS:
        with files() as at:
            at.write("stays", mode=700, clock="monotonic")
            at.write("goes", mode=770, group=GROUP, clock="monotonic")
            with Daemon(at.config(), threads=threads) as daemon:
                number = rows(daemon)["stays"].number
                assert rows(daemon)["goes"].access == 0o100770
                assert be("group", hello, daemon.path, "goes") == 0
                at.write("stays", mode=707, clock="monotonic", owner=OTHER)
                at.write("comes", mode=700, clock="monotonic")
                at.remove("goes")
                daemon.reload()
                seen = rows(daemon)
                assert {name: row.uid for name, row in seen.items()} == \
                    {"stays": OTHER, "goes": APP, "comes": APP}
                assert seen["stays"].number == number
                assert (seen["stays"].access, seen["goes"].access) == \
                    (0o100707, 0o700), seen
                assert be("owner", hello, daemon.path, "stays") == 0
                assert said(daemon, "queue stays was uid %d's" % APP,
                            "uid %d's now" % OTHER), daemon.log()
                # Not declared any more: as one that its owner made.
                assert be("group", hello, daemon.path, "goes") == "EACCES"
                assert be("owner", hello, daemon.path, "goes") == 0
                assert said(daemon, "queue goes is not declared any more",
                            at.path("goes")), daemon.log()
                at.write("goes", mode=770, group=GROUP, clock="monotonic")
                daemon.reload()
                assert be("group", hello, daemon.path, "goes") == 0


def test_nothing_is_said_of_what_has_not_changed():
    with files() as at:
        at.write("one", mode=770, limit=5, slack="1ms", layout="subtree")
        with Daemon(at.config()) as daemon:
            daemon.reload()
            daemon.reload()
            assert not re.search(r"queue one", daemon.log()), daemon.log()


def test_a_reload_leaves_no_descriptor_open():
    with files() as at:
        at.write("good", mode=700)
        at.write("wrong", clock="none")
        os.symlink("/dev/null", at.path("masked"))
        os.mkfifo(at.path("pipe"))
        with Daemon(at.config()) as daemon:
            held = "/proc/%d/fd" % daemon.process.pid
            before = len(os.listdir(held))
            for _ in range(3):
                daemon.reload()
            assert len(os.listdir(held)) == before


def test_what_cannot_change_waits_for_drop():
    with files() as at:
        at.write("one", clock="monotonic", limit=10)
        with Daemon(at.config()) as daemon:
            for keys, words in (
                    ({"clock": "boottime", "limit": 10}, "clock"),
                    ({"clock": "monotonic", "limit": 10, "keyed": "yes",
                      "ack": "yes"}, "keyed, ack"),
                    ({"clock": "monotonic", "limit": 12}, "limit"),
                    ({"clock": "monotonic"}, "limit"),
                    ({"clock": "monotonic", "slack": "1s", "limit": 10},
                     "slack"),
                    ({"clock": "monotonic", "layout": "subtree", "limit": 10,
                      "slack": "1s"}, "layout")):
                at.write("one", **keys)
                daemon.reload()
                assert said(daemon, "queue one:", at.path("one"),
                            "of %s waits" % words), (keys, daemon.log())
                with attach(daemon.path, "one") as queue:
                    assert queue.stat().limit == 10
            at.write("one", clock="boottime", keyed="yes", limit=12)
            daemon.reload()
            with attach(daemon.path, "one") as queue:
                assert queue.request(Record(DROP)).status == 0
                assert queue.request(arm(HOUR)).status == -errno.ENOENT
            assert kind(daemon, "one") == (BOOTTIME, KEYED, 12)
            assert rows(daemon)["one"].uid == APP


def test_a_fault_in_a_reload_leaves_the_queue_as_it_was():
    tap.need_root()
    with files() as at:
        at.write("one", mode=770, group=GROUP, clock="monotonic")
        with Daemon(at.config()) as daemon:
            at.write("one", mode=999)
            daemon.reload()
            assert said(daemon, at.path("one") + ":2: mode")
            assert be("group", hello, daemon.path, "one") == 0
            # And is no way to lose the name.
            with attach(daemon.path, "one") as queue:
                assert queue.request(Record(DROP)).status == 0
            assert hello(daemon.path, "one") == "EACCES"


def hold(path, name, flags, ready, ends):
    """Attach, say so, and return how it ends."""
    with attach(path, name, flags) as queue:
        os.write(ready, b"x")
        queue.ended()
        os.write(ends, b"x")
        return True


def test_who_loses_the_right_is_ended():
    tap.need_root()
    def less(mode):
        return lambda at: at.write("one", mode=mode, group=GROUP,
                                   clock="monotonic")
    # Producing is not enough for a consumer or an observer; the file goes.
    for who, flag, threads, change in (
            ("others", CONSUME, 1, less(776)),
            ("others", OBSERVE, 1, less(773)),
            ("group", CONSUME, 4, lambda at: at.remove("one"))):
        with files() as at:
            at.write("one", mode=777, group=GROUP, clock="monotonic")
            with Daemon(at.config(), threads=threads) as daemon:
                ready, say = os.pipe()
                held = os.fork()
                if not held:
                    try:
                        be(who, hold, daemon.path, "one", flag, say, say)
                        os._exit(0)
                    except BaseException:
                        os._exit(1)
                assert os.read(ready, 1) == b"x"
                with attach(daemon.path, "one") as root:
                    change(at)
                    daemon.reload()
                    assert os.waitpid(held, 0)[1] == 0
                    assert said(daemon, "uid %d ended" % OTHER, "rights to the queue")
                    assert root.request(arm(HOUR)).status == 0


# ------------------------------------------------------------------------
# Names that were taken before


def squat(path, count, flags=0):
    with attach(path, "sessions", flags) as queue:
        return [queue.request(arm(HOUR, id=i + 1 if flags & KEYED else 0)).status
                for i in range(count)]


def test_a_name_that_was_taken_before_its_file_came():
    tap.need_root()
    for threads in THREADS:
        with files() as at, Daemon(at.config("timers_per_user = 5\n"),
                                   threads=threads) as daemon:
            assert be("others", squat, daemon.path, 5) == [0] * 5
            at.write("sessions", clock="monotonic", mode=700)
            daemon.reload()
            assert said(daemon, "queue sessions was uid %d's" % OTHER,
                        "timers in it: 5"), daemon.log()
            assert be("others", hello, daemon.path, "sessions") == "EACCES"
            # They are charged to the new owner alone.
            assert be("owner", squat, daemon.path, 1) == [-errno.EDQUOT]

            def others_own():
                with attach(daemon.path, "others") as queue:
                    return [queue.request(arm(HOUR)).status
                            for _ in range(6)]
            assert be("others", others_own) == [0] * 5 + [-errno.EDQUOT]


def test_the_old_owner_is_not_charged_any_more():
    with files() as at, Daemon(at.config("timers_per_user = 5\n"
                                         "queues_per_user = 2\n")) as daemon, \
            attach(daemon.path, "sessions") as root:
        assert [r.status for r in root.batch([arm(HOUR)] * 5)] == [0] * 5
        at.write("sessions", clock="monotonic", mode=700)
        daemon.reload()
        assert rows(daemon)["sessions"].uid == APP
        with attach(daemon.path, "one") as one, attach(daemon.path, "two"):
            assert [r.status for r in one.batch([arm(HOUR)] * 6)] == \
                [0] * 5 + [-errno.EDQUOT]


def test_a_name_that_was_taken_for_another_kind_of_queue():
    tap.need_root()
    with files() as at, Daemon(at.config()) as daemon:
        assert be("others", squat, daemon.path, 1, KEYED) == [0]
        at.write("sessions", clock="monotonic", mode=700)
        daemon.reload()
        assert said(daemon, "queue sessions was made by uid %d" % OTHER,
                    at.path("sessions")), daemon.log()
        assert rows(daemon)["sessions"].uid == OTHER
        assert be("owner", hello, daemon.path, "sessions") == "EACCES"
        with attach(daemon.path, "sessions", KEYED) as root:
            assert root.request(Record(DROP)).status == 0
        assert rows(daemon)["sessions"].uid == APP
        assert be("owner", hello, daemon.path, "sessions") == 0


DURABLE_KEYS = {"keyed": "yes", "ack": "yes", "durable": "yes", "mode": 777,
                "clock": "monotonic"}


def test_durable_ones_outlive_the_daemon():
    """Each is in the thread that its journal is in, whatever files came and went."""
    flags = KEYED | ACKING
    names = ["q%d" % number for number in range(8)]
    for threads in THREADS:
        with files() as at, Disk() as disk:
            disk.config = at.config()
            for name in names:
                at.write(name, **DURABLE_KEYS)
            with disk.daemon(threads=threads) as daemon:
                for name in names:
                    # A client need not ask for it.
                    with attach(daemon.path, name, flags) as queue:
                        assert queue.request(arm(HOUR, id=7)).status == 0
                kill(daemon)
            # The files of half of them are gone, and others come before them.
            for number, name in enumerate(names):
                if number % 2:
                    at.remove(name)
                at.write("a%d" % number, clock="monotonic")
            with disk.daemon(threads=threads) as daemon:
                found = rows(daemon)
                assert {name: found[name].armed for name in names} == \
                    dict.fromkeys(names, 1), found
                for number, name in enumerate(names):
                    assert bool(found[name].access & 0x8000) == (number % 2 == 0), found
                with attach(daemon.path, names[0], flags) as queue:
                    assert queue.request(Record(DROP)).status == 0
                kill(daemon)
            with disk.daemon(threads=threads) as daemon:
                found = rows(daemon)
                assert found[names[0]].armed == 0 and found[names[2]].armed == 1, found
                with attach(daemon.path, names[0], flags | DURABLE):
                    pass


def test_a_durable_queue_is_made_again_as_its_file_says():
    """Its limit and layout are not in the journal. A limit that is too low by now is no
    reason to lose timers, or not to start."""
    pages = {"sorted": range(5, 9), "radix": range(9, 40)}
    for layout in pages:
        with files() as at, Disk() as disk:
            disk.config = at.config()
            at.write("one", limit=600, layout=layout, slack="1ms", **DURABLE_KEYS)
            at.write("two", limit=700, **DURABLE_KEYS)
            with disk.daemon() as daemon:
                with attach(daemon.path, "one", KEYED | ACKING) as queue:
                    queue.batch([arm(HOUR - i * 7919 % 600, id=i + 1) for i in range(600)])
                kill(daemon)
            for limit, wanted in ((600, 600), (10, 600), (800, 800)):
                at.write("one", limit=limit, layout=layout, **DURABLE_KEYS)
                with disk.daemon() as daemon:
                    with attach(daemon.path, "one", KEYED | ACKING) as queue:
                        stat = queue.stat()
                        assert (stat.armed, stat.limit) == (600, wanted), (limit, stat)
                        assert stat.pages_heap in pages[layout], (layout, stat)
                    assert ("queue one has 600 timers" in daemon.log()) == (limit == 10)
                    with attach(daemon.path, "two", KEYED | ACKING) as queue:
                        assert queue.stat().limit == 700
                    kill(daemon)


def test_a_durable_queue_s_owner_changes():
    with files() as at, Disk() as disk:
        disk.config = at.config()
        at.write("one", **DURABLE_KEYS)
        with disk.daemon() as daemon:
            at.write("one", **{**DURABLE_KEYS, "owner": OTHER})
            daemon.reload()
            assert rows(daemon)["one"].uid == OTHER
            at.remove("one")
        with disk.daemon() as daemon:
            assert rows(daemon)["one"].uid == OTHER


def test_a_durable_queue_without_a_journal():
    with files() as at:
        at.write("one", **DURABLE_KEYS)
        at.write("two", clock="monotonic")
        with Daemon(at.config()) as daemon:
            assert said(daemon, "queue one cannot be made", at.path("one"),
                        "durable needs journal"), daemon.log()
            assert list(rows(daemon)) == ["two"]
            assert hello(daemon.path, "one", KEYED | ACKING) == "ENOTSUP"
            check = subprocess.run(
                [PROGRAM, "--check-config", "--config", daemon.config_path],
                capture_output=True, text=True, check=False)
            assert check.returncode and "durable needs journal" in check.stderr, check


def test_durable_waits_for_drop():
    with files() as at, Disk() as disk:
        disk.config = at.config()
        keys = {**DURABLE_KEYS, "durable": "no"}
        at.write("one", **keys)
        with disk.daemon() as daemon:
            at.write("one", **DURABLE_KEYS)
            daemon.reload()
            assert said(daemon, "queue one:", "of durable waits"), daemon.log()
            with attach(daemon.path, "one", KEYED | ACKING) as queue:
                assert not queue.stat().durable
                assert queue.request(Record(DROP)).status == 0
            with attach(daemon.path, "one", KEYED | ACKING | DURABLE) as queue:
                assert queue.stat().durable
            at.write("one", **keys)
            daemon.reload()
            with attach(daemon.path, "one", KEYED | ACKING) as queue:
                assert queue.stat().durable
                assert queue.request(Record(DROP)).status == 0
            with attach(daemon.path, "one", KEYED | ACKING) as queue:
                assert not queue.stat().durable


def test_a_drop_leaves_the_name_to_its_file():
    tap.need_root()
    for threads in THREADS:
        with files() as at:
            at.write("sessions", mode=700, clock="monotonic")
            with Daemon(at.config(), threads=threads) as daemon:
                def drop():
                    with attach(daemon.path, "sessions") as queue:
                        queue.request(arm(HOUR))
                        return queue.request(Record(DROP)).status
                for _ in range(20):
                    assert be("owner", drop) == 0
                    assert be("others", hello, daemon.path, "sessions") == \
                        "EACCES"
                row = rows(daemon)["sessions"]
                assert row.uid == APP and row.armed == 0, row


# ------------------------------------------------------------------------
# Limits


def test_limits_stand():
    with files() as at:
        for i in range(5):
            at.write("q%d" % i, clock="monotonic", limit=100)
        for config, count, word in (
                ("timers_per_queue = 10\n", 5, None),
                ("queues = 3\n", 3, "limit queues is"),
                ("queues_per_user = 2\n", 2, "limit queues_per_user")):
            with Daemon(at.config(config)) as daemon:
                made = set(rows(daemon))
                assert len(made) == count, (config, made)
                if not word:
                    with attach(daemon.path, "q0") as queue:
                        assert queue.stat().limit == 10
                        assert [r.status for r in
                                queue.batch([arm(HOUR)] * 11)] == \
                            [0] * 10 + [-errno.ENOSPC]
                    continue
                assert daemon.log().count(word) == 5 - count, daemon.log()
                # A client may try again what could not be made at the start.
                errors = {hello(daemon.path, name) for name in
                          {"q%d" % i for i in range(5)} - made}
                assert errors == {"EDQUOT" if "user" in word else "ENOSPC"}


def test_the_store_has_them_by_their_owner():
    if ENGINE != "kernel":
        raise tap.Skip("the kernel engine's")
    with files() as at:
        at.write("one", clock="monotonic")
        daemon = Daemon(at.config())
        try:
            assert daemon.wait_ready(), daemon.log()
            assert wait_for(lambda: daemon.manager.names() == ["one@%d" % APP])
            at.write("one", clock="monotonic", owner=OTHER)
            daemon.reload()
            assert wait_for(lambda: daemon.manager.names() ==
                            ["one@%d" % OTHER]), daemon.manager.names()
            with attach(daemon.path, "one") as queue:
                assert queue.request(arm(HOUR)).status == 0
            assert daemon.end() == 0
            store = daemon.manager.take_store()
        finally:
            daemon.remove()
        at.write("one", clock="monotonic", owner=APP)
        with Daemon(at.config(), stored=store) as daemon:
            row = rows(daemon)["one"]
            assert (row.uid, row.armed) == (APP, 1), row
        for _, fd in store:
            os.close(fd)


if __name__ == "__main__":
    tap.main(above_the_engine=(
        test_owner_and_group_by_name,
        test_faults_are_told_each_with_file_and_line,
        test_a_fault_costs_its_queue_alone_and_keeps_the_name,
        test_a_file_hides_those_of_its_name_further_on,
        test_the_systems_folders_are_for_the_systems_settings,
        test_nothing_is_said_of_what_has_not_changed,
        test_what_cannot_change_waits_for_drop,
        test_a_fault_in_a_reload_leaves_the_queue_as_it_was,
        test_who_loses_the_right_is_ended))
