#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What an upgrade of the packages says, by the engine: which timers are lost."""

from packages import built, later
from service import (LIMIT, UNIT, Cursor, ctl, drop, figure, kept, main, output_of,
                     serves, settings, status, systemctl, timers, wait_for)


def restart_with(text):
    """Settings from a new start on."""
    settings(text)
    pid = serves()
    systemctl("restart", UNIT)
    return serves(pid)


def upgrade(packages):
    """Returns what the upgrade prints, after the new daemon is ready."""
    pid = serves()
    said = output_of("dpkg", "-i", *packages)
    serves(pid)
    return said


def arm():
    for name, cookie in ("leases", "1"), ("leases", "2"), ("sessions", "3"):
        ctl("--queue", name, "arm", "+1h", cookie)


def test_upgrade_says_what_the_embedded_engine_loses():
    packages = built()
    # Over what `make install` brought, or a package of before.
    output_of("dpkg", "-i", *packages)
    restart_with("engine = embedded\n")
    arm()
    journal = Cursor()
    said = upgrade([later(path) for path in packages])
    line = "expiryd: 3 timers in 2 queues are lost now"
    assert said.count(line) == 1, said
    # Before the new one is unpacked and the old daemon ends.
    assert said.index(line) < said.index("Unpacking expiryd"), said
    told = [e["MESSAGE"] for e in journal.entries() if "leases" in e["MESSAGE"]]
    assert len(told) == 1 and "sessions" in told[0], journal.entries()
    assert status()["engine"] == "embedded" and timers("leases") == 0
    figure(line.partition(": ")[2])


def test_upgrade_without_timers_says_nothing():
    packages = built()
    journal = Cursor()
    said = upgrade(packages)
    assert "lost" not in said, said
    assert not [e for e in journal.entries() if "lost" in e["MESSAGE"]]


def test_upgrade_with_the_kernel_engine_loses_nothing():
    packages = built()
    restart_with(None)
    assert status()["engine"] == "kernel"
    arm()
    assert wait_for(lambda: kept() == 2, LIMIT), kept()
    journal = Cursor()
    said = upgrade(packages)
    assert "lost" not in said, said
    assert (timers("leases"), timers("sessions")) == (2, 1)
    assert not [e for e in journal.entries() if "lost" in e["MESSAGE"]]
    drop("leases", "sessions")


if __name__ == "__main__":
    main()
