#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the daemon writes where its standard error is the journal: entries with
fields, few of them. In a mount name space of our own, with a journal of ours."""

import ctypes
import os
import re
import socket
import subprocess
import threading
import time

import tap
from client import (CONSUME, HOUR, WAIT, Connection, Record, arm, attach,
                    wait_for)
from daemon import ENGINE, Daemon
from manager import Reader

CLONE_NEWNS = 0x20000
SOCKET = "/run/systemd/journal/socket"


class Journal(Reader):
    """Entries as dictionaries, as they come."""

    def __init__(self):
        self.entries = []
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        if os.path.exists(SOCKET):
            os.unlink(SOCKET)
        self.socket.bind(SOCKET)
        self.read()

    def clear(self):
        """Forget what came, and what has come and was not read."""
        self.pause()
        self.socket.setblocking(False)
        try:
            while True:
                self.socket.recv(65536)
        except BlockingIOError:
            pass
        self.entries.clear()
        self.read()

    def _run(self):
        while self.reading:
            try:
                text = self.socket.recv(65536).decode()
            except socket.timeout:
                continue
            self.entries.append(dict(line.split("=", 1)
                                     for line in text.splitlines()))

    def find(self, words):
        """The entry that has @words in its message."""
        wait_for(lambda: any(words in e["MESSAGE"] for e in self.entries))
        found = [e for e in self.entries if words in e["MESSAGE"]]
        assert len(found) == 1, (words, self.entries)
        return found[0]


def shut_in():
    """Mount for ourselves alone."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS):
        raise tap.Skip("no mount name space of our own")
    done = subprocess.run(["mount", "--make-rprivate", "/"], check=False,
                          stderr=subprocess.DEVNULL)
    if done.returncode:
        # In a changed root / is no mount point.
        with open("/proc/self/mountinfo", encoding="utf-8") as file:
            if "shared:" in file.read():
                raise tap.Skip("others would see what is mounted")


def journal():
    """A journal for what this program starts from now on."""
    tap.need_root()
    if not hasattr(journal, "one"):
        shut_in()
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
        os.makedirs(os.path.dirname(SOCKET))
        journal.one = Journal()
    journal.one.clear()
    return journal.one


def start(config=None):
    """A daemon that has the journal as its standard error, for what it sees."""
    return Daemon(config, journal=True)


def message_ids():
    with open(os.path.join(os.path.dirname(__file__), "../../daemon/util/log.h"),
              encoding="utf-8") as file:
        return dict(re.findall(r'#define (LOG_\w+)\s+"(\w+)"', file.read()))


def test_entries_have_fields():
    entries = journal()
    ids = message_ids()
    with start() as daemon:
        started = entries.find("engine " + ENGINE)
        assert started["MESSAGE_ID"] == ids["LOG_STARTED"], started
        assert started["PRIORITY"] == "6", started
        assert started["SYSLOG_IDENTIFIER"] == "expiryd", started

        with attach(daemon.path, "leases", CONSUME) as queue:
            queue.send(Record(65, period=1, id=7))      # CREDIT with an id
            assert queue.ended()
        ended = entries.find("ended:")
        assert ended["MESSAGE_ID"] == ids["LOG_CLIENT_ENDED"], ended
        assert ended["QUEUE"] == "leases", ended
        assert ended["PEER_UID"] == str(os.getuid()), ended
        assert ended["PEER_PID"] == str(os.getpid()), ended
        assert ended["PRIORITY"] == "4" and int(ended["ERRNO"]) > 0, ended
        # None of it is written a second time.
        assert daemon.log() == "", daemon.log()


def test_refusals_have_fields():
    entries = journal()
    with start("connections_per_user = 1\n") as daemon:
        with attach(daemon.path):
            with Connection(daemon.path) as second:
                second.record()
            refused = entries.find("refused")
            assert refused["MESSAGE_ID"] == \
                message_ids()["LOG_CLIENT_REFUSED"], refused
            assert refused["ERRNO"] == "122", refused
            assert refused["PEER_PID"] == str(os.getpid()), refused


def test_wrong_settings_have_an_id():
    entries = journal()
    with start("") as daemon:
        daemon.configure("nonsense\n")
        daemon.process.send_signal(1)
        wrong = entries.find("stay in force")
        assert wrong["MESSAGE_ID"] == message_ids()["LOG_SETTINGS_WRONG"]
        assert "config:1:" in entries.find("is not 'key")["MESSAGE"]


def test_timers_are_not_logged():
    entries = journal()
    with start() as daemon:
        with attach(daemon.path, flags=CONSUME) as queue:
            queue.batch([arm(HOUR, i) for i in range(3000)])
            queue.batch([arm(0, i) for i in range(100)])
            queue.credit(100)
            for _ in range(100):
                queue.expiration()
    assert len(entries.entries) <= 2, entries.entries


def misbehave(path, count):
    for _ in range(count):
        with Connection(path) as one:
            one.send(Record(99))
            one.record()


def listed(entries):
    return sum("ended:" in e["MESSAGE"] for e in entries.entries)


def left_out(entries):
    return sum(int(e["MESSAGE"].split()[0]) for e in entries.entries
               if "left out" in e["MESSAGE"])


def test_bad_clients_are_counted_rather_than_listed():
    entries, clients = journal(), 200
    with start() as daemon:
        begun = time.monotonic()
        misbehave(daemon.path, clients)
        seconds = time.monotonic() - begun
        # How many were left out is said some seconds later.
        assert wait_for(lambda: listed(entries) + left_out(entries)
                        == clients), entries.entries
        # Twenty at once, then two in each second that begins.
        assert 20 <= listed(entries) <= 20 + 2 * (seconds + 1), seconds
        assert left_out(entries) > 0
        assert daemon.log() == "", daemon.log()


def test_a_journal_that_does_not_read_holds_nobody_up():
    entries, clients = journal(), 100
    with start() as daemon, attach(daemon.path, "honest") as honest:
        entries.find("engine " + ENGINE)
        entries.pause()
        try:
            misbehave(daemon.path, clients)
            assert honest.request(arm(HOUR)).status == 0
            # More than its socket has a place for, and elsewhere is nothing.
            assert clients - honest.stat().log_left_out >= 20, honest.stat()
            assert daemon.log() == "", daemon.log()
        finally:
            entries.read()
        assert wait_for(lambda: listed(entries) + left_out(entries)
                        == clients), entries.entries
        assert honest.stat().log_dropped == 0, honest.stat()


def test_it_ends_beside_a_journal_that_does_not_read():
    entries = journal()
    daemon = start()
    try:
        assert daemon.wait_ready(), daemon.log()
        entries.find("engine " + ENGINE)
        entries.pause()
        try:
            misbehave(daemon.path, 100)
            begun = time.monotonic()
            assert daemon.end() == 0
            assert time.monotonic() - begun < WAIT / 2
        finally:
            entries.read()
    finally:
        daemon.remove()


def test_without_a_journal_lines_go_to_standard_error():
    tap.need_root()
    journal()
    os.rename(SOCKET, SOCKET + ".away")
    try:
        with start() as daemon:
            assert wait_for(lambda: "<6>engine " in daemon.log()), daemon.log()
    finally:
        os.rename(SOCKET + ".away", SOCKET)


if __name__ == "__main__":
    tap.main()
