#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The manual page has each option of the relay.

. tests/tap.sh
. integrations/support/page.sh

page=integrations/celery/expiry-celery-relay.1
python=python3
$python -c 'import celery, redis' 2>/dev/null || python=/usr/bin/python3
export PYTHONPATH=integrations/celery/src:clients/python/src
command -v mandoc >/dev/null && $python -B -m expiry_celery -h >"$dir/help" || {
	echo '1..0 # SKIP mandoc or Celery is not installed'
	exit 4
}
version_is_the_project_s() {
	[ "$($python -B -c 'import expiry_celery.version as v; print(v.VERSION)')" = \
		"$(cat VERSION)" ]
}
is 'the page is well-formed' well_formed $page
is 'its options are those of the relay' options_listed $page "$dir/help" '--[a-z-]+'
is 'the package has the version of the project' version_is_the_project_s
tap_end
