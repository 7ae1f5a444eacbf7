# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The Go client: Go 1.19 or later, no other module, no network.

GO ?= $(shell command -v go)
GO_ENV = GOFLAGS= GOPROXY=off GOTOOLCHAIN=local GOWORK=off GOCACHE=$(CURDIR)/$(B)/clients/go

ifneq ($(GO),)
CLIENT_AGENTS += $(CLIENTS)/agent-go
CLIENT_TESTS += tests/clients/test-go.sh
CLIENT_BENCHES += $(CLIENTS)/bench-go

$(CLIENTS)/agent-go $(CLIENTS)/bench-go: $(CLIENTS)/%-go: clients/go/go.mod \
		$(wildcard clients/go/*.go clients/go/internal/*/*.go)
	@mkdir -p $(@D)
	$(call say,GO,$@)cd clients/go && $(GO_ENV) $(GO) build -o $(CURDIR)/$@ ./internal/$*

# A peer of bench-clients, whose sources come from the module proxy: PEERS=1.
ifneq ($(PEERS),)
CLIENT_BENCHES += $(CLIENTS)/bench-go-redis
$(CLIENTS)/bench-go-redis: $(wildcard bench/daemon/go-redis/*)
	@mkdir -p $(@D)
	$(call say,GO,$@)cd bench/daemon/go-redis && GOFLAGS=-mod=readonly GOTOOLCHAIN=local \
		GOCACHE=$(CURDIR)/$(B)/clients/go $(GO) build -o $(CURDIR)/$@ .
endif
else
CLIENTS_MISSING += go
endif
