# SPDX-License-Identifier: LGPL-2.1-or-later
"""A private broker: RabbitMQ on ports of its own, without a plugin."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from redis_server import free_port

# Debian's program in /usr/sbin changes to the user of the system's broker.
SCRIPT = "/usr/lib/rabbitmq/bin/rabbitmq-server"
WAIT = 120      # seconds: it starts in ten where nothing else runs


def program():
    """Returns the path of rabbitmq-server; None if it is not installed."""
    return SCRIPT if os.access(SCRIPT, os.X_OK) else shutil.which("rabbitmq-server")


def answers(port):
    """Returns whether a broker speaks AMQP there: it answers another version by its own."""
    try:
        with socket.create_connection(("127.0.0.1", port), 1) as connection:
            connection.settimeout(5)
            connection.sendall(b"AMQP\0\0\0\0")
            return connection.recv(4) == b"AMQP"
    except OSError:
        return False


class RabbitServer:
    """Runs until the end of a `with` block."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="expiry-rabbitmq-")
        self.port, distribution, self.names = free_port(), free_port(), free_port()

        def inside(name):
            return os.path.join(self.folder, name)
        self.environment = dict(
            os.environ, HOME=self.folder, ERL_EPMD_PORT=str(self.names),
            RABBITMQ_CONF_ENV_FILE=os.devnull, RABBITMQ_NODENAME="expiry@localhost",
            RABBITMQ_NODE_IP_ADDRESS="127.0.0.1", RABBITMQ_NODE_PORT=str(self.port),
            RABBITMQ_DIST_PORT=str(distribution), RABBITMQ_CONFIG_FILE=inside("none"),
            RABBITMQ_MNESIA_BASE=inside("data"), RABBITMQ_LOG_BASE=inside("log"),
            RABBITMQ_PID_FILE=inside("pid"), RABBITMQ_ENABLED_PLUGINS_FILE=inside("plugins"))
        with open(inside("plugins"), "w", encoding="ascii") as file:
            file.write("[].\n")
        self.log = open(inside("said"), "w+b")
        self.process = subprocess.Popen([program()], env=self.environment, stdout=self.log,
                                        stderr=self.log, stdin=subprocess.DEVNULL,
                                        start_new_session=True)
        end = time.monotonic() + WAIT
        while not answers(self.port):
            if self.process.poll() is not None or time.monotonic() > end:
                self.log.seek(0)
                said = self.log.read().decode(errors="replace")
                self.__exit__()
                raise RuntimeError("no broker: " + said)
            time.sleep(0.1)

    @property
    def url(self):
        return "amqp://127.0.0.1:%d" % self.port

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        # Its name server is a session of its own, and stays while a node has a name.
        end = time.monotonic() + WAIT
        while self.epmd("-names") == 0 and time.monotonic() < end:
            self.epmd("-kill")
            time.sleep(0.1)
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def epmd(self, option):
        return subprocess.run(["epmd", option], env=self.environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False).returncode
