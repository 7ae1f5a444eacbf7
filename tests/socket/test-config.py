#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every key of the configuration has its effect: at the start, and after SIGHUP
either the new one, or the old one and a line which says so.

ROWS has a row for each key: two values of it, what is seen with each, and the
function that looks. A key without a row fails the test.
"""

import collections
import contextlib
import errno
import os
import re
import stat
import struct
import tempfile
import time

import declared
import tap
from client import (ACKING, CONSUME, DURABLE, HOUR, KEYED, OBSERVE, QUERY, SCALE, SCAN, SIZE, STAT,
                    STAT_BODY, Closed, Connection, Record, arm, attach, hello, pack, wait_for)
from daemon import ENGINE, ROOT, THREADS, Daemon, as_user

FOLDER = tempfile.TemporaryDirectory(prefix="expiryd-config-")
MEBIBYTE = 1 << 20


# ------------------------------------------------------------------------
# The keys there are

Key = collections.namedtuple("Key", "default start")


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def keys_of_the_source():
    """Those of config_keys[]: a macro's call or an initializer each."""
    text = read("daemon", "util", "config.c")
    table = re.search(r"config_keys\[\] = \{\n(.*?)\n\};", text, re.S)[1]
    keys = {}
    for macro, name, rest in re.findall(
            r"^\t(TEXT|LIMIT|FIXED)\((\w+), (.*)\),$", table, re.M):
        default = rest.split(",")[0].strip()
        start = macro == "FIXED" or rest.endswith("true")
        if default.startswith("CONFIG_"):
            text = read("daemon", "util", "config.h").replace("\\\n", "")
            default = "".join(re.findall(r'"([^"]*)"', re.search(
                r"#define %s(.*)" % default, text)[1]))
        if default.startswith("EXPIRY_"):
            default = re.search(r'%s\s+("[^"]*")' % default, read(
                "include", "expiry", "wire.h"))[1]
        keys[name] = Key(default.strip('"') if macro == "TEXT"
                         else str(eval(default)), start)
    for body in re.findall(r"^\t\{\n(.*?)\n\t\},$", table, re.M | re.S):
        fields = dict(re.findall(r"\.(\w+) = (.*),", body))
        keys[fields["name"].strip('"')] = Key(fields.get("value", "0"),
                                              fields.get("start") == "true")
    # Nothing was overlooked.
    assert len(keys) == len(re.findall(r"^\t(?:[A-Z]+\(|\{)", table, re.M))
    return keys


def keys_of_the_manual():
    items = re.findall(r"^\.It Cm (\w+) Pq (\S+)\n(.*?)(?=^\.It|^\.El)",
                       read("docs", "man", "expiryd.conf.5"), re.M | re.S)
    # "\:" is where a line may be broken.
    return {name: Key(default.replace("\\:", ""), "(start)" in text)
            for name, default, text in items}


def test_every_key_has_a_row():
    keys = set(keys_of_the_source())
    assert keys, "no keys in daemon/util/config.c"
    assert keys == set(ROWS), "without a row or a key: %s" % (keys ^ set(ROWS))


def test_every_key_is_in_the_manual_with_its_default():
    source, manual = keys_of_the_source(), keys_of_the_manual()
    for name in source.keys() | manual.keys():
        assert source.get(name) == manual.get(name), \
            (name, source.get(name), manual.get(name))


# ------------------------------------------------------------------------
# What is seen


def silent(daemon):
    """The error that a connection gets which says nothing for two seconds."""
    with Connection(daemon.path) as connection:
        if connection.quiet(2):
            return None
        return errno.errorcode.get(-connection.record().status)


def alone(daemon, stack):
    """A connection that is the daemon's only one."""
    watch = stack.enter_context(attach(daemon.path))

    def rest_gone():
        seen = watch.stat()
        return seen.connections == 1 and seen.queues == 1
    assert wait_for(rest_gone), watch.stat()
    return watch


