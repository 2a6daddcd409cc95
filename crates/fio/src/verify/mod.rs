//! Verifiable blocks: fio's headers, checksums and patterns, and the data that it generates from
//! seeds. The bytes are those of fio 3.33, so that either program can verify what the other wrote.

mod checksum;
mod fill;
mod header;
mod mismatch;
mod pattern;
mod state;

pub use checksum::Checksum;
pub use fill::Seeds;
pub use header::{DecodedHeader, HEADER_BYTES, Header, MAGIC};
pub use mismatch::{DifferingByte, Field, Mismatch};
pub use pattern::{BytePattern, PATTERN_BYTES_MAX, PatternError};
pub use state::{CompletedWrite, STATE_VERSION, StateError, VerifyState};

use crate::job::{Direction, Job, Verification};

/// fio's number for a verification header followed by a pattern: `verify_pattern` without `verify`.
const KIND_PATTERN: u16 = 17;
const KIND_HEADER: u16 = 1;

/// Layout of a job's verified blocks: content and position of headers and data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockLayout {
    kind: Verification,
    /// Bytes from one header to the next; 0 means one header per I/O.
    interval_bytes: usize,
    header_at: usize,
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
    pub thread: u16,
    /// Number of writes that the job issued before this one.
    pub number: u16,
}

/// Expected properties of a block; `None` for unknown ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expectation {
    /// Expected offset of the block in the file, in bytes.
    pub offset_bytes: u64,
    /// Expected seed of the data.
    pub seed: Option<u64>,
    /// Expected number of writes that the job issued before this one, modulo 2^16.
    pub number: Option<u16>,
    /// Expected time of the write in ns. It distinguishes passes or runs with equal seeds.
    pub time_ns: Option<u64>,
}

impl BlockLayout {
    /// Returns the layout of blocks that each start with a header and a checksum.
    pub fn of_checksum(checksum: Checksum) -> Self {
        Self {
            kind: Verification::Checksum(checksum),
            interval_bytes: 0,
            header_at: 0,
            pattern: None,
            compressible_percent: 0,
        }
    }

    /// Returns the layout of blocks without headers, whose data is generated from seeds.
    pub fn of_seed() -> Self {
        Self {
            kind: Verification::Pattern,
            ..Self::of_checksum(Checksum::Crc32c)
        }
    }

    /// Returns the verification method of the blocks.
    pub fn kind(&self) -> Verification {
        self.kind
    }

    /// Returns the layout of a job's blocks; `None` if the job does not verify.
    pub fn of_job(job: &Job) -> Option<Self> {
        let verify = &job.verify;
        if verify.kind == Verification::None {
            return None;
        }
        Some(Self {
            kind: verify.kind,
            interval_bytes: interval_bytes(job),
            header_at: verify.offset_bytes as usize,
            pattern: verify.pattern.clone(),
            compressible_percent: job.data.compressible_percent,
        })
    }

    /// Returns the size of a header with its checksum, in bytes; 0 for blocks without headers.
    pub fn header_bytes(&self) -> usize {
        header_bytes(self.kind)
    }

