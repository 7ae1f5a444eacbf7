# SPDX-License-Identifier: LGPL-2.1-or-later
from django.apps import AppConfig


class EndedConfig(AppConfig):
    name = "ended"

    def ready(self):
        from . import receivers     # noqa: F401
