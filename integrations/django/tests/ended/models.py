# SPDX-License-Identifier: LGPL-2.1-or-later
from django.db import models


class Told(models.Model):
    """What a receiver has written: a row for each signal."""

    session_key = models.CharField(max_length=40)
    reason = models.CharField(max_length=10)
    name = models.CharField(max_length=40, null=True)
    at_ns = models.BigIntegerField()


class Failing(models.Model):
    """Sessions for which a receiver fails, after it has written."""

    session_key = models.CharField(max_length=40)
