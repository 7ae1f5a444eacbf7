#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The manual pages are well-formed, and say all that there is: each option,
# command, setting and call has its place in one.

. tests/tap.sh

pages=$(ls docs/man/*.[1-8])

# Long lines, Linux as the system and references to pages that are not installed
# are meant.
lint() {
	# shellcheck disable=SC2086
	! mandoc -Tlint -W all $pages 2>/dev/null | grep -v -e 'longer than 80 bytes' \
		-e 'operating system explicitly specified' \
		-e 'referenced manual not found'
}

# What groff says of a page, which man-db shows it by.
groff_warnings() {
	for page in $pages; do
		groff -mdoc -Tutf8 -ww "$page" 2>&1 >/dev/null
	done
}

# "Op" ends with its line: a second one on it would stand inside the first.
nested_options() {
	# shellcheck disable=SC2086
	! grep -n '^\..*\bOp\b.*\bOp\b' $pages
}

# Between columns is room for three characters, or two where there are many. A cell
# that is wider than that runs into the next one.
wide_cells() {
	# shellcheck disable=SC2086
	awk '
	/^\.Bl -column/ { nr = split($0, width, "\""); next }
	/^\.El/ { nr = 0 }
	nr && /^\.It / {
		cells = split(substr($0, 5), cell, / *Ta */)
		for (i = 1; i < cells; i++) {
			gsub(/^(Sy|Dv|Er|Cm) |\\&/, "", cell[i])
			if (length(cell[i]) > length(width[2 * i]) + 2)
				print FILENAME ":" FNR ": " cell[i]
		}
	}' $pages
}

# A full stop among the arguments of a macro is the end of a sentence, unless it is
# escaped: "0-9." instead of "0-9 .".
loose_stops() {
	# shellcheck disable=SC2086
	! grep -n '^\.Ql .* \. [^;,.]' $pages
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
		-e 's/^\t\t\.name = "\([a-z_]*\)".*/\1/p' daemon/util/config.c
}

# Each setting with its default, as the sample has it.
sample() {
	sed -n 's/^#\([a-z_]*\) = .*/\1/p' packaging/expiryd.conf | sort >"$dir/a"
	keys | sort >"$dir/b"
	diff "$dir/a" "$dir/b"
}

# The sample without its comment signs is valid, and the page has its values, which
# test-defaults compares with the daemon's.
sample_defaults() {
	sed 's/^#\([a-z_]* = \)/\1/' packaging/expiryd.conf >"$dir/conf"
	build/expiryd --config "$dir/conf" --check-config >"$dir/said" 2>&1 ||
		cat "$dir/said"
	# "\:" is where a line may be broken.
	sed 's/\\://g' docs/man/expiryd.conf.5 >"$dir/page"
	sed -n 's/^\([a-z_]*\) = \(.*\)/\1 \2/p' "$dir/conf" |
		while read -r key value; do
			grep -q "^\.It Cm $key Pq $value\$" "$dir/page" ||
				echo "expiryd.conf.5: $key Pq $value"
		done
}

# What a file of a declared queue may have.
queue_keys() {
	sed -n 's/^\t{ "\([a-z]*\)", set_[a-z]* },$/Cm \1/p' daemon/queue/queue-file.c \
		>"$dir/keys"
	[ -s "$dir/keys" ] && each expiry.queue.5 <"$dir/keys"
}

calls() {
	for call in $(sed -n 's/^\t\t\(expiry_[a-z_]*\);/\1/p' lib/libexpiry.map); do
		grep -q -x "\.Nm $call\( ,\)\?" docs/man/expiry_*.3 ||
			echo "no page: $call"
	done
}

# Ops and flags with their numbers, in both descriptions of the protocol.
protocol_numbers() {
	sed -n 's/^#define EXPIRY_\(OP\|HELLO\|F\)_\([A-Z_]*\)[ \t]*\([0-9][0-9a-fx]*\).*/\2 \3/p' \
		include/expiry/wire.h include/uapi/linux/expiry.h >"$dir/numbers"
	[ -s "$dir/numbers" ] && while read -r what value; do
		value=$((value))
		for text in docs/protocol.md docs/man/expiry-protocol.7; do
			grep -q -e "^| $value | $what |" -e "^\.It $value Ta $what\b" \
				-e "\b$what ($value)" $text ||
				echo "$text: $what ($value)"
		done
	done <"$dir/numbers"
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
	grep -oh -e '-E[A-Z0-9]*' kmod/*.c include/uapi/linux/expiry.h |
		grep -v -e ERESTARTSYS -e EIOCBQUEUED | sort -u |
		sed 's/^-\(E.*\)/Er \1/' | each expiry.4
}

is 'mandoc has nothing to say of the pages' silent lint
is 'groff has nothing to say of the pages' silent groff_warnings
is 'no option stands inside another one' silent nested_options
is 'cells of tables are no wider than their columns' silent wide_cells
is 'no full stop is taken for the end of a sentence' silent loose_stops
is 'options of expiryd' silent options expiryd expiryd.8
is 'options of expiryctl' silent options expiryctl expiryctl.1
is 'options of expiry-exporter' silent options expiry-exporter expiry-exporter.8
is 'commands of expiryctl' silent commands
is 'options of its commands' silent command_options
is 'the sample has every setting' silent sample
is 'settings and their defaults' silent sample_defaults
is 'settings of a declared queue' silent queue_keys
is 'calls of the library' silent calls
is 'ops and flags of the protocol' silent protocol_numbers
is 'what the device has' silent device_names
is 'errors of the device' silent device_errors
tap_end
