# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The figures that the core aims at, in one table; see bench/README.md.

.PHONY: bench-figures
bench-figures: $(B)/expiryd $(HEAP_PROGRAMS) $(PAPER)/trace-16 $(PAPER_BITS) \
		$(BENCH_DAEMON)/expiry ## the figures that the core aims at, ok or MISSED; BASE=COMMIT beside its daemon, QUICK=1
	@bench/figures/run $(call quick,--quick) $(if $(BASE),--base $(BASE))
