#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The same scenarios for each client, with a daemon. Arguments are words of the names of
those that are wanted.

A scenario gets an agent and a daemon, which it may kill. What an agent cannot do is
skipped. EXPIRY_TEST_DRAIN is the number of timers to be drained.
"""

import contextlib
import os
import random
import signal
import sys
import threading
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "socket"))

import agents                           # noqa: E402
from conversation import Skip           # noqa: E402
from daemon import Daemon               # noqa: E402
from mortal import Mortal               # noqa: E402

DRAIN = int(os.environ.get("EXPIRY_TEST_DRAIN", "100000"))
HOUR = 3600 * 10**9
MS = 10**6
LONG = 20000        # milliseconds that only a hang needs
ROUNDS = 30
KILLS = int(os.environ.get("EXPIRY_TEST_CLIENT_KILLS", "8"))
DURABLE = "consume,keyed,ack,durable,reconnect"
CONFIG = "timers_per_user = 4000000\n"

LACKS = {"start": "its calls wait for their answers", "restore": "it has no restore",
         "abandon": "none of its calls in flight can be given up"}


def need(agent, *abilities):
    for ability in abilities:
        if ability not in agent.can:
            raise Skip(LACKS[ability])


def open_queue(agent, daemon, flags, queue="q", clock="monotonic", more=""):
    return agent.ok("open path=%s queue=%s clock=%s flags=%s%s"
                    % (daemon.path, queue, clock, flags, " " + more if more else ""))


def due_ids(answer):
    return [line.number("id") for line in answer.before if line.word == "due"]


def test_a_timer_expires_once(agent, daemon):
    open_queue(agent, daemon, "consume", "-")
    id = agent.ok("arm ttl=%d cookie=42" % (20 * MS))["id"]
    answer = agent.ok("receive max=1 timeout_ms=%d" % LONG)
    assert answer.before[0]["id"] == id and answer.before[0]["cookie"] == "42", answer.before
    agent.refused("cancel id=" + id, "ENOENT")
    assert agent.ok("receive max=1 timeout_ms=50")["count"] == "0"


def far_then_near(clock):
    """A nearer timer comes in time though a far one was armed before, with the consumer
    attached: the daemon's timeout is moved."""
    def test(agent, daemon):
        open_queue(agent, daemon, "consume,keyed", clock=clock)
        agent.ok("arm id=1 ttl=%d" % HOUR)
        agent.ok("query id=1")
        agent.ok("arm id=2 ttl=%d" % (50 * MS))
        assert due_ids(agent.ok("receive max=1 timeout_ms=%d" % LONG)) == [2]
        agent.ok("drop")
    return test


test_far_then_near_on_realtime = far_then_near("realtime")
test_far_then_near_on_monotonic = far_then_near("monotonic")
test_far_then_near_on_boottime = far_then_near("boottime")


def test_a_queue_has_one_consumer(agent, daemon):
    open_queue(agent, daemon, "consume,keyed")
    with agents.Agent(agent.name) as other:
        other.refused("open path=%s queue=q clock=monotonic flags=consume,keyed"
                      % daemon.path, "EBUSY")
        open_queue(other, daemon, "keyed")
        other.ok("arm id=7 ttl=0 cookie=1")
        assert due_ids(agent.ok("receive max=1 timeout_ms=%d" % LONG)) == [7]
        other.close()
    agent.ok("drop")


def test_what_is_not_acknowledged_comes_again(agent, daemon):
    open_queue(agent, daemon, "consume,keyed,ack")
    agent.ok("arm id=5 ttl=0 cookie=9")
    agent.ok("arm id=6 ttl=0")
    first = agent.ok("receive max=2 timeout_ms=%d" % LONG)
    assert due_ids(first) == [5, 6] and first.before[0]["redelivered"] == "0"
    agent.ok("ack id=6")
    agent.close()
    open_queue(agent, daemon, "consume,keyed,ack")
    again = agent.ok("receive max=1 timeout_ms=%d" % LONG)
    assert due_ids(again) == [5] and again.before[0]["redelivered"] == "1", again.before
    agent.ok("ack id=5")
    agent.refused("ack id=5", "ENOENT")
    assert agent.ok("stat")["unacked"] == "0"
    agent.ok("drop")


