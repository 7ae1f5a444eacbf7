# SPDX-License-Identifier: LGPL-2.1-or-later
"""The benchmark's project, on PostgreSQL or SQLite."""

import os

FOLDER = os.environ["BENCH_FOLDER"]
SECRET_KEY = "only for the benchmark"
USE_TZ = True
INSTALLED_APPS = ["django.contrib.sessions", "expiry_django"]
MIDDLEWARE = ["django.contrib.sessions.middleware.SessionMiddleware"]
ROOT_URLCONF = "site_urls"
ALLOWED_HOSTS = ["*"]
SESSION_ENGINE = "expiry_django.session"
EXPIRY_SESSION_SOCKET = os.path.join(FOLDER, "socket")
LOGGING = {"version": 1, "handlers": {"stderr": {"class": "logging.StreamHandler"}},
           "loggers": {"expiry_django": {"handlers": ["stderr"], "level": "WARNING"}}}
if os.environ["BENCH_DATABASE"] == "postgresql":
    DATABASES = {"default": {
        "ENGINE": "django.db.backends.postgresql", "NAME": "postgres", "USER": "bench",
        "HOST": FOLDER, "CONN_MAX_AGE": None}}
else:
    DATABASES = {"default": {
        "ENGINE": "django.db.backends.sqlite3", "NAME": os.path.join(FOLDER, "db"),
        "OPTIONS": {"timeout": 60}, "CONN_MAX_AGE": None}}
