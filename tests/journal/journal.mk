# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The journal on a simulated disk that loses power.

# All but what talks to the kernel.
JOURNAL_PARTS := $(filter-out %/directory.c,$(JOURNAL))
# Crashed disks to recover.
STATES ?= 100000

# Without sanitizers, for the number of states; test-recovery has them.
$(B)/tests/journal/crash: $(call objects,plain,$(wildcard tests/journal/*.c) \
		$(JOURNAL_PARTS))
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^

$(B)/asan/tests/journal/crash: $(call objects,asan,$(wildcard tests/journal/*.c) \
		$(JOURNAL_PARTS))
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) $(SANITIZE) -o $@ $^

JOURNAL_PROGRAMS := $(B)/tests/journal/crash $(B)/asan/tests/journal/crash
JOURNAL_GROUP = tests/journal/test-crash

.PHONY: check-journal check-journal-faults
check-journal: $(JOURNAL_PROGRAMS) ## the journal on a disk that loses power, STATES=100000
	@STATES=$(STATES) $(RUN_TESTS) $(JOURNAL_GROUP)

check-journal-faults: ## is each rule of the journal noticed when it is broken?
	@tests/journal/faults $(STATES)