def test_a_cancelled_call_keeps_its_place(agent, daemon):
    """The answer to a call that nothing waits for goes to no other call."""
    need(agent, "start", "abandon")
    open_queue(agent, daemon, "keyed")
    count = 40
    agent.ok("batch op=arm from=1 count=%d ttl=%d cookie=1001" % (count, HOUR))
    choose = random.Random(7)
    for _ in range(ROUNDS):
        ids = [choose.randrange(1, count + 1) for _ in range(20)]
        with daemon.halted():
            for tag, id in enumerate(ids):
                agent.ok("start %d query id=%d" % (tag, id))
            gone = {tag for tag in range(len(ids)) if choose.random() < 0.5}
            for tag in gone:
                agent.ok("abandon %d" % tag)
        for tag, id in enumerate(ids):
            if tag not in gone:
                answer = agent.ok("wait %d" % tag)
                assert answer.number("cookie") == 1000 + id, (id, answer)
    agent.ok("drop")


def test_calls_in_flight_have_their_own_answers(agent, daemon):
    need(agent, "start")
    open_queue(agent, daemon, "keyed")
    agent.ok("batch op=arm from=1 count=30 ttl=%d cookie=1" % HOUR)
    with daemon.halted():
        for id in range(1, 31):
            agent.ok("start %d %s id=%d" % (id, "query" if id % 3 else "cancel", id))
    for id in range(1, 31):
        answer = agent.ok("wait %d" % id)
        assert id % 3 == 0 or answer.number("cookie") == id, (id, answer)
    assert agent.ok("stat")["armed"] == "20"
    agent.ok("drop")


def test_a_batch_may_be_larger_than_the_window(agent, daemon):
    open_queue(agent, daemon, "keyed")
    count = 20000
    assert agent.ok("batch op=arm from=1 count=%d ttl=%d cookie=1"
                    % (count, HOUR)).number("done") == count
    assert agent.ok("batch op=refresh from=1 count=%d ttl=%d"
                    % (count, 2 * HOUR)).number("done") == count
    assert agent.ok("query id=%d" % count).number("cookie") == count
    assert agent.ok("batch op=cancel from=1 count=%d" % count).number("done") == count
    assert agent.ok("stat")["armed"] == "0"
    agent.ok("drop")


def test_a_slow_consumer_delays_no_answer(agent, daemon):
    """Expirations wait in the daemon as far as there is no credit, and replies pass."""
    open_queue(agent, daemon, "consume,keyed", more="credit=4")
    count = 1000
    agent.ok("batch op=arm from=1 count=%d ttl=0" % count)
    agent.ok("arm id=5000 ttl=%d" % HOUR)
    for _ in range(20):
        agent.ok("query id=5000")
    assert agent.ok("stat").number("delivered") <= 4
    answer = agent.ok("drain count=%d timeout_ms=%d ack=no" % (count, LONG))
    assert answer.number("sum") == count * (count + 1) // 2, answer
    assert answer["early"] == answer["unordered"] == "0", answer
    agent.ok("drop")


def test_many_are_drained(agent, daemon):
    open_queue(agent, daemon, "consume,keyed,ack", more="credit=4096")
    answer = agent.ok("batch op=arm from=1 count=%d ttl=0" % DRAIN, 120)
    assert answer.number("done") == DRAIN, answer
    answer = agent.ok("drain count=%d timeout_ms=100000 ack=yes" % DRAIN, 120)
    assert answer.number("count") == DRAIN, answer
    assert answer.number("sum") == DRAIN * (DRAIN + 1) // 2, answer
    assert (answer["early"], answer["redelivered"]) == ("0", "0"), answer
    stat = agent.ok("stat")
    assert stat["armed"] == stat["unacked"] == "0", stat
    agent.ok("drop")


