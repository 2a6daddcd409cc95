//! Verifiable blocks: fio's headers, checksums and patterns, and the data that it generates from
//! seeds. The bytes are those of fio 3.33, so that either program can verify what the other wrote.

mod checksum;
mod fill;
mod header;
mod mismatch;
mod pattern;
mod state;

pub use checksum::Checksum;
pub use fill::SeedSequence;
pub use header::{BlockHeader, DecodedHeader, HEADER_BYTES, MAGIC};
pub use mismatch::{BlockField, DifferingByte, Mismatch};
pub use pattern::{BytePattern, PATTERN_BYTES_MAX, PatternError};
pub use state::{CompletedWrite, STATE_VERSION, StateError, VerifyState};

use crate::job::{Direction, JobDefinition, Verification};

/// fio's number for a verification header followed by a pattern: `verify_pattern` without `verify`.
const KIND_PATTERN: u16 = 17;
const KIND_HEADER: u16 = 1;

/// Layout of a job's verified blocks: content and position of headers and data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockLayout {
    kind: Verification,
    /// Bytes from one header to the next; 0 means one header per I/O.
    interval_bytes: usize,
    header_offset_bytes: usize,
    pattern: Option<BytePattern>,
    compressible_percent: u8,
}

/// Write that a block belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockWrite {
    /// Offset of the write in the file, in bytes.
    pub offset_bytes: u64,
    /// Seed of the written data.
    pub seed: u64,
    /// Time of the write in ns, relative to an arbitrary origin.
    pub time_ns: u64,
    /// Index of the worker in the job file, clones counted, from 1.
    pub worker_number: u16,
    /// Number of writes that the job issued before this one.
    pub write_number: u16,
}

/// Expected properties of a block; `None` for unknown ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpectedBlock {
    /// Expected offset of the block in the file, in bytes.
    pub offset_bytes: u64,
    /// Expected seed of the data.
    pub seed: Option<u64>,
    /// Expected number of writes that the job issued before this one, modulo 2^16.
    pub write_number: Option<u16>,
    /// Expected time of the write in ns. It distinguishes passes or runs with equal seeds.
    pub time_ns: Option<u64>,
}

impl BlockLayout {
    /// Returns the layout of blocks that each start with a header and a checksum.
    pub fn for_checksum(checksum: Checksum) -> Self {
        Self {
            kind: Verification::Checksum(checksum),
            interval_bytes: 0,
            header_offset_bytes: 0,
            pattern: None,
            compressible_percent: 0,
        }
    }

    /// Returns the layout of blocks without headers, whose data is generated from seeds.
    pub fn for_seeded_data() -> Self {
        Self {
            kind: Verification::Pattern,
            ..Self::for_checksum(Checksum::Crc32c)
        }
    }

    /// Returns the verification method of the blocks.
    pub fn kind(&self) -> Verification {
        self.kind
    }

    /// Returns the layout of a job's blocks; `None` if the job does not verify.
    pub fn from_job(job: &JobDefinition) -> Option<Self> {
        let verify = &job.verify;
        if verify.kind == Verification::None {
            return None;
        }
        Some(Self {
            kind: verify.kind,
            interval_bytes: header_interval_of_job(job),
            header_offset_bytes: verify.offset_bytes as usize,
            pattern: verify.pattern.clone(),
            compressible_percent: job.data.compressible_percent,
        })
    }

    /// Returns the size of a header with its checksum, in bytes; 0 for blocks without headers.
    pub fn header_bytes(&self) -> usize {
        header_bytes_of_kind(self.kind)
    }

    /// Returns the bytes covered by one header in an I/O of the given length.
    pub fn header_interval_bytes(&self, io_bytes: usize) -> usize {
        match (self.interval_bytes, self.header_bytes()) {
            (0, _) | (_, 0) => io_bytes,
            (interval, _) => interval.min(io_bytes),
        }
        .max(1)
    }

    /// Reports whether blocks have headers, which identify the write they belong to.
    pub fn has_headers(&self) -> bool {
        self.header_bytes() > 0
    }

    /// Reports whether the data of a block is generated from a seed.
    pub fn is_seeded(&self) -> bool {
        self.pattern.is_none()
    }

