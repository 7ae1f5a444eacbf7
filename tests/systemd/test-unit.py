#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The unit as it was installed: how it starts, what it keeps, what it may."""

import grp
import os
import re
import stat
import subprocess
import time

from service import (LIMIT, UNIT, ctl, drop, figure, kept, main, main_pid,
                     output_of, serves, settings, show, shows, status,
                     systemctl, systemd_version, timers, wait_for)


def test_machine_runs_with_nothing_failed():
    state = systemctl("is-system-running", "--wait", check=False)
    assert state == "running", systemctl("--failed")
    figure("systemd %d" % systemd_version())


def test_module_is_loaded_and_the_device_the_groups():
    assert show("Result", "systemd-modules-load.service") == "success"
    assert os.path.isdir("/sys/module/expiry")
    device = os.stat("/dev/expiry")
    assert stat.S_IMODE(device.st_mode) == 0o660, oct(device.st_mode)
    group = grp.getgrgid(device.st_gid).gr_name
    assert (device.st_uid, group) == (0, "expiry"), group


def test_service_started_with_the_machine_on_the_kernel_engine():
    serves()
    assert status()["engine"] == "kernel"
    assert show("StatusText").startswith("Engine kernel: "), show("StatusText")
    assert "queues kept over a restart" in show("StatusText")


def test_socket_starts_a_service_that_was_stopped():
    serves()
    # systemd warns that the socket can start it again: it shall.
    systemctl("stop", UNIT)
    assert show("ActiveState") == "inactive"
    began = time.monotonic()
    assert status()["engine"] == "kernel"
    figure("answered after %.0f ms" % (1000 * (time.monotonic() - began)))
    serves()


def test_each_named_queue_is_in_the_store():
    serves()
    before = kept()
    for name in "one", "two", "three":
        ctl("--queue", name, "arm", "+1h", "1")
    assert wait_for(lambda: kept() == before + 3, LIMIT), kept()
    drop("two")
    assert wait_for(lambda: kept() == before + 2, LIMIT), kept()
    drop("one", "three")
    assert wait_for(lambda: kept() == before, LIMIT), kept()


def test_reload_changes_settings_and_nothing_else():
    pid = serves()
    ctl("--queue", "kept", "arm", "+1h", "1")
    settings("timers_per_queue = 1000\n")
    systemctl("reload", UNIT)
    assert main_pid() == pid and show("ActiveState") == "active"
    # A limit is a queue's from its beginning.
    ctl("--queue", "small", "arm", "+1h", "1")
    assert status("--queue", "small")["limit"] == "1000"
    assert timers("kept") == 1
    drop("small", "kept")
    settings(None)
    systemctl("reload", UNIT)


def test_reload_with_wrong_settings_changes_nothing():
    pid = serves()
    settings("timers_per_queue = plenty\n")
    systemctl("reload", UNIT, check=False)
    assert serves() == pid
    ctl("--queue", "large", "arm", "+1h", "1")
    assert int(status("--queue", "large")["limit"]) > 1000
    drop("large")
    settings(None)
    systemctl("reload", UNIT)


def test_restart_keeps_queues():
    before = serves()
    ctl("--queue", "kept", "arm", "+1h", "42")
    systemctl("restart", UNIT)
    assert main_pid() not in (0, before)
    assert timers("kept") == 1
    drop("kept")


def test_stop_keeps_queues_from_systemd_254_on():
    serves()
    ctl("--queue", "kept", "arm", "+1h", "42")
    assert wait_for(lambda: kept() == 1, LIMIT)
    systemctl("stop", UNIT)
    systemctl("start", UNIT)
    lasts = systemd_version() >= 254
    assert kept() == (1 if lasts else 0), kept()
    assert timers("kept") == (1 if lasts else 0)
    figure("kept" if lasts else "lost, as told")
    drop("kept")


def test_command_runs_once_over_restarts():
    path = "/tmp/expiry-ran"
    began = time.monotonic()
    process = subprocess.Popen(
        ["expiryctl", "run", "--in", "4s", "--", "sh", "-c",
         "cut -d ' ' -f 1 /proc/uptime >>" + path], stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True)
    assert wait_for(lambda: status()["queues"] == "1", LIMIT)
    for kill in False, True, False:
        before = serves()
        if kill:
            systemctl("kill", "--signal=KILL", UNIT)
        else:
            systemctl("restart", UNIT)
        serves(before)
    said = process.communicate(timeout=LIMIT)[0]
    passed = time.monotonic() - began
    with open(path, encoding="ascii") as file:
        ran = len(file.readlines())
    os.unlink(path)
    assert (process.returncode, ran, said) == (0, 1, ""), (ran, said)
    assert passed >= 4, passed
    figure("due after 4 s, ran after %.1f s, 3 restarts" % passed)


def test_sandbox_is_in_force():
    pid = serves()
    with open("/proc/%d/status" % pid, encoding="utf-8") as file:
        about = dict(line.rstrip().split(":\t", 1) for line in file
                     if ":\t" in line)
    assert about["CapEff"] == about["CapBnd"] == "0" * 16, about
    assert about["NoNewPrivs"] == "1" and about["Seccomp"] == "2", about
    assert int(about["Uid"].split()[0]) != 0, about
    assert grp.getgrgid(int(about["Gid"].split()[0])).gr_name == "expiry"
    for space in "net", "mnt", "ipc":
        own, first = (os.readlink("/proc/%s/ns/%s" % (of, space))
                      for of in (pid, 1))
        assert own != first, space
    control = "/sys/fs/cgroup" + show("ControlGroup")
    with open(control + "/memory.max", encoding="ascii") as file:
        assert file.read().strip().isdigit()
    # Of all devices, only this one, and those that every program may have.
    denied = subprocess.run(
        ["systemd-run", "--quiet", "--wait", "--pipe", "-p", "User=root",
         *("-p%s=%s" % entry for entry in
           shows("DevicePolicy", "DeviceAllow").items()),
         "sh", "-c", "exec 3<>/dev/expiry && ! (exec 4</dev/kmsg)"],
        capture_output=True, check=False, text=True)
    assert denied.returncode == 0, denied


def test_exposure_is_at_most_1_5():
    text = output_of("systemd-analyze", "security", "--no-pager", UNIT)
    level = float(re.search(r"exposure level for \S+: ([0-9.]+)", text)[1])
    figure("%.1f" % level)
    assert level <= 1.5, text


def test_both_statuses_agree():
    serves()
    for name, count in ("first", 3), ("second", 4):
        for _ in range(count):
            ctl("--queue", name, "arm", "+1h", "1")
    # The status is brought up to date with the watchdog's answer.
    agreed = wait_for(lambda: "7 timers in 2 queues, 0 clients" in
                      show("StatusText"), LIMIT)
    told = status()
    assert agreed, show("StatusText")
    # The one that asks counts neither itself nor a queue.
    assert (told["queues"], told["connections"]) == ("2", "0"), told
    assert timers("first") + timers("second") == 7
    assert show("StatusText").startswith("Engine %s: " % told["engine"])
    assert "; 2 queues kept over a restart" in show("StatusText")
    # Of which the daemon knows only that it was sent.
    assert kept() == 2, kept()
    drop("first", "second")


if __name__ == "__main__":
    main()