def everywhere(look):
    """@look(queue) for queues of all threads, which see the same."""
    def seen(daemon):
        with contextlib.ExitStack() as stack:
            queues = [stack.enter_context(attach(daemon.path, flags=CONSUME))
                      for _ in range(2 * THREADS)]
            each = [look(queue) for queue in queues]
        assert len(set(each)) == 1, each
        return each[0]
    return seen


def admitted(counter):
    """How many connections are, with a queue each; the error of the next, and
    by how much the counter grows."""
    def seen(daemon):
        with contextlib.ExitStack() as stack:
            watch = alone(daemon, stack)
            before = getattr(watch.stat(), counter)
            for count in range(1, 20):
                more = stack.enter_context(Connection(daemon.path))
                # Who is refused may be told before HELLO.
                with contextlib.suppress(Closed):
                    more.send(hello())
                status = more.record().status
                if status:
                    break
            wait_for(lambda: getattr(watch.stat(), counter) > before)
            return (count, errno.errorcode.get(-status),
                    getattr(watch.stat(), counter) - before)
    return seen


def armed(queue, counter):
    """How many timers of twenty are, and what the others get."""
    before = getattr(queue.stat(), counter)
    statuses = [reply.status for reply in queue.batch([arm(HOUR)] * 20)]
    count = statuses.count(0)
    assert statuses[:count] == [0] * count, statuses
    return (count, {errno.errorcode.get(-s) for s in statuses[count:]},
            getattr(queue.stat(), counter) - before)


def timers_of_a_queue(queue):
    count, errors, counted = armed(queue, "refused_limit")
    return count, errors == {"ENOSPC"}, counted, queue.stat().limit


def timers_of_a_user(daemon):
    with contextlib.ExitStack() as stack:
        count, errors, counted = armed(alone(daemon, stack), "refused_timers")
        return count, errors == {"EDQUOT"}, counted


def timers_in_memory(daemon):
    """How many, in thousands."""
    with contextlib.ExitStack() as stack:
        queue = alone(daemon, stack)
        status, count = 0, 0
        while not status and count < 100000:
            replies = queue.batch([arm(HOUR)] * 500)
            status = replies[-1].status
            count += sum(reply.status == 0 for reply in replies)
        assert status == -errno.ENOMEM, status
        return count // 1000


def heap_pages(queue):
    replies = queue.batch([arm(HOUR - i * 7919 % 600, i) for i in range(600)])
    assert all(reply.status == 0 for reply in replies)
    return queue.stat().pages_heap


def credit(queue):
    before = queue.stat().refused_credit
    queue.credit(1000)
    seen = queue.stat()
    return seen.credit, seen.refused_credit - before


def queues_of(uid):
    """A folder that declares a queue of this user."""
    folder = os.path.join(FOLDER.name, str(uid))
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "declared.conf"), "w",
              encoding="utf-8") as file:
        file.write("owner = %d\n" % uid)
    return folder


def owners(daemon):
    return [queue.uid for queue in declared.rows(daemon).values()]


def others_queue(daemon):
    """What a user gets who makes a queue, of the group 4201."""
    tap.need_root()
    name = "new%d" % time.monotonic_ns()
    return as_user(4201, declared.hello, daemon.path, name)


def breaker_is_logged(daemon):
    """A line of the level `warning'."""
    said = len(daemon.log())
    with Connection(daemon.path) as bad:
        bad.send(b"\xee" * SIZE)
        bad.ended()
    return wait_for(lambda: "HELLO" in daemon.log()[said:], 2)


def first_line(daemon):
    """Which engine, and why."""
    return wait_for(lambda: re.search(r"engine (.*)\n", daemon.log()))[1]


def answers(daemon):
    """Which of the two sockets is listened on."""
    del daemon
    there = []
    for name in ("one", "two"):
        with contextlib.suppress(OSError):
            Connection(os.path.join(FOLDER.name, name)).close()
            there.append(name)
    return there


