#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The manual page has each option of the program.

. tests/tap.sh
. integrations/support/page.sh

page=integrations/redis/expiry-redis-events.8
[ -x build/expiry-redis-events ] && command -v mandoc >/dev/null || {
	echo '1..0 # SKIP mandoc or build/expiry-redis-events is missing'
	exit 4
}
build/expiry-redis-events -h 2>"$dir/help"
sed -n 's/^  \(-[a-z]*\).*/\1/p' "$dir/help" >"$dir/options"
is 'the page is well-formed' well_formed $page
is 'its options are those of the program' options_listed $page "$dir/options" '-[a-z]+'
tap_end
