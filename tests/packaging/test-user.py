#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A user's own daemon listens below $XDG_RUNTIME_DIR. Library and tool find it if the
system's socket does not exist. The test has a /run of its own."""

import contextlib
import os
import resource
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "socket"))

import tap                                  # noqa: E402
from client import WAIT, wait_for           # noqa: E402
from daemon import PROGRAM, ROOT            # noqa: E402

CTL = os.environ.get("EXPIRYCTL", os.path.join(ROOT, "build", "expiryctl"))
LIBRARY = os.path.join(ROOT, "build", "libexpiry.so.0")
SYSTEM = "/run/expiryd/socket"
USER, OTHER = 64321, 64322      # nobody's
MEMLOCK = 8 << 20               # the default limit

# Prints whether the program has more rights than its caller, the library's address for
# NULL, and the result of opening it.
ASK = """
#include <expiry/expiry.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	static char address[EXPIRY_ADDRESS_MAX];
	struct expiry *h = NULL;
	int status = expiry_default_address(address, sizeof(address));

	printf("%d %d %d %s\\n", geteuid() != getuid(), status,
	       expiry_open(&h, NULL, NULL), address);
	expiry_close(h);
	return 0;
}
"""


class Place:
    """A folder with the programs that every user can read. @own is the runtime
    directory of USER."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="expiry-user-")
        os.chmod(self.folder, 0o755)
        self.daemon, self.ctl, self.library = (
            shutil.copy(path, self.folder) for path in (PROGRAM, CTL, LIBRARY))
        self.asker = os.path.join(self.folder, "ask")
        include = os.path.join(ROOT, "include")
        subprocess.run(
            ["cc", "-I", include, "-I", os.path.join(include, "uapi"), "-x",
             "c", "-", "-x", "none", self.library, "-Wl,-rpath," + self.folder,
             "-o", self.asker], input=ASK, text=True, check=True)
        self.own = self.directory("own", 0o700, USER)
        self.socket = os.path.join(self.own, "expiry", "socket")

    def directory(self, name, mode, owner):
        path = os.path.join(self.folder, name)
        os.mkdir(path)
        os.chmod(path, mode)
        os.chown(path, owner, owner)
        return path

    def start(self, *command, user=USER, memlock=None, umask=-1,
              **environment):
        """Starts a process of the user, with these variables only."""
        def limit():
            if memlock is not None:
                resource.setrlimit(resource.RLIMIT_MEMLOCK, (memlock, memlock))
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env=environment, user=user,
            group=user, extra_groups=[], umask=umask, cwd="/",
            preexec_fn=limit)

    def run(self, *command, status=0, **keywords):
        """Returns the output of the user's process, both streams together."""
        process = self.start(*command, **keywords)
        out, err = process.communicate(timeout=WAIT)
        assert process.returncode == status, (process.returncode, out, err)
        return out if status == 0 else err

    @contextlib.contextmanager
    def serving(self, path, *options, **keywords):
        """Starts the user's daemon, which answers at @path."""
        process = self.start(self.daemon, *options, **keywords)
        try:
            wait_for(lambda: answers(path) or process.poll() is not None)
            assert process.poll() is None, process.communicate()
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.log = process.communicate(timeout=WAIT)[1]
        assert process.returncode == 0, process.log

    def ask(self, **keywords):
        """Returns the library's address, and the errno of opening it."""
        _, status, opened, address = self.run(self.asker, **keywords).split()
        assert status == "0" and address.startswith("unix:"), (status, address)
        return address[5:], -int(opened)

    def __enter__(self):
        tap.need_root()
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)
        shutil.rmtree(os.path.dirname(SYSTEM), ignore_errors=True)


def answers(path):
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(path)
        except OSError:
            return False
    return True


def mode(path):
    entry = os.stat(path)
    return stat.S_IMODE(entry.st_mode), entry.st_uid


def test_declared_queues_are_the_system_s_daemon_s():
    with Place() as place:
        files = "/run/expiry/queues.d"
        os.makedirs(files)
        with open(os.path.join(files, "leases.conf"), "w",
                  encoding="utf-8") as file:
            file.write("owner = root\n")
        os.chmod("/run/expiry", 0o755)
        with place.serving(place.socket, XDG_RUNTIME_DIR=place.own) as daemon:
            out = place.run(place.ctl, "queues", "--names",
                            XDG_RUNTIME_DIR=place.own)
        assert not out and "declared" not in daemon.log, (out, daemon.log)
        shutil.rmtree("/run/expiry")


