//! I/O logs that a job writes or replays.

/// I/O logs: the log that a job writes, and the log that a job replays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Iolog {
    /// Path of the log of the job's own I/O (`write_iolog`). As in fio, a job that replays a log
    /// writes none: see [`Self::clone_log_path`].
    pub written_path: Option<String>,
    /// Path of the log that the job replays in place of its own I/O (`read_iolog`).
    pub replayed_path: Option<String>,
    /// Flag `replay_no_stall`: the replay ignores the times of the log.
    pub is_unpaced: bool,
    /// Replay speed in percent (`replay_time_scale`): 200 is twice as fast as the log.
    pub speed_percent: u32,
    /// File or device that receives all replayed I/O (`replay_redirect`); `None` keeps the files of
    /// the log.
    pub redirect_target: Option<String>,
    /// Divisor of the replayed offsets (`replay_scale`).
    pub offset_divisor: u64,
    /// Alignment of replayed offsets in bytes (`replay_align`). Offsets are rounded down.
    pub align_bytes: u64,
    /// Kinds of I/O that the replay skips (`replay_skip`).
    pub skipped_kinds: SkippedKinds,
}

/// Kinds of I/O of a blktrace trace that a replay skips. As in fio, an iolog is replayed
/// completely.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SkippedKinds {
    /// Whether the replay skips reads.
    pub reads: bool,
    /// Whether the replay skips writes.
    pub writes: bool,
    /// Whether the replay skips trims.
    pub trims: bool,
    /// Whether the replay skips syncs.
    pub syncs: bool,
}

impl Default for Iolog {
    fn default() -> Iolog {
        Iolog {
            written_path: None,
            replayed_path: None,
            is_unpaced: false,
            speed_percent: 100,
            redirect_target: None,
            offset_divisor: 1,
            align_bytes: 1,
            skipped_kinds: SkippedKinds::default(),
        }
    }
}

impl Iolog {
    /// Returns the path of the I/O log that a clone writes; the first clone is 0. fio writes the
    /// I/O of all clones into one file, which it cannot read again.
    pub fn clone_log_path(&self, clone: u32) -> Option<String> {
        let path = self
            .written_path
            .as_ref()
            .filter(|_| self.replayed_path.is_none())?;
        Some(match clone {
            0 => path.clone(),
            clone => format!("{path}.{clone}"),
        })
    }
}
