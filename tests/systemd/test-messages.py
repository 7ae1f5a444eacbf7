#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the journal has of the service, its fields, and the catalog."""

import os
import pwd
import re
import time

from service import (LIMIT, ROOT, SOCKET, UNIT, Cursor, ctl, drop, figure, main,
                     output_of, scaled, serves, settings, systemctl, wait_for)
# Where service has looked.
from client import CONSUME, Record, attach
from daemon import as_user


def message_ids():
    with open(os.path.join(ROOT, "daemon/util/log.h"), encoding="utf-8") as file:
        return dict(re.findall(r'#define (LOG_\w+)\s+"(\w+)"', file.read()))


def break_the_protocol(queue):
    """Be ended by the daemon: our process's id."""
    with attach(SOCKET, queue, CONSUME) as connection:
        connection.send(Record(65, period=1, id=7))     # CREDIT with an id
        connection.ended()
    return os.getpid()


def the_one(journal, **fields):
    """The entry that comes, and there is but one."""
    assert wait_for(lambda: journal.entries(**fields), LIMIT), fields
    entries = journal.entries(**fields)
    assert len(entries) == 1, entries
    return entries[0]


def test_start_says_which_engine():
    journal, pid = Cursor(), serves()
    systemctl("restart", UNIT)
    serves(pid)
    entry = the_one(journal, MESSAGE_ID=message_ids()["LOG_STARTED"])
    assert entry["MESSAGE"].startswith("engine kernel"), entry
    assert entry["_SYSTEMD_UNIT"] == UNIT, entry


def test_client_that_was_ended_is_named_in_fields():
    journal, user = Cursor(), pwd.getpwnam("daemon")
    pid = as_user("daemon", break_the_protocol, "leases")
    drop("leases", user="daemon")
    entry = the_one(journal, PEER_UID=user.pw_uid)
    assert entry["MESSAGE_ID"] == message_ids()["LOG_CLIENT_ENDED"], entry
    assert entry["QUEUE"] == "leases", entry
    assert entry["PEER_PID"] == str(pid), entry
    assert int(entry["ERRNO"]) > 0 and entry["PRIORITY"] == "4", entry
    assert entry["_SYSTEMD_UNIT"] == UNIT, entry


def test_queue_that_is_not_kept_is_named():
    serves()
    settings("kept_queues_per_user = 1\n")
    systemctl("reload", UNIT)
    journal = Cursor()
    ctl("--queue", "first", "arm", "+1h", "1")
    ctl("--queue", "second", "arm", "+1h", "1")
    entry = the_one(journal, QUEUE="second")
    assert entry["MESSAGE_ID"] == message_ids()["LOG_QUEUE_NOT_KEPT"], entry
    drop("first", "second")
    settings(None)
    systemctl("reload", UNIT)


def test_wrong_settings_have_an_entry():
    serves()
    journal = Cursor()
    settings("nonsense\n")
    systemctl("reload", UNIT, check=False)
    the_one(journal, MESSAGE_ID=message_ids()["LOG_SETTINGS_WRONG"])
    settings(None)
    systemctl("reload", UNIT)


def test_catalog_explains_each_kind():
    for name, message_id in message_ids().items():
        text = output_of("journalctl", "--dump-catalog", message_id)
        assert "Subject: " in text and "man:expiryd" in text, (name, text)
    figure("%d ids" % len(message_ids()))


def test_journalctl_x_explains_an_entry():
    journal = Cursor()
    pid = break_the_protocol("leases-of-root")
    drop("leases-of-root")
    the_one(journal, PEER_PID=pid)
    text = output_of("journalctl", "--catalog", "--no-pager",
                     "PEER_PID=%d" % pid)
    assert "A client was ended" in text, text
    assert "process %d of user 0" % pid in text, text


def test_bad_clients_do_not_fill_the_journal():
    serves()
    time.sleep(11)      # for a burst to be allowed again
    journal, began = Cursor(), time.monotonic()
    count = scaled(500, 100)
    for _ in range(count):
        break_the_protocol("")
    seconds = time.monotonic() - began
    lines = journal.entries()
    listed = sum("ended:" in e["MESSAGE"] for e in lines)
    figure("%d lines for %d clients in %.1f s" % (len(lines), count, seconds))
    # A burst of 20, then two a second, and as many that say how many more.
    assert 20 <= listed <= 20 + 2 * (seconds + 1), listed
    assert len(lines) <= listed + 2 * (seconds + 1), len(lines)


if __name__ == "__main__":
    main()
