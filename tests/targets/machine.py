# SPDX-License-Identifier: LGPL-2.1-or-later
"""A fresh machine of a Debian release whose process 1 is systemd: a container, with
the kernel and the network of the machine it is on."""

import os
import shutil
import signal
import subprocess
import time

from root import Error, Root, enter_environment, read_log

BOOT_S = 120


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as file:
        return [int(child) for child in file.read().split()]


class Machine(Root):
    """A fresh machine, which runs during its `with` statement."""

    kind = "machine"

    def __enter__(self):
        if not shutil.which("systemd-nspawn"):
            raise Error("no systemd-nspawn: it is in the package systemd-container")
        super().__enter__()
        log = open(self.path + ".console", "wb")
        # Debian 13's systemd requires this version of cgroups.
        env = dict(os.environ, UNIFIED_CGROUP_HIERARCHY="1")
        # It ends with this program, even if that is killed.
        self.nspawn = subprocess.Popen(
            ["setpriv", "--pdeathsig", "TERM", "systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--boot",
             "--console=pipe", "--resolv-conf=copy-host", "--timezone=off",
             "--bind=%s:/var/cache/apt/archives" % self.archives,
             "--directory=" + self.path],
            env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True)
        log.close()
        try:
            self.init = self.wait_for_systemd()
        except BaseException:
            self.__exit__()
            raise
        return self

    def wait_for_systemd(self):
        """Returns the process id of the machine's process 1."""
        limit = time.monotonic() + BOOT_S
        while time.monotonic() < limit and self.nspawn.poll() is None:
            for pid in children(self.nspawn.pid):
                state = subprocess.run(
                    ["nsenter", "--target", str(pid), "--all", "systemctl",
                     "is-system-running"], stdout=subprocess.PIPE, check=False,
                    stderr=subprocess.DEVNULL, text=True).stdout.strip()
                if state in ("running", "degraded"):
                    return pid
            time.sleep(0.1)
        raise Error("the machine does not start: %s" %
                    read_log(self.path + ".console")[-1000:])

    def __exit__(self, *_):
        # systemd-nspawn ends at once on this signal.
        self.nspawn.send_signal(signal.SIGTERM)
        try:
            self.nspawn.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.nspawn.pid, signal.SIGKILL)
            self.nspawn.wait()
        os.unlink(self.path + ".console")
        super().__exit__()

    def start(self, command, output):
        """Starts COMMAND by bash in /src."""
        return subprocess.Popen(
            ["nsenter", "--target", str(self.init), "--all", "--",
             "bash", "-c", "cd /src && " + command],
            env=enter_environment(), stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, start_new_session=True)