    /// Reconstructs the expected content of an I/O. It uses the expected seed, or else the seed of
    /// the header that was read, and keeps time and worker of a valid header.
    pub fn restore(&self, read: &[u8], expected: ExpectedBlock) -> Vec<u8> {
        let decoded = self.decode_header(read);
        let found =
            decoded.filter(|one| one.magic == MAGIC && one.checksum == one.checksum_expected);
        let found = found.map(|one| one.header);
        let mut block = vec![0; read.len()];
        let write = BlockWrite {
            offset_bytes: expected.offset_bytes,
            seed: expected.seed.or(found.map(|one| one.seed)).unwrap_or(0),
            time_ns: found.map_or(0, |one| one.time_ns),
            worker_number: found.map_or(1, |one| one.worker_number),
            write_number: expected
                .write_number
                .or(found.map(|one| one.write_number))
                .unwrap_or(0),
        };
        self.fill_block(&mut block, write);
        block
    }

    /// Fills the buffer of an I/O with data and headers.
    pub fn fill_block(&self, block: &mut [u8], write: BlockWrite) {
        self.fill_part_data(block, write.offset_bytes, write.seed);
        if !self.has_headers() {
            return;
        }
        let step = self.header_interval_bytes(block.len());
        let mut offset_bytes = write.offset_bytes;
        for part in block.chunks_exact_mut(step) {
            let header = BlockHeader {
                verification_kind: kind_number(self.kind),
                block_bytes: step as u32,
                seed: write.seed,
                offset_bytes,
                time_ns: write.time_ns,
                worker_number: write.worker_number,
                write_number: write.write_number,
            };
            self.write_header(part, header);
            offset_bytes += step as u64;
        }
    }

    fn fill_part_data(&self, block: &mut [u8], offset_bytes: u64, seed: u64) {
        match &self.pattern {
            Some(pattern) => pattern.fill_pattern(block, offset_bytes),
            None => fill::fill_random(block, seed, self.compressible_percent),
        }
    }

    fn write_header(&self, part: &mut [u8], header: BlockHeader) {
        let (head, data) = part.split_at_mut(self.header_bytes());
        head[..HEADER_BYTES].copy_from_slice(&header.encode());
        if let Verification::Checksum(checksum) = self.kind {
            head[HEADER_BYTES..].copy_from_slice(&checksum.compute_stored(data));
        }
        self.swap_header_bytes(part);
    }

    /// Swaps the header with the data at the header offset. fio does so after it builds a block and
    /// before it checks one.
    fn swap_header_bytes(&self, part: &mut [u8]) {
        if self.header_offset_bytes > 0
            && self.header_offset_bytes + self.header_bytes() <= part.len()
        {
            let (front, back) = part.split_at_mut(self.header_offset_bytes);
            let length = self.header_bytes();
            front[..length].swap_with_slice(&mut back[..length]);
        }
    }

    /// Checks an I/O that was read. The buffer is unchanged afterwards.
    ///
    /// # Errors
    ///
    /// First difference from the expected content.
    pub fn verify_block(&self, block: &mut [u8], expected: ExpectedBlock) -> Result<(), Mismatch> {
        if self.kind == Verification::Null || self.kind == Verification::None {
            return Ok(());
        }
        if !self.has_headers() {
            return self.verify_data(block, expected);
        }
        let step = self.header_interval_bytes(block.len());
        let mut checked = Ok(());
        for number in 0..block.len() / step {
            let start = number * step;
            let part = BlockPart {
                start_bytes: start,
                io_bytes: block.len(),
                expected: ExpectedBlock {
                    offset_bytes: expected.offset_bytes + start as u64,
                    ..expected
                },
            };
            let bytes = &mut block[start..start + step];
            self.swap_header_bytes(bytes);
            checked = self.verify_part(bytes, part);
            self.swap_header_bytes(bytes);
            if checked.is_err() {
                break;
            }
        }
        checked
    }

