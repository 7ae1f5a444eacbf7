#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Programs that were built with the library as tests/abi/libexpiry.abi describes it run
# with the one of today. Functions may be added; structs whose size the program passes
# may grow. abidiff finds each fault that is planted here. `make abi` writes the file.

. tests/tap.sh

kept=tests/abi/libexpiry.abi

abi() {
	abidiff --suppressions tests/abi/suppressions --no-added-syms --no-show-locs \
		"$kept" "$1"
}

same() {
	abi build/libexpiry.so.0
}

# layout [TREE]: members are where programs use them
layout() {
	cc -fsyntax-only -I"${1:-.}/include" -I"${1:-.}/include/uapi" tests/abi/layout.c
}

# Each function of the header is in the file, and has its symbol's version.
all_functions() {
	sed -n 's/^\t\t\(expiry_[a-z_]*\);$/\1/p' lib/libexpiry.map |
		while read -r function; do
			grep -q "name='$function' version='EXPIRY_[0-9.]*'" "$kept" ||
				echo "$function"
		done
}

# build {SED FILE}...: the library, with files changed by SED. gcc 14 refuses pointers to
# the changed types unless it is told not to.
build() {
	rm -rf "$dir/tree"
	mkdir -p "$dir/tree"
	cp -r lib include "$dir/tree"
	while [ $# -gt 0 ]; do
		sed -i "$1" "$dir/tree/$2"
		! cmp -s "$2" "$dir/tree/$2" || return
		shift 2
	done
	(cd "$dir/tree" && cc -g -O0 -std=gnu11 -D_GNU_SOURCE -DEXPIRY_VERSION='"0"' \
		-Wno-incompatible-pointer-types -Iinclude -Iinclude/uapi -fPIC \
		-fvisibility=hidden -shared \
		-Wl,-soname,libexpiry.so.0 -Wl,--version-script=lib/libexpiry.map \
		-o ../planted.so lib/*.c)
}

found() {
	build "$@" && ! { abi "$dir/planted.so" && layout "$dir/tree"; }
}

passed() {
	build "$@" && abi "$dir/planted.so" && layout "$dir/tree"
}

if ! command -v abidiff >/dev/null; then
	skip 'the binary interface' 'no abidiff: apt install abigail-tools'
	tap_end
fi

public=include/expiry/expiry.h
is 'the file has all functions' all_functions
is 'the library of today fits' same
is 'members of structs that may grow are in their places' layout
is 'a function that is gone is found' found '/expiry_rewind;/d' lib/libexpiry.map
is 'a parameter of another type is found' \
	found 's/uint64_t cookie, unsigned int flags/uint64_t cookie, uint64_t flags/' $public \
	's/uint64_t cookie, unsigned int flags/uint64_t cookie, uint64_t flags/' lib/request.c
is 'members that changed places are found' \
	found '/^\tuint32_t credit;/{N;s/\(.*\)\n\(.*\)/\2\n\1/}' $public
is 'a struct without a size that grew is found' \
	found 's/^\tstruct expiry_stat stat;/&\n\tuint64_t more;/' $public
is 'a record that changed is found' \
	found 's/^\t__u64 cookie;/\t__u32 cookie;/' include/uapi/linux/expiry.h
is 'a counter that changed places is found' \
	found '/^\t__u64 queues;/{N;s/\(.*\)\n\(.*\)/\2\n\1/}' include/expiry/wire.h
is 'options may grow at their end' \
	passed 's/^\tvoid \*restore_arg;/&\n\tuint64_t more;/' $public
is 'but not in the middle' found 's/^\tuint64_t slack_ns;/\tuint64_t more;\n&/' $public
is 'functions may be added' \
	passed 's/^\t\texpiry_ack;/&\n\t\texpiry_more;/' lib/libexpiry.map \
	'$aEXPORT int expiry_more(void);\nint expiry_more(void) { return 0; }' lib/id.c
tap_end
