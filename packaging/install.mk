# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Installation:
#
#	make install [DESTDIR=] [PREFIX=/usr/local] [LIBDIR=] [UNITDIR=] ...
#	make install-dkms [DESTDIR=]
#	make uninstall, with the same variables
#
# Without DESTDIR the dynamic linker's cache is updated.
# With /usr/local all files are below it: systemd, udev and man search there, too.
# With /usr, pkg-config names the directories of systemd and udev.

PREFIX ?= /usr/local
SBINDIR ?= $(PREFIX)/sbin
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
MANDIR ?= $(PREFIX)/share/man

# $(1): the directory below $(PREFIX); $(2), $(3): pkg-config's package and variable
system_dir = $(firstword $(if $(filter /usr,$(PREFIX)),\
	$(shell pkg-config --variable=$(2) $(3) 2>/dev/null)) $(PREFIX)/$(1))
UNITDIR ?= $(call system_dir,lib/systemd/system,systemdsystemunitdir,systemd)
USERUNITDIR ?= $(call system_dir,lib/systemd/user,systemduserunitdir,systemd)
SYSUSERSDIR ?= $(call system_dir,lib/sysusers.d,sysusersdir,systemd)
TMPFILESDIR ?= $(call system_dir,lib/tmpfiles.d,tmpfilesdir,systemd)
CATALOGDIR ?= $(call system_dir,lib/systemd/catalog,catalogdir,systemd)
UDEVDIR ?= $(call system_dir,lib/udev,udevdir,udev)
MODULESLOADDIR ?= $(call system_dir,lib/modules-load.d,modulesloaddir,systemd)
BASHCOMPDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHCOMPDIR ?= $(PREFIX)/share/zsh/site-functions
FISHCOMPDIR ?= $(PREFIX)/share/fish/vendor_completions.d
DOCDIR ?= $(PREFIX)/share/doc/expiry
DATADIR ?= $(PREFIX)/share/expiry
DKMSDIR ?= /usr/src/expiry-$(VERSION)
# Files that name others differ by PREFIX: two installations may run at once.
I := $(B)/install$(filter-out /usr,$(PREFIX))
# Whether this systemd supports the settings of systemd-254.conf.
SYSTEMD_254 ?= $(shell pkg-config --atleast-version=254 libsystemd && echo yes)

# A package's build has DESTDIR and must not change the machine's linker cache.
REFRESH_LINKER = $(if $(DESTDIR),,@packaging/refresh-linker $(LIBDIR))

