# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The Rust client: rustc 1.63 or later, no other crate, no network. rustc builds the agent
# without cargo, which would write a lock file beside the sources.

RUSTC ?= $(shell command -v rustc)
RUST_SOURCES := $(wildcard clients/rust/src/*.rs)

ifneq ($(RUSTC),)
CLIENT_AGENTS += $(CLIENTS)/agent-rust
CLIENT_TESTS += tests/clients/test-rust.sh

$(CLIENTS)/rust/libexpiry.rlib: $(RUST_SOURCES)
	@mkdir -p $(@D)
	$(call say,RUSTC,$@)$(RUSTC) --edition 2021 -O -D warnings --crate-type rlib \
		--crate-name expiry -o $@ clients/rust/src/lib.rs

$(CLIENTS)/agent-rust: $(wildcard clients/rust/agent/*.rs) $(CLIENTS)/rust/libexpiry.rlib
	$(call say,RUSTC,$@)$(RUSTC) --edition 2021 -O -D warnings \
		--extern expiry=$(CLIENTS)/rust/libexpiry.rlib -o $@ clients/rust/agent/blocking.rs
else
CLIENTS_MISSING += rust
endif
