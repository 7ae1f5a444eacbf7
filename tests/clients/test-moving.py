#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The programs of docs/moving, before and after, print the same as they are written there.
A program whose server or module is not installed is skipped, and says so."""

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "socket"),
                os.path.join(HERE, "..", "..", "integrations", "support")]

import rabbitmq_server                  # noqa: E402
import tap                              # noqa: E402
from daemon import ROOT                 # noqa: E402
from processes import wait_until        # noqa: E402
from redis_server import RedisServer, free_port, program    # noqa: E402

PAGES = os.path.join(ROOT, "docs", "moving")
SOURCES = os.pathsep.join(os.path.join(ROOT, *folder) for folder in (
    ("clients", "python", "src"), ("integrations", "celery", "src")))
INCLUDES = ["-I" + os.path.join(ROOT, "include"), "-I" + os.path.join(ROOT, "include", "uapi")]
LIMIT = 60


def programs(page, language, count=2):
    """Returns the page's programs: before and after, if there are two."""
    with open(os.path.join(PAGES, page + ".md"), encoding="utf-8") as file:
        found = re.findall(r"^```%s\n(.*?)^```$" % language, file.read(), re.M | re.S)
    assert len(found) == count, (page, len(found))
    return found


def interpreter(*modules):
    """Returns a Python that has these modules: this one, or Debian's."""
    for python in sys.executable, "/usr/bin/python3":
        if os.path.exists(python) and not subprocess.run(
                [python, "-c", "import " + ", ".join(modules or ["sys"])],
                stderr=subprocess.DEVNULL).returncode:
            return python
    raise tap.Skip("no Python here has " + ", ".join(modules))


def output(command, daemon, **variables):
    done = subprocess.run(command, timeout=LIMIT, capture_output=True, text=True, env=dict(
        os.environ, EXPIRY_SOCKET=daemon.path, PYTHONPATH=SOURCES, **variables))
    assert done.returncode == 0, done.stderr
    return done.stdout


def same(daemon, page, said, *modules, **variables):
    python = interpreter(*modules)
    for program_text in programs(page, "python"):
        assert output([python, "-B", "-c", program_text], daemon, **variables) == said, page


@contextlib.contextmanager
def redis_url():
    if not program():
        raise tap.Skip("neither redis-server nor valkey-server is installed")
    server = RedisServer()
    try:
        yield server.url
    finally:
        server.__exit__()


@contextlib.contextmanager
def folder():
    made = tempfile.mkdtemp(prefix="expiry-moving-")
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def test_timerfd(daemon):
    with folder() as made:
        for number, text in enumerate(programs("timerfd", "c")):
            source = os.path.join(made, "%d.c" % number)
            with open(source, "w", encoding="utf-8") as file:
                file.write(text)
            subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", *INCLUDES, "-o",
                            source[:-2], source,
                            os.path.join(ROOT, "build", "libexpiry.a")], check=True)
            assert output([source[:-2]], daemon) == "".join(
                "lease %d has ended\n" % lease for lease in (1, 2, 3))


def test_redis_notifications(daemon):
    with redis_url() as url:
        same(daemon, "redis-notifications", "".join(
            "session:%d has ended\n" % session for session in (1, 2, 3)), "redis",
            REDIS_URL=url)


def test_sorted_set(daemon):
    with redis_url() as url:
        same(daemon, "sorted-set", "sending mail 1\nsending mail 2\nsending mail 3\n",
             "redis", REDIS_URL=url)


def answers(port):
    """Returns whether a server listens on the port."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def test_beanstalkd(daemon):
    if not shutil.which("beanstalkd"):
        raise tap.Skip("beanstalkd is not installed")
    port = free_port()
    server = subprocess.Popen(["beanstalkd", "-l", "127.0.0.1", "-p", str(port)])
    try:
        wait_until(lambda: answers(port))
        with folder() as made:
            same(daemon, "beanstalkd", "doing job 1\ndoing job 2\ndoing job 3\n",
                 BEANSTALKD="127.0.0.1:%d" % port, TMPDIR=made)
    finally:
        server.terminate()
        server.wait()


def test_heap(daemon):
    same(daemon, "heap", "".join("request %d timed out\n" % id for id in (1, 2, 4)))


def run_celery(python, text, environment, made, has_relay):
    """Runs a worker, and the relay, until the worker has run the task."""
    with open(os.path.join(made, "shop.py"), "w", encoding="utf-8") as file:
        file.write(text)
    commands = [["celery", "-A", "shop", "worker", "--pool", "solo", "--without-gossip",
                 "--without-mingle"]]
    if has_relay:
        commands.append(["expiry_celery", "-A", "shop"])
    log_path = os.path.join(made, "log")
    with open(log_path, "wb") as log:
        running = [subprocess.Popen([python, "-B", "-m", *command], env=environment, cwd=made,
                                    stdout=log, stderr=log) for command in commands]
        try:
            subprocess.run([python, "-B", "shop.py"], env=environment, cwd=made, check=True,
                           timeout=LIMIT)
            limit = time.monotonic() + LIMIT
            said = ""
            while "reminding alice" not in said:
                assert time.monotonic() < limit, said
                time.sleep(0.1)
                with open(log_path, encoding="utf-8", errors="replace") as file:
                    said = file.read()
        finally:
            for process in running:
                process.kill()
                process.wait()


def test_celery(daemon):
    python = interpreter("celery", "redis")
    for number, text in enumerate(programs("celery", "python")):
        with redis_url() as url, folder() as made:
            run_celery(python, text, dict(
                os.environ, EXPIRY_SOCKET=daemon.path, REDIS_URL=url,
                PYTHONPATH=os.pathsep.join((SOURCES, made))), made, number)


@contextlib.contextmanager
def rabbitmq_url():
    """$RABBITMQ_URL, or a private broker."""
    if "RABBITMQ_URL" in os.environ:
        yield os.environ["RABBITMQ_URL"]
    elif rabbitmq_server.program():
        with rabbitmq_server.RabbitServer() as server:
            yield server.url
    else:
        raise tap.Skip("rabbitmq-server is not installed")


def orders(*numbers):
    return "".join("reserved until now: order %d\n" % order for order in numbers)


def test_rabbitmq(daemon):
    """Debian has no plugin: the program before runs with $RABBITMQ_URL and
    $RABBITMQ_DELAYED=1 only, for a broker that has it."""
    before, dead_letters, after = programs("rabbitmq", "python", 3)
    compile(before, "rabbitmq.md", "exec")
    python = interpreter("pika")
    with rabbitmq_url() as url:
        def said(text):
            return output([python, "-B", "-c", text], daemon, RABBITMQ_URL=url)
        # A short delay waits behind a long one.
        assert said(dead_letters) == orders(3, 2, 1)
        assert said(after) == orders(1, 2, 3)
        if "RABBITMQ_DELAYED" in os.environ:
            assert said(before) == orders(1, 2, 3)


def test_each_page_is_in_the_table_and_says_when_to_stay(daemon):
    with open(os.path.join(PAGES, "README.md"), encoding="utf-8") as file:
        index = file.read()
    pages = [name for name in os.listdir(PAGES) if name != "README.md"]
    assert len(pages) == 7, pages
    for name in pages:
        assert "(%s)" % name in index, name
        with open(os.path.join(PAGES, name), encoding="utf-8") as file:
            assert "\n**Stay** if " in file.read(), name


if __name__ == "__main__":
    tap.main()
