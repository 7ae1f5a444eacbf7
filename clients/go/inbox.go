// SPDX-License-Identifier: LGPL-2.1-or-later

package expiry

import "math"

// inbox keeps expirations until the program takes them, so that replies never wait
// for a slow consumer. The Queue's mutex guards it.
type inbox struct {
	ring     []Record // a power of two, more than credit
	head     uint32
	tail     uint32
	credit   uint32 // most expirations on their way or held
	granted  uint32 // on their way
	due      uint32 // credit to be sent
	observes bool
	consumes bool
	events   bool // the program wants more than OpExpired
}

func (in *inbox) init(s *settings) {
	in.credit = s.credit
	in.observes = s.has(helloObserve)
	in.consumes = s.has(helloConsume)
	in.events = s.events
	if in.observes || in.consumes {
		size := uint32(2)
		for size < in.credit+2 {
			size *= 2
		}
		in.ring = make([]Record, size)
	}
}

func (in *inbox) len() uint32             { return in.tail - in.head }
func (in *inbox) at(i uint32) *Record     { return &in.ring[i&uint32(len(in.ring)-1)] }
func (in *inbox) put(r *Record)           { *in.at(in.tail) = *r; in.tail++ }
func (in *inbox) isLast(op uint8) bool    { return in.len() > 0 && in.at(in.tail-1).Op == op }
func (in *inbox) isRoom(more uint32) bool { return in.len()+more < uint32(len(in.ring)) }

// add keeps an event. Credit bounds expirations. Steps of the clock are joined, and
// so are an observer's copies that do not fit.
func (in *inbox) add(r *Record) error {
	switch {
	case !in.observes && !in.consumes || in.consumes && r.Op == OpMissed:
		return &ProtocolError{"an event for a connection that has none"}
	case r.Op == OpExpired && in.consumes:
		if in.granted == 0 {
			return &ProtocolError{"more expirations than credit"}
		}
		in.granted--
		in.put(r)
	case r.Op == OpExpired && in.isRoom(2):
		in.put(r)
	case r.Op == OpClockSet:
		if in.isLast(OpClockSet) {
			*in.at(in.tail - 1) = *r
		} else if in.events && in.isRoom(in.granted+2) {
			in.put(r)
		}
	default:
		nr := uint64(1)
		if r.Op == OpMissed {
			nr = r.Cookie
		}
		if in.isLast(OpMissed) {
			last := in.at(in.tail - 1)
			if last.Cookie += nr; last.Cookie < nr {
				last.Cookie = math.MaxUint64
			}
		} else if in.isRoom(1) {
			in.put(&Record{Op: OpMissed, Cookie: nr})
		}
	}
	return nil
}

// take hands out records, and asks for more credit when half of it is used up.
func (in *inbox) take(to []Record) int {
	n := 0
	for n < len(to) && in.head != in.tail {
		to[n] = *in.at(in.head)
		n++
		in.head++
	}
	in.topUp()
	return n
}

// topUp counts all that is held, so that what was granted always fits into the ring.
func (in *inbox) topUp() {
	used := in.granted + in.len()
	if in.consumes && used < in.credit && in.credit-used >= (in.credit+1)/2 {
		// Before it is sent: the server may answer before this side goes on.
		in.due += in.credit - used
		in.granted += in.credit - used
	}
}

// takeDue returns the credit to be sent.
func (in *inbox) takeDue() uint32 {
	due := in.due
	in.due = 0
	return due
}

// lost drops what the server will deliver again.
func (in *inbox) lost() {
	if !in.consumes {
		return
	}
	var step *Record
	for i := in.head; i != in.tail; i++ {
		if r := in.at(i); r.Op == OpClockSet {
			last := *r
			step = &last
		}
	}
	in.head, in.granted, in.due = in.tail, 0, 0
	if step != nil {
		in.put(step)
	}
}