def threads(daemon):
    tasks = "/proc/%d/task" % daemon.process.pid
    names = [read(tasks, task, "comm") for task in os.listdir(tasks)]
    # All but the first have a number. That of the log has its name a moment later.
    return 1 + sum(name.startswith("expiryd-") for name in names)


def waits(queue):
    """The status of what waits behind a batch that takes 300 ms."""
    queue.send(arm(HOUR), Record(STAT), arm(HOUR))
    head = queue.replies(2)[1]
    queue.take(head.period * SIZE)
    return errno.errorcode.get(-queue.reply().status)


def room_for_an_answer(daemon):
    """The status of a SCAN while three buffers are with the engine."""
    with contextlib.ExitStack() as stack:
        watch = alone(daemon, stack)
        consumers = [stack.enter_context(attach(daemon.path,
                                                flags=CONSUME))
                     for _ in range(3)]
        for consumer in consumers:
            consumer.credit(10)
            consumer.send(arm(0))
        for consumer in consumers:
            assert consumer.reply().status == 0
        status = watch.request(Record(SCAN, period=10)).status
        for consumer in consumers:
            consumer.expiration()
        return errno.errorcode.get(-status)


def largest_batch(daemon):
    """Of a thousand requests that are there when the daemon looks: 2^n."""
    batches = struct.Struct("=40Q")
    with contextlib.ExitStack() as stack:
        queue = alone(daemon, stack)

        def counts():
            head = queue.request(Record(STAT))
            return batches.unpack_from(queue.take(head.period * SIZE),
                                       STAT_BODY.size + 4 + batches.size)
        before = counts()
        with daemon.halted():
            queue.send(*[arm(HOUR)] * 1000)
        queue.replies(1000)
        return max(n for n, (a, b) in enumerate(zip(before, counts()))
                   if b > a)


def who_does_not_read_is_ended(daemon):
    """Clients that do not read come, a few at a time, until the daemon ends one or they
    have four times the lower limit. The daemon ends clients a turn after they exceed a
    limit: that it is exceeded by little says nothing yet."""
    queries = pack([Record(QUERY, id=77)] * 2048)
    with contextlib.ExitStack() as stack:
        watch, lazy = alone(daemon, stack), []
        before = watch.stat().closed_backlog

        def is_decided():
            lazy.extend(stack.enter_context(attach(daemon.path)) for _ in range(8))
            for one in lazy:
                one.socket.setblocking(False)
                with contextlib.suppress(OSError):
                    while one.socket.send(queries):
                        pass
            seen = watch.stat()
            return seen.closed_backlog > before or seen.backlog > 4 * MEBIBYTE
        assert wait_for(is_decided), watch.stat()
        return watch.stat().closed_backlog > before


def kept(daemon):
    with contextlib.ExitStack() as stack:
        alone(daemon, stack)
        queues = [stack.enter_context(attach(daemon.path, "kept%d" % i))
                  for i in range(6)]
        daemon.reload()
        count = len(daemon.manager.names())
        for queue in queues:
            assert queue.request(Record(68)).status == 0
        assert wait_for(lambda: not daemon.manager.names())
        return count


def observers(daemon):
    """How many observers a queue may have."""
    # Observers of the look before may not be gone yet.
    name = "observed-" + os.urandom(4).hex()
    with contextlib.ExitStack() as stack:
        stack.enter_context(attach(daemon.path, name))
        for count in range(10):
            one = stack.enter_context(Connection(daemon.path))
            if one.hello(name, OBSERVE).status:
                return count
    return None


def copies_wait(daemon):
    """Whether much waits for an observer that does not read."""
    with attach(daemon.path, "copied", CONSUME) as consumer, \
            attach(daemon.path, "copied", OBSERVE):
        assert wait_for(lambda: not consumer.stat().backlog)
        for _ in range(20):
            consumer.credit(1000)
            assert len(consumer.batch([arm(0, flags=0)] * 1000)) == 1000
            while len(consumer.expired) < 1000:
                consumer.expired.append(consumer.record())
            consumer.expired.clear()
        stat = consumer.stat()
        assert stat.copies_missed, stat
        return stat.backlog > 1 << 16


