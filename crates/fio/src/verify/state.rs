//! State file of an interrupted job, from which a later run knows the completed writes: fio's
//! `local-JOB-N-verify.state`, version 3.

use super::checksum::crc32c;

/// Version number of the format, at the start of each state file.
pub const STATE_VERSION: u64 = 3;

/// Size of the file head in bytes: version, length of the body and its checksum.
const HEADER_BYTES_SAVED: usize = 24;
const FIXED_BYTES: usize = 152;
const COMPLETION_BYTES: usize = 16;
const GENERATOR_RANGE: std::ops::Range<usize> = 32..88;
const NAME_RANGE: std::ops::Range<usize> = 88..152;

/// Completed write of an interrupted job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletedWrite {
    /// Index of the written file among the job's files.
    pub file_number: u64,
    /// Offset of the write in the file, in bytes.
    pub offset_bytes: u64,
}

/// Saved state of an interrupted job: its writes and the position of its generator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyState {
    /// Queue depth of the job (`iodepth`).
    pub queue_depth: u32,
    /// Number of files of the job.
    pub file_count: u32,
    /// Number of writes that the job issued.
    pub write_count: u64,
    /// Index of the worker in the job file, clones counted, from 0.
    pub worker_index: u64,
    /// Job name, truncated to 63 bytes.
    pub job_name: String,
    /// Last completed writes, latest first; at most as many as the queue depth.
    pub completed_writes: Vec<CompletedWrite>,
    /// Whether fio generated the offsets, whose order then differs from diskperf's.
    pub has_fio_generator: bool,
}

/// Reason why a file is not a valid state file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// Unsupported version, or a file of another kind.
    #[error("it is not a state file of version {STATE_VERSION}")]
    Version,
    /// File length that differs from the length stored in the file.
    #[error("its length does not match its header")]
    Length,
    /// Checksum that does not match the contents.
    #[error("its checksum does not match")]
    Checksum,
}

impl VerifyState {
    /// Returns the name of a job's state file; `index` is the index of the worker, clones counted,
    /// from 0.
    pub fn file_name(job: &str, index: u64) -> String {
        format!("local-{job}-{index}-verify.state")
    }

    /// Encodes the state as fio writes it.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = vec![0; FIXED_BYTES];
        body[0..8].copy_from_slice(&(self.completed_writes.len() as u64).to_le_bytes());
        body[8..12].copy_from_slice(&self.queue_depth.to_le_bytes());
        body[12..16].copy_from_slice(&self.file_count.to_le_bytes());
        body[16..24].copy_from_slice(&self.write_count.to_le_bytes());
        body[24..32].copy_from_slice(&self.worker_index.to_le_bytes());
        let name = self.job_name.as_bytes();
        let length = name.len().min(NAME_RANGE.len() - 1);
        body[NAME_RANGE.start..NAME_RANGE.start + length].copy_from_slice(&name[..length]);
        for write in &self.completed_writes {
            body.extend_from_slice(&write.file_number.to_le_bytes());
            body.extend_from_slice(&write.offset_bytes.to_le_bytes());
        }
        let mut bytes = Vec::with_capacity(HEADER_BYTES_SAVED + body.len());
        bytes.extend_from_slice(&STATE_VERSION.to_le_bytes());
        bytes.extend_from_slice(&(body.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&u64::from(crc32c(&body)).to_le_bytes());
        bytes.extend_from_slice(&body);
        bytes
    }

    /// Decodes a state file that fio or diskperf wrote.
    ///
    /// # Errors
    ///
    /// If the bytes are not a valid state file, or are damaged.
    pub fn decode(bytes: &[u8]) -> Result<Self, StateError> {
        let (head, body) = bytes
            .split_at_checked(HEADER_BYTES_SAVED)
            .ok_or(StateError::Version)?;
        if u64_at(head, 0) != STATE_VERSION {
            return Err(StateError::Version);
        }
        if u64_at(head, 8) != body.len() as u64 || body.len() < FIXED_BYTES {
            return Err(StateError::Length);
        }
        if u64_at(head, 16) != u64::from(crc32c(body)) {
            return Err(StateError::Checksum);
        }
        let (completions, _) = body[FIXED_BYTES..].as_chunks::<COMPLETION_BYTES>();
        if u64_at(body, 0) != completions.len() as u64 {
            return Err(StateError::Length);
        }
        let name = &body[NAME_RANGE];
        let end = name.iter().position(|byte| *byte == 0);
        let name = &name[..end.unwrap_or(name.len())];
        Ok(Self {
            queue_depth: u64_at(body, 8) as u32,
            file_count: (u64_at(body, 8) >> 32) as u32,
            write_count: u64_at(body, 16),
            worker_index: u64_at(body, 24),
            job_name: String::from_utf8_lossy(name).into_owned(),
            completed_writes: completions
                .iter()
                .map(|one| CompletedWrite {
                    file_number: u64_at(one, 0),
                    offset_bytes: u64_at(one, 8),
                })
                .collect(),
            has_fio_generator: body[GENERATOR_RANGE].iter().any(|byte| *byte != 0),
        })
    }

