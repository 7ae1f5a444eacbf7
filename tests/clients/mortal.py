# SPDX-License-Identifier: LGPL-2.1-or-later
"""A daemon with a journal that a test kills with -9 and starts again."""

import os
import signal
import tempfile

from daemon import Daemon


READY = 120         # seconds
# A killed process loses nothing that it has written, on any file system. In memory a start and
# each flush take no time of a disk that others write to.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


class Mortal:
    """A daemon on the socket @path, and its successors, with one journal. @config: further
    settings"""

    def __init__(self, path=None, config=""):
        self.folder = tempfile.TemporaryDirectory(prefix="expiry-journal-", dir=MEMORY)
        self.path, self.config = path, config
        if path is None:
            self.path = self.folder.name + "/socket"
        self.daemon = None
        self.start()

    def start(self, path=None):
        self.daemon = Daemon(self.config, path=path or self.path,
                             options=["--journal", self.folder.name])
        # Without /dev/shm its journal waits for the disk.
        assert self.daemon.wait_ready(READY), self.daemon.log()

    def kill(self):
        self.daemon.process.send_signal(signal.SIGKILL)
        self.daemon.process.wait()
        self.daemon.remove()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.daemon.remove()
        self.folder.cleanup()
