#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Declared queues: files say which there are, and who may do what with them."""

import contextlib
import errno
import json
import os
import re
import subprocess
import tempfile

import tap
from client import (ACK, ACKING, ARM, BOOTTIME, CANCEL, CLEAR, CONSUME, DROP,
                    EXISTING, HOUR, KEYED, MONOTONIC, OBSERVE, QUERY, REALTIME,
                    REFRESH, SCAN, STAT, Closed, Connection, Record, arm,
                    attach, wait_for)
from daemon import ENGINE, PROGRAM, Daemon
from listing import listing

LOOK, PRODUCE, TAKE = 4, 2, 1
NO_GROUP = 2**32 - 1
APP, OTHER, GROUP = 4101, 4102, 4201
THREADS = (1, 4)

# Whoever connects: user, group, supplementary groups.
PEOPLE = {
    "owner": (APP, 4301, []),
    "group": (OTHER, GROUP, []),
    "supplementary": (OTHER, 4301, [4302, GROUP, 4303]),
    "others": (OTHER, 4301, [4302]),
    "root": (0, 0, []),
}


def be(who, function, *args):
    """What @function() returns as JSON, in a child that is one of PEOPLE, or has
    those three itself."""
    uid, gid, groups = PEOPLE[who] if isinstance(who, str) else who
    end, start = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.setgroups(groups)
            os.setgid(gid)
            os.setuid(uid)
            os.write(start, json.dumps(function(*args)).encode())
            os._exit(0)
        except BaseException as problem:    # to the parent with it
            os.write(start, json.dumps("%r" % problem).encode())
            os._exit(1)
    os.close(start)
    with os.fdopen(end, "rb") as pipe:
        value = json.loads(pipe.read() or b"null")
    _, status = os.waitpid(pid, 0)
    assert status == 0, value
    return value


class Files:
    """Folders of queue files, the first one first, as the daemon's settings name
    them."""

    def __init__(self, folder, names=("etc", "run", "lib")):
        self.folders = {name: os.path.join(folder, name) for name in names}
        for path in self.folders.values():
            os.mkdir(path)

    def config(self, more=""):
        return "queue_files = %s\n%s" % (":".join(self.folders.values()), more)

    def path(self, name, where="etc"):
        return os.path.join(self.folders[where], name + ".conf")

    def write(self, name, text="", where="etc", **keys):
        """A file of @text, or of @keys with an owner."""
        if keys:
            text += "".join("%s = %s\n" % key for key in
                            {"owner": APP, **keys}.items())
        with open(self.path(name, where), "w", encoding="utf-8") as file:
            file.write(text)

    def remove(self, name, where="etc"):
        os.remove(self.path(name, where))


@contextlib.contextmanager
def files():
    with tempfile.TemporaryDirectory(prefix="expiryd-") as folder:
        os.chmod(folder, 0o755)
        yield Files(folder)


def hello(path, name, flags=0, clock=MONOTONIC):
    """The status of HELLO, as a name."""
    with Connection(path) as connection:
        try:
            status = connection.hello(name, flags, clock).status
        except Closed:
            return "closed"
        return errno.errorcode[-status] if status else 0


def said(daemon, *words):
    """Wait for a line of the log with all @words; it, or None."""
    def look():
        for line in daemon.log().splitlines():
            if all(word in line for word in words):
                return line
        return None
    return wait_for(look, 5)


def rows(daemon):
    with attach(daemon.path, flags=EXISTING) as looker:
        return {row.name: row for row in listing(looker)}


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
    }
    with files() as at:
        for i, text in enumerate(table):
            at.write("q%d" % i, "owner = %d\n%s" % (APP, text))
        with Daemon(at.config()) as daemon:
            for i, (text, wanted) in enumerate(table.items()):
                assert kind(daemon, "q%d" % i) == wanted, text


def test_the_heap_is_laid_out_as_the_file_says():
    with files() as at:
        for layout in ("sorted", "subtree"):
            at.write(layout, layout=layout, clock="monotonic")
        with Daemon(at.config()) as daemon:
            pages = []
            for layout in ("sorted", "subtree"):
                with attach(daemon.path, layout) as queue:
                    queue.batch([arm(HOUR - i * 7919 % 600)
                                 for i in range(600)])
                    pages.append(queue.stat().pages_heap)
            # Of sorted pages one is for what was armed last, one for the sweep.
            assert 2 <= pages[1] < 5 <= pages[0] < 9, pages


def test_owner_and_group_by_name():
    with files() as at:
        at.write("one", "owner = daemon\n")
        with Daemon(at.config()) as daemon:
            assert rows(daemon)["one"].uid == 1


# ------------------------------------------------------------------------
# Who may do what


OPS = {ARM: PRODUCE, REFRESH: PRODUCE, CANCEL: PRODUCE, CLEAR: PRODUCE,
       QUERY: LOOK, SCAN: LOOK, STAT: LOOK, ACK: TAKE, 99: 0,
       DROP: LOOK | PRODUCE | TAKE}