def test_close_ends_calls_in_flight(agent, daemon):
    need(agent, "start", "abandon")
    open_queue(agent, daemon, "consume,keyed")
    with daemon.halted():
        agent.ok("start a query id=1")
        agent.ok("start b receive max=1 timeout_ms=%d" % LONG)
        agent.ok("close")
        agent.refused("wait a", "ESHUTDOWN", "ECANCELED")
        agent.refused("wait b", "ESHUTDOWN", "ECANCELED")


@contextlib.contextmanager
def stopped_by_turns(process):
    """Stops and continues it each 30 ms, for ten seconds at most. That interrupts its
    system calls, as signals do."""
    ended = threading.Event()

    def stop():
        for _ in range(333):
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.005)
            process.send_signal(signal.SIGCONT)
            if ended.wait(0.025):
                break
    thread = threading.Thread(target=stop)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_a_call_that_is_interrupted_times_out(agent, daemon):
    """Its time does not begin anew with each interruption."""
    open_queue(agent, daemon, "keyed", more="timeout_ms=200")
    begun = time.monotonic()
    with daemon.halted(), stopped_by_turns(agent.process):
        agent.refused("query id=1", "ETIMEDOUT")
        assert time.monotonic() - begun < 5


def test_an_idle_consumer_closes(agent, daemon):
    open_queue(agent, daemon, "consume,keyed")
    assert agent.ok("receive max=1 timeout_ms=20")["count"] == "0"


def test_a_scan_lists_each_timer_once(agent, daemon):
    open_queue(agent, daemon, "keyed")
    agent.ok("batch op=arm from=1 count=1000 ttl=%d" % HOUR)
    seen, cursor = [], 0
    while True:
        part = agent.ok("scan cursor=%d max=100" % cursor)
        seen += [line.number("id") for line in part.before]
        cursor = part.number("cursor")
        if not cursor:
            break
    assert sorted(seen) == list(range(1, 1001))
    agent.ok("drop")


def end(daemon):
    daemon.process.kill()
    daemon.process.wait()


def journal_of(daemon, more=""):
    """Returns a daemon with a journal in place of the other one."""
    end(daemon)
    return Mortal(daemon.path, CONFIG + more)


def restart(daemon):
    """Kills the daemon, and starts another on the same socket."""
    end(daemon)
    other = Daemon(CONFIG, path=daemon.path)
    other.__enter__()
    return other


def test_a_lost_queue_is_reported(agent, daemon):
    open_queue(agent, daemon, "keyed,reconnect")
    agent.ok("arm id=1 ttl=%d" % HOUR)
    other = restart(daemon)
    try:
        agent.refused("query id=1", "ESTALE")
        agent.refused("query id=1", "ESTALE")
        agent.close()
    finally:
        other.remove()


def test_an_empty_queue_is_restored(agent, daemon):
    need(agent, "restore")
    now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    open_queue(agent, daemon, "keyed", more="restore=1:3000:%d" % (now + HOUR))
    assert agent.ok("query id=3000").number("cookie") == 3000
    assert agent.ok("restored").values == {"calls": "1", "timers": "3000"}
    assert agent.ok("stat")["armed"] == "3000"
    agent.close()
    # It is not empty any more.
    open_queue(agent, daemon, "keyed", more="restore=1:3000:%d" % (now + HOUR))
    assert agent.ok("restored")["calls"] == "0"
    agent.ok("drop")


def test_a_lost_queue_is_restored(agent, daemon):
    need(agent, "restore")
    now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    open_queue(agent, daemon, "consume,keyed,ack,reconnect",
               more="restore=1:500:%d" % (now + 300 * MS))
    agent.ok("arm id=1000 ttl=%d" % HOUR)
    other = restart(daemon)
    try:
        # What the program did not yield is gone, all else is there.
        agent.refused("query id=1000", "ENOENT")
        assert agent.ok("restored")["calls"] == "2"
        answer = agent.ok("drain count=500 timeout_ms=%d ack=yes" % LONG)
        assert answer.number("count") == 500 and answer["early"] == "0", answer
        assert answer.number("sum") == 500 * 501 // 2, answer
        agent.close()
    finally:
        other.remove()


