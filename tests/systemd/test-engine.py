#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What lasts and what does not, by the engine, and whether that is told."""

import os
import subprocess

from service import (LIMIT, ROOT, UNIT, Cursor, ctl, drop, figure, kept, main,
                     output_of, serves, settings, show, status, systemctl,
                     systemd_version, timers, wait_for)

DEVICE = "/dev/expiry"
DROP_INS = "/run/systemd/system/expiryd.service.d"


def restart_with(text):
    """Settings from a new start on."""
    settings(text)
    pid = serves()
    systemctl("restart", UNIT)
    return serves(pid)


def kill(pid):
    """And wait for the next one."""
    systemctl("kill", "--signal=KILL", UNIT)
    return serves(pid)


def test_embedded_engine_loses_timers_and_says_so():
    pid = restart_with("engine = embedded\n")
    ctl("--queue", "leases", "--ack", "arm", "+1h", "1")
    assert timers("leases", "--ack") == 1 and kept() == 0
    told = show("StatusText")
    assert told.startswith("Engine embedded: "), told
    assert told.endswith("; timers end with the daemon"), told
    assert "queues live in the daemon and end with it" in ctl("status")
    kill(pid)
    assert timers("leases", "--ack") == 0
    drop("leases")


def test_program_that_reconnects_is_told_of_the_loss():
    pid = serves()
    assert status()["engine"] == "embedded"
    ctl("--queue", "leases", "--ack", "arm", "+1h", "1")
    watch = subprocess.Popen(
        ["expiryctl", "--queue", "leases", "--ack", "watch"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert wait_for(lambda: status("--queue", "leases", "--ack")["consumer"],
                    LIMIT)
    kill(pid)
    said = watch.communicate(timeout=LIMIT)[0]
    assert watch.returncode == 1 and "was lost" in said, said


def test_manual_page_says_so():
    with open(os.path.join(ROOT, "docs/man/expiryd.8"), encoding="utf-8") as file:
        text = " ".join(file.read().split())
    assert "Timers of the embedded engine and of anonymous queues end with the " \
        "daemon" in text


def test_queues_wait_while_another_engine_serves():
    restart_with(None)
    ctl("--queue", "waits", "arm", "+1h", "1")
    assert wait_for(lambda: kept() == 1, LIMIT)
    journal = Cursor()
    restart_with("engine = embedded\n")
    assert [e for e in journal.entries() if "they are not served" in
            e["MESSAGE"]]
    assert kept() == 1
    restart_with(None)
    assert timers("waits") == 1
    drop("waits")


def test_daemon_with_queues_waits_for_its_device():
    pid = serves()
    ctl("--queue", "waits", "arm", "+1h", "1")
    assert wait_for(lambda: kept() == 1, LIMIT)
    os.chmod(DEVICE, 0o600)
    before = int(show("NRestarts"))
    systemctl("kill", "--signal=KILL", UNIT)
    # More often than systemd lets a unit begin by its own defaults.
    assert wait_for(lambda: int(show("NRestarts")) >= before + 8, LIMIT)
    assert show("ActiveState") != "failed" and kept() == 1
    os.chmod(DEVICE, 0o660)
    serves(pid)
    assert timers("waits") == 1 and status()["engine"] == "kernel"
    drop("waits")


def test_unit_that_failed_keeps_queues_from_systemd_254_on():
    """Where an administrator has set a limit of starts: ours has none."""
    pid = serves()
    ctl("--queue", "waits", "arm", "+1h", "1")
    assert wait_for(lambda: kept() == 1, LIMIT)
    os.makedirs(DROP_INS, exist_ok=True)
    path = os.path.join(DROP_INS, "limit.conf")
    with open(path, "w", encoding="ascii") as file:
        file.write("[Unit]\nStartLimitIntervalSec=600\nStartLimitBurst=3\n")
    systemctl("daemon-reload")

    def failed():
        systemctl("kill", "--signal=KILL", UNIT, check=False)
        return show("ActiveState") == "failed"
    assert wait_for(failed, LIMIT)
    lasts = systemd_version() >= 254
    assert kept() == (1 if lasts else 0), kept()
    os.unlink(path)
    systemctl("daemon-reload")
    systemctl("reset-failed", UNIT)
    systemctl("start", "expiryd.socket", UNIT)
    serves(pid)
    assert timers("waits") == (1 if lasts else 0)
    figure("kept" if lasts else "lost, as told")
    drop("waits")


def test_units_are_in_order():
    said = output_of("systemd-analyze", "verify", "--man=no", UNIT,
                     "expiryd.socket", check=False)
    assert "expiryd" not in said, said


if __name__ == "__main__":
    main()
