# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Clients of the socket in each language: their agents, and the driver.

CLIENTS := $(B)/clients
PYTHON_AGENTS := $(addprefix $(CLIENTS)/agent-python-,sync asyncio)
CLIENT_AGENTS := $(CLIENTS)/agent-c $(PYTHON_AGENTS)

# The name says which style it uses.
$(PYTHON_AGENTS): tests/clients/agent-python
	@mkdir -p $(@D)
	@ln -sf ../../$< $@

$(CLIENTS)/agent-c: $(call objects,plain,tests/clients/agent.c tests/clients/agent-words.c) \
		$(B)/libexpiry.a
	$(call link)

# Each adds to CLIENT_AGENTS, CLIENT_TESTS and CLIENT_BENCHES, or to CLIENTS_MISSING.
# A language that compiles its own tests takes minutes: these are in check-clients only.
CLIENT_QUICK := $(wildcard tests/clients/test-*.py) tests/clients/test-python-types.sh
CLIENT_TESTS := $(CLIENT_QUICK)
include clients/go/go.mk clients/rust/rust.mk
bench-clients: $(CLIENT_BENCHES)
# The tables of these tests, a file each.
CLIENT_TABLES := $(CLIENTS)/tables
CLIENTS_NEEDS = $(B)/expiryd $(B)/libexpiry.so.0 $(CLIENT_AGENTS)

.PHONY: check-clients client-agents clients-dist
client-agents: $(CLIENT_AGENTS)

# The cuts, the kills and cargo take minutes each, and more on a busy machine.
check-clients: $(CLIENTS_NEEDS) ## the clients of each language: vectors, and a table of scenarios
	@mkdir -p $(CLIENT_TABLES)
	@$(RUN_TESTS) --timeout 1800 EXPIRY_TEST_TABLES=$(CLIENT_TABLES) \
		EXPIRY_TEST_DRAIN=1000000 EXPIRY_TEST_CUTS=1 EXPIRY_TEST_CRATE=1 \
		EXPIRY_TEST_KILL_CUTS=61 EXPIRY_TEST_CLIENT_KILLS=30 \
		$(CLIENT_TESTS)
	@cat $(CLIENT_TABLES)/test-scenarios.txt $(CLIENT_TABLES)/test-cuts.txt
	@$(if $(CLIENTS_MISSING),echo 'skipped: not installed are $(CLIENTS_MISSING)')

clients-dist: $(B)/expiryd ## the packages of the clients, installed and used in an empty environment
	@$(RUN_TESTS) --timeout 900 EXPIRY_TEST_CRATE=1 tests/clients/test-python-dist.sh \
		$(filter %/test-go.sh %/test-rust.sh,$(CLIENT_TESTS))
