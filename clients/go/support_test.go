// SPDX-License-Identifier: LGPL-2.1-or-later

package expiry

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// daemon is an expiryd of the test's own.
type daemon struct {
	t       testing.TB
	path    string
	process *exec.Cmd
}

// startDaemon starts $EXPIRYD or the one of the build, and skips the test without it.
func startDaemon(t testing.TB) *daemon {
	t.Helper()
	dir, err := os.MkdirTemp("", "expiry-go-")
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{t: t, path: filepath.Join(dir, "socket")}
	t.Cleanup(func() {
		d.kill()
		os.RemoveAll(dir)
	})
	d.start()
	return d
}

func (d *daemon) start() {
	d.t.Helper()
	program := os.Getenv("EXPIRYD")
	if program == "" {
		program = "../../build/expiryd"
	}
	if _, err := os.Stat(program); err != nil {
		d.t.Skip("no daemon is built: make all")
	}
	d.process = exec.Command(program, "--engine", "embedded", "--socket", d.path)
	d.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := d.process.Start(); err != nil {
		d.t.Fatal(err)
	}
	waitFor(d.t, "the daemon", func() bool {
		conn, err := net.Dial("unix", d.path)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}

func (d *daemon) kill() {
	if d.process != nil {
		d.process.Process.Kill()
		d.process.Wait()
		d.process = nil
	}
}

// open opens a queue that the test closes.
func (d *daemon) open(name string, options ...Option) *Queue {
	d.t.Helper()
	q, err := Open(soon(d.t), name, append(options, Socket(d.path))...)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { q.Close() })
	return q
}

// soon is a context that only a hang outlives.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func waitFor(t testing.TB, what string, isTrue func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !isTrue(); {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// leftovers notes goroutines and descriptors, and compares them at the end.
func leftovers(t testing.TB) {
	t.Helper()
	// The poller's own descriptors stay.
	if l, err := net.Listen("unix", ""); err == nil {
		l.Close()
	}
	files := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	goroutines, descriptors := runtime.NumGoroutine(), files()
	t.Cleanup(func() {
		waitFor(t, fmt.Sprintf("%d goroutines", goroutines), func() bool {
			return runtime.NumGoroutine() <= goroutines
		})
		if now := files(); now > descriptors {
			t.Errorf("%d descriptors, before %d", now, descriptors)
		}
	})
}

// fake is a server that the test plays: a script for each connection.
func fake(t testing.TB, scripts ...func(net.Conn)) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "expiry-go-")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "socket")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, script := range scripts {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			script(conn)
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		<-done
		os.RemoveAll(dir)
	})
	return path
}

// get reads requests; nil when the client has gone.
func get(conn net.Conn, nr int) []Record {
	records := make([]Record, nr)
	raw := wire(records)
	for len(raw) > 0 {
		n, err := conn.Read(raw)
		if err != nil {
			return nil
		}
		raw = raw[n:]
	}
	return records
}

// put writes records.
func put(conn net.Conn, records ...Record) { conn.Write(wire(records)) }

// greet answers HELLO.
func greet(conn net.Conn) {
	get(conn, 1)
	put(conn, Record{Op: OpHello, Cookie: 4096})
}

// greetAgain answers the HELLO and the STAT of a later connection, from which get waits
// for some seconds at most.
func greetAgain(conn net.Conn, window uint64) {
	conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	get(conn, 2)
	put(conn, Record{Op: OpHello, Cookie: window}, Record{Op: OpStat, PeriodMS: 16})
	put(conn, make([]Record, 16)...)
}
