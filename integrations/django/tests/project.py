# SPDX-License-Identifier: LGPL-2.1-or-later
"""A project of Django with a daemon and the command, each of its own. The test is the web
process. It must be the first import of a test: Django reads its settings once."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
PATH = [os.path.join(ROOT, *folder) for folder in (
    ("integrations", "support"), ("integrations", "django", "src"),
    ("clients", "python", "src"))] + [HERE]
sys.path[:0] = [*PATH, os.path.join(ROOT, "tests", "socket")]

import python           # noqa: E402
python.need("django")

from daemon import Daemon       # noqa: E402

FOLDER = os.environ.setdefault("ENDED_FOLDER", tempfile.mkdtemp(prefix="expiry-django-"))
os.environ.setdefault("EXPIRY_SOCKET", os.path.join(FOLDER, "socket"))
os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
os.environ["PYTHONPATH"] = os.pathsep.join(PATH)
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"

import django                   # noqa: E402

django.setup()

from django.core.management import call_command     # noqa: E402
from django.db import connections                   # noqa: E402
from django.test import Client                      # noqa: E402
from expiry_django.session import SessionStore      # noqa: E402
from expiry_django.timers import timers             # noqa: E402


def prepare():
    """Makes the tables."""
    call_command("migrate", run_syncdb=True, verbosity=0)
    with connections["default"].cursor() as cursor:
        cursor.execute("PRAGMA journal_mode=WAL")


def wait_until(condition, seconds=30):
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "not within %d s" % seconds
        time.sleep(0.01)


def told(**which):
    from ended.models import Told
    return Told.objects.filter(**which)


def visit(ttl=None, name="", client=None):
    """Makes a request. Returns the client, and the key of its session."""
    client = client or Client()
    reply = client.get("/visit", {"name": name, **({"ttl": ttl} if ttl is not None else {})})
    assert reply.status_code == 200, reply
    return client, client.cookies["sessionid"].value


class Command:
    """The command, which may be killed and started again."""

    def __init__(self):
        self.log = open(os.path.join(FOLDER, "command.log"), "ab+")
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [sys.executable, "-B", "-m", "django", "expiry_sessions"], stdin=subprocess.DEVNULL,
            stdout=self.log, stderr=self.log, cwd=HERE)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        """Ends it as a service manager does. It must have lived until then."""
        assert self.process.poll() is None, "the command ended: " + self.text()
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(20) == 0

    def text(self):
        self.log.seek(0)
        return self.log.read().decode()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            if kind:
                self.kill()
                print("\n".join("# " + line for line in self.text().splitlines()[-40:]))
            else:
                self.end()
        finally:
            self.log.close()


def daemon(config=None, options=()):
    """Starts a daemon on the project's socket."""
    started = Daemon(config, options, engine="embedded", path=os.environ["EXPIRY_SOCKET"])
    started.__enter__()
    return started


def kill(started):
    started.process.kill()
    started.process.wait()
    if os.path.exists(started.path):
        os.unlink(started.path)


def remove():
    shutil.rmtree(FOLDER, ignore_errors=True)


def run(namespace, around):
    """Runs the functions test_... and reports in TAP. @around: a context for them."""
    wanted = sys.argv[1:]
    tests = [(name[5:].replace("_", " "), function) for name, function in namespace.items()
             if name.startswith("test_") and (not wanted or any(w in name for w in wanted))]
    failed = 0
    print("TAP version 13\n1..%d" % len(tests))
    prepare()
    try:
        with around():
            for number, (name, function) in enumerate(tests, 1):
                try:
                    function()
                    print("ok %d - %s" % (number, name))
                except Exception:
                    failed += 1
                    print("not ok %d - %s" % (number, name))
                    print("\n".join("# " + line
                                    for line in traceback.format_exc().splitlines()))
                sys.stdout.flush()
    finally:
        remove()
    sys.exit(1 if failed else 0)


__all__ = ["Client", "Command", "Daemon", "FOLDER", "HERE", "ROOT", "SessionStore", "daemon", "kill",
           "run", "timers", "told", "visit", "wait_until"]