def test_restore_comes_before_what_is_in_doubt(agent, daemon):
    """A call whose answer is missing is newer than what the program keeps."""
    need(agent, "restore", "start")
    now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    open_queue(agent, daemon, "keyed,reconnect", more="restore=1:10:%d" % (now + HOUR))
    daemon.process.send_signal(19)      # SIGSTOP: the request stays in the socket
    agent.ok("start a arm id=5 at=%d cookie=77" % (now + HOUR))
    other = restart(daemon)
    try:
        agent.ok("wait a")
        assert agent.ok("query id=5")["cookie"] == "77"
        assert agent.ok("query id=6")["cookie"] == "6"
        agent.close()
    finally:
        other.remove()


def test_a_daemon_that_is_away_is_waited_for(agent, daemon):
    open_queue(agent, daemon, "keyed,reconnect", more="timeout_ms=300")
    daemon.process.kill()
    daemon.process.wait()
    agent.refused("arm id=1 ttl=5", "ETIMEDOUT")
    agent.close()


@contextlib.contextmanager
def killed_again_and_again(journal, times):
    """Kills the daemon at any moment after the client went on, and starts another. Yields
    two events: the test sets the first one when the client went on; the second one is set
    when the daemon was killed so often."""
    moments = random.Random(3)
    moved, over, problems = threading.Event(), threading.Event(), []

    def run():
        try:
            for _ in range(times):
                assert moved.wait(LONG / 1000), "the client did not go on"
                time.sleep(moments.random() * 0.1)
                moved.clear()
                journal.kill()
                journal.start()
        except BaseException as problem:        # pass it to the test
            problems.append(problem)
        over.set()
    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield moved, over
    finally:
        thread.join()
    assert not problems, problems


def test_a_durable_queue_and_its_interval(agent, daemon):
    opened = "path=%s queue=q clock=monotonic flags=" % daemon.path
    # This daemon has no journal.
    agent.refused("open %sconsume,keyed,ack,durable" % opened, "EOPNOTSUPP", "ENOTSUP")
    agent.refused("open %skeyed,durable" % opened, "EINVAL")
    agent.refused("open %sack,durable" % opened, "EINVAL")
    for config, commit in ("", "0"), ("commit = 250ms\n", "250"):
        with journal_of(daemon, config) as journal:
            answer = open_queue(agent, journal, "keyed,ack,durable")
            assert (answer["durable"], answer["commit"]) == ("1", commit), answer
            agent.close()
            # Who does not ask for it gets it, too, and is told.
            answer = open_queue(agent, journal, "keyed,ack")
            assert (answer["durable"], answer["commit"]) == ("1", commit), answer
            agent.close()
            answer = open_queue(agent, journal, "keyed,ack", "other")
            assert answer["durable"] == "0", answer
            agent.close()
            agent.refused("open %skeyed,ack,durable" % opened.replace("=q", "=other"),
                          "EINVAL")