MANPAGES := $(wildcard docs/man/*.[1-8])
EXAMPLE_FILES := examples/Makefile examples/README.md $(wildcard examples/*.c \
	examples/*.py)
# Only the files that the module's build needs.
DKMS_SOURCES := Kbuild VERSION COPYING include/uapi/linux/expiry.h \
	$(wildcard core/*.[ch] kmod/*.[ch] kmod/compat/*)

.PHONY: install install-dkms install-exporter uninstall systemd-files

install: all systemd-files $(if $(MICROHTTPD_LIBS),install-exporter) ## daemon, tools, library, units, manual pages; not the module
	install -D -t $(DESTDIR)$(SBINDIR) $(B)/expiryd
	install -D -t $(DESTDIR)$(BINDIR) $(B)/expiryctl
	install -D -m 644 -t $(DESTDIR)$(LIBDIR) $(B)/libexpiry.a $(B)/libexpiry.so.0
	ln -sf libexpiry.so.0 $(DESTDIR)$(LIBDIR)/libexpiry.so
	install -D -m 644 -t $(DESTDIR)$(LIBDIR)/pkgconfig $(I)/libexpiry.pc
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/include/expiry include/expiry/*.h
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/include/linux \
		include/uapi/linux/expiry.h
	for page in $(MANPAGES); do \
		install -D -m 644 -t $(DESTDIR)$(MANDIR)/man$${page##*.} \
			$$page || exit 1; \
	done
	for page in $(notdir $(wildcard docs/man/expiry_*.3)); do \
		for call in $$(sed -n 's/^\.Nm \(expiry_[a-z_]*\)\( ,\)*$$/\1/p' \
			docs/man/$$page); do \
			test -e docs/man/$$call.3 || ln -sf $$page \
				$(DESTDIR)$(MANDIR)/man3/$$call.3 || exit 1; \
		done; \
	done
	install -D -m 644 -t $(DESTDIR)$(UNITDIR) $(I)/expiryd.service \
		packaging/systemd/expiryd.socket
	install -D -m 644 -t $(DESTDIR)$(USERUNITDIR) \
		$(I)/user/expiryd.service \
		packaging/systemd/user/expiryd.socket
	$(if $(SYSTEMD_254),install -D -m 644 packaging/systemd/systemd-254.conf \
		$(DESTDIR)$(UNITDIR)/expiryd.service.d/systemd-254.conf)
	install -D -m 644 -t $(DESTDIR)$(DOCDIR) packaging/expiryd.conf
	install -d $(DESTDIR)$(PREFIX)/lib/expiry/queues.d
	install -D -m 644 -t $(DESTDIR)$(DOCDIR)/examples $(EXAMPLE_FILES)
	install -D -m 644 packaging/systemd/sysusers.conf \
		$(DESTDIR)$(SYSUSERSDIR)/expiryd.conf
	install -D -m 644 packaging/systemd/tmpfiles.conf \
		$(DESTDIR)$(TMPFILESDIR)/expiryd.conf
	install -D -m 644 -t $(DESTDIR)$(CATALOGDIR) \
		packaging/systemd/expiryd.catalog
	install -D -m 644 -t $(DESTDIR)$(DATADIR)/grafana \
		packaging/grafana/expiry.json
	install -D -m 644 -t $(DESTDIR)$(DATADIR)/prometheus \
		packaging/prometheus/expiry.rules.yml
	install -D -m 644 packaging/systemd/udev.rules \
		$(DESTDIR)$(UDEVDIR)/rules.d/60-expiryd.rules
	install -D -m 644 packaging/completions/expiryctl.bash \
		$(DESTDIR)$(BASHCOMPDIR)/expiryctl
	install -D -m 644 packaging/completions/expiryctl.zsh \
		$(DESTDIR)$(ZSHCOMPDIR)/_expiryctl
	install -D -m 644 -t $(DESTDIR)$(FISHCOMPDIR) \
		packaging/completions/expiryctl.fish
	$(REFRESH_LINKER)

install-exporter: all systemd-files
	install -D -t $(DESTDIR)$(BINDIR) $(B)/expiry-exporter
	install -D -m 644 -t $(DESTDIR)$(UNITDIR) \
		$(I)/expiry-exporter.service \
		packaging/systemd/expiry-exporter.socket
	install -D -m 644 packaging/completions/expiry-exporter.bash \
		$(DESTDIR)$(BASHCOMPDIR)/expiry-exporter
	install -D -m 644 packaging/completions/expiry-exporter.zsh \
		$(DESTDIR)$(ZSHCOMPDIR)/_expiry-exporter
	install -D -m 644 -t $(DESTDIR)$(FISHCOMPDIR) \
		packaging/completions/expiry-exporter.fish

# The module's sources in the directory that dkms(8) searches.
install-dkms: systemd-files ## the module's sources, for dkms
	for file in $(DKMS_SOURCES); do \
		install -D -m 644 $$file $(DESTDIR)$(DKMSDIR)/$$file || exit 1; \
	done
	install -D -m 644 -t $(DESTDIR)$(DKMSDIR) $(I)/dkms.conf
	install -D -m 644 packaging/systemd/modules-load.conf \
		$(DESTDIR)$(MODULESLOADDIR)/expiry.conf

# Files that name the place of other files.
systemd-files: $(I)/expiryd.service $(I)/expiry-exporter.service \
	$(I)/user/expiryd.service \
	$(I)/libexpiry.pc $(I)/dkms.conf

$(I)/%: packaging/systemd/%.in packaging/substitute VERSION FORCE
	@PREFIX=$(PREFIX) LIBDIR=$(LIBDIR) BINDIR=$(BINDIR) SBINDIR=$(SBINDIR) \
		packaging/substitute $< $@

$(I)/%: lib/%.in packaging/substitute VERSION FORCE
	@PREFIX=$(PREFIX) LIBDIR=$(LIBDIR) BINDIR=$(BINDIR) SBINDIR=$(SBINDIR) \
		packaging/substitute $< $@

$(I)/%: packaging/dkms/%.in packaging/substitute VERSION FORCE
	@PREFIX=$(PREFIX) LIBDIR=$(LIBDIR) BINDIR=$(BINDIR) SBINDIR=$(SBINDIR) \
		packaging/substitute $< $@

.PHONY: FORCE
FORCE:

uninstall: ## what install and install-dkms brought, and nothing of yours
	rm -f $(DESTDIR)$(SBINDIR)/expiryd $(DESTDIR)$(BINDIR)/expiryctl \
		$(DESTDIR)$(BINDIR)/expiry-exporter \
		$(DESTDIR)$(LIBDIR)/libexpiry.a $(DESTDIR)$(LIBDIR)/libexpiry.so \
		$(DESTDIR)$(LIBDIR)/libexpiry.so.0 \
		$(DESTDIR)$(LIBDIR)/pkgconfig/libexpiry.pc \
		$(DESTDIR)$(PREFIX)/include/linux/expiry.h \
		$(DESTDIR)$(UNITDIR)/expiryd.service \
		$(DESTDIR)$(UNITDIR)/expiryd.socket \
		$(DESTDIR)$(UNITDIR)/expiry-exporter.service \
		$(DESTDIR)$(UNITDIR)/expiry-exporter.socket \
		$(DESTDIR)$(USERUNITDIR)/expiryd.service \
		$(DESTDIR)$(USERUNITDIR)/expiryd.socket \
		$(DESTDIR)$(UNITDIR)/expiryd.service.d/systemd-254.conf \
		$(DESTDIR)$(DOCDIR)/expiryd.conf \
		$(DESTDIR)$(DATADIR)/grafana/expiry.json \
		$(DESTDIR)$(DATADIR)/prometheus/expiry.rules.yml \
		$(DESTDIR)$(SYSUSERSDIR)/expiryd.conf \
		$(DESTDIR)$(TMPFILESDIR)/expiryd.conf \
		$(DESTDIR)$(MODULESLOADDIR)/expiry.conf \
		$(DESTDIR)$(CATALOGDIR)/expiryd.catalog \
		$(DESTDIR)$(UDEVDIR)/rules.d/60-expiryd.rules \
		$(DESTDIR)$(BASHCOMPDIR)/expiryctl \
		$(DESTDIR)$(ZSHCOMPDIR)/_expiryctl \
		$(DESTDIR)$(FISHCOMPDIR)/expiryctl.fish \
		$(DESTDIR)$(BASHCOMPDIR)/expiry-exporter \
		$(DESTDIR)$(ZSHCOMPDIR)/_expiry-exporter \
		$(DESTDIR)$(FISHCOMPDIR)/expiry-exporter.fish
	for page in $(notdir $(MANPAGES)); do \
		rm -f $(DESTDIR)$(MANDIR)/man$${page##*.}/$$page; \
	done
	for call in $$(sed -n 's/^\t\t\(expiry_[a-z_]*\);/\1/p' lib/libexpiry.map); do \
		rm -f $(DESTDIR)$(MANDIR)/man3/$$call.3; \
	done
	rm -rf $(DESTDIR)$(PREFIX)/include/expiry $(DESTDIR)$(DKMSDIR) \
		$(DESTDIR)$(DOCDIR)/examples
	rmdir $(DESTDIR)$(DATADIR)/grafana $(DESTDIR)$(DATADIR)/prometheus \
		$(DESTDIR)$(DATADIR) 2>/dev/null || :
	rmdir $(DESTDIR)$(UNITDIR)/expiryd.service.d $(DESTDIR)$(DOCDIR) \
		$(DESTDIR)$(PREFIX)/lib/expiry/queues.d \
		$(DESTDIR)$(PREFIX)/lib/expiry 2>/dev/null || :
	$(REFRESH_LINKER)
