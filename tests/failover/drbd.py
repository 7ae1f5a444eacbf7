# SPDX-License-Identifier: LGPL-2.1-or-later
"""The same two nodes and their volume as volume.py has, with DRBD.

Both nodes are in one kernel: DRBD connects two of its resources over the loopback
device, each with a disk of its own and a file for what it knows of the other one. It is
set up as examples/two-machines/expiry.res says: protocol C, and a node that has lost the
other one writes nothing until that is fenced. What fences is a script of this test. It
says yes to the node that takes over, and no to the other one.

Needs a kernel with DRBD (drbd.config) and Debian's drbd-utils.
"""

import contextlib
import os
import subprocess
import time

import volume
from logged_disk import run

SETUP = "/usr/lib/drbd/drbdsetup-84"
HELPER = "/sys/module/drbd/parameters/usermode_helper"
PORT = 7789
META_SIZE = 4 << 20
FENCED = 7      # what a fencing helper exits with


def connect(one, other):
    """Lays a cable between two nodes."""
    os.makedirs("/run/lock", exist_ok=True)     # for drbdmeta
    run("ip", "link", "set", "lo", "up")
    for node in one, other:
        run("ip", "address", "replace", f"{node.address}/32", "dev", "lo")


class Node(volume.Node):
    """A resource of DRBD."""
    numbers = 0

    def __init__(self, name, address, folder, program):
        self.name, self.address, self.folder = name, address, folder
        self.minor = Node.numbers
        Node.numbers += 1
        self.device = f"/dev/drbd{self.minor}"
        self.image = f"{folder}/disk-{name}"
        self.write_program(folder, name, program)

    def remove(self):
        pass

    def setup(self, command, *words, may_fail=False):
        done = subprocess.run([SETUP, command, *words], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False,
                              timeout=volume.WAIT_S)
        if done.returncode and not may_fail:
            raise OSError(f"{command} {' '.join(words)}: {done.stdout.strip()}")
        return done.stdout.strip()

    def begin(self, other, fencing, stack):
        """Makes the resource, whose disk is the node's image."""
        meta = f"{self.folder}/meta-{self.name}"
        with open(meta, "wb") as file:
            file.truncate(META_SIZE)
        disk, meta = (stack.enter_context(volume.logged_disk.loop_device(path))
                      for path in (self.image, meta))
        run("drbdmeta", "--force", str(self.minor), "v08", meta, "flex-external",
            "create-md")
        self.setup("new-resource", self.name)
        stack.callback(self.setup, "down", self.name, may_fail=True)
        self.setup("new-minor", self.name, str(self.minor), "0")
        self.setup("attach", str(self.minor), disk, meta, "flexible",
                   f"--fencing={fencing}", "--on-io-error=detach")
        self.setup("connect", self.name, f"ipv4:{self.address}:{PORT}",
                   f"ipv4:{other.address}:{PORT}", "--protocol=C", "--ping-timeout=5",
                   "--ping-int=1", "--timeout=9", "--connect-int=1")

    def disconnect(self, other):
        self.setup("disconnect", f"ipv4:{self.address}:{PORT}",
                   f"ipv4:{other.address}:{PORT}", "--force", may_fail=True)

    def state(self):
        return self.setup("cstate", str(self.minor), may_fail=True)

    def disk_state(self):
        return self.setup("dstate", str(self.minor), may_fail=True)


class Volume:
    """As volume.Volume. With one vote a node goes on without the other one."""

    def __init__(self, active, standby, folder, votes):
        self.active, self.standby = active, standby
        self.is_lost, self.is_released = False, False
        self.stack = contextlib.ExitStack()
        fence = f"{folder}/fence"
        with open(fence, "w", encoding="utf-8") as file:
            print(f'#!/bin/sh\n[ "$1 $2" = "fence-peer {standby.name}" ] || exit 1\n'
                  f"exit {FENCED}", file=file)
        os.chmod(fence, 0o755)
        with open(HELPER, "w", encoding="utf-8") as file:
            file.write(fence)
        fencing = "dont-care" if votes == 1 else "resource-and-stonith"
        for node, other in (active, standby), (standby, active):
            node.begin(other, fencing, self.stack)
        volume.await_that(lambda: active.state() == standby.state() == "Connected",
                          "the nodes do not connect")
        # Their disks are alike.
        active.setup("new-current-uuid", str(active.minor), "--clear-bitmap=yes")
        volume.await_that(lambda: active.disk_state() == "UpToDate/UpToDate",
                          "the disks are not up to date")
        active.setup("primary", str(active.minor))

    def device(self):
        return contextlib.nullcontext(self.active.device)

    @contextlib.contextmanager
    def taken_over(self):
        """The standby fences the active node and takes the volume."""
        self.stop_standby()
        self.standby.setup("primary", str(self.standby.minor))
        yield self.standby.device

    def cut(self, is_cut):
        subprocess.run(["ip", "address", "del" if is_cut else "replace",
                        f"{self.standby.address}/32", "dev", "lo"], check=False,
                       stderr=subprocess.DEVNULL)

    def stop_standby(self):
        """The standby does not listen to the active node any longer."""
        self.standby.disconnect(self.active)

    def lose_active(self):
        """The active node loses its power: what the standby does not have is not
        answered, for the node waits until that is fenced."""
        if not self.is_lost:
            self.cut(True)
            self.stop_standby()
        self.is_lost = True

    def release(self):
        """Lets a daemon end that was killed: what it waits for fails."""
        if not self.is_lost or self.is_released:
            return
        self.is_released = True
        time.sleep(0.2)         # it sends nothing any longer
        volume.await_that(lambda: self.active.state() != "Connected",
                          "the cut is not noticed")
        minor = str(self.active.minor)
        self.active.disconnect(self.standby)
        self.active.setup("detach", minor, "--force", may_fail=True)
        self.active.setup("resume-io", minor, may_fail=True)
        self.cut(False)

    def close(self):
        self.lose_active()
        self.release()
        self.stack.close()
