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
CLIENT_BENCHES += $(CLIENTS)/bench-rust-tokio
TOKIO_COPY := $(CLIENTS)/rust/copy

# cargo builds all of the folder examples.
$(CLIENTS)/agent-rust-tokio: $(RUST_SOURCES) $(wildcard clients/rust/agent/*.rs) \
		clients/rust/Cargo.toml bench/daemon/client-rust-tokio.rs
	@mkdir -p $(CLIENTS)/rust
	@rm -rf $(TOKIO_COPY)
	@cp -r clients/rust $(TOKIO_COPY)
	@mkdir $(TOKIO_COPY)/examples
	@cp bench/daemon/client-rust-tokio.rs $(TOKIO_COPY)/examples/bench-tokio.rs
	$(call say,CARGO,$@)cd $(TOKIO_COPY) && MAKEFLAGS= $(CARGO) build -q --offline --release \
		--features tokio --example agent-tokio --example bench-tokio \
		--target-dir $(CURDIR)/$(CLIENTS)/rust/cargo \
		--config 'source.crates-io.replace-with="debian"' \
		--config 'source.debian.directory="$(CARGO_REGISTRY)"'
	@cp $(CLIENTS)/rust/cargo/release/examples/bench-tokio $(CLIENTS)/bench-rust-tokio
	@cp $(CLIENTS)/rust/cargo/release/examples/agent-tokio $@

$(CLIENTS)/bench-rust-tokio: $(CLIENTS)/agent-rust-tokio
else
CLIENTS_MISSING += rust-tokio
endif
else
CLIENTS_MISSING += rust
endif
