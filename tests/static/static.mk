# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What is wrong with the C that a kernel runs, as programs see it that read it.
# Where one of them is not installed its tests are skipped.

.PHONY: check-static layers style

check-static: ## plain English, links; checkpatch, sparse, coccinelle over core/ and kmod/ (minutes)
	@export KREL=$(KREL); $(RUN_TESTS) --jobs 1 --timeout 600 \
		tests/static/plain-english tests/static/links \
		tests/static/planted tests/static/kunit tests/static/style \
		tests/static/sparse tests/static/coccicheck

style: ## the kernel's checkpatch.pl over core/, kmod/ and the kselftests
	@KREL=$(KREL) tests/static/style

# The module, where it can be built: its calls count, too.
MODULE_BUILT = $(if $(wildcard $(KDIR)/Makefile),module)
layers: all $(MODULE_BUILT) ## rooms, arrows and circles of the house, BASE=COMMIT beside it
	-@$(LAYERS) | grep -v ^ok
	@$(LAYERS) --table $(BASE)

layers: LAYERS = $(if $(MODULE_BUILT),LAYERS_MODULE=$(MODULE_DIR)/src) tests/static/layers
