// SPDX-License-Identifier: LGPL-2.1-or-later

package expiry

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"syscall"
	"testing"
)

func digest(data, key []byte, size int) string {
	var out [64]byte
	for i, word := range blake2b(data, key, size) {
		binary.LittleEndian.PutUint64(out[8*i:], word)
	}
	return hex.EncodeToString(out[:size])
}

// RFC 7693, appendix A.
func TestBlakeOfTheRFC(t *testing.T) {
	const want = "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1" +
		"7d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923"
	if got := digest([]byte("abc"), nil, 64); got != want {
		t.Errorf("got %s", got)
	}
}

// RFC 7693, appendix E: a hash over hashes of many lengths, with and without key.
func TestBlakeSelfTestOfTheRFC(t *testing.T) {
	const want = "c23a7800d98123bd10f506c61e29da5603d763b8bbad2e737f5e765a7bccd475"
	var all []byte

	sequence := func(nr int, seed uint32) []byte {
		out := make([]byte, nr)
		a, b := 0xDEAD4BAD*seed, uint32(1)
		for i := range out {
			a, b = b, a+b
			out[i] = byte(b >> 24)
		}
		return out
	}
	for _, size := range []int{20, 32, 48, 64} {
		for _, length := range []int{0, 3, 128, 129, 255, 1024} {
			data := sequence(length, uint32(length))
			for _, key := range [][]byte{nil, sequence(size, uint32(size))} {
				sum, _ := hex.DecodeString(digest(data, key, size))
				all = append(all, sum...)
			}
		}
	}
	if got := digest(all, nil, 32); got != want {
		t.Errorf("got %s", got)
	}
}

func TestKeysThatAreTooShortOrTooLong(t *testing.T) {
	for _, length := range []int{0, 15, 65} {
		_, _, err := IDOf(nil, make([]byte, length))
		if !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%d bytes: %v", length, err)
		}
	}
}
