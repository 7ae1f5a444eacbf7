#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The Rust client: its own tests, by cargo where that is installed, and the programs of
# docs/rust.md, as they are written there, in an empty project.

. tests/tap.sh
. tests/clients/page.sh

rustc=${RUSTC:-$(command -v rustc)}
if [ -z "$rustc" ]; then
	echo '1..0 # SKIP no rustc is installed'
	exit 4
fi
root=$PWD
export EXPIRYD="${EXPIRYD:-$root/build/expiryd}" CARGO_NET_OFFLINE=true

# cargo writes a lock file beside the sources: it gets a copy.
cp -r clients/rust "$dir/expiry"
export CARGO_TARGET_DIR="$root/build/clients/rust/cargo"

# Even without its features, cargo looks for all crates: Debian has them as packages.
registry=/usr/share/cargo/registry
cargo=
for found in "$registry"/tokio-[0-9]*; do
	[ -d "$found" ] && [ -d "$registry/$(cd "$registry" && echo futures-core-*)" ] &&
		command -v cargo >/dev/null && cargo=yes
done

in_copy() {
	(cd "$dir/expiry" && "$@")
}

# by_cargo COMMAND...: without a network
by_cargo() {
	command=$1
	shift
	timeout 600 cargo "$command" -q --offline \
		--config 'source.crates-io.replace-with="debian"' \
		--config "source.debian.directory=\"$registry\"" "$@"
}

by_rustc() {
	"$rustc" --edition 2021 -D warnings "$@"
}

own_tests() {
	by_rustc --test --crate-name expiry -o "$dir/unit" clients/rust/src/lib.rs &&
		"$dir/unit" &&
		by_rustc --crate-type rlib --crate-name expiry -o "$dir/libexpiry.rlib" \
			clients/rust/src/lib.rs &&
		by_rustc --test --extern expiry="$dir/libexpiry.rlib" -o "$dir/blocking" \
			clients/rust/tests/blocking.rs &&
		timeout 100 "$dir/blocking"
}

if [ "$cargo" ]; then
	is "the client's own tests, with tokio" in_copy by_cargo test --features tokio
	# make check-clients: what compiles everything again.
	if [ -z "${EXPIRY_TEST_CRATE:-}" ]; then
		skip 'each feature alone, the package, clippy' 'make check-clients does it'
	elif is "the client's own tests, without" in_copy by_cargo test &&
		is 'the crate is packaged' in_copy by_cargo package --allow-dirty &&
		cargo clippy --version >/dev/null 2>&1; then
		is 'clippy has nothing to say' \
			in_copy by_cargo clippy --all-targets --features tokio -- -D warnings
	else
		skip 'clippy has nothing to say' 'it is not installed'
	fi
else
	is "the client's own tests" own_tests
fi

# Each program of the page, with a daemon of its own.
page_program() {
	project=$dir/project$1
	mkdir -p "$project/src"
	page_source docs/rust.md rust "$1" >"$project/src/main.rs"
	if [ "$cargo" ]; then
		cat >"$project/Cargo.toml" <<END
[package]
name = "program"
version = "0.1.0"
edition = "2021"

[dependencies]
expiry = { path = "$dir/expiry", features = [${3:-}] }
tokio = { version = "1.24", default-features = false, features = ["net", "rt", "time"] }
END
		(cd "$project" && by_cargo build) || return 1
		program=$CARGO_TARGET_DIR/debug/program
	else
		program=$project/program
		by_rustc --extern expiry="$dir/libexpiry.rlib" -o "$program" \
			"$project/src/main.rs" || return 1
	fi
	run_beside_daemon "$program" "$2"
}

is "docs/rust.md: the first program" page_program 1 'timer 42 expired, cookie 7'
is 'docs/rust.md: the loop' page_program 2 'session 3 has ended'
is 'docs/rust.md: what survives a restart' page_program 3 'alice: 2 attempts'
if [ "$cargo" ]; then
	is 'docs/rust.md: with tokio' page_program 4 'job 9 is due' '"tokio"'
else
	skip 'docs/rust.md: with tokio' 'its crates are not installed'
fi

tap_end
