# SPDX-License-Identifier: LGPL-2.1-or-later
from django.apps import AppConfig


class ExpiryConfig(AppConfig):
    name = "expiry_django"
    verbose_name = "Sessions that end with an event"