# ------------------------------------------------------------------------
# The table

# @seen: what @look(daemon) finds for each of two values
# @config: other settings that are needed
# @given: what the command line says
# @engine: the only one that it means something for; "slow": the slow one's
Row = collections.namedtuple(
    "Row", "seen look config given engine",
    defaults=("", ("engine", "threads", "socket"), None))


def named(text):
    return os.path.join(FOLDER.name, text)


NOWHERE = "device = /nonexistent/%s\n"
MISSING = "embedded: /nonexistent/%s: No such file or directory"

def loop(daemon):
    with attach(daemon.path) as connection:
        return connection.stat().loop


def durable(daemon):
    """Returns the status of HELLO with DURABLE, and the interval in its reply."""
    with Connection(daemon.path) as connection:
        reply = connection.hello("durable", DURABLE | KEYED | ACKING)
        return (errno.errorcode.get(-reply.status, 0), reply.cookie >> 32)


def arm_status(daemon):
    """Returns the status of ARM in a durable queue, once the journal has a file."""
    with attach(daemon.path, "durable", DURABLE | KEYED | ACKING) as connection:
        connection.request(arm(HOUR, id=1))
        assert wait_for(lambda: connection.stat().journal_size), connection.stat()
        status = connection.request(arm(HOUR, id=1)).status
        return errno.errorcode.get(-status, 0)


def state_folder():
    path = named("journal")
    os.makedirs(path, mode=0o700, exist_ok=True)
    return path


ROWS = {
    "journal": Row({"none": ("ENOTSUP", 0), state_folder(): (0, 0)}, durable,
                   given=("engine", "socket")),
    "journal_size": Row({"0": 0, "1": "ENOSPC"}, arm_status,
                        "journal = %s\n" % state_folder(), given=("engine", "socket")),
    "commit": Row({"flushed": (0, 0), "20ms": (0, 20)}, durable,
                  "journal = %s\n" % state_folder(), given=("engine", "socket")),
    "socket": Row({named("one"): ["one"], named("two"): ["two"]}, answers,
                  given=("engine", "threads")),
    "socket_mode": Row({"0640": 0o640, "0600": 0o600},
                       lambda d: stat.S_IMODE(os.stat(d.path).st_mode)),
    "device": Row({"/nonexistent/a": MISSING % "a",
                   "/nonexistent/b": MISSING % "b"}, first_line,
                  "engine = auto\n", ("socket", "threads")),
    "engine": Row({"auto": MISSING % "a", "embedded":
                   "embedded: as configured"}, first_line, NOWHERE % "a",
                  ("socket", "threads")),
    "loop": Row({"io_uring": 1, "epoll": 2}, loop,
                given=("engine", "threads", "socket")),
    "threads": Row({"1": 1, "3": 3}, threads, given=("engine", "socket")),
    # Of sorted pages one is for what was armed last, one for the sweep.
    "layout": Row({"sorted": range(5, 9), "subtree": range(2, 5),
                   "radix": range(9, 40)},
                  everywhere(heap_pages)),
    "log_level": Row({"err": False, "warning": True}, breaker_is_logged),
    "queue_files": Row({queues_of(4101): [4101], queues_of(4102): [4102]},
                       owners),
    "undeclared": Row({"anybody": 0, "nobody": "EACCES"}, others_queue),
    "undeclared_group": Row({"4201": 0, "4202": "EACCES"}, others_queue,
                            "undeclared = group\n"),
    "connections": Row({"3": (3, "EBUSY", 1), "6": (6, "EBUSY", 1)},
                       admitted("refused_connections")),
    "connections_per_user": Row({"3": (3, "EDQUOT", 1), "6": (6, "EDQUOT", 1)},
                                admitted("refused_connections")),
    "queues": Row({"3": (3, "ENOSPC", 1), "6": (6, "ENOSPC", 1)},
                  admitted("refused_queues")),
    "queues_per_user": Row({"3": (3, "EDQUOT", 1), "6": (6, "EDQUOT", 1)},
                           admitted("refused_queues")),
    "timers_per_queue": Row({"7": (7, True, 13, 7), "9": (9, True, 11, 9)},
                            everywhere(timers_of_a_queue)),
    "timers_per_user": Row({"7": (7, True, 13), "9": (9, True, 11)},
                           timers_of_a_user),
    "memory": Row({str(MEBIBYTE): range(10, 22),
                   str(3 * MEBIBYTE): range(30, 66)}, timers_in_memory,
                  engine="embedded"),
    "records_in_flight": Row({"64": {64}, "4000": {4000}}, lambda d: {
        Connection(d.path).hello().cookie for _ in range(2 * THREADS)}),
    "backlog_memory": Row({str(MEBIBYTE): True, str(64 * MEBIBYTE): False},
                          who_does_not_read_is_ended),
    "credit_max": Row({"5": (5, 1), "1000": (1000, 0)}, everywhere(credit)),
    "observers_per_queue": Row({"2": 2, "3": 3}, observers),
    "observer_memory": Row({"4096": False, "131072": True}, copies_wait),
    "hello_timeout": Row({"100": "ETIMEDOUT", "60000": None}, silent),
    "busy_after": Row({"50": "EBUSY", "50000": None}, everywhere(waits),
                      engine="slow"),
    "kept_queues": Row({"2": 2, "5": 5}, kept, engine="kernel"),
    "kept_queues_per_user": Row({"2": 2, "5": 5}, kept, engine="kernel"),
    "buffers": Row({"4": "EBUSY", "64": None}, room_for_an_answer,
                   "busy_after = 100\n", engine="slow"),
    "buffer_size": Row({"2048": 7, "16384": 10}, largest_batch),
}


