# SPDX-License-Identifier: LGPL-2.1-or-later
"""Two nodes of a cluster on one machine, and a volume that both have.

A node is a network namespace, a file for its disk, and an id of the machine's start of
its own. The active node writes to its own file and, over TCP, to the other node's; a
write and a flush are complete once both have them (qemu-storage-daemon: quorum, NBD).
That is what DRBD's protocol C does, which drbd.py has.
"""

import os
import subprocess
import sys
import time
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "power"))
import logged_disk  # noqa: E402
from logged_disk import WAIT_S, run  # noqa: E402

SIZE = 512 << 20
BOOT_ID = "/proc/sys/kernel/random/boot_id"
PORT = 10809


def await_that(condition, what):
    until = time.monotonic() + WAIT_S
    while not condition():
        if time.monotonic() > until:
            raise OSError(what)
        time.sleep(0.01)


class Node:
    """@image: its disk; @program: starts expiryd there"""

    def __init__(self, name, address, folder, program):
        self.space = f"expiry-{name}-{os.getpid()}"
        self.link = f"ex{name}{os.getpid()}"
        self.address = address
        self.image = f"{folder}/disk-{name}"
        run("ip", "netns", "add", self.space)
        self.write_program(folder, name,
                           f"nsenter --net=/run/netns/{self.space} {program}")

    def write_program(self, folder, name, program):
        """Lets self.program be one whose machine has a start of its own."""
        self.program = f"{folder}/expiryd-{name}"
        boot_id = f"{folder}/boot-id-{name}"
        with open(boot_id, "w", encoding="utf-8") as file:
            print(uuid.uuid4(), file=file)
        with open(self.program, "w", encoding="utf-8") as file:
            print("#!/bin/sh\nexec unshare --mount sh -c "
                  f"'mount --bind {boot_id} {BOOT_ID}; exec \"$@\"' sh {program} \"$@\"",
                  file=file)
        os.chmod(self.program, 0o755)

    def here(self, *command):
        return ["nsenter", f"--net=/run/netns/{self.space}", *command]

    def storage(self, *words):
        """Starts the node's part of the volume."""
        return subprocess.Popen(
            self.here("qemu-storage-daemon", "--blockdev",
                      f"file,node-name=own,filename={self.image}", *words),
            stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def remove(self):
        run("ip", "netns", "del", self.space)


def connect(one, other):
    """Lays a cable between two nodes."""
    run("ip", "link", "add", one.link, "netns", one.space, "type", "veth", "peer",
        "name", other.link, "netns", other.space)
    for node in one, other:
        run(*node.here("ip", "address", "add", f"{node.address}/24", "dev", node.link))
        run(*node.here("ip", "link", "set", node.link, "up"))


class Volume:
    """A volume that @active serves, and @standby has as well. @votes: how many of both
    must have a write."""

    def __init__(self, active, standby, folder, votes):
        self.nodes = active, standby
        self.path = path = f"{folder}/volume"
        with open(path, "wb"):
            pass
        self.standby = standby.storage(
            "--nbd-server", f"addr.type=inet,addr.host={standby.address},"
            f"addr.port={PORT}",
            "--export", "nbd,id=volume,node-name=own,name=volume,writable=on")
        await_that(lambda: str(PORT) in subprocess.run(
            standby.here("ss", "-Hltn"), stdout=subprocess.PIPE, text=True,
            check=True).stdout, "the standby does not listen")
        self.active = active.storage(
            "--blockdev", "nbd,node-name=other,server.type=inet,"
            f"server.host={standby.address},server.port={PORT},export=volume",
            "--blockdev", "quorum,node-name=both,children.0=own,children.1=other,"
            f"vote-threshold={votes}",
            "--export", f"fuse,id=disk,node-name=both,mountpoint={path},writable=on")
        await_that(lambda: os.stat(path).st_size, "the volume is not there")

    def device(self):
        """The volume on the active node, in a `with`."""
        return logged_disk.loop_device(self.path)

    def taken_over(self):
        """The volume on the standby, without the active node."""
        self.stop_standby()
        return logged_disk.loop_device(self.nodes[1].image)

    def cut(self, is_cut):
        """Cuts the cable between both, or mends it."""
        node = self.nodes[0]
        run(*node.here("ip", "link", "set", node.link, "down" if is_cut else "up"))

    def stop_standby(self):
        """The standby takes its disk for itself."""
        self.standby.terminate()
        self.standby.wait(WAIT_S)
        # Behind a cut cable the kernel keeps the last replies of the process, and would
        # send them once that is mended: a write that the standby has would be answered.
        run(*self.nodes[1].here("ss", "--kill", "--no-header", "--numeric", "--tcp",
                                "state", "all", "sport", "=", str(PORT)))

    def lose_active(self):
        """The active node loses its power."""
        self.active.kill()
        self.active.wait(WAIT_S)

    def release(self):
        """Lets a daemon end that was killed: nothing here makes it wait."""

    def close(self):
        for process in self.active, self.standby:
            process.kill()
            process.wait(WAIT_S)
        subprocess.run(["umount", "-l", self.path], check=False,
                       stderr=subprocess.DEVNULL)
