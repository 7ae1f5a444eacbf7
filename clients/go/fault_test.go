// SPDX-License-Identifier: LGPL-2.1-or-later

package expiry

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"time"
)

// isKind reports whether err has the type of want, and its errno.
func isKind(err error, want any) bool {
	switch want := want.(type) {
	case *Refused:
		var got *Refused
		return errors.As(err, &got) && got.Errno == want.Errno
	case *ProtocolError:
		var got *ProtocolError
		return errors.As(err, &got)
	case error:
		return errors.Is(err, want)
	}
	return false
}

func TestFaultsBeforeTheServerIsAttachedTo(t *testing.T) {
	refuse := func(errno syscall.Errno) func(net.Conn) {
		return func(conn net.Conn) {
			get(conn, 1)
			put(conn, Record{Op: OpHello, Status: -int16(errno)})
		}
	}
	for name, row := range map[string]struct {
		script func(net.Conn)
		want   any
	}{
		"speaks version 2": {refuse(syscall.EPROTONOSUPPORT),
			&Refused{Errno: syscall.EPROTONOSUPPORT}},
		"refuses": {refuse(syscall.EACCES), &Refused{Errno: syscall.EACCES}},
		"is a web server": {func(conn net.Conn) {
			get(conn, 1)
			conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n....."))
		}, &ProtocolError{}},
		"cuts":  {func(conn net.Conn) { get(conn, 1) }, syscall.ECONNRESET},
		"hangs": {func(conn net.Conn) { get(conn, 2) }, context.DeadlineExceeded},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		_, err := Open(ctx, "", Keyed(), Socket(fake(t, row.script)))
		cancel()
		if !isKind(err, row.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Of four requests one is answered, two are in doubt, and one was not sent.
func TestFaultsWithinABatchSayWhatWasCarriedOut(t *testing.T) {
	for name, row := range map[string]struct {
		fault func(net.Conn)
		want  any
	}{
		"cuts":             {func(net.Conn) {}, syscall.ECONNRESET},
		"cuts in a record": {func(conn net.Conn) { conn.Write(make([]byte, 9)) }, syscall.ECONNRESET},
		"lies": {func(conn net.Conn) {
			put(conn, Record{Op: OpQuery, ID: 2})
			get(conn, 1)
		}, &ProtocolError{}},
		"sends garbage": {func(conn net.Conn) {
			conn.Write([]byte("\xff\xfe\xfd\xfc garbage, garbage, garb."))
			conn.Write([]byte("\r\n\r\n\r\n"))
			get(conn, 1)
		}, &ProtocolError{}},
		"hangs": {func(conn net.Conn) { get(conn, 1) }, context.DeadlineExceeded},
	} {
		fault := row.fault
		path := fake(t, func(conn net.Conn) {
			get(conn, 1)
			put(conn, Record{Op: OpHello, Cookie: 2})
			requests := get(conn, 2)
			if requests == nil {
				return
			}
			put(conn, requests[0])
			get(conn, 1)
			fault(conn)
		})
		q, err := Open(soon(t), "", Keyed(), Socket(path))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		records := []Record{{Op: OpCancel, ID: 1}, {Op: OpCancel, ID: 2},
			{Op: OpCancel, ID: 3}, {Op: OpCancel, ID: 4}}
		err = q.Submit(ctx, records)
		cancel()
		q.Close()
		var unanswered *Unanswered
		if !errors.As(err, &unanswered) || unanswered.Answered != 1 ||
			unanswered.InDoubt != 2 || unanswered.NotSent != 1 || !isKind(err, row.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
