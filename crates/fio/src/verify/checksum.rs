//! Block checksums as fio 3.33 computes and stores them. Three of them differ from the algorithms
//! of their names; see [`Checksum::compute_stored`].

use crc::{Algorithm, CRC_7_MMC, CRC_16_ARC, CRC_64_REDIS, Crc, Table};
use md5::Md5;
use sha1::Sha1;
use sha2::block_api::compress256;
use sha3::digest::Digest;
use sha3::{Sha3_224, Sha3_256, Sha3_384, Sha3_512};
use twox_hash::XxHash32;

/// Checksum that a verification header carries (`verify=`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// MD5 digest of 128 bits (`md5`).
    Md5,
    /// CRC of 64 bits (`crc64`).
    Crc64,
    /// CRC of 32 bits (`crc32`).
    Crc32,
    /// CRC-32C (`crc32c` and `crc32c-intel`, which fio stores under the same number).
    Crc32c,
    /// CRC of 16 bits (`crc16`).
    Crc16,
    /// CRC of 7 bits (`crc7`).
    Crc7,
    /// Hash SHA-256 in the form that fio stores (`sha256`).
    Sha256,
    /// Hash SHA-512 in the form that fio stores (`sha512`).
    Sha512,
    /// Hash xxHash of 32 bits (`xxhash`).
    Xxhash,
    /// SHA-3 hash of 224 bits (`sha3-224`).
    Sha3Of224,
    /// SHA-3 hash of 256 bits (`sha3-256`).
    Sha3Of256,
    /// SHA-3 hash of 384 bits (`sha3-384`).
    Sha3Of384,
    /// SHA-3 hash of 512 bits (`sha3-512`).
    Sha3Of512,
    /// Hash SHA-1 in the form that fio stores (`sha1`).
    Sha1,
}

/// CRC-32 with Ethernet's polynomial, most significant bit of a byte first, initial value 0.
const CRC_32: Algorithm<u32> = Algorithm {
    width: 32,
    poly: 0x04c1_1db7,
    init: 0,
    refin: false,
    refout: false,
    xorout: 0,
    check: 0x89a1_897f,
    residue: 0,
};

/// CRC tables that process 16 bytes per step.
const CRC_32_TABLE: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32);
const CRC_64_TABLE: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&CRC_64_REDIS);
const CRC_16_TABLE: Crc<u16, Table<16>> = Crc::<u16, Table<16>>::new(&CRC_16_ARC);
const CRC_7_TABLE: Crc<u8, Table<16>> = Crc::<u8, Table<16>>::new(&CRC_7_MMC);

const XXHASH_SEED: u32 = 1;

/// Block sizes of SHA-256 and SHA-512, in bytes.
const SHA256_BLOCK_BYTES: usize = 64;
const SHA512_BLOCK_BYTES: usize = 128;

/// Initial state of SHA-256 (FIPS 180-4, 5.3.3).
const SHA256_INITIAL_STATE: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

impl Checksum {
    /// All checksums that fio supports in headers.
    pub const ALL: [Checksum; 14] = [
        Checksum::Md5,
        Checksum::Crc64,
        Checksum::Crc32,
        Checksum::Crc32c,
        Checksum::Crc16,
        Checksum::Crc7,
        Checksum::Sha256,
        Checksum::Sha512,
        Checksum::Xxhash,
        Checksum::Sha3Of224,
        Checksum::Sha3Of256,
        Checksum::Sha3Of384,
        Checksum::Sha3Of512,
        Checksum::Sha1,
    ];