    /// Returns the bytes covered by one header in an I/O of the given length.
    pub fn step_bytes(&self, io_bytes: usize) -> usize {
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
    pub fn restore(&self, read: &[u8], expected: Expectation) -> Vec<u8> {
        let decoded = self.header(read);
        let found =
            decoded.filter(|one| one.magic == MAGIC && one.checksum == one.checksum_expected);
        let found = found.map(|one| one.header);
        let mut block = vec![0; read.len()];
        let write = BlockWrite {
            offset_bytes: expected.offset_bytes,
            seed: expected.seed.or(found.map(|one| one.seed)).unwrap_or(0),
            time_ns: found.map_or(0, |one| one.time_ns),
            thread: found.map_or(1, |one| one.thread),
            number: expected.number.or(found.map(|one| one.number)).unwrap_or(0),
        };
        self.fill(&mut block, write);
        block
    }

    /// Fills the buffer of an I/O with data and headers.
    pub fn fill(&self, block: &mut [u8], write: BlockWrite) {
        self.fill_data(block, write.offset_bytes, write.seed);
        if !self.has_headers() {
            return;
        }
        let step = self.step_bytes(block.len());
        let mut offset_bytes = write.offset_bytes;
        for part in block.chunks_exact_mut(step) {
            let header = Header {
                kind: kind_number(self.kind),
                length_bytes: step as u32,
                seed: write.seed,
                offset_bytes,
                time_ns: write.time_ns,
                thread: write.thread,
                number: write.number,
            };
            self.put_header(part, header);
            offset_bytes += step as u64;
        }
    }

    fn fill_data(&self, block: &mut [u8], offset_bytes: u64, seed: u64) {
        match &self.pattern {
            Some(pattern) => pattern.fill(block, offset_bytes),
            None => fill::fill(block, seed, self.compressible_percent),
        }
    }

    fn put_header(&self, part: &mut [u8], header: Header) {
        let (head, data) = part.split_at_mut(self.header_bytes());
        head[..HEADER_BYTES].copy_from_slice(&header.encode());
        if let Verification::Checksum(checksum) = self.kind {
            head[HEADER_BYTES..].copy_from_slice(&checksum.stored(data));
        }
        self.swap_header(part);
    }

    /// Swaps the header with the data at the header offset. fio does so after it builds a block and
    /// before it checks one.
    fn swap_header(&self, part: &mut [u8]) {
        if self.header_at > 0 && self.header_at + self.header_bytes() <= part.len() {
            let (front, back) = part.split_at_mut(self.header_at);
            let length = self.header_bytes();
            front[..length].swap_with_slice(&mut back[..length]);
        }
    }

    /// Checks an I/O that was read. The buffer is unchanged afterwards.
    ///
    /// # Errors
    ///
    /// First difference from the expected content.
    pub fn check(&self, block: &mut [u8], expected: Expectation) -> Result<(), Mismatch> {
        if self.kind == Verification::Null || self.kind == Verification::None {
            return Ok(());
        }
        if !self.has_headers() {
            return self.check_data(block, expected);
        }
        let step = self.step_bytes(block.len());
        let mut checked = Ok(());
        for number in 0..block.len() / step {
            let start = number * step;
            let part = Part {
                start,
                io_bytes: block.len(),
                expected: Expectation {
                    offset_bytes: expected.offset_bytes + start as u64,
                    ..expected
                },
            };
            let bytes = &mut block[start..start + step];
            self.swap_header(bytes);
            checked = self.check_part(bytes, part);
            self.swap_header(bytes);
            if checked.is_err() {
                break;
            }
        }
        checked
    }

    /// Checks an I/O without headers. Data generated from an unknown seed cannot be checked and
    /// passes.
    fn check_data(&self, block: &[u8], expected: Expectation) -> Result<(), Mismatch> {
        let (name, seed) = match (&self.pattern, expected.seed) {
            (Some(_), _) => ("pattern", 0),
            (None, Some(seed)) => ("made from a seed", seed),
            (None, None) => return Ok(()),
        };
        let made = self.expected_data(block.len(), expected.offset_bytes, seed);
        let found = mismatch::find_first_difference(&made, block);
        let found = found.map(|byte| byte.shifted_by(expected.offset_bytes));
        found.map_or(Ok(()), |byte| Err(Mismatch::for_data(name, byte)))
    }

    fn check_part(&self, bytes: &[u8], part: Part) -> Result<(), Mismatch> {
        let expected = part.expected;
        let length = self.header_bytes();
        let head = bytes.first_chunk().expect("a part has room for its header");
        let decoded = Header::decode(head);
        self.check_header(&decoded, bytes.len(), expected)?;
        let seed = decoded.header.seed;
        let data = &bytes[length..];
        let made = || {
            let all = self.expected_data(
                part.io_bytes,
                expected.offset_bytes - part.start as u64,
                seed,
            );
            let mut made = all[part.start + length..part.start + bytes.len()].to_vec();
            self.preserve_previous_header(&mut made, data);
            made
        };
        let data_at = expected.offset_bytes + length as u64;
        let first_difference = || {
            let byte = mismatch::find_first_difference(&made(), data)?;
            Some(self.locate_byte(byte.shifted_by(data_at), expected.offset_bytes))
        };
        if let Verification::Checksum(checksum) = self.kind {
            let (stored, computed) = (&bytes[HEADER_BYTES..length], checksum.stored(data));
            if computed != stored {
                // Data that is not made from a seed, as with a buffer_pattern, tells nothing.
                let is_made = checksum.stored(&made()) == stored;
                let byte = is_made.then(first_difference).flatten();
                return Err(Mismatch::of_checksum(
                    checksum,
                    expected.offset_bytes,
                    (stored, &computed),
                    byte,
                ));
            }
            if checksum.covers_all() {
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
        let start = self.header_at.checked_sub(length);
        let start = start.filter(|_| is_in_checksum && self.pattern.is_some());
        let Some(start) = start else {
            return;
        };
        let Some(before) = data.get(start..start + length) else {
            return;
        };
        let head = before.first_chunk().expect("it is as long as a header");
        let decoded = Header::decode(head);
        if decoded.magic == MAGIC && decoded.checksum == decoded.checksum_expected {
            made[start..start + length].copy_from_slice(before);
        }
    }

    /// Returns the position in the file of a differing byte that was found while the header was
    /// swapped to the front.
    fn locate_byte(&self, byte: DifferingByte, part_at: u64) -> DifferingByte {
        let (at, header) = (self.header_at as u64, self.header_bytes() as u64);
        let within = byte.offset_bytes - part_at;
        match (at..at + header).contains(&within) && at > 0 {
            true => DifferingByte {
                offset_bytes: byte.offset_bytes - at,
                ..byte
            },
            false => byte,
        }
    }

    fn check_header(
        &self,
        decoded: &DecodedHeader,
        step: usize,
        expected: Expectation,
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
        differs(Field::Magic, MAGIC.into(), decoded.magic.into())?;
        differs(
            Field::HeaderChecksum,
            decoded.checksum_expected.into(),
            decoded.checksum.into(),
        )?;
        differs(Field::Length, step as u64, header.length_bytes.into())?;
        differs(Field::Offset, expected.offset_bytes, header.offset_bytes)?;
        differs(
            Field::Kind,
            kind_number(self.kind).into(),
            header.kind.into(),
        )?;
        let number = expected.number.unwrap_or(header.number);
        differs(Field::Number, number.into(), header.number.into())?;
        let seed = expected.seed.unwrap_or(header.seed);
        differs(Field::Seed, seed, header.seed)?;
        let time_ns = expected.time_ns.unwrap_or(header.time_ns);
        differs(Field::Time, time_ns, header.time_ns)
    }

    fn expected_data(&self, io_bytes: usize, offset_bytes: u64, seed: u64) -> Vec<u8> {
        let mut data = vec![0; io_bytes];
        self.fill_data(&mut data, offset_bytes, seed);
        data
    }

    /// Returns the header of the first interval of a block that was read; `None` for blocks without
    /// headers.
    pub fn header(&self, block: &[u8]) -> Option<DecodedHeader> {
        let bytes = block.get(self.header_at..)?.first_chunk();
        bytes.map(Header::decode).filter(|_| self.has_headers())
    }
}

/// Part of an I/O that has its own header.
#[derive(Clone, Copy)]
struct Part {
    start: usize,
    io_bytes: usize,
    expected: Expectation,
}

/// Returns the size of a header for a verification method, in bytes; 0 for methods without headers.
pub fn header_bytes(kind: Verification) -> usize {
    match kind {
        Verification::Checksum(checksum) => HEADER_BYTES + checksum.stored_bytes(),
        Verification::Header | Verification::HeaderAndPattern => HEADER_BYTES,
        Verification::Pattern | Verification::Null | Verification::None => 0,
    }
}

/// Returns the bytes from one header of a job to the next, after fio 3.33's correction of
/// `verify_interval`; 0 means one header per I/O.
pub fn interval_bytes(job: &Job) -> usize {
    let direction = match job.pattern.access.does(Direction::Write) {
        true => Direction::Write,
        false => Direction::Read,
    };
    let (smallest, largest) = job.blocks.sizes(direction).bounds();
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