    /// Checks an I/O without headers. Data generated from an unknown seed cannot be checked and
    /// passes.
    fn verify_data(&self, block: &[u8], expected: ExpectedBlock) -> Result<(), Mismatch> {
        let (name, seed) = match (&self.pattern, expected.seed) {
            (Some(_), _) => ("pattern", 0),
            (None, Some(seed)) => ("made from a seed", seed),
            (None, None) => return Ok(()),
        };
        let made = self.expected_data(block.len(), expected.offset_bytes, seed);
        let found = mismatch::find_first_difference(&made, block);
        let found = found.map(|byte| byte.shift_offset(expected.offset_bytes));
        found.map_or(Ok(()), |byte| Err(Mismatch::for_data(name, byte)))
    }

    fn verify_part(&self, bytes: &[u8], part: BlockPart) -> Result<(), Mismatch> {
        let expected = part.expected;
        let length = self.header_bytes();
        let head = bytes.first_chunk().expect("a part has room for its header");
        let decoded = BlockHeader::decode(head);
        self.verify_header(&decoded, bytes.len(), expected)?;
        let seed = decoded.header.seed;
        let data = &bytes[length..];
        let made = || {
            let all = self.expected_data(
                part.io_bytes,
                expected.offset_bytes - part.start_bytes as u64,
                seed,
            );
            let mut made = all[part.start_bytes + length..part.start_bytes + bytes.len()].to_vec();
            self.preserve_previous_header(&mut made, data);
            made
        };
        let data_at = expected.offset_bytes + length as u64;
        let first_difference = || {
            let byte = mismatch::find_first_difference(&made(), data)?;
            Some(self.to_block_offset(byte.shift_offset(data_at), expected.offset_bytes))
        };
        if let Verification::Checksum(checksum) = self.kind {
            let (stored, computed) = (&bytes[HEADER_BYTES..length], checksum.compute_stored(data));
            if computed != stored {
                // Data that is not made from a seed, as with a buffer_pattern, tells nothing.
                let is_made = checksum.compute_stored(&made()) == stored;
                let byte = is_made.then(first_difference).flatten();
                return Err(Mismatch::for_checksum(
                    checksum,
                    expected.offset_bytes,
                    (stored, &computed),
                    byte,
                ));
            }
            if checksum.covers_whole_block() {
                return Ok(());
            }
        }
        // A pattern is known, and so is data of a seed that was expected.
        let is_known = self.pattern.is_some() || expected.seed == Some(seed);
        match is_known.then(first_difference).flatten() {
            Some(byte) => Err(Mismatch::for_data(self.kind.name(), byte)),
            None => Ok(()),
        }
    }

    /// Copies the header of an earlier block from the read data into the expected data. fio fills a
    /// buffer with its pattern once. With `verify_offset`, swapping the header of the next block in
    /// the buffer leaves a header of the previous block in the data. This header is part of a
    /// checksum, and counts as damage where fio compares the pattern itself. It is accepted only if
    /// its own checksum is correct.
    fn preserve_previous_header(&self, made: &mut [u8], data: &[u8]) {
        let is_in_checksum = matches!(self.kind, Verification::Checksum(_));
        let length = self.header_bytes();
        let start = self.header_offset_bytes.checked_sub(length);
        let start = start.filter(|_| is_in_checksum && self.pattern.is_some());
        let Some(start) = start else {
            return;
        };
        let Some(before) = data.get(start..start + length) else {
            return;
        };
        let head = before.first_chunk().expect("it is as long as a header");
        let decoded = BlockHeader::decode(head);
        if decoded.magic == MAGIC && decoded.checksum == decoded.checksum_expected {
            made[start..start + length].copy_from_slice(before);
        }
    }

    /// Returns the position in the file of a differing byte that was found while the header was
    /// swapped to the front.
    fn to_block_offset(&self, byte: DifferingByte, part_at: u64) -> DifferingByte {
        let (at, header) = (self.header_offset_bytes as u64, self.header_bytes() as u64);
        let within = byte.offset_bytes - part_at;
        match (at..at + header).contains(&within) && at > 0 {
            true => DifferingByte {
                offset_bytes: byte.offset_bytes - at,
                ..byte
            },
            false => byte,
        }
    }

