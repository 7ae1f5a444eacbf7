# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The service in a machine whose process 1 is systemd: a root of Debian's (SUITE),
# the project installed in it as `make install` does, on a kernel in User Mode
# Linux that has what the unit asks for.

SYSTEMD_KERNEL = $(eval SYSTEMD_KERNEL := $$(shell tests/vm/build-kernel --arch um \
	tests/uml/machine.config tests/systemd/systemd.config))$(SYSTEMD_KERNEL)
# The build that is upgraded to.
LATER := $(VERSION)+later

# Packages to upgrade to, if they can be built here: else that test is skipped.
SYSTEMD_PACKAGES := $(B)/tests/systemd/packages/$(OWN_SUITE)

SYSTEMD_PROGRAMS := $(B)/tests/systemd/load systemd-later \
	$(if $(filter $(OWN_SUITE),$(or $(SUITE),$(OWN_SUITE))),systemd-packages)

.PHONY: check-systemd check-systemd-vm check-reboots systemd-later systemd-packages

check-systemd: all $(SYSTEMD_PROGRAMS) ## the service under systemd: kills, upgrades, watchdog, journal (ten minutes)
	@$(call uml-make,$(SYSTEMD_KERNEL)) module
	@tests/systemd/check $(or $(SUITE),$(OWN_SUITE)) um $(SYSTEMD_KERNEL)

# Durable queues over reboots, then one on a disk that must lose some.
check-reboots: all ## durable queues over reboots and losses of power of a machine with systemd (fifteen minutes)
	@$(call uml-make,$(SYSTEMD_KERNEL)) module
	@tests/systemd/check $(or $(SUITE),$(OWN_SUITE)) um $(SYSTEMD_KERNEL) \
		'tests/systemd/reboot --engine embedded' \
		'tests/systemd/reboot --engine kernel' \
		'tests/systemd/reboot --canary'

# Emulated, with fewer kills.
check-systemd-vm: all module $(SYSTEMD_PROGRAMS) ## the same on Debian's own kernel in a VM
	@tests/systemd/check $(or $(SUITE),$(OWN_SUITE)) x86

$(B)/tests/systemd/load: $(B)/obj/plain/tests/systemd/load.o $(B)/libexpiry.a
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^

systemd-later:
	@$(MAKE) --no-print-directory B=$(B)/later VERSION=$(LATER) $(B)/later/expiryd

systemd-packages:
	$(call say,DEB,$(SYSTEMD_PACKAGES))packaging/build-deb $(SYSTEMD_PACKAGES)
