# SPDX-License-Identifier: LGPL-2.1-or-later
"""A disk that remembers each write and flush, and the states in which a loss of
power leaves it.

qemu-storage-daemon's blklogwrites filter writes the log, in the format of the kernel's
dm-log-writes (Documentation/admin-guide/device-mapper/log-writes.rst). It exports the
disk as a file by FUSE, and a loop device makes a block device of that file. The loop
device must not use direct I/O: it would corrupt data there.
"""

import contextlib
import mmap
import os
import random
import struct
import subprocess
import time

SECTOR = 512
MAGIC = 0x6a736677736872
SUPER = struct.Struct("<QQQI")
ENTRY = struct.Struct("<QQQQ")
FLUSH, FUA, DISCARD, MARK = 1, 2, 4, 8

WAIT_S = 30
CLOSE = 40      # entries of the log


class Refused(Exception):
    """The kernel does not mount a file system."""


def run(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False, timeout=120)
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stdout.strip()}")
    return done.stdout.strip()


def make(path, size, kind):
    """Makes the file @path of @size bytes, with a file system @kind in it."""
    with open(path, "wb") as file:
        file.truncate(size)
    options = {"ext4": ["-q", "-F", "-E", "nodiscard,lazy_itable_init=0"],
               "xfs": ["-q", "-f", "-K"]}[kind]
    run(f"mkfs.{kind}", *options, path)


@contextlib.contextmanager
def loop_device(path, **options):
    device = run("losetup", "--find", "--show",
                 *(f"--{name}={value}" for name, value in options.items()), path)
    try:
        yield device
    finally:
        run("losetup", "--detach", device)


@contextlib.contextmanager
def mounted(device, kind, where):
    """Mounts a device. XFS does not mount a copy of a mounted file system without
    nouuid. Raises Refused."""
    try:
        run("mount", "-t", kind, *(["-o", "nouuid"] if kind == "xfs" else []),
            device, where)
    except OSError as problem:
        raise Refused(problem) from problem
    try:
        yield where
    finally:
        run("umount", where)


@contextlib.contextmanager
def logged(image, log, folder):
    """Yields the path of a file that is @image, and whose writes are in @log."""
    path = f"{folder}/disk"
    with open(path, "wb"), open(log, "wb"):
        pass
    server = subprocess.Popen(
        ["qemu-storage-daemon",
         "--blockdev", f"file,node-name=image,filename={image}",
         "--blockdev", f"file,node-name=log,filename={log}",
         "--blockdev", "blklogwrites,node-name=disk,file=image,log=log,"
                       f"log-sector-size={SECTOR}",
         "--export", f"fuse,id=disk,node-name=disk,mountpoint={path},writable=on"],
        stdin=subprocess.DEVNULL)
    try:
        until = time.monotonic() + WAIT_S
        while os.stat(path).st_size == 0:
            if server.poll() is not None or time.monotonic() > until:
                raise OSError("qemu-storage-daemon does not export the disk")
            time.sleep(0.01)
        yield path
    finally:
        server.terminate()
        server.wait(WAIT_S)


class Marker:
    """A sector behind the file system. Its writes say in the log what was answered
    before them."""

    def __init__(self, device, offset):
        self.fd = os.open(device, os.O_WRONLY | os.O_DIRECT)
        self.buffer = mmap.mmap(-1, SECTOR)
        self.offset = offset

    def write(self, number):
        self.buffer[:8] = struct.pack("<Q", number)
        os.pwrite(self.fd, self.buffer, self.offset)

    def close(self):
        os.close(self.fd)


class Write:
    """@at: byte of the disk, @data: in the log, and @length of it"""
    __slots__ = ("at", "data", "length", "flags")

    def __init__(self, at, data, length, flags):
        self.at, self.data, self.length, self.flags = at, data, length, flags


def entries_of(log):
    """Yields each Write of a log. A flush has the length 0."""
    with open(log, "rb") as file:
        magic, version, nr, sector = SUPER.unpack(file.read(SUPER.size))
        if magic != MAGIC or version != 1 or sector != SECTOR:
            raise ValueError(f"{log} is not a log of writes")
        place = SECTOR
        for _ in range(nr):
            file.seek(place)
            at, sectors, flags, _ = ENTRY.unpack(file.read(ENTRY.size))
            data = place + SECTOR
            length = sectors * SECTOR
            place = data + (0 if flags & DISCARD else length)
            yield Write(at * SECTOR, data, length, flags)


class States:
    """The states that a loss of power may leave, in the order of the log: all up to
    the last flush, and any of the sectors written after it."""

    def __init__(self, image, log, marker, seed):
        self.image, self.log, self.marker = image, log, marker
        self.entries = list(entries_of(log))
        self.random = random.Random(seed)

    def count_flushes(self):
        return sum(bool(entry.flags & FLUSH) for entry in self.entries)

    def marked(self, numbers):
        """Returns for each number the first cut behind a marker with it."""
        cuts, wanted = [], set(numbers)
        with open(self.log, "rb") as log:
            for cut, entry in enumerate(self.entries, 1):
                if entry.at <= self.marker < entry.at + entry.length:
                    number = self.marker_of(log, entry)
                    if number in wanted:
                        wanted.remove(number)
                        cuts.append(cut)
        return cuts

    def draw(self, number, near=()):
        """Yields (cut, answered) for @number cuts of the log, of which half are close to
        cuts in @near. @image is then the state's durable part, and lose() gives the rest
        of it to a copy."""
        last = len(self.entries)
        cuts = [self.random.randrange(1, last + 1) for _ in range(number)]
        for i in range(0, number if near else 0, 2):
            cut = self.random.choice(near) + self.random.randrange(-CLOSE, CLOSE)
            cuts[i] = min(max(cut, 1), last)
        yield from self.at(sorted(cuts))

    def marker_of(self, log, entry):
        """Returns the number in a write of the marker."""
        log.seek(entry.data + self.marker - entry.at)
        return struct.unpack("<Q", log.read(8))[0]

    def at(self, cuts):
        """Yields the same for these cuts."""
        answered, applied, pending = 0, 0, []
        with open(self.log, "rb") as log, open(self.image, "r+b") as image:
            for cut in cuts:
                for entry in self.entries[applied:cut]:
                    if entry.flags & DISCARD:
                        raise ValueError("the log has a discard")
                    if entry.at <= self.marker < entry.at + entry.length:
                        answered = self.marker_of(log, entry)
                    if entry.flags & FLUSH:
                        self.apply(log, image, pending)
                        pending = []
                    if entry.length:
                        pending.append(entry)
                applied = cut
                image.flush()
                yield cut, answered, pending

    @staticmethod
    def apply(log, image, entries):
        for entry in entries:
            log.seek(entry.data)
            image.seek(entry.at)
            image.write(log.read(entry.length))

    def lose(self, path, pending):
        """Writes some of the sectors that were not flushed to @path: none, all, or
        any, in their order. A write that forced itself to the disk is not lost."""
        share = self.random.choice((0, 1, 0.5, 0.5, self.random.random()))
        with open(self.log, "rb") as log, open(path, "r+b") as image:
            for entry in pending:
                for offset in range(0, entry.length, SECTOR):
                    if entry.flags & FUA or self.random.random() < share:
                        log.seek(entry.data + offset)
                        image.seek(entry.at + offset)
                        image.write(log.read(SECTOR))
