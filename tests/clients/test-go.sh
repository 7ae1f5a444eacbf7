#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The Go client: its own tests, with the race detector where there is a C compiler, and
# the programs of docs/go.md, as they are written there, in an empty project.

. tests/tap.sh
. tests/clients/page.sh

go=${GO:-$(command -v go)}
if [ -z "$go" ]; then
	echo '1..0 # SKIP no go is installed'
	exit 4
fi
root=$PWD
export GOFLAGS= GOPROXY=off GOTOOLCHAIN=local GOWORK=off \
	GOCACHE="${GOCACHE:-$root/build/clients/go}" EXPIRYD="${EXPIRYD:-$root/build/expiryd}"

in_client() {
	(cd clients/go && "$@")
}

formatted() {
	in_client "$(dirname "$(readlink -f "$go")")/gofmt" -l . >"$dir/unformatted" &&
		cat "$dir/unformatted" && ! [ -s "$dir/unformatted" ]
}

race=
if [ "$("$go" env CGO_ENABLED)" = 1 ] && command -v gcc >/dev/null &&
	[ "$(uname -m)" = x86_64 ]; then
	race=-race
fi

is 'the sources are formatted' formatted
is 'go vet has nothing to say' in_client "$go" vet ./...
is "the client's own tests${race:+, under the race detector}" \
	in_client "$go" test $race -timeout 100s .

# Each program of the page, with a daemon of its own.
page_program() {
	project=$dir/project$1
	mkdir -p "$project"
	page_source docs/go.md go "$1" >"$project/main.go"
	language=1.19
	grep -q 'range q\.' "$project/main.go" && language=1.23
	printf 'module example.test\n\ngo %s\n\nrequire %s v0.1.0\n\nreplace %s => %s\n' \
		$language expiry.example/clients/go expiry.example/clients/go \
		"$root/clients/go" >"$project/go.mod"
	(cd "$project" && "$go" build -o program .) || return 1
	run_beside_daemon "$project/program" "$2"
}

is "docs/go.md: the first program" page_program 1 'timer 42 expired, cookie 7'
case $("$go" env GOVERSION) in
go1.19* | go1.2[0-2]*) skip 'docs/go.md: the loop' 'Go 1.23 has iterators' ;;
*) is 'docs/go.md: the loop' page_program 2 'session 3 has ended' ;;
esac
is 'docs/go.md: what survives a restart' page_program 3 'alice: 2 attempts'

tap_end
