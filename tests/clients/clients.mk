# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Clients of the socket in each language: their agents, and the driver.

CLIENTS := $(B)/clients
CLIENT_AGENTS := $(CLIENTS)/agent-c

$(CLIENTS)/agent-c: $(call objects,plain,tests/clients/agent.c tests/clients/agent-words.c) \
		$(B)/libexpiry.a
	$(call link)

# Each adds to CLIENT_AGENTS and CLIENT_TESTS, or to CLIENTS_MISSING.
CLIENT_TESTS := tests/clients/test-vectors.py
include clients/go/go.mk

.PHONY: check-clients client-agents
client-agents: $(CLIENT_AGENTS)

check-clients: $(B)/expiryd $(CLIENT_AGENTS) ## the clients of each language: vectors, and a table of scenarios
	@$(RUN_TESTS) $(CLIENT_TESTS)
	@$(if $(CLIENTS_MISSING),echo 'skipped, not installed: $(CLIENTS_MISSING)')