    /// Reports whether a write was completed, by fio's rule; `number` counts the writes before it.
    /// Every write issued longer ago than the queue depth is complete, and a later one only if it
    /// is listed among the completed writes. Nothing is known after the first incomplete write.
    pub fn includes_write(&self, number: u64, write: CompletedWrite) -> bool {
        let depth = u64::from(self.queue_depth);
        let is_long_ago = number < depth || self.write_count.saturating_sub(number) > depth;
        if self.write_count > depth && is_long_ago {
            return true;
        }
        self.completed_writes.contains(&write)
    }
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let field = bytes[at..at + 8].try_into();
    u64::from_le_bytes(field.expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A state that fio 3.33 wrote, of a job `j` at depth 4 that a runtime ended.
    fn of_fio() -> Vec<u8> {
        let mut bytes = from_hexadecimal(
            "0300000000000000d8000000000000006650da8100000000\
             0400000000000000040000000100000032000000000000000000000000000000\
             0000000000000000c14e4a8590b1bdfe062801d6",
        );
        bytes.resize(HEADER_BYTES_SAVED + NAME_RANGE.start, 0);
        bytes.push(b'j');
        bytes.resize(HEADER_BYTES_SAVED + FIXED_BYTES, 0);
        for offset_bytes in [708_608_u64, 24_576, 356_352, 499_712] {
            bytes.extend_from_slice(&[0; 8]);
            bytes.extend_from_slice(&offset_bytes.to_le_bytes());
        }
        bytes
    }

    fn from_hexadecimal(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        let pairs = digits
            .chunks(2)
            .map(|pair| std::str::from_utf8(pair).unwrap());
        pairs
            .map(|pair| u8::from_str_radix(pair, 16).unwrap())
            .collect()
    }

    fn state() -> VerifyState {
        VerifyState {
            queue_depth: 2,
            file_count: 1,
            write_count: 5,
            worker_index: 3,
            job_name: "a job".to_owned(),
            completed_writes: [16384, 8192]
                .map(|offset_bytes| CompletedWrite {
                    file_number: 0,
                    offset_bytes,
                })
                .to_vec(),
            has_fio_generator: false,
        }
    }

    #[test]
    fn a_state_is_read_as_it_was_written_and_damage_is_seen() {
        let bytes = state().encode();
        assert_eq!(
            bytes.len(),
            HEADER_BYTES_SAVED + FIXED_BYTES + 2 * COMPLETION_BYTES
        );
        assert_eq!(VerifyState::decode(&bytes), Ok(state()));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(VerifyState::decode(&damaged).is_err(), "byte {at}");
        }
        for length in 0..bytes.len() {
            assert!(
                VerifyState::decode(&bytes[..length]).is_err(),
                "{length} bytes"
            );
        }
    }

    #[test]
    fn what_was_not_complete_ends_what_is_known() {
        let state = state();
        let covers = |number, offset_bytes| {
            state.includes_write(
                number,
                CompletedWrite {
                    file_number: 0,
                    offset_bytes,
                },
            )
        };
        // In order: the fourth is the one that was in flight.
        let blocks: Vec<bool> = (0..6).map(|number| covers(number, number * 4096)).collect();
        assert_eq!(blocks, [true, true, true, false, true, false]);
    }

    #[test]
    fn a_state_of_fio_is_read() {
        let decoded = VerifyState::decode(&of_fio()).expect("a state");
        assert_eq!(
            (decoded.queue_depth, decoded.file_count, decoded.write_count),
            (4, 1, 50)
        );
        assert_eq!((&*decoded.job_name, decoded.has_fio_generator), ("j", true));
        let offsets = decoded
            .completed_writes
            .iter()
            .map(|write| write.offset_bytes);
        assert_eq!(
            offsets.collect::<Vec<_>>(),
            [708_608, 24_576, 356_352, 499_712]
        );
        assert_eq!(VerifyState::file_name("j", 0), "local-j-0-verify.state");
    }
}
