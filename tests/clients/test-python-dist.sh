#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The wheel of the Python client: built without network, installed into an empty virtual
# environment, and used there as docs/python.md says.

. tests/tap.sh

for module in pip setuptools wheel venv; do
	/usr/bin/python3 -c "import $module" 2>/dev/null || {
		echo "1..0 # SKIP python3 has no module $module"
		exit 4
	}
done
python=$dir/venv/bin/python

# From a copy: a build leaves files beside the sources.
built() {
	cp -r clients/python "$dir/source" &&
		/usr/bin/python3 -m pip wheel --quiet --no-index --no-deps --no-build-isolation \
			--wheel-dir "$dir" "$dir/source" &&
		[ -e "$dir/expiry-$(cat VERSION)-py3-none-any.whl" ]
}

# Modules, the mark of a typed package, and what describes it.
has_only_its_files() {
	/usr/bin/python3 -m zipfile --list "$dir"/expiry-*.whl | awk 'NR > 1 { print $1 }' |
		sort >"$dir/is"
	{
		(cd clients/python/src && find expiry -name '*.py' && echo expiry/py.typed)
		for file in METADATA RECORD WHEEL top_level.txt; do
			echo "expiry-$(cat VERSION).dist-info/$file"
		done
	} | sort >"$dir/wanted"
	diff "$dir/wanted" "$dir/is"
}

installed() {
	/usr/bin/python3 -m venv "$dir/venv" &&
		"$python" -m pip install --quiet --no-index --find-links "$dir" expiry &&
		[ "$("$python" -c 'import expiry; print(expiry.__version__)')" = "$(cat VERSION)" ]
}

used() {
	sed -n '/^```python$/,/^```$/p;/^```$/q' docs/python.md | sed '1d;$d' >"$dir/first.py"
	build/expiryd --engine embedded --socket "$dir/socket" 2>"$dir/daemon" &
	daemon=$!
	tries=200
	until [ -S "$dir/socket" ] || [ $tries = 0 ]; do
		tries=$((tries - 1))
		sleep 0.05
	done
	(cd "$dir" && EXPIRY_SOCKET=$dir/socket timeout 30 "$python" first.py) >"$dir/output"
	status=$?
	kill $daemon
	wait $daemon
	cat "$dir/output"
	[ $status = 0 ] && grep -x 'expired: 42' "$dir/output"
}

is 'the wheel is built' built
is 'it has the files of the package, and no others' has_only_its_files
is 'an empty environment installs it' installed
is 'the first program of docs/python.md runs there' used
tap_end
