# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Does a test notice when core/ is broken (tests/README.md, "Mutants")? SAMPLE=N
# takes so many of the mutants, by SEED.

.PHONY: check-mutants
check-mutants: ## break core/ in a thousand places, see each noticed; SAMPLE=N
	@tests/mutate/mutate $(if $(SAMPLE),--sample $(SAMPLE)) \
		$(if $(SEED),--seed $(SEED))
