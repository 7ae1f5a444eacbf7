# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The Rust client: rustc 1.63 or later, no other crate, no network. rustc builds the agent
# without cargo, which would write a lock file beside the sources.

RUSTC ?= $(shell command -v rustc)
RUST_SOURCES := $(wildcard clients/rust/src/*.rs)

ifneq ($(RUSTC),)
CLIENT_AGENTS += $(CLIENTS)/agent-rust
CLIENT_TESTS += tests/clients/test-rust.sh
CLIENT_BENCHES += $(CLIENTS)/bench-rust

$(CLIENTS)/rust/libexpiry.rlib: $(RUST_SOURCES)
	@mkdir -p $(@D)
	$(call say,RUSTC,$@)MAKEFLAGS= $(RUSTC) --edition 2021 -O -D warnings --crate-type rlib \
		--crate-name expiry -o $@ clients/rust/src/lib.rs

$(CLIENTS)/agent-rust: $(wildcard clients/rust/agent/*.rs) $(CLIENTS)/rust/libexpiry.rlib
	$(call say,RUSTC,$@)MAKEFLAGS= $(RUSTC) --edition 2021 -O -D warnings \
		--extern expiry=$(CLIENTS)/rust/libexpiry.rlib -o $@ clients/rust/agent/blocking.rs

$(CLIENTS)/bench-rust: bench/daemon/client-rust.rs $(CLIENTS)/rust/libexpiry.rlib
	$(call say,RUSTC,$@)MAKEFLAGS= $(RUSTC) --edition 2021 -O -D warnings \
		--extern expiry=$(CLIENTS)/rust/libexpiry.rlib -o $@ $<

# cargo finds the crates of Debian's packages. It writes a lock file beside the sources: it
# gets a copy.
CARGO ?= $(shell command -v cargo)
CARGO_REGISTRY := /usr/share/cargo/registry
ifneq ($(and $(CARGO),$(wildcard $(CARGO_REGISTRY)/tokio-[0-9]*)),)
CLIENT_AGENTS += $(CLIENTS)/agent-rust-tokio

$(CLIENTS)/agent-rust-tokio: $(RUST_SOURCES) $(wildcard clients/rust/agent/*.rs) \
		clients/rust/Cargo.toml
	@mkdir -p $(CLIENTS)/rust
	@rm -rf $(CLIENTS)/rust/copy
	@cp -r clients/rust $(CLIENTS)/rust/copy
	$(call say,CARGO,$@)cd $(CLIENTS)/rust/copy && MAKEFLAGS= $(CARGO) build -q --offline --release \
		--features tokio --example agent-tokio \
		--target-dir $(CURDIR)/$(CLIENTS)/rust/cargo \
		--config 'source.crates-io.replace-with="debian"' \
		--config 'source.debian.directory="$(CARGO_REGISTRY)"'
	@cp $(CLIENTS)/rust/cargo/release/examples/agent-tokio $@
else
CLIENTS_MISSING += rust-tokio
endif
else
CLIENTS_MISSING += rust
endif
