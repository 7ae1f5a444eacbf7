# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Other programs that use expiry: their tests, with the real programs, and benchmarks.
# A folder is NAME/{README.md, tests/test-*, bench/}.

INTEGRATION_TESTS = $(wildcard integrations/*/tests/test-*.py integrations/*/tests/test-*.sh)
# Seconds in which programs are killed in turn: KILLS of the command line or the
# environment. Its default is that of another target.
INTEGRATION_KILLS = $(if $(filter file undefined,$(origin KILLS)),60,$(KILLS))
INTEGRATION_NEEDS := $(B)/expiryd $(B)/expiryctl

include integrations/redis/redis.mk integrations/django/django.mk

.PHONY: check-integrations bench-celery
check-integrations: $(INTEGRATION_NEEDS) ## Celery, Redis and others, with the real programs, killed in turn for KILLS=60 seconds
	@$(RUN_TESTS) --timeout 900 EXPIRY_TEST_KILLS=$(INTEGRATION_KILLS) $(INTEGRATION_TESTS)

# Celery has a limit of tasks with an ETA since 5.6, which Debian has not.
CELERY_VERSION := 5.7.0
CELERY := $(B)/integrations/celery-$(CELERY_VERSION)
TASKS ?= 100000

$(CELERY)/installed:
	@mkdir -p $(@D)
	$(call say,PIP,celery $(CELERY_VERSION))python3 -m venv $(@D) && $(@D)/bin/pip -q \
		install 'celery[redis]==$(CELERY_VERSION)' 'redis==7.1.0'
	@touch $@

bench-celery: $(B)/expiryd $(CELERY)/installed ## TASKS=100000 tasks with an ETA: Celery alone, with a sorted set, with expiry; PARTS='memory behind handed_over visibility'
	@$(CELERY)/bin/python -B integrations/celery/bench/bench.py \
		$(or $(call quick,--quick),$(TASKS)) $(PARTS)
