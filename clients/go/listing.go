// SPDX-License-Identifier: LGPL-2.1-or-later

package expiry

import "syscall"

// bodyMax limits the units of 32 bytes behind a record: 64 KiB.
const bodyMax = 2048

// listing is the reply to SCAN, STAT or QUEUES: several records. It is kept as it
// came, until the caller decodes it.
type listing struct {
	op       uint8
	max      uint32 // rows wanted
	rows     uint32
	left     uint32 // units of the present body still to come
	begun    bool
	complete bool
	cursor   uint64
	units    []Record
	errno    syscall.Errno
}

func (l *listing) restart() {
	*l = listing{op: l.op, max: l.max}
}

// take adds records of the reply. It returns how many were the reply's.
func (l *listing) take(records []Record) (int, error) {
	for i := 0; i < len(records); i++ {
		if l.left > 0 {
			n := int(l.left)
			if n > len(records)-i {
				n = len(records) - i
			}
			l.units = append(l.units, records[i:i+n]...)
			l.left -= uint32(n)
			i += n - 1
			l.complete = l.left == 0 && l.op == OpStat
		} else if err := l.head(&records[i]); err != nil {
			return i, err
		}
		if l.complete {
			return i + 1, nil
		}
	}
	return len(records), nil
}

// head takes a record that is not inside a body.
func (l *listing) head(r *Record) error {
	if r.Op != l.op || r.Status > 0 || r.Status < 0 && l.begun {
		return &ProtocolError{"another record inside the reply to a listing"}
	}
	l.begun = true
	if r.Status < 0 {
		l.errno = syscall.Errno(-r.Status)
		l.complete = true
		return nil
	}
	isLast := l.op == OpScan && r.ID == 0 || l.op == OpQueues && r.PeriodMS == 0
	if isLast {
		l.cursor = r.Cookie
		l.complete = true
		return nil
	}
	if l.rows++; l.rows > l.max {
		return &ProtocolError{"more rows than wanted"}
	}
	if l.op != OpScan {
		if r.PeriodMS < statSize/RecordSize || r.PeriodMS > bodyMax {
			return &ProtocolError{"a body that is no counters"}
		}
		l.left = r.PeriodMS
	}
	l.units = append(l.units, *r)
	return nil
}
