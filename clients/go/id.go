// SPDX-License-Identifier: LGPL-2.1-or-later

package expiry

import "encoding/binary"

// IDOf makes an id of a name: keyed BLAKE2b with a digest of 16 bytes. Its first half
// is the id, never 0. Its second half is the check, the cookie of a program that has
// none: two names with the same id have, almost surely, different checks. The key is
// 16 to 64 bytes, the program's own secret: without it nobody can choose names that
// collide. Two of n names have the same id with a probability of n*n/2^65.
func IDOf(name, key []byte) (id, check uint64, err error) {
	if len(key) < 16 || len(key) > 64 {
		return 0, 0, &InvalidError{"IDOf: a key has 16 to 64 bytes"}
	}
	h := blake2b(name, key, 16)
	id, check = h[0], h[1]
	if id == 0 {
		id = 1
	}
	return id, check, nil
}

// RFC 7693, section 2.6 and 2.7.
var blakeIV = [8]uint64{
	0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
	0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
}

var blakeSigma = [12][16]uint8{
	{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
	{14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
	{11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
	{7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
	{9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
	{2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
	{12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
	{13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
	{6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
	{10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
	{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
	{14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
}

const blakeBlock = 128

// blake2b is RFC 7693, section 3.3: the state after the last block, of which the
// first size bytes are the digest.
func blake2b(data, key []byte, size int) [8]uint64 {
	var block [blakeBlock]byte

	h := blakeIV
	h[0] ^= 0x01010000 ^ uint64(len(key))<<8 ^ uint64(size)
	done := uint64(0)
	if len(key) > 0 {
		copy(block[:], key)
		done = blakeBlock
		blakeCompress(&h, &block, done, len(data) == 0)
		if len(data) == 0 {
			return h
		}
	}
	for len(data) > blakeBlock {
		copy(block[:], data)
		data = data[blakeBlock:]
		done += blakeBlock
		blakeCompress(&h, &block, done, false)
	}
	block = [blakeBlock]byte{}
	done += uint64(copy(block[:], data))
	blakeCompress(&h, &block, done, true)
	return h
}

// blakeCompress is RFC 7693, section 3.2.
func blakeCompress(h *[8]uint64, block *[blakeBlock]byte, done uint64, isLast bool) {
	var m, v [16]uint64

	for i := range m {
		m[i] = binary.LittleEndian.Uint64(block[8*i:])
	}
	copy(v[:8], h[:])
	copy(v[8:], blakeIV[:])
	v[12] ^= done
	if isLast {
		v[14] = ^v[14]
	}
	for i := range blakeSigma {
		s := &blakeSigma[i]
		blakeMix(&v, 0, 4, 8, 12, m[s[0]], m[s[1]])
		blakeMix(&v, 1, 5, 9, 13, m[s[2]], m[s[3]])
		blakeMix(&v, 2, 6, 10, 14, m[s[4]], m[s[5]])
		blakeMix(&v, 3, 7, 11, 15, m[s[6]], m[s[7]])
		blakeMix(&v, 0, 5, 10, 15, m[s[8]], m[s[9]])
		blakeMix(&v, 1, 6, 11, 12, m[s[10]], m[s[11]])
		blakeMix(&v, 2, 7, 8, 13, m[s[12]], m[s[13]])
		blakeMix(&v, 3, 4, 9, 14, m[s[14]], m[s[15]])
	}
	for i := range h {
		h[i] ^= v[i] ^ v[i+8]
	}
}

// blakeMix is RFC 7693, section 3.1.
func blakeMix(v *[16]uint64, a, b, c, d int, x, y uint64) {
	v[a] += v[b] + x
	v[d] = rotate(v[d]^v[a], 32)
	v[c] += v[d]
	v[b] = rotate(v[b]^v[c], 24)
	v[a] += v[b] + y
	v[d] = rotate(v[d]^v[a], 16)
	v[c] += v[d]
	v[b] = rotate(v[b]^v[c], 63)
}

func rotate(x uint64, n uint) uint64 { return x>>n | x<<(64-n) }
