# SPDX-License-Identifier: LGPL-2.1-or-later
"""A project for the tests. Its folder and its backend come from the environment."""

import os

FOLDER = os.environ["ENDED_FOLDER"]
SECRET_KEY = "only for tests"
USE_TZ = os.environ.get("ENDED_USE_TZ", "1") == "1"
TIME_ZONE = "Asia/Kolkata"
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth",
                  "django.contrib.sessions", "expiry_django", "ended"]
MIDDLEWARE = ["django.contrib.sessions.middleware.SessionMiddleware"]
ROOT_URLCONF = "ended.urls"
ALLOWED_HOSTS = ["*"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
DATABASES = {"default": {
    "ENGINE": "django.db.backends.sqlite3", "NAME": os.path.join(FOLDER, "db"),
    "OPTIONS": {"timeout": 30}}}
CACHES = {"default": {
    "BACKEND": "django.core.cache.backends.filebased.FileBasedCache",
    "LOCATION": os.path.join(FOLDER, "cache"), "OPTIONS": {"MAX_ENTRIES": 10**6}}}
SESSION_ENGINE = "expiry_django.session"
SESSION_FILE_PATH = FOLDER
EXPIRY_SESSION_ENGINE = "django.contrib.sessions.backends." + os.environ.get(
    "ENDED_BACKEND", "db")
EXPIRY_SESSION_RETRY = 0.3
EXPIRY_SESSION_SWEEP = float(os.environ.get("ENDED_SWEEP", "3600"))
EXPIRY_SESSION_PENDING_MAX = int(os.environ.get("ENDED_PENDING_MAX", "100000"))
EXPIRY_SESSION_BATCH = int(os.environ.get("ENDED_BATCH", "20"))
LOGGING = {"version": 1, "handlers": {"stderr": {"class": "logging.StreamHandler"}},
           "loggers": {"expiry_django": {"handlers": ["stderr"], "level": "INFO"}}}
