# SPDX-License-Identifier: LGPL-2.1-or-later
#
# People's entrance: `make` lists the targets. Everything that is built goes to
# build/; nothing is left beside the sources. V=1 shows the commands.

VERSION := $(shell cat VERSION)
B := build

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SECONDARY:

# ---------------------------------------------------------------------------
# How things are compiled

CC ?= gcc
Q = $(if $(V),,@)
say = $(if $(V),,@printf '  %-7s %s\n' $(1) '$(2)';)

WARNINGS := -Wall -Wextra
# A second variable of the same name hides a mistake sooner or later.
WARNINGS += -Wshadow
# Kernel style: declarations first.
WARNINGS += -Wdeclaration-after-statement
# Every linkable function is declared in a header that its file includes.
WARNINGS += -Wmissing-prototypes -Wstrict-prototypes
# No array whose size a client could choose, no macro that is not there.
WARNINGS += -Wvla -Wundef
# Formats are checked where they are passed on, too.
WARNINGS += -Wformat=2 -Wwrite-strings

OPTIMIZE ?= -O2 -g
CPPFLAGS := -Iinclude/uapi -Iinclude -I. -D_GNU_SOURCE \
	-DEXPIRY_VERSION='"$(VERSION)"' $(CPPFLAGS)
CFLAGS := -std=gnu11 $(OPTIMIZE) -fno-strict-aliasing $(WARNINGS) $(CFLAGS)
# The compiler takes a third less time with -O1, and the tests a tenth more.
SANITIZE := -O1 -fsanitize=address,undefined -fno-sanitize-recover=all \
	-fno-omit-frame-pointer

URING_LIBS = $(shell pkg-config --libs liburing)
JANSSON_LIBS = $(shell pkg-config --libs jansson)
SYSTEMD_LIBS = $(shell pkg-config --libs libsystemd)
MICROHTTPD_LIBS := $(shell pkg-config --libs libmicrohttpd 2>/dev/null)

# $(call quick,OPTIONS): those of a look, QUICK=1, for make bench-...
quick = $(if $(QUICK),$(1))

# Links the objects and archives among the prerequisites; $(1) are more libraries.
define link
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o %.a,$^) $(1)
endef

CORE := $(wildcard core/*.c)
DAEMON := $(wildcard daemon/*.c daemon/*/*.c)
LIB := $(wildcard lib/*.c)
CTL := tools/expiryctl.c $(wildcard tools/commands/*.c)
EXPORTER := $(wildcard tools/exporter/*.c)
# What reads and writes a journal without a daemon.
JOURNAL := $(patsubst %,daemon/journal/%.c,checkpoint crc32c directory format journal \
	reader recovery runner segment stock) daemon/util/name.c
TOOLS := $(filter-out $(CTL) $(EXPORTER),$(wildcard tools/*.c tools/*/*.c))

# Objects: build/obj/<flavour>/<source>.o, so that flavours never mix.
objects = $(2:%.c=$(B)/obj/$(1)/%.o)

$(B)/obj/plain/%.o: %.c VERSION
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(B)/obj/shared/%.o: %.c VERSION
	@mkdir -p $(@D)
	$(call say,CC,$< [shared])$(CC) $(CPPFLAGS) $(CFLAGS) -fPIC \
		-fvisibility=hidden -MMD -MP -c -o $@ $<

# core/ with 64-byte pages, watched by the sanitizers.
$(B)/obj/p6/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$< [64-byte pages])$(CC) $(CPPFLAGS) -Icore $(CFLAGS) \
		$(SANITIZE) -DCORE_PAGE_SHIFT=6 -Wno-type-limits -MMD -MP -c -o $@ $<

# The compiler writes them; they are not linked from an object of that name.
$(B)/%.d: ;
-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)

# ---------------------------------------------------------------------------
# What is built

