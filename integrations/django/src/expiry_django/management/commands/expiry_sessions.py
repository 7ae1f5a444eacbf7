# SPDX-License-Identifier: LGPL-2.1-or-later
"""manage.py expiry_sessions: sends session_ended for each session that ends."""

import signal
from typing import Any

from django.core.management.base import BaseCommand

from expiry_django.receiver import Receiver


class Command(BaseCommand):
    help = ("Sends the signal session_ended for each session that ends. It runs until SIGTERM "
            "or SIGINT. Of several, one works and the others wait for its end.")

    def handle(self, *args: Any, **options: Any) -> None:
        receiver = Receiver()
        for number in signal.SIGTERM, signal.SIGINT:
            signal.signal(number, lambda *_: receiver.stop.set())
        receiver.run()
        self.stdout.write("told %d ends, %d signals failed" % (
            receiver.ends.told, receiver.ends.failed))
