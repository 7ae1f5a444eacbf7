# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files that declare queues, and the people who connect to them."""

import contextlib
import errno
import os
import tempfile

from client import EXISTING, MONOTONIC, Closed, Connection, attach, wait_for
from daemon import as_user
from listing import listing

LOOK, PRODUCE, TAKE = 4, 2, 1
NO_GROUP = 2**32 - 1
APP, OTHER, GROUP = 4101, 4102, 4201
THREADS = (1, 4)

# Of each client: user, group, supplementary groups.
PEOPLE = {
    "owner": (APP, 4301, []),
    "group": (OTHER, GROUP, []),
    "supplementary": (OTHER, 4301, [4302, GROUP, 4303]),
    "others": (OTHER, 4301, [4302]),
    "root": (0, 0, []),
}


def be(who, function, *args):
    """Returns the value of @function() in a child process of one of PEOPLE, or of any
    other (user, group, supplementary groups)."""
    return as_user(PEOPLE[who] if isinstance(who, str) else who, function, *args)


class Files:
    """Folders of queue files, the first one first, as the daemon's settings name
    them."""

    def __init__(self, folder, names=("etc", "run", "lib")):
        self.folders = {name: os.path.join(folder, name) for name in names}
        for path in self.folders.values():
            os.mkdir(path)

    def config(self, more=""):
        return "queue_files = %s\n%s" % (":".join(self.folders.values()), more)

    def path(self, name, where="etc"):
        return os.path.join(self.folders[where], name + ".conf")

    def write(self, name, text="", where="etc", **keys):
        """A file of @text, or of @keys with an owner."""
        if keys:
            text += "".join("%s = %s\n" % key for key in
                            {"owner": APP, **keys}.items())
        with open(self.path(name, where), "w", encoding="utf-8") as file:
            file.write(text)

    def remove(self, name, where="etc"):
        os.remove(self.path(name, where))


@contextlib.contextmanager
def files():
    with tempfile.TemporaryDirectory(prefix="expiryd-") as folder:
        os.chmod(folder, 0o755)
        yield Files(folder)


def hello(path, name, flags=0, clock=MONOTONIC):
    """The status of HELLO, as a name."""
    with Connection(path) as connection:
        try:
            status = connection.hello(name, flags, clock).status
        except Closed:
            return "closed"
        return errno.errorcode[-status] if status else 0


def said(daemon, *words):
    """Wait for a line of the log with all @words; it, or None."""
    def look():
        for line in daemon.log().splitlines():
            if all(word in line for word in words):
                return line
        return None
    return wait_for(look)


def rows(daemon):
    with attach(daemon.path, flags=EXISTING) as looker:
        return {row.name: row for row in listing(looker)}
