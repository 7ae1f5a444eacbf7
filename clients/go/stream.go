// SPDX-License-Identifier: LGPL-2.1-or-later

package expiry

import (
	"io"
	"net"
)

// stream reads whole records from a connection.
type stream struct {
	conn net.Conn
	buf  []Record
	from int // bytes of buf that were taken
	to   int // bytes of buf that were read

	before func() error // called before each read, may be nil
}

const streamRecords = 2048

func newStream(conn net.Conn) *stream {
	return &stream{conn: conn, buf: make([]Record, streamRecords)}
}

// next returns records, at least one, valid until the next call. It blocks.
func (s *stream) next() ([]Record, error) {
	raw := wire(s.buf)
	for s.to-s.from < RecordSize {
		if s.from > 0 {
			s.to = copy(raw, raw[s.from:s.to])
			s.from = 0
		}
		if s.before != nil {
			if err := s.before(); err != nil {
				return nil, err
			}
		}
		n, err := s.conn.Read(raw[s.to:])
		s.to += n
		if n == 0 {
			if err == nil {
				err = io.ErrNoProgress
			}
			return nil, lostConnection(err)
		}
	}
	first := s.from / RecordSize
	return s.buf[first : s.to/RecordSize], nil
}

// skip takes records that next returned.
func (s *stream) skip(nr int) { s.from += nr * RecordSize }
