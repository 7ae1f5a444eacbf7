# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files that declare queues, and the people who connect to them."""

import contextlib
import errno
import json
import os
import tempfile

from client import EXISTING, MONOTONIC, Closed, Connection, attach, wait_for
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
    """What @function() returns as JSON, in a child that is one of PEOPLE, or has
    those three itself."""
    uid, gid, groups = PEOPLE[who] if isinstance(who, str) else who
    end, start = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.setgroups(groups)
            os.setgid(gid)
            os.setuid(uid)
            os.write(start, json.dumps(function(*args)).encode())
            os._exit(0)
        except BaseException as problem:    # to the parent with it
            os.write(start, json.dumps("%r" % problem).encode())
            os._exit(1)
    os.close(start)
    with os.fdopen(end, "rb") as pipe:
        value = json.loads(pipe.read() or b"null")
    _, status = os.waitpid(pid, 0)
    assert status == 0, value
    return value


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
    return wait_for(look, 5)


def rows(daemon):
    with attach(daemon.path, flags=EXISTING) as looker:
        return {row.name: row for row in listing(looker)}
