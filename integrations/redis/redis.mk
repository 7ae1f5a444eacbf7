# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The bridge to Redis. It is built as Debian builds Go programs: from the sources of
# Debian's packages, without a module proxy.

REDIGO := $(wildcard /usr/share/gocode/src/github.com/gomodule/redigo)
BRIDGE := expiry.example/integrations/redis
BRIDGE_GO = GO111MODULE=off GOPATH=$(CURDIR)/$(B)/integrations/go:/usr/share/gocode \
	GOFLAGS= GOTOOLCHAIN=local GOCACHE=$(CURDIR)/$(B)/clients/go $(GO)

.PHONY: bench-redis-events
KEYS ?= 1000000

ifneq ($(and $(GO),$(REDIGO)),)
INTEGRATION_NEEDS += $(B)/expiry-redis-events

$(B)/expiry-redis-events: $(wildcard integrations/redis/*.go clients/go/*.go)
	@mkdir -p $(addprefix $(B)/integrations/go/src/,$(dir $(BRIDGE)) expiry.example/clients)
	@ln -sfn $(CURDIR)/integrations/redis $(B)/integrations/go/src/$(BRIDGE)
	@ln -sfn $(CURDIR)/clients/go $(B)/integrations/go/src/expiry.example/clients/go
	$(call say,GO,$@)$(BRIDGE_GO) build -trimpath -o $@ $(BRIDGE)

bench-redis-events: $(B)/expiryd $(B)/expiry-redis-events ## when Redis says `expired`, beside KEYS=1000000 others: alone, and with the bridge
	@integrations/redis/bench/bench.py $(or $(call quick,--quick),$(KEYS))
else
bench-redis-events:
	@echo 'bench-redis-events: Go or its package redigo is not installed' >&2; false
endif
