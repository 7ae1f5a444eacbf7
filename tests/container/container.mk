# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The daemon in containers with the default seccomp profile, which refuses io_uring.

.PHONY: check-container

check-container: ## image, pod and suites under podman's default seccomp profile (minutes)
	@tests/container/check $(or $(SUITE),$(OWN_SUITE)) make check-epoll LOOP=auto
