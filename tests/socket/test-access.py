#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Who may do what with a queue, declared or not."""

import errno
import os

import tap
from client import (ACK, ACKING, ARM, CANCEL, CLEAR, CONSUME, DROP, EXISTING,
                    HOUR, KEYED, MONOTONIC, OBSERVE, QUERY, REALTIME, REFRESH,
                    SCAN, SIZE, STAT, Closed, Connection, Record, arm, attach)
from daemon import Daemon
from declared import (LOOK, PRODUCE, TAKE, NO_GROUP, APP, OTHER, GROUP,
                      THREADS, PEOPLE, be, files, hello, said)
from listing import listing, page
from strace import Trace

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
                connection.take(reply.period * SIZE)
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


def queues_and_pages(path):
    """Returns the numbers of queues listed and of replies that it took."""
    with attach(path) as looker:
        queues, cursor = page(looker)
        nr, pages = len(queues), 1
        while cursor:
            queues, cursor = page(looker, cursor)
            nr, pages = nr + len(queues), pages + 1
        return [nr, pages]


def test_a_reply_with_queues_reads_the_groups_once():
    """For each queue it would be 35 ms for 1000 queues and 1024 groups."""
    tap.need_root()
    with files() as at:
        for i in range(20):
            at.write("q%d" % i, group=GROUP, mode=740)
        with Daemon(at.config()) as daemon:
            for who, nr in (("others", 0), ("supplementary", 20)):
                with Trace(daemon, "-e", "trace=getsockopt") as trace:
                    found, pages = be(who, queues_and_pages, daemon.path)
                assert found == nr, who
                calls = [line for line in trace.lines
                         if "SO_PEERGROUPS" in line]
                assert len(calls) == pages, trace.lines


def attach_as(who, path, flags):
    """A connection that the daemon takes for another user's."""
    uid, gid, _ = PEOPLE[who]
    os.setegid(gid)
    os.seteuid(uid)
    try:
        return attach(path, "one", flags)
    finally:
        os.seteuid(0)
        os.setegid(0)


def statuses(queue):
    """What a connection may do now, None if it has ended."""
    try:
        return [errno.errorcode.get(-queue.request(record).status, 0)
                for record in (arm(HOUR), Record(QUERY, id=7))]
    except (Closed, BrokenPipeError, ConnectionResetError):
        return None


def test_rights_change_for_those_who_are_connected():
    tap.need_root()
    roles = {0: LOOK | PRODUCE | TAKE, CONSUME: TAKE, OBSERVE: LOOK}
    with files() as at:
        def may(bits):
            at.write("one", mode=770 + bits, clock="monotonic")
        may(7)
        with Daemon(at.config()) as daemon:
            for bits in range(8):
                queues = {role: attach_as("others", daemon.path, role)
                          for role in roles}
                may(bits)
                daemon.reload()
                for role, needed in roles.items():
                    rights = bits & LOOK if role == OBSERVE else bits
                    seen = statuses(queues[role])
                    assert seen == (None if not rights & needed else
                                    [0 if rights & PRODUCE else "EACCES",
                                     "ENOENT" if rights & LOOK else
                                     "EACCES"]), (bits, role, seen)
                may(7)
                daemon.reload()
                for role, needed in roles.items():
                    if role != OBSERVE and bits & needed:
                        assert statuses(queues[role]) == [0, "ENOENT"]
                    queues[role].close()


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


if __name__ == "__main__":
    tap.main()
