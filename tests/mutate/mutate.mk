# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Does a test notice a fault in the sources (tests/README.md, "Mutants")?
# SAMPLE=N takes N random mutants, by SEED. FOLDERS='daemon lib' selects folders or
# files. JOBS=N tries N mutants at a time.

MUTATE = tests/mutate/mutate $(if $(SEED),--seed $(SEED)) \
	$(if $(JOBS),--jobs $(JOBS))

.PHONY: check-mutants check-mutants-night check-mutants-sample check-mutants-kmod

check-mutants: ## break the sources in 10000 places, see each noticed; SAMPLE=N
	@$(MUTATE) $(if $(SAMPLE),--sample $(SAMPLE)) $(FOLDERS)

# Each night's verdicts are kept: the table is of all nights, and docs/mutants.md has the
# files that are finished.
HOURS ?= 8
check-mutants-night: ## as many as there is time for in HOURS=8, from where the last such run stopped
	@mkdir -p $(B)/mutate
	@$(MUTATE) --resume $(B)/mutate/whole --record docs/mutants.md \
		--seconds $$(($(HOURS) * 3600)) $(FOLDERS)

# Others with each commit: its hash is the seed.
COMMIT = $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo 1)

# A test that is missing is no reason to stop what else is tested: it is shown.
check-mutants-sample: ## as many as there is time for in three minutes, by SEED
	@tests/mutate/mutate --seed $(or $(SEED),$(COMMIT)) \
		$(if $(JOBS),--jobs $(JOBS)) --sample $(or $(SAMPLE),60) \
		--seconds 150 $(or $(FOLDERS),core)

check-mutants-kmod: ## the module's, in User Mode Linux; SAMPLE=N
	@$(MUTATE) --sample $(or $(SAMPLE),20) kmod
