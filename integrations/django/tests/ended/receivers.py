# SPDX-License-Identifier: LGPL-2.1-or-later
import time

from django.dispatch import receiver
from expiry_django import session_ended

from .models import Failing, Told


@receiver(session_ended)
def note(sender, session_key, reason, data, **_):
    Told.objects.create(session_key=session_key, reason=reason, at_ns=time.time_ns(),
                        name=data.get("name") if data is not None else None)
    if Failing.objects.filter(session_key=session_key).exists():
        raise RuntimeError("this receiver fails")
