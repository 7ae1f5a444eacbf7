// SPDX-License-Identifier: LGPL-2.1-or-later

package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	expiry "expiry.example/clients/go"
)

// words is a command of the driver: its name, and its values.
type words struct {
	name   string
	values map[string]string
}

func parse(line string) words {
	parts := strings.Fields(line)
	w := words{values: map[string]string{}}
	for i, part := range parts {
		key, value, isValue := strings.Cut(part, "=")
		switch {
		case i == 0:
			w.name = part
		case !isValue:
		case value == "-":
			w.values[key] = ""
		default:
			w.values[key] = value
		}
	}
	return w
}

func (w words) has(key string) bool { _, ok := w.values[key]; return ok }

func (w words) number(key string) uint64 {
	if !w.has(key) {
		return 0
	}
	// A status may be negative.
	if value, err := strconv.ParseInt(w.values[key], 10, 64); err == nil {
		return uint64(value)
	}
	value, err := strconv.ParseUint(w.values[key], 10, 64)
	if err != nil {
		panic(err)
	}
	return value
}

func (w words) bytes(key string) []byte {
	value, err := hex.DecodeString(w.values[key])
	if err != nil {
		panic(err)
	}
	return value
}

func (w words) lists(key, word string) bool {
	for _, one := range strings.Split(w.values[key], ",") {
		if one == word {
			return true
		}
	}
	return false
}

var names = map[syscall.Errno]string{
	syscall.EACCES: "EACCES", syscall.EAGAIN: "EAGAIN", syscall.EBUSY: "EBUSY",
	syscall.ECONNREFUSED: "ECONNREFUSED", syscall.ECONNRESET: "ECONNRESET",
	syscall.EDQUOT: "EDQUOT", syscall.EEXIST: "EEXIST", syscall.EINVAL: "EINVAL",
	syscall.EIO: "EIO", syscall.EMFILE: "EMFILE", syscall.ENODEV: "ENODEV",
	syscall.ENOENT: "ENOENT", syscall.ENOMEM: "ENOMEM", syscall.ENOSPC: "ENOSPC",
	syscall.ENOTCONN: "ENOTCONN", syscall.EOPNOTSUPP: "EOPNOTSUPP",
	syscall.EPERM: "EPERM", syscall.EPIPE: "EPIPE", syscall.EPROTO: "EPROTO",
	syscall.EPROTONOSUPPORT: "EPROTONOSUPPORT", syscall.ESTALE: "ESTALE",
	syscall.ETIMEDOUT: "ETIMEDOUT", syscall.ENAMETOOLONG: "ENAMETOOLONG",
}

func errnoName(errno syscall.Errno) string {
	if name, ok := names[errno]; ok {
		return name
	}
	return strconv.Itoa(int(errno))
}

// failure returns the answer to a command that failed.
func failure(err error) string {
	var errno syscall.Errno
	var unanswered *expiry.Unanswered
	var refused *expiry.Refused

	text := "error "
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		text += "ETIMEDOUT"
	case errors.Is(err, context.Canceled):
		text += "ECANCELED"
	case errors.Is(err, expiry.ErrClosed):
		text += "ESHUTDOWN"
	case errors.As(err, &errno):
		text += errnoName(errno)
	default:
		panic(err)
	}
	if errors.As(err, &unanswered) {
		text += fmt.Sprintf(" answered=%d doubtful=%d unsent=%d", unanswered.Answered,
			unanswered.InDoubt, unanswered.NotSent)
	} else if errors.As(err, &refused) && refused.Errno == syscall.ECONNRESET {
		text += " answered=0 doubtful=1 unsent=0"
	}
	return text
}

func timer(word string, r *expiry.Record) string {
	return fmt.Sprintf("%s id=%d deadline=%d cookie=%d period=%d redelivered=%d late=%d",
		word, r.ID, r.Deadline, r.Cookie, r.PeriodMS, bit(r.Redelivered()),
		bit(r.Late()))
}

// bit returns a truth as a number.
func bit(is bool) int {
	if is {
		return 1
	}
	return 0
}