def test_a_killed_daemons_durable_queue_nothing_lost_nothing_told_lost(agent, daemon):
    """The daemon is killed with -9 in the middle of all kinds of requests."""
    with journal_of(daemon) as journal:
        opened = open_queue(agent, journal, DURABLE, more="credit=64")
        assert opened["durable"] == "1", opened
        deadline = agent.ok("arm id=1 ttl=%d cookie=77" % HOUR).number("deadline")
        armed, seen, unmarked, last = 0, set(), set(), 1000

        def take(timeout_ms):
            answer = agent.ok("receive max=64 timeout_ms=%d" % timeout_ms)
            now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            for line in answer.before:
                id = line.number("id")
                assert line.number("deadline") <= now, "%d is early" % id
                assert line["cookie"] == line["id"], line
                if line["redelivered"] == "0":
                    assert id not in unmarked, "%d came twice, unmarked" % id
                    unmarked.add(id)
                seen.add(id)
                agent.command("ack id=%d" % id)
            return len(answer.before)

        with killed_again_and_again(journal, KILLS) as (moved, over):
            while not over.is_set():
                answer = agent.ok("batch op=arm from=%d count=30 ttl=%d cookie=%d"
                                  % (last, armed % 7 * 10 * MS, last))
                assert answer.number("done") == 30, answer
                armed, last = armed + 30, last + 30
                assert agent.ok("query id=1").number("deadline") == deadline
                deadline = agent.ok("refresh id=1 ttl=%d" % (2 * HOUR)).number("deadline")
                agent.ok("arm id=2 ttl=%d" % HOUR)
                cancelled = agent.command("cancel id=2")
                assert (cancelled.error or "ok") in ("ok", "ENOENT"), cancelled
                take(10)
                moved.set()
        end = time.monotonic() + LONG / 1000
        while len(seen) < armed and time.monotonic() < end:
            take(100)
        assert seen == set(range(1000, last)), set(range(1000, last)) - seen
        timer = agent.ok("query id=1")
        assert timer.number("deadline") == deadline and timer["cookie"] == "77", timer
        agent.refused("query id=2", "ENOENT")
        # An ACK that was carried out answered that the timer is gone.
        while take(20):
            pass
        stat = agent.ok("stat")
        assert (stat["armed"], stat["unacked"]) == ("1", "0"), stat
        print("# %s: %d kills, %d timers, %d of them delivered again"
              % (agent.name, KILLS, armed, len(seen - unmarked)))
        agent.ok("drop")
        agent.close()


def test_what_was_due_without_a_daemon_is_marked_late(agent, daemon):
    with journal_of(daemon) as journal:
        open_queue(agent, journal, DURABLE)
        agent.ok("arm id=1 ttl=%d" % (100 * MS))
        agent.ok("arm id=2 ttl=%d" % HOUR)
        journal.kill()
        time.sleep(0.2)
        journal.start()
        answer = agent.ok("receive max=1 timeout_ms=%d" % LONG)
        assert due_ids(answer) == [1] and answer.before[0]["late"] == "1", answer.before
        agent.ok("refresh id=2 ttl=0")
        answer = agent.ok("receive max=1 timeout_ms=%d" % LONG)
        assert due_ids(answer) == [2] and answer.before[0]["late"] == "0", answer.before
        agent.close()


def test_a_durable_queue_that_was_dropped_is_reported(agent, daemon):
    """During the pause, by another client, which made it again."""
    with journal_of(daemon) as journal:
        open_queue(agent, journal, "keyed,ack,durable,reconnect")
        agent.ok("arm id=1 ttl=%d" % HOUR)
        journal.kill()
        elsewhere = os.path.join(journal.folder.name, "socket")
        journal.start(elsewhere)
        with agents.Agent(agent.name) as other:
            flags = "path=%s queue=q clock=monotonic flags=keyed,ack,durable" % elsewhere
            other.ok("open " + flags)
            other.ok("drop")
            other.close()
            other.ok("open " + flags)
            other.ok("batch op=arm from=1 count=5 ttl=%d" % HOUR)
            other.close()
        journal.kill()
        journal.start()
        agent.refused("query id=1", "ESTALE")
        agent.close()


def main(wanted):
    names = agents.found()
    table = agents.Table(names)
    tests = [(name[5:].replace("_", " "), function) for name, function in globals().items()
             if name.startswith("test_")]
    for title, function in tests:
        if wanted and not any(word in title for word in wanted):
            continue
        for name in names:
            begun = time.monotonic()
            agent, daemon = agents.Agent(name), Daemon(CONFIG)
            try:
                assert daemon.wait_ready(), daemon.log()
                with agent:
                    function(agent, daemon)
                    agent.close()
                if daemon.alive():
                    status = daemon.end()
                    assert status == 0, "the daemon ended with %s" % status
                table.report(title, name, "ok")
            except Skip as reason:
                table.report(title, name, "skipped", str(reason))
            except Exception:
                table.report(title, name, "FAILED", traceback.format_exc(limit=-3))
            finally:
                agent.kill()
                daemon.remove()
            if time.monotonic() - begun > 5:
                print("# %.1f s" % (time.monotonic() - begun))
    return table.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
