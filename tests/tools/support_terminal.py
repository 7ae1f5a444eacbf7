# SPDX-License-Identifier: LGPL-2.1-or-later
"""A fake terminal with a shell's job: its picture after each key, and the restored
settings of the terminal."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

WAIT = 60               # seconds for what must come
UP, DOWN, PAGE_UP, PAGE_DOWN = b"\033[A", b"\033OB", b"\033[5~", b"\033[6~"
HOME, LAST = b"\033[H", b"\033[4~"
SEQUENCE = re.compile(rb"\033\[(\??)(\d*)([A-Za-z])")


def job_control(arguments, orders, reports):
    """Does a shell's work for one job: starts it in the foreground, reports its stop or
    end, and continues it. Ctrl-Z cannot stop a session's leader, so this process leads."""
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    job = os.fork()
    if not job:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpid())
        # The test may have inherited some as ignored, as in nohup.
        for number in (signal.SIGTTOU, signal.SIGHUP, signal.SIGINT,
                       signal.SIGQUIT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        os.execv(arguments[0], arguments)
    os.write(reports, b"pid %d\n" % job)
    while True:
        _, status = os.waitpid(job, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            os.tcsetpgrp(0, os.getpid())
            os.write(reports, b"end %d\n" % os.waitstatus_to_exitcode(status))
            os.read(orders, 1)
            os._exit(0)
        os.tcsetpgrp(0, os.getpid())
        os.write(reports, b"stop %d\n" % os.WSTOPSIG(status))
        if not os.read(orders, 1):
            os._exit(1)
        os.tcsetpgrp(0, job)
        os.kill(job, signal.SIGCONT)


class Terminal:
    """A terminal of this size that runs @arguments. @lines is its picture, without
    trailing blanks. If @strict, a line that does not fit is an error, and so is
    scrolling."""

    def __init__(self, arguments, rows, columns):
        self.rows, self.columns = rows, columns
        self.lines = [""] * rows
        self.row = self.column = 0
        self.cursor_shown = True
        self.pending = b""
        self.pictures = self.old_pictures = 0
        self.complete = False       # the last picture
        orders, self.orders = os.pipe()
        self.reports, reports = os.pipe()
        self.shell, self.fd = pty.fork()
        if not self.shell:
            # The shell's read ends with this process, also where a hangup is ignored.
            os.close(self.orders)
            os.close(self.reports)
            # Wait until the size is set.
            os.read(orders, 1)
            os.environ["TERM"] = "xterm"
            os.environ.pop("NO_COLOR", None)
            try:
                job_control(arguments, orders, reports)
            finally:
                os._exit(1)
        os.close(orders)
        os.close(reports)
        self.resize(rows, columns)
        self.old_pictures = 0
        self.settings = termios.tcgetattr(self.fd)
        os.write(self.orders, b"g")
        self.pid = int(self.report("pid"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.orders)
        os.close(self.fd)
        os.waitpid(self.shell, 0)
        os.close(self.reports)

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ,
                    struct.pack("4H", rows, columns, 0, 0))
        self.rows, self.columns = rows, columns
        self.lines = [""] * rows
        self.row = 0
        # One update may be in flight, and one was begun before.
        self.old_pictures = 2

    @property
    def strict(self):
        return not self.old_pictures

    def press(self, keys):
        os.write(self.fd, keys)

    def go_on(self):
        """Continues the job, like fg."""
        os.write(self.orders, b"g")

    def report(self, kind):
        """Waits for the job's next change, and shows its output meanwhile."""
        line = b""
        while not line.endswith(b"\n"):
            assert self.look(self.reports), "the job does not change"
            byte = os.read(self.reports, 1)
            assert byte, (line, self.lines)
            line += byte
        self.show_rest()
        word, number = line.decode().split()
        assert word == kind, (line, self.lines)
        return int(number)

    def show_rest(self):
        while select.select([self.fd], [], [], 0)[0]:
            try:
                self.show(os.read(self.fd, 65536))
            except OSError:
                return

    def look(self, other=-1, seconds=WAIT):
        """Shows output until @other is readable, or once. Returns False without output."""
        end = time.monotonic() + seconds
        while True:
            fds = [self.fd] + [other] * (other >= 0)
            ready = select.select(fds, [], [],
                                  max(0, end - time.monotonic()))[0]
            if self.fd in ready:
                self.show(os.read(self.fd, 65536))
            if other in ready or (ready and other < 0):
                return True
            if not ready:
                return False

    def until(self, condition):
        """Waits until the picture meets the condition."""
        end = time.monotonic() + WAIT
        while not condition():
            left = end - time.monotonic()
            assert left > 0 and self.look(seconds=left), self.text()

    def text(self):
        return "\n".join(self.lines)

    def put(self, text):
        line = self.lines[self.row].ljust(self.column)
        if not self.strict:
            text = text[:self.columns - self.column]
        end = self.column + len(text)
        assert end <= self.columns, "a line is too long: %r" % (line + text)
        self.lines[self.row] = (line[:self.column] + text +
                                line[end:]).rstrip()
        self.column = end

    def show(self, data):
        data = self.pending + data
        self.pending = b""
        while data:
            match = SEQUENCE.match(data)
            if match:
                self.escape(*match.groups())
                data = data[match.end():]
            elif data[:1] == b"\033":
                assert len(data) < 8, data
                self.pending = data
                return
            elif data[:1] == b"\r":
                self.column = 0
                data = data[1:]
            elif data[:1] == b"\n":
                self.row += 1
                if self.row == self.rows and not self.strict:
                    self.row -= 1
                assert self.row < self.rows, "it scrolls: " + self.text()
                data = data[1:]
            else:
                text = re.match(rb"[^\033\r\n]+", data)[0]
                self.put(text.decode())
                data = data[len(text):]

    def escape(self, private, number, letter):
        if private:
            assert (number, letter) in ((b"25", b"h"), (b"25", b"l")), letter
            self.cursor_shown = letter == b"h"
        elif letter == b"H":
            self.row = self.column = 0
            self.complete = False
            self.pictures += 1
            self.old_pictures = max(0, self.old_pictures - 1)
        elif letter == b"K":
            # After a full line this would clear its last character.
            assert self.column < self.columns or not self.strict
            self.lines[self.row] = self.lines[self.row][:self.column].rstrip()
        elif letter == b"J":
            self.lines[self.row] = self.lines[self.row][:self.column].rstrip()
            self.lines[self.row + 1:] = [""] * (self.rows - self.row - 1)
            self.complete = True
        else:
            assert letter == b"m", letter

    def is_restored(self):
        return self.cursor_shown and \
            termios.tcgetattr(self.fd) == self.settings


if __name__ == "__main__":
    sys.exit("this is no test")
