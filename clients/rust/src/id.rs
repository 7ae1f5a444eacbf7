// SPDX-License-Identifier: LGPL-2.1-or-later

//! Ids of names, by keyed BLAKE2b.

use crate::error::{Error, Result};

/// Makes an id of a name: keyed BLAKE2b with a digest of 16 bytes. Its first half is the
/// id, never 0. Its second half is the check, the cookie of a program that has none: two
/// names with the same id have, almost surely, different checks. The key is 16 to 64
/// bytes, the program's own secret: without it nobody can choose names that collide. Two
/// of n names have the same id with a probability of n * n / 2^65.
pub fn id_of(name: &[u8], key: &[u8]) -> Result<(u64, u64)> {
    if !(16..=64).contains(&key.len()) {
        return Err(Error::Invalid("id_of: a key has 16 to 64 bytes"));
    }
    let h = blake2b(name, key, 16);
    Ok((h[0].max(1), h[1]))
}

// RFC 7693, sections 2.6 and 2.7.
const IV: [u64; 8] = [
    0x6a09_e667_f3bc_c908,
    0xbb67_ae85_84ca_a73b,
    0x3c6e_f372_fe94_f82b,
    0xa54f_f53a_5f1d_36f1,
    0x510e_527f_ade6_82d1,
    0x9b05_688c_2b3e_6c1f,
    0x1f83_d9ab_fb41_bd6b,
    0x5be0_cd19_137e_2179,
];

const SIGMA: [[usize; 16]; 12] = [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
    [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
    [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
    [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
    [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
    [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
    [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
    [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
];

const BLOCK: usize = 128;

/// RFC 7693, section 3.3: the state after the last block, of which the first `size` bytes
/// are the digest.
fn blake2b(mut data: &[u8], key: &[u8], size: u64) -> [u64; 8] {
    let mut h = IV;
    let mut block = [0; BLOCK];
    let mut done = 0;

    h[0] ^= 0x0101_0000 ^ (key.len() as u64) << 8 ^ size;
    if !key.is_empty() {
        block[..key.len()].copy_from_slice(key);
        done = BLOCK as u128;
        compress(&mut h, &block, done, data.is_empty());
        if data.is_empty() {
            return h;
        }
    }
    while data.len() > BLOCK {
        block.copy_from_slice(&data[..BLOCK]);
        data = &data[BLOCK..];
        done += BLOCK as u128;
        compress(&mut h, &block, done, false);
    }
    block = [0; BLOCK];
    block[..data.len()].copy_from_slice(data);
    done += data.len() as u128;
    compress(&mut h, &block, done, true);
    h
}

/// RFC 7693, section 3.2.
fn compress(h: &mut [u64; 8], block: &[u8; BLOCK], done: u128, is_last: bool) {
    let mut m = [0u64; 16];
    let mut v = [0u64; 16];

    for (word, bytes) in m.iter_mut().zip(block.chunks_exact(8)) {
        *word = bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    }
    v[..8].copy_from_slice(h);
    v[8..].copy_from_slice(&IV);
    v[12] ^= done as u64;
    v[13] ^= (done >> 64) as u64;
    if is_last {
        v[14] = !v[14];
    }
    for s in &SIGMA {
        mix(&mut v, [0, 4, 8, 12], m[s[0]], m[s[1]]);
        mix(&mut v, [1, 5, 9, 13], m[s[2]], m[s[3]]);
        mix(&mut v, [2, 6, 10, 14], m[s[4]], m[s[5]]);
        mix(&mut v, [3, 7, 11, 15], m[s[6]], m[s[7]]);
        mix(&mut v, [0, 5, 10, 15], m[s[8]], m[s[9]]);
        mix(&mut v, [1, 6, 11, 12], m[s[10]], m[s[11]]);
        mix(&mut v, [2, 7, 8, 13], m[s[12]], m[s[13]]);
        mix(&mut v, [3, 4, 9, 14], m[s[14]], m[s[15]]);
    }
    for i in 0..8 {
        h[i] ^= v[i] ^ v[i + 8];
    }
}

/// RFC 7693, section 3.1.
fn mix(v: &mut [u64; 16], [a, b, c, d]: [usize; 4], x: u64, y: u64) {
    v[a] = v[a].wrapping_add(v[b]).wrapping_add(x);
    v[d] = (v[d] ^ v[a]).rotate_right(32);
    v[c] = v[c].wrapping_add(v[d]);
    v[b] = (v[b] ^ v[c]).rotate_right(24);
    v[a] = v[a].wrapping_add(v[b]).wrapping_add(y);
    v[d] = (v[d] ^ v[a]).rotate_right(16);
    v[c] = v[c].wrapping_add(v[d]);
    v[b] = (v[b] ^ v[c]).rotate_right(63);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(data: &[u8], key: &[u8], size: usize) -> Vec<u8> {
        let h = blake2b(data, key, size as u64);
        h.iter().flat_map(|word| word.to_le_bytes()).take(size).collect()
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{:02x}", byte)).collect()
    }

    /// RFC 7693, appendix A.
    #[test]
    fn the_example_of_the_rfc() {
        assert_eq!(
            hex(&digest(b"abc", b"", 64)),
            "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1\
             7d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923"
        );
    }

    fn sequence(nr: usize, seed: u32) -> Vec<u8> {
        let (mut a, mut b) = (0xDEAD_4BADu32.wrapping_mul(seed), 1u32);
        let mut next = || {
            let sum = a.wrapping_add(b);
            a = b;
            b = sum;
            (sum >> 24) as u8
        };
        (0..nr).map(|_| next()).collect()
    }

    /// RFC 7693, appendix E: a hash over hashes of many lengths, with and without key.
    #[test]
    fn the_self_test_of_the_rfc() {
        let mut all = Vec::new();
        for size in [20, 32, 48, 64] {
            for length in [0, 3, 128, 129, 255, 1024] {
                let data = sequence(length, length as u32);
                all.extend(digest(&data, b"", size));
                all.extend(digest(&data, &sequence(size, size as u32), size));
            }
        }
        assert_eq!(
            hex(&digest(&all, b"", 32)),
            "c23a7800d98123bd10f506c61e29da5603d763b8bbad2e737f5e765a7bccd475"
        );
    }

    #[test]
    fn keys_have_their_lengths() {
        for length in [0, 15, 65] {
            assert!(id_of(b"", &vec![0; length]).is_err());
        }
    }
}