# ------------------------------------------------------------------------
# Tests


def start(key, row, value):
    how = {"config": "%s%s = %s\n" % (row.config, key, value),
           "given": row.given}
    if row.engine == "slow":
        how.update(program=tap.SLOW, environment={"EXPIRY_SLOW_MS": "300"})
        # All buffers are one thread's.
        if key == "buffers":
            how["threads"] = 1
    if key == "socket":
        how["path"] = value
    return Daemon(**how)


def check(key, value, row, daemon):
    seen, expected = row.look(daemon), row.seen[value]
    good = seen in expected if isinstance(expected, range) \
        else seen == expected
    assert good, "with %s = %s: %s instead of %s" % (key, value, seen, expected)


def try_key(key, at_start):
    row = ROWS[key]
    if row.engine == "slow":
        tap.need_slow()
    if row.engine in ("kernel", "embedded") and row.engine != ENGINE:
        raise tap.Skip("the %s engine's" % row.engine)
    values = list(row.seen)
    for first, second in zip(values, values[1:] + values[:1]):
        with start(key, row, first) as daemon:
            check(key, first, row, daemon)
            daemon.reload("%s%s = %s\n" % (row.config, key, second))
            check(key, first if at_start else second, row, daemon)
            line = "%s: changes with the next start" % key
            # Lines may come a moment later.
            assert wait_for(lambda: (line in daemon.log()) == at_start), \
                daemon.log()


def define(key, at_start):
    def test():
        try_key(key, at_start)
    globals()["test_%s_%s" % (key, "at_start" if at_start else
                              "at_start_and_reload")] = test


# Of few things, as a guest's programs do, only the keys of the module's engine.
MODULE_ONLY = ENGINE == "kernel" and SCALE > 1

for name, about in keys_of_the_source().items():
    if name in ROWS and (ROWS[name].engine == "kernel" or not MODULE_ONLY):
        define(name, about.start)


if __name__ == "__main__":
    tap.main()
