#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The manual pages are well-formed, and say all that there is: each option,
# command, setting and call has its place in one.

. tests/lib/tap

lint() {
	if command -v mandoc >/dev/null; then
		# References to pages that are not installed are style only.
		mandoc -Tlint -W warning "$@"
	else
		for page in "$@"; do
			LC_ALL=C.UTF-8 MANROFFSEQ='' man --warnings -E UTF-8 -l \
				-Tutf8 -Z "$page" 2>&1 >/dev/null
		done
	fi
}

# text PAGE: as it is read, markup gone
text() {
	sed -e '/^\.\\"/d' -e 's/\\&//g' -e 's/\\-/-/g' \
		-e 's/Fl -\([a-z-]*\)/--\1/g' -e 's/ , -\([a-z]\)/ , --\1/' \
		"docs/man/$1"
}

# each PAGE: the words on the input that are not in it
each() {
	text "$1" >"$dir/text"
	while read -r word; do
		grep -q -w -e "$word" "$dir/text" || echo "$1: $word"
	done
}

options() {
	build/$1 --help | grep -o -e '--[a-z][a-z-]*' | sort -u | each "$2"
}

commands() {
	build/expiryctl --help | sed -n '/^Commands/,/^$/s/^  \([a-z]*\) .*/\1/p' |
		sed 's/^/Cm /' | each expiryctl.1
}

command_options() {
	for command in $(build/expiryctl --help |
		sed -n '/^Commands/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
		build/expiryctl "$command" --help | grep -o -e '^  --[a-z][a-z-]*'
	done | sort -u | each expiryctl.1
}

keys() {
	sed -n -e 's/^\t\(TEXT\|LIMIT\|FIXED\)(\([a-z_]*\),.*/\2/p' \
		-e 's/^\t\t\.name = "\([a-z_]*\)".*/\1/p' daemon/config.c
}

# Each setting with its default, as the sample has it.
sample() {
	sed -n 's/^#\([a-z_]*\) = .*/\1/p' packaging/expiryd.conf | sort >"$dir/a"
	keys | sort >"$dir/b"
	diff "$dir/a" "$dir/b"
}

# The sample without its comment signs changes nothing.
sample_defaults() {
	sed 's/^#\([a-z_]* = \)/\1/' packaging/expiryd.conf >"$dir/conf"
	build/expiryd --config "$dir/conf" --check-config >"$dir/said" 2>&1 ||
		cat "$dir/said"
	sed -n 's/^\([a-z_]*\) = \(.*\)/\1 \2/p' "$dir/conf" |
		while read -r key value; do
			grep -q "^\.It Cm $key Pq $value\$" \
				docs/man/expiryd.conf.5 ||
				echo "expiryd.conf.5: $key Pq $value"
		done
}

calls() {
	for call in $(sed -n 's/^\t\t\(expiry_[a-z_]*\);/\1/p' lib/libexpiry.map); do
		grep -q -x "\.Nm $call\( ,\)\?" docs/man/expiry_*.3 ||
			echo "no page: $call"
	done
}

# What the device's header defines for its users, fields included.
device_names() {
	{
		sed -n 's/^#define \(EXPIRY_[A-Z_]*\)[ \t].*/\1/p' \
			include/uapi/linux/expiry.h |
			grep -v -e '^EXPIRY_IOC_MAGIC$' -e '_ALL$'
		sed -n 's/^\t__[us][0-9]* *\([a-z_]*\)[;[].*/\1/p' \
			include/uapi/linux/expiry.h | grep -v '^reserved$'
	} | sort -u | each expiry.4
}

# What the module returns, but for what the kernel keeps to itself.
device_errors() {
	grep -oh -e '-E[A-Z]*' kmod/*.c include/uapi/linux/expiry.h |
		grep -v -e ERESTARTSYS -e EIOCBQUEUED | sort -u |
		sed 's/^-\(E.*\)/Er \1/' | each expiry.4
}

# shellcheck disable=SC2046
is 'pages are well-formed' silent lint docs/man/*.[1-8]
is 'options of expiryd' silent options expiryd expiryd.8
is 'options of expiryctl' silent options expiryctl expiryctl.1
is 'commands of expiryctl' silent commands
is 'options of its commands' silent command_options
is 'the sample has every setting' silent sample
is 'settings and their defaults' silent sample_defaults
is 'calls of the library' silent calls
is 'what the device has' silent device_names
is 'errors of the device' silent device_errors
tap_end
