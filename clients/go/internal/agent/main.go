// SPDX-License-Identifier: LGPL-2.1-or-later

// The agent of the Go client: clients/README.md describes its commands.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	expiry "expiry.example/clients/go"
)

type agent struct {
	queue     *expiry.Queue
	timeout   time.Duration
	goroutine int // before anything was opened
	started   map[string]*task
	restores  atomic.Int64
	restored  atomic.Int64
}

// task is a command that `start` began.
type task struct {
	cancel context.CancelFunc
	answer chan []string
}

var ops = map[string]uint8{
	"arm": expiry.OpArm, "refresh": expiry.OpRefresh, "cancel": expiry.OpCancel,
	"ack": expiry.OpAck, "query": expiry.OpQuery, "clear": expiry.OpClear,
	"drop": expiry.OpDrop,
}

// The runtime's poller opens descriptors at the first use, and keeps them.
func openPoller() {
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		panic(err)
	}
	syscall.Close(ends[1])
	file := os.NewFile(uintptr(ends[0]), "socket")
	if conn, err := net.FileConn(file); err == nil {
		conn.Close()
	}
	file.Close()
}

func main() {
	openPoller()
	a := &agent{goroutine: runtime.NumGoroutine(), started: map[string]*task{}}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		for _, line := range a.command(context.Background(), in.Text()) {
			os.Stdout.WriteString(line + "\n")
		}
	}
}

func one(format string, args ...any) []string {
	return []string{fmt.Sprintf(format, args...)}
}

// command carries out a line. It returns the lines of the answer.
func (a *agent) command(ctx context.Context, line string) []string {
	w := parse(line)
	switch w.name {
	case "agent":
		return one("ok language=go can=names,restore,start,abandon,many")
	case "encode":
		return encode(w)
	case "decode":
		return decode(w)
	case "id_of":
		id, check, err := expiry.IDOf(w.bytes("name"), w.bytes("key"))
		if err != nil {
			return one("%s", failure(err))
		}
		return one("ok id=%d check=%d", id, check)
	case "open":
		return a.open(ctx, w)
	case "start":
		return a.start(line)
	case "abandon":
		a.started[strings.Fields(line)[1]].cancel()
		return one("ok")
	case "wait":
		tag := strings.Fields(line)[1]
		answer := <-a.started[tag].answer
		delete(a.started, tag)
		return answer
	case "restored":
		return one("ok calls=%d timers=%d", a.restores.Load(), a.restored.Load())
	case "left":
		return a.left()
	case "close":
		if a.queue != nil {
			a.queue.Close()
			a.queue = nil
		}
		return one("ok")
	}
	if a.queue == nil {
		return one("error ENOTCONN")
	}
	if a.timeout > 0 && w.name != "receive" && w.name != "drain" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.timeout)
		defer cancel()
	}
	answer, err := a.ask(ctx, w)
	if err != nil {
		return append(answer, failure(err))
	}
	return answer
}

// ask carries out a command for the open queue.
func (a *agent) ask(ctx context.Context, w words) ([]string, error) {
	switch w.name {
	case "batch":
		return a.batch(ctx, w)
	case "receive":
		return a.receive(ctx, w)
	case "drain":
		return a.drain(ctx, w)
	case "scan":
		rows, cursor, err := a.queue.Scan(ctx, w.number("cursor"), uint32(w.number("max")))
		if err != nil {
			return nil, err
		}
		var lines []string
		for i := range rows {
			lines = append(lines, timer("timer", &rows[i]))
		}
		return append(lines, fmt.Sprintf("ok cursor=%d", cursor)), nil
	case "queues":
		rows, cursor, err := a.queue.Queues(ctx, w.number("cursor"), uint32(w.number("max")))
		if err != nil {
			return nil, err
		}
		var lines []string
		for i := range rows {
			row := &rows[i]
			name := row.Name
			if name == "" {
				name = "-"
			}
			lines = append(lines, fmt.Sprintf("queue name=%s armed=%d uid=%d consumers=%d",
				name, row.Stat.Armed, row.Info.UID, row.Info.Consumers))
		}
		return append(lines, fmt.Sprintf("ok cursor=%d", cursor)), nil
	case "stat":
		stat, server, err := a.queue.Stat(ctx)
		if err != nil {
			return nil, err
		}
		return one("ok now=%d next=%d armed=%d unacked=%d limit=%d arms=%d delivered=%d "+
			"engine=%d uptime=%d", stat.NowNS, stat.NextNS, stat.Armed, stat.Unacked,
			stat.Limit, stat.Arms, stat.Delivered, server.Engine, server.UptimeNS), nil
	case "drop":
		if err := a.queue.Drop(ctx); err != nil {
			return nil, err
		}
		return one("ok"), nil
	}
	return a.request(ctx, w)
}