def test_a_user_s_daemon_tool_and_library_meet():
    with Place() as place:
        own = {"XDG_RUNTIME_DIR": place.own}
        with place.serving(place.socket, **own) as daemon:
            assert mode(os.path.dirname(place.socket)) == (0o700, USER)
            assert place.ask(**own) == (place.socket, 0)
            assert place.socket in place.run(place.ctl, "status", **own)
            place.run(place.ctl, "arm", "+1ms", "4242", **own)
            assert "4242" in place.run(place.ctl, "watch", "--count", "1",
                                       **own)
        assert "embedded" in daemon.log, daemon.log
        assert not os.listdir(os.path.dirname(place.socket))
        # The next daemon can use the existing directory.
        with place.serving(place.socket, **own):
            pass


def test_a_umask_does_not_lock_the_user_out():
    with Place() as place:
        own = {"XDG_RUNTIME_DIR": place.own}
        with place.serving(place.socket, umask=0o377, **own):
            assert mode(os.path.dirname(place.socket)) == (0o700, USER)
            assert place.ask(**own) == (place.socket, 0)


def test_a_directory_for_several_users_is_refused():
    with Place() as place:
        own = {"XDG_RUNTIME_DIR": place.own}
        directory = os.path.join(place.own, "expiry")
        os.mkdir(directory)
        os.chown(directory, USER, USER)
        for bits in (0o720, 0o702):
            os.chmod(directory, bits)
            said = place.run(place.daemon, status=1, **own)
            assert "another user" in said, said
        os.chmod(directory, 0o755)
        with place.serving(place.socket, **own):
            pass
        os.rename(directory, directory + "-elsewhere")
        os.symlink(directory + "-elsewhere", directory)
        said = place.run(place.daemon, status=1, **own)
        assert "Not a directory" in said, said


def test_which_socket_it_is():
    with Place() as place:
        own = {"XDG_RUNTIME_DIR": place.own}
        assert place.ask(**own) == (place.socket, 2)
        assert place.ask() == (SYSTEM, 2)
        assert place.ask(XDG_RUNTIME_DIR="") == (SYSTEM, 2)
        assert place.ask(XDG_RUNTIME_DIR="run") == (SYSTEM, 2)
        given = os.path.join(place.folder, "given")
        assert place.ask(EXPIRY_SOCKET=given, **own) == (given, 2)
        assert place.ask(EXPIRY_SOCKET="", **own) == (place.socket, 2)
        # su(1) leaves root the variable of its caller.
        assert place.ask(user=0, **own) == (SYSTEM, 2)

        os.mkdir(os.path.dirname(SYSTEM), 0o755)
        with place.serving(SYSTEM, user=0), \
                place.serving(place.socket, **own):
            assert place.ask(**own) == (SYSTEM, 0)
            assert place.ask(EXPIRY_SOCKET=place.socket, **own) == \
                (place.socket, 0)
            assert SYSTEM in place.run(place.ctl, "status", **own)
        # One that nobody answers on is the system's all the same.
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(SYSTEM)
            assert place.ask(**own) == (SYSTEM, 13)
            os.chmod(SYSTEM, 0o666)
            assert place.ask(**own) == (SYSTEM, 111)
        # So is one in a folder that the user cannot look into.
        folder = os.path.dirname(SYSTEM)
        os.chmod(folder, 0o700)
        assert place.ask(**own) == (SYSTEM, 13)
        # Below a file is none.
        shutil.rmtree(folder)
        with open(folder, "w", encoding="ascii"):
            assert place.ask(**own) == (place.socket, 2)
        os.unlink(folder)


def test_a_path_that_is_too_long():
    """The address is still complete, so that a message can name it."""
    with Place() as place:
        for name, path, end in (("EXPIRY_SOCKET", "/" + "x" * 107, ""),
                                ("XDG_RUNTIME_DIR", "/" + "x" * 93,
                                 "/expiry/socket")):
            assert place.ask(**{name: path}) == (path + end, 36), name
            said = place.run(place.ctl, "status", status=1, **{name: path})
            assert path + end in said and said.count("\n") == 1, said
        for name, length in (("EXPIRY_SOCKET", 107), ("XDG_RUNTIME_DIR", 93)):
            assert place.ask(**{name: "/" + "x" * (length - 1)})[1] == 2
        # An address has 4128 bytes, with "unix:" and a zero byte.
        whole = "/" + "x" * 4121
        assert place.ask(EXPIRY_SOCKET=whole) == (whole, 36)
        asked = place.run(place.asker, EXPIRY_SOCKET=whole + "x")
        assert asked.split()[1:3] == ["-36", "-36"]
        beyond = {"EXPIRY_SOCKET": "/" + "x" * 4200}
        assert place.run(place.asker, **beyond).split()[1:3] == ["-36", "-36"]
        said = place.run(place.ctl, "status", status=1, **beyond)
        assert "default socket" in said and said.count("\n") == 1, said


