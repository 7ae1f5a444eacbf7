# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Debian's packages. For a SUITE (bookworm, trixie) other than the machine's own,
# mmdebstrap makes a small root of that suite, which is kept.

SUITE ?=
OWN_SUITE := $(shell . /etc/os-release 2>/dev/null && echo $$VERSION_CODENAME)
DEB_DIR = $(B)/deb$(if $(SUITE),/$(SUITE))

.PHONY: deb check-deb

deb: ## Debian's packages, in build/deb (SUITE=trixie: for that one)
	@$(if $(filter-out $(OWN_SUITE),$(SUITE)),tests/deb/build $(SUITE) \
		$(DEB_DIR),packaging/build-deb $(DEB_DIR))
	@ls -l $(DEB_DIR)/*.deb

check-deb: ## the packages in a fresh Debian: install, build, run, upgrade, purge
	@tests/deb/check $(or $(SUITE),$(OWN_SUITE))
