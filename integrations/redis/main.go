// SPDX-License-Identifier: LGPL-2.1-or-later

// expiry-redis-events has Redis say `expired` in time. Redis notices that a key has
// expired when the key is used, or when it happens to look. This program knows from
// expiry when a key's time has come, and then asks Redis about the key. Redis removes
// it, and says so to all subscribers.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"
)

const (
	pauseMin = 10 * time.Millisecond
	pauseMax = time.Second
)

type options struct {
	redis     string        // URL
	sentinels []string      // host:port
	master    string        // the sentinels' name for it
	socket    string        // expiryd's, empty for the default
	prefixes  []string      // of keys, none for all
	sweep     time.Duration // for a pass over all keys
	configure bool          // whether notify-keyspace-events may be set
	metrics   string        // address, empty for none
}

// list is a flag that may be given several times, or with commas.
type list struct{ to *[]string }

func (l list) String() string { return "" }
func (l list) Set(text string) error {
	*l.to = append(*l.to, strings.Split(text, ",")...)
	return nil
}

func parse() (*options, error) {
	o := &options{}
	flag.StringVar(&o.redis, "redis", "redis://localhost:6379/0",
		"`URL` of Redis or Valkey, with password and database; unix:///PATH for a socket")
	flag.Var(list{&o.sentinels}, "sentinel",
		"`HOST:PORT` of a Sentinel, instead of the URL's host; may be repeated")
	flag.StringVar(&o.master, "master", "mymaster", "the Sentinels' `NAME` of the master")
	flag.StringVar(&o.socket, "socket", "", "expiryd's socket `PATH`")
	flag.Var(list{&o.prefixes}, "prefix",
		"serve only keys that begin with `TEXT`; may be repeated")
	flag.DurationVar(&o.sweep, "sweep", time.Hour,
		"`TIME` for a pass over all keys, as a backstop; 0 for none")
	flag.BoolVar(&o.configure, "configure", true,
		"add E, g and x to notify-keyspace-events where they are missing")
	flag.StringVar(&o.metrics, "metrics", "",
		"serve metrics by HTTP at this `ADDRESS`, such as localhost:9124")
	flag.Parse()
	if flag.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	if o.sweep < 0 {
		return nil, errors.New("-sweep is negative")
	}
	return o, nil
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("expiry-redis-events: ")
	o, err := parse()
	if err != nil {
		log.Print(err)
		os.Exit(2)
	}
	// Most memory is names of keys, which stay: collect often, hold little.
	debug.SetGCPercent(25)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM,
		syscall.SIGINT)
	defer stop()
	m := &metrics{}
	if o.metrics != "" {
		if err := m.serve(o.metrics); err != nil {
			log.Fatal(err)
		}
	}
	serve(ctx, o, m)
}

// serve runs one session after the other: each reads anew what Redis has.
func serve(ctx context.Context, o *options, m *metrics) {
	pause := pauseMin
	for ctx.Err() == nil {
		began := time.Now()
		err := runSession(ctx, o, m)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > 5*pauseMax {
			pause = pauseMin
		}
		if pause == pauseMin || pause == pauseMax {
			log.Printf("%v; trying again", err)
		}
		m.failures.Add(1)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		if pause *= 2; pause > pauseMax {
			pause = pauseMax
		}
	}
}