func record(w words, op uint8) expiry.Record {
	r := expiry.Record{Op: op, ID: w.number("id"), Cookie: w.number("cookie"),
		PeriodMS: uint32(w.number("period")), Deadline: w.number("at")}
	if w.has("ttl") {
		r.Flags |= expiry.Relative
		r.Deadline = w.number("ttl")
	}
	if w.lists("flags", "new") {
		r.Flags |= expiry.New
	}
	if w.lists("flags", "later") {
		r.Flags |= expiry.Later
	}
	return r
}

func (a *agent) request(ctx context.Context, w words) ([]string, error) {
	records := []expiry.Record{record(w, ops[w.name])}
	err := a.queue.Submit(ctx, records)
	if err == nil {
		err = expiry.Check(records)
	}
	var refusals expiry.Refusals
	if errors.As(err, &refusals) {
		err = refusals[0]
	}
	if err != nil {
		return nil, err
	}
	r := &records[0]
	switch r.Op {
	case expiry.OpArm:
		return one("ok id=%d deadline=%d", r.ID, r.Deadline), nil
	case expiry.OpRefresh:
		return one("ok deadline=%d", r.Deadline), nil
	case expiry.OpQuery:
		return one("ok deadline=%d cookie=%d period=%d", r.Deadline, r.Cookie,
			r.PeriodMS), nil
	case expiry.OpClear:
		return one("ok count=%d", r.Cookie), nil
	}
	return one("ok"), nil
}

func (a *agent) batch(ctx context.Context, w words) ([]string, error) {
	first := record(w, ops[w.values["op"]])
	records := make([]expiry.Record, w.number("count"))
	for i := range records {
		records[i] = first
		if w.has("from") {
			records[i].ID = w.number("from") + uint64(i)
		}
		if w.has("cookie") {
			records[i].Cookie += uint64(i)
		}
	}
	if err := a.queue.Submit(ctx, records); err != nil {
		return nil, err
	}
	var refusals expiry.Refusals
	var refused, ids []string
	errors.As(expiry.Check(records), &refusals)
	for _, r := range refusals {
		refused = append(refused, strconv.Itoa(r.Index)+":"+errnoName(r.Errno))
	}
	text := fmt.Sprintf("ok done=%d refused=%s", len(records)-len(refused),
		orNone(strings.Join(refused, ",")))
	if !w.has("from") && len(records) <= 16 {
		for i := range records {
			ids = append(ids, strconv.FormatUint(records[i].ID, 10))
		}
		text += " ids=" + strings.Join(ids, ",")
	}
	return []string{text}, nil
}

func orNone(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func encode(w words) []string {
	r := expiry.Record{Op: uint8(w.number("op")), Flags: uint8(w.number("flags")),
		Status: int16(w.number("status")), PeriodMS: uint32(w.number("period")),
		ID: w.number("id"), Deadline: w.number("deadline"), Cookie: w.number("cookie")}
	return one("ok hex=%x", *(*[expiry.RecordSize]byte)(unsafe.Pointer(&r)))
}

func decode(w words) []string {
	var r expiry.Record
	copy((*[expiry.RecordSize]byte)(unsafe.Pointer(&r))[:], w.bytes("hex"))
	return one("ok op=%d flags=%d status=%d period=%d id=%d deadline=%d cookie=%d",
		r.Op, r.Flags, r.Status, r.PeriodMS, r.ID, r.Deadline, r.Cookie)
}
