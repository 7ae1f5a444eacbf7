#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Declared queues of the installed service: from a package's file since the machine
started, and by a reload."""

import json
import os
import pwd
import subprocess

from service import (LIMIT, UNIT, Cursor, ctl, drop, figure, kept, main, output_of,
                     serves, show, systemctl, tap, timers, wait_for)

# Of the package that tests/systemd/check installs before the machine starts.
PACKAGE, BOOT = "expiry-test-declares", "declared-at-boot"
BOOT_FILE = "/usr/lib/expiry/queues.d/%s.conf" % BOOT
OWN_FILES, OWN = "/etc/expiry/queues.d", "declared-later"
OWNER = "daemon"        # as the package has it


def queues():
    """All queues by name, as root sees them."""
    return {row["queue"]: row for row in
            (json.loads(line) for line in ctl("queues", "--json").splitlines())}


def as_user(user, *arguments):
    """What expiryctl comes to: status and output."""
    done = subprocess.run(["expiryctl", *arguments], user=user, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False, timeout=LIMIT)
    return done.returncode, done.stdout


def write(name, text):
    os.makedirs(OWN_FILES, exist_ok=True)
    with open("%s/%s.conf" % (OWN_FILES, name), "w", encoding="ascii") as file:
        file.write(text)


def need_package():
    if not os.path.exists(BOOT_FILE):
        raise tap.Skip("the package was not installed before the machine started")


def test_queue_of_a_package_is_there_since_the_start():
    need_package()
    serves()
    # Nothing has asked for it so far, and no other start was needed.
    assert show("NRestarts") == "0", show("NRestarts")
    row = queues()[BOOT]
    assert (row["user"], row["access"], row["declared"], row["keyed"], row["ack"],
            row["connections"]) == (OWNER, "740", True, True, True, 0), row
    assert wait_for(lambda: kept() == 1, LIMIT), kept()
    figure("owner %(user)s, mode %(access)s" % row)


def test_queue_of_a_package_is_its_owner_s():
    need_package()
    journal = Cursor()
    code, said = as_user("nobody", "--queue", BOOT, "arm", "+1h", "1", "--id", "7")
    assert code == 1 and BOOT in said, said
    told = "the queue is uid %d's, mode 740" % pwd.getpwnam(OWNER).pw_uid
    assert wait_for(lambda: [e for e in journal.entries(QUEUE=BOOT)
                             if told in e["MESSAGE"]], LIMIT), journal.entries()
    code, said = as_user(OWNER, "--queue", BOOT, "arm", "+1h", "1", "--id", "7")
    assert code == 0 and timers(BOOT) == 1, said


def test_declared_queue_keeps_timers_and_owner_over_a_kill():
    need_package()
    pid = serves()
    systemctl("kill", "--signal=KILL", UNIT)
    serves(pid)
    row = queues()[BOOT]
    assert (row["user"], row["access"], row["armed"]) == (OWNER, "740", "1"), row


def test_reload_adds_a_declared_queue():
    pid = serves()
    assert OWN not in queues()
    write(OWN, "owner = nobody\nclock = monotonic\n")
    systemctl("reload", UNIT)
    assert wait_for(lambda: OWN in queues(), LIMIT) and serves() == pid
    row = queues()[OWN]
    assert (row["user"], row["access"], row["clock"], row["declared"]) == \
        ("nobody", "700", "monotonic", True), row
    # An undeclared name belongs to its first user; this one is taken.
    code, said = as_user(OWNER, "--queue", OWN, "arm", "+1h", "1")
    assert code == 1 and OWN in said, said
    code, said = as_user("nobody", "--queue", OWN, "arm", "+1h", "1")
    assert code == 0, said


def test_reload_with_a_wrong_file_keeps_all_others():
    pid, before = serves(), queues().keys()
    journal = Cursor()
    write("declared-wrong", "owner = no-such-user\n")
    assert output_of("expiryd", "--check-config", check=False).count("no-such-user")
    systemctl("reload", UNIT)
    assert wait_for(lambda: [e for e in journal.entries()
                             if "no-such-user" in e["MESSAGE"]], LIMIT)
    assert serves() == pid and queues().keys() == before
    os.unlink(OWN_FILES + "/declared-wrong.conf")


def test_queue_without_its_file_ends_when_it_is_dropped():
    os.unlink("%s/%s.conf" % (OWN_FILES, OWN))
    if os.path.exists(BOOT_FILE):
        output_of("dpkg", "--purge", PACKAGE)
        assert not os.path.exists(BOOT_FILE)
    systemctl("reload", UNIT)
    assert wait_for(lambda: not any(row["declared"] for row in queues().values()),
                    LIMIT), queues()
    assert OWN in queues()
    drop(OWN, BOOT)
    assert not queues(), queues()
    assert wait_for(lambda: kept() == 0, LIMIT), kept()


if __name__ == "__main__":
    main()