    /// Returns fio's name of the checksum.
    pub const fn name(self) -> &'static str {
        match self {
            Checksum::Md5 => "md5",
            Checksum::Crc64 => "crc64",
            Checksum::Crc32 => "crc32",
            Checksum::Crc32c => "crc32c",
            Checksum::Crc16 => "crc16",
            Checksum::Crc7 => "crc7",
            Checksum::Sha256 => "sha256",
            Checksum::Sha512 => "sha512",
            Checksum::Xxhash => "xxhash",
            Checksum::Sha3Of224 => "sha3-224",
            Checksum::Sha3Of256 => "sha3-256",
            Checksum::Sha3Of384 => "sha3-384",
            Checksum::Sha3Of512 => "sha3-512",
            Checksum::Sha1 => "sha1",
        }
    }

    /// Returns the bytes that the checksum occupies after the header.
    pub const fn size_bytes(self) -> usize {
        match self {
            Checksum::Crc7 => 1,
            Checksum::Crc16 => 2,
            Checksum::Crc32 | Checksum::Crc32c | Checksum::Xxhash => 4,
            Checksum::Crc64 => 8,
            Checksum::Md5 => 16,
            Checksum::Sha1 => 20,
            Checksum::Sha3Of224 => 28,
            Checksum::Sha3Of256 => 32,
            Checksum::Sha3Of384 => 48,
            Checksum::Sha256 | Checksum::Sha3Of512 => 64,
            Checksum::Sha512 => 128,
        }
    }

    /// Reports whether a change of any data byte changes the checksum. fio's `sha512` stores no
    /// hash: it holds the first 128 bytes of the data, overwritten by the remainder of the last
    /// 128.
    pub const fn covers_whole_block(self) -> bool {
        !matches!(self, Checksum::Sha512)
    }

    /// Returns the checksum bytes that fio stores for these data. For `sha256` fio stores its
    /// working buffer, with one byte of each state word in front and the length in the wrong byte
    /// order. For `sha512` it stores the working buffer alone, and for `sha1` the words in the byte
    /// order of the host.
    pub fn compute_stored(self, data: &[u8]) -> Vec<u8> {
        match self {
            Checksum::Md5 => Md5::digest(data).to_vec(),
            Checksum::Crc64 => CRC_64_TABLE.checksum(data).to_le_bytes().to_vec(),
            Checksum::Crc32 => CRC_32_TABLE.checksum(data).to_le_bytes().to_vec(),
            Checksum::Crc32c => crc32c(data).to_le_bytes().to_vec(),
            Checksum::Crc16 => CRC_16_TABLE.checksum(data).to_le_bytes().to_vec(),
            Checksum::Crc7 => vec![CRC_7_TABLE.checksum(data)],
            Checksum::Sha256 => sha256_block_buffer(data).to_vec(),
            Checksum::Sha512 => sha512_block_buffer(data).to_vec(),
            Checksum::Xxhash => {
                let hash = XxHash32::oneshot(XXHASH_SEED, data);
                hash.to_le_bytes().to_vec()
            }
            Checksum::Sha3Of224 => Sha3_224::digest(data).to_vec(),
            Checksum::Sha3Of256 => Sha3_256::digest(data).to_vec(),
            Checksum::Sha3Of384 => Sha3_384::digest(data).to_vec(),
            Checksum::Sha3Of512 => Sha3_512::digest(data).to_vec(),
            Checksum::Sha1 => {
                let digest = Sha1::digest(data);
                let words = digest.chunks_exact(4);
                words.flat_map(|word| word.iter().rev().copied()).collect()
            }
        }
    }
}

/// Computes fio's CRC-32C, which lacks the final inversion.
pub(super) fn crc32c(data: &[u8]) -> u32 {
    !::crc32c::crc32c(data)
}

fn sha256_block_buffer(data: &[u8]) -> [u8; SHA256_BLOCK_BYTES] {
    let mut state = SHA256_INITIAL_STATE;
    let (blocks, rest) = data.as_chunks::<SHA256_BLOCK_BYTES>();
    compress256(&mut state, blocks);
    let mut last = [0; 2 * SHA256_BLOCK_BYTES];
    last[..rest.len()].copy_from_slice(rest);
    last[rest.len()] = 0x80;
    // A length of 8 bytes is to fit behind the mark.
    let length = match rest.len() < SHA256_BLOCK_BYTES - 8 {
        true => SHA256_BLOCK_BYTES,
        false => 2 * SHA256_BLOCK_BYTES,
    };
    let bits = (data.len() as u64 * 8).to_le_bytes();
    last[length - 8..length].copy_from_slice(&bits);
    let (blocks, _) = last[..length].as_chunks::<SHA256_BLOCK_BYTES>();
    compress256(&mut state, blocks);
    let mut buffer = blocks[blocks.len() - 1];
    for (byte, word) in buffer.iter_mut().zip(state) {
        *byte = word as u8;
    }
    buffer
}

fn sha512_block_buffer(data: &[u8]) -> [u8; SHA512_BLOCK_BYTES] {
    let mut buffer = [0; SHA512_BLOCK_BYTES];
    let (blocks, rest) = data.as_chunks::<SHA512_BLOCK_BYTES>();
    if let Some(first) = blocks.first() {
        buffer = *first;
    }
    buffer[..rest.len()].copy_from_slice(rest);
    buffer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_byte_changes_what_covers_it() {
        let data: Vec<u8> = (0..1000_u32).map(|at| (at * 7 % 251) as u8).collect();
        for kind in Checksum::ALL {
            let stored = kind.compute_stored(&data);
            assert_eq!(stored.len(), kind.size_bytes(), "{}", kind.name());
            for at in [0, 110, 500, 999] {
                let mut changed = data.clone();
                changed[at] ^= 1;
                let is_seen = kind.compute_stored(&changed) != stored;
                // The last 104 bytes lie over the first ones.
                let is_covered = kind.covers_whole_block() || at == 110 || at == 999;
                assert_eq!(is_seen, is_covered, "{} at {at}", kind.name());
            }
        }
    }

    #[test]
    fn the_check_value_of_each_crc_is_that_of_its_algorithm() {
        let check = b"123456789";
        assert_eq!(CRC_32_TABLE.checksum(check), CRC_32.check);
        assert_eq!(crc32c(check), !0xe306_9283);
    }
}
