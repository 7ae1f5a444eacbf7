# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The index beside other hash tables. It needs the packages libabsl-dev and
# libhts-dev, which nothing else does, so it is no part of bench-heap.

MAPS_LIBS = $(shell pkg-config --libs absl_flat_hash_map)

$(HEAP)/maps: $(call objects,plain,bench/heap/maps.c bench/heap/map-index.c \
		bench/heap/map-khash.c bench/pages.c $(CORE)) \
		$(call cc_objects,bench/heap/map-swiss.cc)
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CXX) $(CXXFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) \
		$(MAPS_LIBS)

.PHONY: bench-index
bench-index: $(HEAP)/maps ## the index beside abseil's and htslib's tables (libabsl-dev, libhts-dev)
	@$(HEAP)/maps
