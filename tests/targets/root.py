# SPDX-License-Identifier: LGPL-2.1-or-later
"""A pristine root of a Debian release with the checkout in /src, and commands in
it. It is the smallest installation of Debian."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CHECKOUT = os.path.dirname(os.path.dirname(HERE))
WORK = os.path.join(CHECKOUT, "build/targets")
RELEASES = "bookworm trixie"

# Makes a container's mounts, and nodes of the devices that a machine has besides. Its
# root is a mount, as unshare(1) needs it. The shell stays as process 1 and reaps orphans.
ENTER = """
mount --bind "$1" "$1"
cd "$1"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
cp -a /dev/fuse /dev/loop* dev || :
mount -t tmpfs -o mode=755 tmpfs run
mkdir -m 1777 run/lock
mount --bind "$2" var/cache/apt/archives
shift 2
chroot . "$@"
"""

# Answer yes to apt, and do not sync a disk that is discarded.
APT = 'APT::Get::Assume-Yes "true";\n'
DPKG = "force-unsafe-io\n"


class Error(Exception):
    """A failure that the command did not cause: no root, no archive."""


def end_by_signals():
    """Makes the signals that end a program end its `with` statements, too. The second
    one changes nothing."""
    def end(number, _):
        for ignored in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(ignored, signal.SIG_IGN)
        sys.exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)


def tarball(release, kind):
    made = subprocess.run([os.path.join(CHECKOUT, "tests/deb/root"), release, kind],
                          stdout=subprocess.PIPE, text=True, cwd=CHECKOUT, check=False)
    if made.returncode:
        raise Error("no pristine root of %s" % release)
    return made.stdout.strip()


def enter_environment():
    """Returns a login's environment, with apt's archive."""
    env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
           "HOME": "/root", "TERM": "dumb", "USER": "root"}
    env.update({name: value for name, value in os.environ.items()
                if name.lower().endswith("_proxy")})
    return env


def copy_tracked(target):
    """Copies tracked files from the work tree, and nothing else."""
    files = subprocess.run(["git", "ls-files", "-z"], cwd=CHECKOUT, check=True,
                           stdout=subprocess.PIPE).stdout
    tracked = b"\0".join(name for name in files.split(b"\0")
                         if name and os.path.lexists(os.path.join(CHECKOUT.encode(), name)))
    tar = subprocess.run(["tar", "-c", "--null", "-T", "-", "-f", "-"], cwd=CHECKOUT,
                         input=tracked, stdout=subprocess.PIPE, check=True).stdout
    os.makedirs(target)
    subprocess.run(["tar", "-x", "-C", target, "-f", "-"], input=tar, check=True)


class Root:
    """A fresh root, which is removed at the end of `with`."""

    kind = "pristine"

    def __init__(self, release):
        self.release = release
        self.path = None
        # Packages are fetched once a release, and installed in each root.
        self.archives = os.path.join(WORK, "archives", release)

    def __enter__(self):
        tar = tarball(self.release, self.kind)
        os.makedirs(os.path.join(self.archives, "partial"), exist_ok=True)
        self.path = tempfile.mkdtemp(prefix="expiry-root.")
        try:
            self.fill(tar)
        except BaseException:
            Root.__exit__(self)
            raise
        return self

    def fill(self, tar):
        subprocess.run(["tar", "-C", self.path, "-xf", tar], check=True)
        os.chmod(self.path, 0o755)
        # The archive's names resolve as on this machine.
        for name in ("resolv.conf", "hosts"):
            if os.path.exists("/etc/" + name):
                shutil.copy("/etc/" + name, self.file("etc", name))
        self.write("etc/apt/apt.conf.d/90yes", APT)
        self.write("etc/dpkg/dpkg.cfg.d/90unsafe-io", DPKG)
        copy_tracked(self.file("src"))

    def __exit__(self, *_):
        subprocess.run(["rm", "-rf", "--one-file-system", self.path], check=False)

    def file(self, *names):
        return os.path.join(self.path, *names)

    def write(self, name, text, mode=0o644):
        os.makedirs(os.path.dirname(self.file(name)), exist_ok=True)
        with open(self.file(name), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.file(name), mode)

    def start(self, command, output):
        """Starts COMMAND by bash in /src. All its processes end with the returned one."""
        return subprocess.Popen(
            ["unshare", "--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child",
             "sh", "-euc", ENTER, "sh", self.path, self.archives,
             "bash", "-c", "cd /src && " + command],
            env=enter_environment(), stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, start_new_session=True)


def read_log(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def wait(process, limit, progress=lambda seconds: None):
    """Returns the exit status, or None after LIMIT seconds, and the duration. Calls
    PROGRESS every half a minute. The process ends with this program."""
    try:
        return wait_for(process, limit, progress)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise


def wait_for(process, limit, progress):
    began = time.monotonic()
    told = 0
    while True:
        taken = time.monotonic() - began
        try:
            return process.wait(min(1, max(0.01, limit - taken))), time.monotonic() - began
        except subprocess.TimeoutExpired:
            taken = time.monotonic() - began
        if taken >= limit:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return None, taken
        if taken - told >= 30:
            told = taken
            progress(taken)
