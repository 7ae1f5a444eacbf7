# SPDX-License-Identifier: LGPL-2.1-or-later
#
# For tests of a program's manual page, read in by them after tests/tap.sh.

# well_formed PAGE
well_formed() {
	! mandoc -Tlint -W all "$1" | grep -v -e 'operating system explicitly specified' \
		-e 'longer than 80 bytes' -e 'referenced manual not found'
}

# options_listed PAGE HELP PATTERN: each option of the help text has an item in the page,
# and each item is an option
options_listed() {
	grep -oE -e "$3" "$2" | sort -u >"$dir/of-help"
	mandoc -Tutf8 "$1" | col -b | sed -n '/options are:/,$p' | grep -E '^     -' |
		grep -oE -e "$3" | sort -u >"$dir/of-page"
	[ -s "$dir/of-help" ] && diff "$dir/of-help" "$dir/of-page"
}