    fn verify_header(
        &self,
        decoded: &DecodedHeader,
        step: usize,
        expected: ExpectedBlock,
    ) -> Result<(), Mismatch> {
        let header = &decoded.header;
        let differs = |field, one: u64, other: u64| match one == other {
            true => Ok(()),
            false => Err(Mismatch::for_field(
                field,
                expected.offset_bytes,
                (one, other),
            )),
        };
        differs(BlockField::Magic, MAGIC.into(), decoded.magic.into())?;
        differs(
            BlockField::HeaderChecksum,
            decoded.checksum_expected.into(),
            decoded.checksum.into(),
        )?;
        differs(BlockField::Length, step as u64, header.block_bytes.into())?;
        differs(
            BlockField::Offset,
            expected.offset_bytes,
            header.offset_bytes,
        )?;
        differs(
            BlockField::Kind,
            kind_number(self.kind).into(),
            header.verification_kind.into(),
        )?;
        let number = expected.write_number.unwrap_or(header.write_number);
        differs(
            BlockField::Number,
            number.into(),
            header.write_number.into(),
        )?;
        let seed = expected.seed.unwrap_or(header.seed);
        differs(BlockField::Seed, seed, header.seed)?;
        let time_ns = expected.time_ns.unwrap_or(header.time_ns);
        differs(BlockField::Time, time_ns, header.time_ns)
    }

    fn expected_data(&self, io_bytes: usize, offset_bytes: u64, seed: u64) -> Vec<u8> {
        let mut data = vec![0; io_bytes];
        self.fill_part_data(&mut data, offset_bytes, seed);
        data
    }

    /// Returns the header of the first interval of a block that was read; `None` for blocks without
    /// headers.
    pub fn decode_header(&self, block: &[u8]) -> Option<DecodedHeader> {
        let bytes = block.get(self.header_offset_bytes..)?.first_chunk();
        bytes
            .map(BlockHeader::decode)
            .filter(|_| self.has_headers())
    }
}

/// Part of an I/O that has its own header.
#[derive(Clone, Copy)]
struct BlockPart {
    start_bytes: usize,
    io_bytes: usize,
    expected: ExpectedBlock,
}

/// Returns the size of a header for a verification method, in bytes; 0 for methods without headers.
pub fn header_bytes_of_kind(kind: Verification) -> usize {
    match kind {
        Verification::Checksum(checksum) => HEADER_BYTES + checksum.size_bytes(),
        Verification::Header | Verification::HeaderAndPattern => HEADER_BYTES,
        Verification::Pattern | Verification::Null | Verification::None => 0,
    }
}

/// Returns the bytes from one header of a job to the next, after fio 3.33's correction of
/// `verify_interval`; 0 means one header per I/O.
pub fn header_interval_of_job(job: &JobDefinition) -> usize {
    let direction = match job.pattern.access.includes(Direction::Write) {
        true => Direction::Write,
        false => Direction::Read,
    };
    let (smallest, largest) = job.blocks.choice(direction).bounds_bytes();
    let asked = match (u64::from(job.verify.interval_bytes), smallest == largest) {
        (0, true) => return 0,
        (0, false) => smallest,
        (asked, _) => asked.min(smallest),
    };
    let divides = smallest.is_multiple_of(asked) && largest.is_multiple_of(asked);
    let corrected = match divides {
        true => asked,
        false => greatest_common_divisor(smallest, largest),
    };
    corrected as usize
}

fn greatest_common_divisor(one: u64, other: u64) -> u64 {
    match other {
        0 => one,
        other => greatest_common_divisor(other, one % other),
    }
}

fn kind_number(kind: Verification) -> u16 {
    match kind {
        Verification::None | Verification::Null | Verification::Pattern => 0,
        Verification::Header => KIND_HEADER,
        Verification::HeaderAndPattern => KIND_PATTERN,
        Verification::Checksum(checksum) => match checksum {
            Checksum::Md5 => 2,
            Checksum::Crc64 => 3,
            Checksum::Crc32 => 4,
            Checksum::Crc32c => 5,
            Checksum::Crc16 => 7,
            Checksum::Crc7 => 8,
            Checksum::Sha256 => 9,
            Checksum::Sha512 => 10,
            Checksum::Sha3Of224 => 11,
            Checksum::Sha3Of256 => 12,
            Checksum::Sha3Of384 => 13,
            Checksum::Sha3Of512 => 14,
            Checksum::Xxhash => 15,
            Checksum::Sha1 => 16,
        },
    }
}

#[cfg(test)]
mod tests;