.PHONY: help all
help: ## this list
	@echo 'expiry $(VERSION): make TARGET, or sh packaging/bootstrap make TARGET'
	@sed -e ':a' -e '/\\$$/{N' -e 's/\\\n[ \t]*//' -e 'ba' -e '}' $(MAKEFILE_LIST) | \
		grep -E '^[a-z-]+:.*##' | sed -E 's/^([a-z-]+):.*## */\1\t/' | \
		while IFS="$$(printf '\t')" read -r name what; do \
			printf '  %-16s %s\n' "$$name" "$$what"; done

all: $(B)/expiryd $(B)/expiryctl $(B)/libexpiry.so.0 $(B)/libexpiry.a exporter ## daemon, tools and library

# Only the exporter needs libmicrohttpd.
.PHONY: exporter
ifneq ($(MICROHTTPD_LIBS),)
exporter: $(B)/expiry-exporter
else
exporter:
	@echo '  SKIP    expiry-exporter: libmicrohttpd is not installed'
endif

$(B)/expiryd: $(call objects,plain,$(DAEMON) $(CORE))
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ \
		$(URING_LIBS) $(SYSTEMD_LIBS)

$(B)/libexpiry.a: $(call objects,shared,$(LIB))
	@rm -f $@
	$(call say,AR,$@)$(AR) rcs $@ $^

$(B)/libexpiry.so.0: $(call objects,shared,$(LIB)) lib/libexpiry.map
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -shared \
		-Wl,-soname,libexpiry.so.0 -Wl,--version-script=lib/libexpiry.map \
		-Wl,--no-undefined -o $@ $(filter %.o,$^)
	@ln -sf libexpiry.so.0 $(B)/libexpiry.so

# What the tools share; each links the part that it calls.
$(B)/tools.a: $(call objects,plain,$(TOOLS) $(JOURNAL))
	@rm -f $@
	$(call say,AR,$@)$(AR) rcs $@ $^

$(B)/expiryctl: $(call objects,plain,$(CTL)) $(B)/tools.a $(B)/libexpiry.a
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(JANSSON_LIBS)

$(B)/expiry-exporter: $(call objects,plain,$(EXPORTER)) $(B)/tools.a \
		$(B)/libexpiry.a
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ \
		$(MICROHTTPD_LIBS) $(SYSTEMD_LIBS)

# ---------------------------------------------------------------------------
# The main job, examples, benchmarks

.PHONY: run
run: all $(B)/demo/storm ## the main job: certificates and a million timers
	@demo/main-job

$(B)/demo/storm: $(B)/obj/plain/demo/ledger.o $(B)/obj/plain/demo/rows.o

$(B)/demo/%: $(B)/obj/plain/demo/%.o $(B)/libexpiry.a
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lpthread

# As against an installed library, but with the one here; then under the sanitizers.
EXAMPLES = @$(MAKE) --no-print-directory $(if $(V),,-s) -C examples \
	EXPIRY_CFLAGS='-I$(CURDIR)/include -I$(CURDIR)/include/uapi' \
	EXPIRY_LIBS='$(CURDIR)/$(B)/libexpiry.a' \
	EXPIRY_DEPENDS='$(CURDIR)/$(B)/libexpiry.a'

.PHONY: examples examples-asan
examples: $(B)/libexpiry.a ## examples/: those whose library is installed
	$(EXAMPLES) O=$(CURDIR)/$(B)/examples CFLAGS='$(OPTIMIZE) -Wall -Wextra'

examples-asan: $(B)/libexpiry.a
	$(EXAMPLES) O=$(CURDIR)/$(B)/asan/examples \
		CFLAGS='$(OPTIMIZE) -Wall -Wextra -Werror $(SANITIZE)'

include bench/paper/paper.mk bench/heap/heap.mk bench/daemon/daemon.mk bench/figures/figures.mk kmod/module.mk \
	tests/tests.mk tests/vm/vm.mk bench/kernel/kernel.mk packaging/install.mk packaging/deb.mk \
	tests/systemd/systemd.mk tests/container/container.mk tests/targets/targets.mk \
	tests/dashboard/dashboard.mk integrations/integrations.mk

# ---------------------------------------------------------------------------
# Housekeeping

.PHONY: clean
clean: ## remove build/
	rm -rf $(B)
