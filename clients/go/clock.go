// SPDX-License-Identifier: LGPL-2.1-or-later

package expiry

import (
	"syscall"
	"time"
	"unsafe"
)

// clockNow returns the time on a clock, in nanoseconds. The standard library reads
// only CLOCK_REALTIME.
func clockNow(clock Clock) uint64 {
	var ts syscall.Timespec

	if clock == Realtime {
		return uint64(time.Now().UnixNano())
	}
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, uintptr(clock),
		uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		panic("expiry: clock_gettime: " + errno.Error())
	}
	return uint64(ts.Nano())
}
