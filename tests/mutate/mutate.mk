# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Does a test notice when the sources are broken (tests/README.md, "Mutants")?
# SAMPLE=N takes so many of the mutants, by SEED; FOLDERS='daemon lib' those of
# these folders or files; JOBS=N tries so many at a time.

MUTATE = tests/mutate/mutate $(if $(SEED),--seed $(SEED)) \
	$(if $(JOBS),--jobs $(JOBS))

.PHONY: check-mutants check-mutants-sample check-mutants-kmod

check-mutants: ## break the sources in 8000 places, see each noticed; SAMPLE=N
	@$(MUTATE) $(if $(SAMPLE),--sample $(SAMPLE)) $(FOLDERS)

# A test that is missing is no reason to stop what else is tested: it is shown.
check-mutants-sample: ## as many as there is time for in three minutes, by SEED
	@$(MUTATE) --sample $(or $(SAMPLE),60) --seconds 150 \
		$(or $(FOLDERS),daemon lib tools)

check-mutants-kmod: ## the module's, in User Mode Linux; SAMPLE=N
	@$(MUTATE) --sample $(or $(SAMPLE),20) kmod
