# SPDX-License-Identifier: GPL-2.0-only
#
# The module, out of tree, for one kernel release at a time:
#
#	make module [KREL=release] [KDIR=its headers] [MODULE_FLAGS=W=1]
#
# leaves build/kmod/KREL/expiry.ko. The kernel's build puts objects beside the
# sources it is shown, so it is shown symbolic links: a tree of them for each
# release, which keeps several releases apart and the sources clean.

KREL ?= $(eval KREL := $$(shell sh packaging/kernel-release))$(KREL)
KDIR ?= $(firstword $(wildcard /lib/modules/$(KREL)/build \
	/usr/src/linux-headers-$(KREL)) /lib/modules/$(KREL)/build)
MODULE_FLAGS ?= W=1

MODULE_DIR = build/kmod/$(KREL)
MODULE = $(MODULE_DIR)/expiry.ko

# EXPIRY_BINARY=1: with the heap that make bench-swap compares with, in a
# MODULE_DIR of its own.
MODULE_SOURCES := $(shell find Kbuild VERSION kmod core include \
	$(if $(EXPIRY_BINARY),bench/kernel/bheap_binary.[ch]) -type f \
	\( -name '*.[ch]' -o -name 'Kbuild*' -o -name VERSION \) 2>/dev/null)

.PHONY: module module-links clean-module

module: module-links ## build/kmod/RELEASE/expiry.ko, for the kernel whose headers are installed
	@$(MAKE) --no-print-directory -C $(KDIR) M=$(CURDIR)/$(MODULE_DIR)/src \
		$(MODULE_FLAGS) modules
	@cmp -s $(MODULE_DIR)/src/expiry.ko $(MODULE) || \
		cp $(MODULE_DIR)/src/expiry.ko $(MODULE)
	@echo "  MODULE  $(MODULE)"

# Links to files that are gone would keep their objects in the module's build.
module-links:
	@test -n "$(KREL)" && test -e $(KDIR)/Makefile || { \
		echo "no kernel headers found: sh packaging/bootstrap make module" >&2; \
		exit 1; }
	@mkdir -p $(sort $(dir $(MODULE_SOURCES:%=$(MODULE_DIR)/src/%)))
	@find $(MODULE_DIR)/src -xtype l -delete
	@for source in $(MODULE_SOURCES); do \
		link=$(MODULE_DIR)/src/$$source; \
		test -L $$link || ln -sr $$source $$link || exit 1; \
	done

clean-module:
	rm -rf build/kmod
