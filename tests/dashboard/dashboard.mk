# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Alerts for Prometheus and the dashboard for Grafana. With grafana-foundation-sdk
# from PyPI (PYTHON=that environment's python3) the dashboard is read by Grafana's
# own types, too.

PYTHON ?= python3

.PHONY: check-dashboard

check-dashboard: all ## alerts by promtool; the dashboard's queries in a Prometheus that scrapes a daemon
	@$(PYTHON) -B tests/dashboard/test-dashboard.py
