#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The logged disk notices a program that says "done" too early, and no other."""

import os
import shutil
import struct
import sys
import tempfile

import logged_disk

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "socket"))
import tap  # noqa: E402

SIZE = 320 << 20
MARKER = SIZE - (1 << 20)
NUMBERS, STATES = 300, 60
# Of STATES: a file system that is being mounted or unmounted writes its superblock, which
# has two sectors. With one of them it cannot be mounted.
MOST_REFUSED = STATES // 10


def append(where, marker, is_synced):
    """Appends numbers to a file, and says of each that it is there."""
    fd = os.open(f"{where}/numbers", os.O_WRONLY | os.O_CREAT, 0o600)
    folder = os.open(where, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
    for number in range(1, NUMBERS + 1):
        os.write(fd, struct.pack("<Q", number))
        if is_synced:
            os.fdatasync(fd)
        marker.write(number)
    os.close(fd)


def numbers_in(where):
    """Returns how many numbers in a row a file begins with."""
    with open(f"{where}/numbers", "rb") as file:
        data = file.read()
    for nr, (number,) in enumerate(struct.iter_unpack(
            "<Q", data[:len(data) // 8 * 8])):
        if number != nr + 1:
            return nr
    return len(data) // 8


def lost_states(kind, is_synced):
    """Returns in how many of STATES something is lost that was said to be there, and how
    many the file system refuses."""
    lost = refused = 0
    with tempfile.TemporaryDirectory(prefix="expiry-power-") as folder:
        image, log, where = (f"{folder}/{name}" for name in
                             ("image", "log", "mounted"))
        os.mkdir(where)
        logged_disk.make(image, MARKER, kind)
        os.truncate(image, SIZE)
        shutil.copy(image, f"{folder}/first")
        with logged_disk.logged(image, log, folder) as disk, \
                logged_disk.loop_device(disk) as device:
            marker = logged_disk.Marker(device, MARKER)
            with logged_disk.mounted(device, kind, where):
                append(where, marker, is_synced)
            marker.close()
        states = logged_disk.States(f"{folder}/first", log, MARKER, 1)
        for number, (_, answered, pending) in enumerate(states.draw(STATES)):
            copy = f"{folder}/copy{number}"
            logged_disk.run("cp", "--sparse=always", f"{folder}/first", copy)
            states.lose(copy, pending)
            try:
                with logged_disk.loop_device(copy) as device, \
                        logged_disk.mounted(device, kind, where):
                    lost += answered and numbers_in(where) < answered
            except logged_disk.Refused:
                refused += 1
            os.remove(copy)
    return lost, refused


def test_a_program_that_waits_for_the_disk_loses_nothing():
    for kind in ("ext4", "xfs"):
        lost, refused = lost_states(kind, True)
        assert lost == 0 and refused <= MOST_REFUSED, (kind, lost, refused)


def test_a_program_that_does_not_wait_is_noticed():
    for kind in ("ext4", "xfs"):
        lost, refused = lost_states(kind, False)
        assert lost > STATES // 4 and refused <= MOST_REFUSED, (kind, lost, refused)


if __name__ == "__main__":
    tap.main()