def test_more_rights_than_the_caller_s():
    """A set-user-ID program does not use its caller's socket."""
    with Place() as place:
        asked = {"EXPIRY_SOCKET": "/mine", "XDG_RUNTIME_DIR": place.own}
        assert place.run(place.asker, **asked) == "0 0 -2 unix:/mine\n"
        os.chown(place.asker, OTHER, OTHER)
        os.chmod(place.asker, 0o4755)
        said = place.run(place.asker, **asked)
        if said.startswith("0"):
            raise tap.Skip("set-user-ID has no effect here")
        assert said == "1 0 -2 unix:%s\n" % SYSTEM, said


def test_no_place_for_a_socket():
    """The daemon says in one line what is wrong, and what to do."""
    with Place() as place:
        os.mkdir(os.path.dirname(SYSTEM), 0o755)
        theirs = place.directory("theirs", 0o777, OTHER)
        os.mkdir(os.path.join(theirs, "expiry"))
        plain = os.path.join(place.own, "plain")
        with open(plain, "w", encoding="ascii"):
            pass
        for expected, directory in (
                ("XDG_RUNTIME_DIR is not set", None),
                ("XDG_RUNTIME_DIR is not set", ""),
                ("XDG_RUNTIME_DIR is not an absolute path", "run"),
                ("XDG_RUNTIME_DIR is too long", "/" + "x" * 93),
                ("No such file", os.path.join(place.folder, "absent")),
                ("Not a directory", plain),
                ("Permission denied", place.folder),
                ("another user", theirs)):
            environment = {} if directory is None else \
                {"XDG_RUNTIME_DIR": directory}
            said = place.run(place.daemon, status=1, **environment)
            lines = [line for line in said.splitlines()
                     if "engine" not in line and "memory" not in line]
            assert len(lines) == 1 and expected in lines[0] and \
                "XDG_RUNTIME_DIR" in lines[0] and \
                "--socket PATH" in lines[0], (directory, said)
        assert os.listdir(theirs) == ["expiry"]


def test_a_socket_of_one_s_own_choice():
    with Place() as place:
        path = os.path.join(place.own, "e")
        with place.serving(path, "--socket", path):
            assert place.ask(EXPIRY_SOCKET=path) == (path, 0)
            assert path in place.run(place.ctl, "status", EXPIRY_SOCKET=path)
            assert path in place.run(place.ctl, "--socket", path, "status",
                                     EXPIRY_SOCKET="/nonexistent")


def test_root_keeps_the_system_s():
    with Place() as place:
        own = {"XDG_RUNTIME_DIR": place.own}
        with place.serving(SYSTEM, user=0, **own):
            assert mode(os.path.dirname(SYSTEM)) == (0o755, 0)
            assert not os.listdir(place.own)


def test_memory_to_lock():
    """The kernel charges a user's rings to RLIMIT_MEMLOCK. The default is 8 MiB; a
    daemon that has too little says so."""
    if 0 <= resource.getrlimit(resource.RLIMIT_MEMLOCK)[1] < MEMLOCK:
        raise tap.Skip("the limit of locked memory is lower here")
    with Place() as place:
        own = {"XDG_RUNTIME_DIR": place.own}
        with place.serving(place.socket, memlock=MEMLOCK, **own):
            assert place.ask(**own) == (place.socket, 0)
        # Other kernels may charge less.
        process = place.start(place.daemon, memlock=0, **own)
        wait_for(lambda: answers(place.socket) or process.poll() is not None)
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=WAIT)[1]
        assert process.returncode == 0 or "ulimit -l" in said, said


def test_a_device_for_others():
    with Place() as place:
        device = os.path.join(place.folder, "device")
        with open(device, "w", encoding="ascii"):
            pass
        os.chmod(device, 0o660)
        with place.serving(place.socket, "--device", device,
                           XDG_RUNTIME_DIR=place.own) as daemon:
            pass
        assert "engine embedded: %s: Permission denied" % device in \
            daemon.log, daemon.log


def test_no_daemon():
    """The tool's message has the command for a user's own daemon."""
    with Place() as place:
        said = place.run(place.ctl, "status", status=1,
                         XDG_RUNTIME_DIR=place.own)
        assert said == ("expiryctl: %s: no daemon answers; start it with: "
                        "expiryd &, or name its socket with --socket\n"
                        % place.socket), said


def in_own_run():
    """Starts the test again with a private /run."""
    command = ["unshare", "--mount", "sh", "-c",
               'mount -t tmpfs none /run && exec "$@"', "sh"]
    if os.geteuid() or "EXPIRY_TEST_RUN" in os.environ:
        return
    os.environ["EXPIRY_TEST_RUN"] = "own"
    tried = subprocess.run(command + ["true"], stderr=subprocess.PIPE,
                           text=True, check=False)
    if tried.returncode:
        print("1..0 # SKIP no mount namespace: %s" % tried.stderr.strip())
        sys.exit(tap.SKIPPED)
    os.execvp(command[0], command + [sys.executable, "-B", *sys.argv])


if __name__ == "__main__":
    in_own_run()
    tap.main()
