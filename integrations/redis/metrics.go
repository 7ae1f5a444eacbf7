// SPDX-License-Identifier: LGPL-2.1-or-later

package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// bounds of the histogram of lateness, in seconds.
var bounds = [...]float64{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 5}

// metrics are counters, which any goroutine may increase.
type metrics struct {
	keys     atomic.Int64
	events   atomic.Int64
	asked    atomic.Int64
	told     atomic.Int64
	passes   atomic.Int64
	sessions atomic.Int64
	failures atomic.Int64
	refusals atomic.Int64
	refused  atomic.Int64
	lateNS   atomic.Int64
	late     [len(bounds)]atomic.Int64
}

// tell counts a key that Redis removed when it was asked, and how late that was.
func (m *metrics) tell(late time.Duration) {
	m.told.Add(1)
	m.lateNS.Add(int64(late))
	for i, bound := range bounds {
		if late.Seconds() <= bound {
			m.late[i].Add(1)
		}
	}
}

func (m *metrics) write(w io.Writer) {
	for _, family := range []struct {
		name, kind, help string
		value            int64
	}{
		{"keys", "gauge", "Keys whose time is known.", m.keys.Load()},
		{"events_total", "counter", "Events of Redis about keys.", m.events.Load()},
		{"asked_total", "counter", "Keys that Redis was asked about.", m.asked.Load()},
		{"passes_total", "counter", "Passes over all keys.", m.passes.Load()},
		{"sessions_total", "counter", "Sessions that were begun.", m.sessions.Load()},
		{"failures_total", "counter", "Sessions that broke.", m.failures.Load()},
		{"refusals_total", "counter", "Timers that expiryd refused.", m.refusals.Load()},
		{"refused", "gauge", "Keys that have no timer, as it was refused.",
			m.refused.Load()},
	} {
		name := "expiry_redis_" + family.name
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n%s %d\n", name, family.help, name,
			family.kind, name, family.value)
	}
	const late = "expiry_redis_lateness_seconds"
	fmt.Fprintf(w, "# HELP %s How long after its time a key was removed.\n"+
		"# TYPE %s histogram\n", late, late)
	for i, bound := range bounds {
		fmt.Fprintf(w, "%s_bucket{le=\"%g\"} %d\n", late, bound, m.late[i].Load())
	}
	fmt.Fprintf(w, "%s_bucket{le=\"+Inf\"} %d\n%s_sum %g\n%s_count %d\n", late,
		m.told.Load(), late, float64(m.lateNS.Load())/1e9, late, m.told.Load())
}

// serve answers requests for /metrics until the program ends.
func (m *metrics) serve(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		m.write(w)
	})
	server := &http.Server{Handler: mux, ReadTimeout: 5 * time.Second,
		WriteTimeout: 5 * time.Second}
	go server.Serve(listener)
	return nil
}

// notify tells the service manager of a state.
func notify(state string) {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	c, err := net.Dial("unixgram", path)
	if err == nil {
		io.WriteString(c, state)
		c.Close()
	}
}

// databaseOf returns the number of the database in a URL.
func databaseOf(text string) string {
	u, err := url.Parse(text)
	number := ""
	if err == nil && u.Scheme != "unix" {
		number = strings.Trim(u.Path, "/")
	}
	if number == "" {
		return "0"
	}
	return number
}
