# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What a newcomer types, in pristine roots of Debian's releases. With RECORD=1
# docs/targets.md has the results, too.

RELEASES ?= bookworm trixie

.PHONY: check-targets check-readme

check-targets: ## each target by bootstrap in a pristine Debian 12 and 13; TARGETS='deb run' RELEASES=trixie
	@tests/targets/check --releases '$(RELEASES)' --targets '$(TARGETS)' \
		$(if $(RECORD),--record)

check-readme: ## the README's commands, typed in order on a new Debian 12 and 13
	@tests/run tests/targets/test-machine
	@tests/targets/readme --releases '$(RELEASES)'