def request(op):
    return {ARM: arm(HOUR, id=5), REFRESH: Record(REFRESH, id=7),
            SCAN: Record(SCAN, period=1)}.get(op, Record(op, id=7))


def probe(path, name):
    """The errors of HELLO and of each op; None where a queue may not be had."""
    seen = {"consume": hello(path, name, CONSUME | KEYED | ACKING),
            "hello": hello(path, name, KEYED | ACKING),
            "existing": hello(path, name, KEYED | ACKING | EXISTING),
            "observe": hello(path, name, KEYED | ACKING | OBSERVE)}
    with Connection(path) as connection:
        if connection.hello(name, KEYED | ACKING, MONOTONIC).status:
            return seen
        for op in OPS:
            reply = connection.request(request(op))
            seen[str(op)] = errno.errorcode.get(-reply.status, 0)
            if op == STAT and not reply.status:
                connection.take(reply.period * 32)
            if op == SCAN and not reply.status and reply.id:
                connection.reply()
        # One after the other in one piece: each gets its own answer.
        connection.send(*[request(op) for op in (ARM, QUERY, ARM, ACK)])
        seen["run"] = [errno.errorcode.get(-reply.status, 0)
                       for reply in connection.replies(4)]
    return seen


def wanted(bits):
    """What probe() sees of one who has @bits."""
    seen = {"consume": 0 if bits & TAKE else "EACCES",
            "hello": 0 if bits else "EACCES",
            "existing": 0 if bits else "EACCES",
            "observe": 0 if bits & LOOK else "EACCES"}
    if not bits:
        return seen
    good = {ARM: 0, CLEAR: 0, SCAN: 0, STAT: 0, DROP: 0, 99: errno.errorcode[errno.EOPNOTSUPP]}
    for op, needed in OPS.items():
        seen[str(op)] = "EACCES" if needed & ~bits else good.get(op, "ENOENT")
    if not seen[str(DROP)]:
        seen["run"] = ["ENOENT"] * 4
    else:
        seen["run"] = ["EACCES" if needed & ~bits else error for needed, error
                       in ((PRODUCE, 0), (LOOK, "ENOENT"), (PRODUCE, 0),
                           (TAKE, "ENOENT"))]
    return seen


def probes(path, names):
    seen = {name: probe(path, name) for name in names}
    with attach(path) as looker:
        seen["listed"] = sorted(row.name for row in listing(looker)
                                if row.name)
    return seen


def test_each_digit_of_the_mode_is_for_its_class_alone():
    tap.need_root()
    shift = {"owner": 6, "group": 3, "supplementary": 3, "others": 0}
    for threads in THREADS:
        for who, by in shift.items():
            with files() as at:
                for bits in range(8):
                    # The other classes have what this one has not.
                    mode = 0o777 & ~(7 << by) | bits << by
                    at.write("q%d" % bits, mode="%03o" % mode, group=GROUP,
                             clock="monotonic", keyed="yes", ack="yes")
                with Daemon(at.config(), threads=threads) as daemon:
                    seen = be(who, probes, daemon.path,
                              ["q%d" % bits for bits in range(8)])
                    for bits in range(8):
                        name = "q%d" % bits
                        assert seen[name] == wanted(bits), \
                            (who, bits, seen[name], wanted(bits))
                    # One's own are always listed.
                    assert seen["listed"] == [
                        "q%d" % bits for bits in range(8)
                        if bits & LOOK or who == "owner"], (who, seen)


def looked_at(path):
    with attach(path) as looker:
        return {row.name: (row.uid, oct(row.access), row.gid)
                for row in listing(looker) if row.name}


def test_a_list_says_whose_they_are_and_who_may_use_them():
    tap.need_root()
    with files() as at:
        at.write("a", mode=640, group=GROUP)
        at.write("b", mode="007")
        at.write("c", mode=730, group=GROUP)
        with Daemon(at.config()) as daemon, attach(daemon.path, "own"):
            declared = {"a": (APP, "0o100640", GROUP),
                        "b": (APP, "0o100007", NO_GROUP)}
            assert be("group", looked_at, daemon.path) == {
                name: list(row) for name, row in declared.items()}
            declared.update(c=(APP, "0o100730", GROUP),
                            own=(0, "0o700", NO_GROUP))
            assert looked_at(daemon.path) == declared


def test_root_may_do_everything():
    with files() as at:
        at.write("closed", mode="000", clock="monotonic", keyed="yes",
                 ack="yes")
        with Daemon(at.config()) as daemon:
            assert probe(daemon.path, "closed") == wanted(7)


def test_without_a_file_a_queue_is_its_makers_alone():
    tap.need_root()
    with files() as at, Daemon(at.config()) as daemon:
        assert be("group", hello, daemon.path, "mine") == 0
        for who in ("owner", "supplementary"):
            expected = 0 if PEOPLE[who][0] == OTHER else "EACCES"
            assert be(who, hello, daemon.path, "mine") == expected, who


