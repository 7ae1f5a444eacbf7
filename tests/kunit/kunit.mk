# SPDX-License-Identifier: LGPL-2.1-or-later
#
# KUnit suites in User Mode Linux, a kernel that is a program: the unit tests of
# core/ as a kernel compiles and runs them, and those of the module's queues.
# Not part of `make check`: the first time some minutes go into that kernel.

KUNIT_MODULES := core core-p6 queue canary
KUNIT_PROGRAMS := $(foreach module,$(filter-out canary,$(KUNIT_MODULES)),\
	$(B)/kunit/$(module)/kunit-$(module))
KUNIT_RESULTS = $(B)/check/kunit-results

KUNIT_SOURCES := $(shell find tests/core tests/kunit core kmod include \
	-type f -name '*.[ch]' 2>/dev/null) kmod/compat/Kbuild.include

.PHONY: kunit

kunit: $(KUNIT_MODULES:%=kunit-%) ## the unit tests of core and queues in a User Mode Linux kernel
	@mkdir -p $(dir $(KUNIT_RESULTS))
	@rm -f $(KUNIT_RESULTS)
	@status=0; tests/run --timeout 1200 --prefix kunit: \
		--results $(KUNIT_RESULTS) tests/kunit/selftest \
		$(KUNIT_PROGRAMS) || status=1; \
		tests/run --summary $(KUNIT_RESULTS) && exit $$status

# Each has its own tree of links: the same objects, by other flags. The program
# beside the module is what tests/run runs.
kunit-%:
	@test -n "$(UML_DEBUG_KERNEL)"
	@mkdir -p $(sort $(dir $(KUNIT_SOURCES:%=$(B)/kunit/$*/src/%)))
	@find $(B)/kunit/$*/src -xtype l -delete
	@for source in $(KUNIT_SOURCES); do \
		link=$(B)/kunit/$*/src/$$source; \
		test -L $$link || ln -sr $$source $$link || exit 1; \
	done
	@ln -sfr tests/kunit/Kbuild $(B)/kunit/$*/src/Kbuild
	@$(MAKE) --no-print-directory -s -C $(UML_DEBUG_KERNEL)/build ARCH=um \
		M=$(CURDIR)/$(B)/kunit/$*/src KUNIT_MODULE=$* UBSAN_SANITIZE=y modules
	@printf '#!/bin/sh\nexec %s %s %s\n' $(CURDIR)/tests/kunit/run \
		$(UML_DEBUG_KERNEL) $(CURDIR)/$(B)/kunit/$*/src/kunit-$*.ko \
		>$(B)/kunit/$*/kunit-$*
	@chmod +x $(B)/kunit/$*/kunit-$*
