// SPDX-License-Identifier: LGPL-2.1-or-later

package expiry

import (
	"bytes"
	"context"
	"unsafe"
)

const engineEmbedded = 1

// QueueStat is what a queue counts: struct expiry_stat of <linux/expiry.h>, which
// describes each field.
type QueueStat struct {
	NowNS, NextNS, Armed, Unacked, Limit, Nodes      uint64
	PagesHeap, PagesSlots, PagesIndex, PagesResident uint64
	Arms, Refreshes, Cancels, Acks                   uint64
	Delivered, Redelivered, Refused, RefusedLimit    uint64
	ClockSets, LatenessMaxNS                         uint64
	ClockID, Mode                                    uint32
	Past, Held, reserved                             uint64
	Lateness                                         [40]uint64
}

// ServerStat is what the daemon counts: struct expiry_server_stat of
// <expiry/wire.h>, which describes each field.
type ServerStat struct {
	Engine, Consumers, Credit, Producers                   uint32
	UptimeNS, Queues, Connections, Records, Expirations    uint64
	RefusedConnections, RefusedQueues, RefusedTimers       uint64
	ClosedProtocol, RefusedBusy, RefusedCredit             uint64
	ClosedBacklog, Backlog                                 uint64
	Loop, reserved                                         uint32
	TurnNS, Batch, RequestNS                               [40]uint64
	Timers, NextNS, LatenessMaxNS, ClosedHello             uint64
	LogDropped, LogLeftOut, RefusedObservers, CopiesMissed uint64
	Durable                                                uint64
	JournalQueues, JournalTimers, JournalOverdue           uint64
	JournalWaiting, JournalRecords, JournalCommits         uint64
	JournalBytes, JournalSize, JournalCheckpoints          uint64
	JournalFailures, JournalFailed, RefusedJournal         uint64
	reserved2                                              [3]uint64
	CommitNS                                               [40]uint64
}

// QueueRow is one queue of the daemon: its name, "" if it is anonymous, what the
// daemon knows of it (struct expiry_queue_stat), and its counters.
type QueueRow struct {
	Name string
	Info QueueInfo
	Stat QueueStat
}

// QueueInfo is struct expiry_queue_stat of <expiry/wire.h>.
type QueueInfo struct {
	Number                                           uint64
	UID, Connections, Consumers, Credit, ConsumerPID uint32
	Observers, Access, GID                           uint32
	reserved                                         [3]uint64
}

const (
	statSize   = 512
	serverSize = 1600
	infoSize   = 64
)

// Compile-time checks of the layouts.
var (
	_ [statSize]byte   = [unsafe.Sizeof(QueueStat{})]byte{}
	_ [serverSize]byte = [unsafe.Sizeof(ServerStat{})]byte{}
	_ [infoSize]byte   = [unsafe.Sizeof(QueueInfo{})]byte{}
)

func (s *QueueStat) raw() []byte {
	return (*[statSize]byte)(unsafe.Pointer(s))[:]
}

func (s *ServerStat) raw() []byte {
	return (*[serverSize]byte)(unsafe.Pointer(s))[:]
}

func (i *QueueInfo) raw() []byte {
	return (*[infoSize]byte)(unsafe.Pointer(i))[:]
}

// decodeStat takes what it knows of a STAT reply; a later daemon may have more.
func decodeStat(units []Record) (stat QueueStat, server ServerStat) {
	body := wire(units[1:])
	copy(stat.raw(), body)
	copy(server.raw(), body[statSize:])
	return
}

// Stat returns the counters of the queue and of the daemon.
func (q *Queue) Stat(ctx context.Context) (QueueStat, ServerStat, error) {
	l := &listing{max: 1}
	if err := q.list(ctx, Record{Op: OpStat}, l); err != nil {
		return QueueStat{}, ServerStat{}, err
	}
	stat, server := decodeStat(l.units)
	return stat, server, nil
}

// Scan returns up to max timers of the queue, in no order, and the cursor to go on
// with, 0 at the end. The first cursor is 0. There may be no rows before the end. A
// timer that is armed during the whole scan is listed exactly once.
func (q *Queue) Scan(ctx context.Context, cursor uint64, max uint32) ([]Record, uint64, error) {
	l := &listing{max: max}
	err := q.list(ctx, Record{Op: OpScan, ID: cursor, PeriodMS: max}, l)
	if err != nil {
		return nil, 0, err
	}
	return l.units, l.cursor, nil
}

// Queues lists up to max queues of the daemon, as Scan lists timers.
func (q *Queue) Queues(ctx context.Context, cursor uint64, max uint32) ([]QueueRow, uint64, error) {
	l := &listing{max: max}
	err := q.list(ctx, Record{Op: OpQueues, ID: cursor, PeriodMS: max}, l)
	if err != nil {
		return nil, 0, err
	}
	var rows []QueueRow
	for units := l.units; len(units) > 0; {
		nr := int(units[0].PeriodMS)
		body := wire(units[1 : 1+nr])
		row := QueueRow{Name: string(bytes.TrimRight(wire(units[:1])[8:], "\x00"))}
		copy(row.Stat.raw(), body)
		copy(row.Info.raw(), body[statSize:])
		rows = append(rows, row)
		units = units[1+nr:]
	}
	return rows, l.cursor, nil
}

// Drop removes the queue and its timers, for all clients. It needs a name, and no
// other connection may be attached.
func (q *Queue) Drop(ctx context.Context) error {
	return q.request(ctx, &Record{Op: OpDrop})
}