def test_a_primary_group_of_the_owner_is_the_default():
    tap.need_root()
    with files() as at:
        at.write("one", "owner = daemon\nmode = 740\n")
        at.write("two", "owner = %d\nmode = 740\n" % APP)
        with Daemon(at.config()) as daemon:
            def member():
                return [hello(daemon.path, name, clock=REALTIME)
                        for name in ("one", "two")]
            assert be((OTHER, 1, []), member) == [0, "EACCES"]


def crowd(path):
    return hello(path, "one", clock=REALTIME)


def test_more_groups_than_are_looked_at():
    tap.need_root()
    with files() as at:
        at.write("one", group=GROUP, mode=770)
        with Daemon(at.config()) as daemon:
            for count, error in ((1024, 0), (1025, "EACCES"),
                                 (65536, "EACCES")):
                groups = [GROUP] + list(range(10000, 9999 + count))
                assert be((OTHER, 4301, groups), crowd, daemon.path) == \
                    error, count
            assert be((OTHER, GROUP, list(range(10000, 75536))), crowd,
                      daemon.path) == 0


def refused_twice(path):
    with attach(path, "leases", clock=REALTIME) as queue:
        return [queue.request(arm(HOUR)).status for _ in range(3)]


def test_a_refusal_names_queue_and_owner():
    tap.need_root()
    with files() as at:
        at.write("leases", mode=704)
        with Daemon(at.config()) as daemon:
            assert be("others", refused_twice, daemon.path) == \
                [-errno.EACCES] * 3
            assert said(daemon, "uid %d refused" % OTHER, "ARM", "leases",
                        "uid %d's" % APP, "704"), daemon.log()
            assert be("others", hello, daemon.path, "leases", CONSUME,
                      REALTIME) == "EACCES"
            assert said(daemon, "HELLO", "leases", "uid %d's" % APP)
            # One line for a connection.
            assert daemon.log().count("ARM in") == 1, daemon.log()


# ------------------------------------------------------------------------
# Others than declared ones


def makes(path, flags=0):
    return [hello(path, name, flags) for name in ("new", "", "one")]


def test_undeclared_says_who_may_make_others():
    tap.need_root()
    rule = {"anybody": set(PEOPLE),
            "group": {"group", "supplementary", "root"},
            "nobody": {"root"}}
    for word, may in rule.items():
        for who in PEOPLE:
            with files() as at:
                at.write("one", mode=777, clock="monotonic")
                with Daemon(at.config("undeclared = %s\nundeclared_group = %d\n"
                                      % (word, GROUP))) as daemon:
                    seen = be(who, makes, daemon.path)
                    assert seen == [0 if who in may else "EACCES", 0, 0], \
                        (word, who, seen)
                    if who not in may:
                        assert said(daemon, "queue new is not declared",
                                    "undeclared = " + word), daemon.log()


def test_to_look_for_one_is_no_attempt_to_make_it():
    tap.need_root()
    with files() as at, Daemon(at.config("undeclared = nobody\n")) as daemon:
        assert be("others", makes, daemon.path, EXISTING)[0] == "ENOENT"


def test_a_group_that_is_not_there():
    for config, good in (("undeclared = group\nundeclared_group = nosuch\n",
                          False), ("undeclared_group = nosuch\n", True)):
        with files() as at:
            daemon = Daemon(config)
            try:
                assert daemon.wait_ready() == good, daemon.log()
                if not good:
                    assert "'nosuch' is not a group" in daemon.log()
            finally:
                daemon.remove()


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
    "owner = 1\nlimit = 0": "2: limit: '0' is not in 1 to 1073741824",
    "owner = 1\nlimit = 1073741825": "2: limit: '1073741825' is not in 1",
    "owner = 1\nlimit = many": "2: limit: 'many' is not in 1",
    "owner = 1\nslack = 10": "2: slack: '10' is not a time with its unit",
    "owner = 1\nslack = ms": "2: slack: 'ms' is not a time with its unit",
    "owner = 1\nslack = 3601s": "2: slack: '3601s' is not a time",
    "owner = 1\nslack = 18446744073709551616ns": "2: slack: ",
    "owner = 1\nlayout = round": "2: layout: 'round' is not sorted or subtree",
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
            assert {name: row.uid for name, row in rows(daemon).items()} == \
                {"a": 3, "b": 2, "c": 1, "d": 3}


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
                assert be("group", hello, daemon.path, "goes") == 0
                at.write("stays", mode=707, clock="monotonic", owner=OTHER)
                at.write("comes", mode=700, clock="monotonic")
                at.remove("goes")
                daemon.reload()
                seen = rows(daemon)
                assert {name: row.uid for name, row in seen.items()} == \
                    {"stays": OTHER, "goes": APP, "comes": APP}
                assert seen["stays"].number == number
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
    tap.main()
