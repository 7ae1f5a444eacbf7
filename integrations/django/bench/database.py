# SPDX-License-Identifier: LGPL-2.1-or-later
"""The database of the benchmark: a private PostgreSQL if one is installed, else SQLite."""

import glob
import os
import shutil
import subprocess


def programs():
    """Returns the folder of PostgreSQL's newest programs, or None."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"),
                   key=lambda path: int(path.split("/")[-2]))
    return found[-1] if found else None


class PostgreSQL:
    """A server of its own in @folder, reached by a socket there."""

    def __init__(self, folder):
        self.folder = folder
        self.bin = programs()
        self.data = os.path.join(folder, "data")
        # It refuses to run as root.
        self.user = "postgres" if os.geteuid() == 0 else None
        os.mkdir(self.data)
        if self.user:
            shutil.chown(self.data, self.user)
            os.chmod(folder, 0o777)
        self.run("initdb", "-D", self.data, "-U", "bench", "-A", "trust", "--no-sync")
        self.run("pg_ctl", "-D", self.data, "-w", "-l", os.path.join(self.data, "log"), "-o",
                 "-c listen_addresses='' -c unix_socket_directories=%s" % folder, "start")

    def run(self, name, *arguments):
        command = [os.path.join(self.bin, name), *arguments]
        if self.user:
            command = ["runuser", "-u", self.user, "--", *command]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=self.folder)

    def version(self):
        return subprocess.run([os.path.join(self.bin, "postgres"), "--version"], text=True,
                              capture_output=True, check=True).stdout.strip()

    def end(self):
        self.run("pg_ctl", "-D", self.data, "-w", "-m", "immediate", "stop")
