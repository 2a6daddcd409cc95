//! I/O logs that a job writes or replays.

/// I/O logs: the log that a job writes, and the log that a job replays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Iolog {
    /// Path of the log of the job's own I/O (`write_iolog`). As in fio, a job that replays a log
    /// writes none: see [`Self::written_by`].
    pub write: Option<String>,
    /// Path of the log that the job replays in place of its own I/O (`read_iolog`).
    pub read: Option<String>,
    /// Flag `replay_no_stall`: the replay ignores the times of the log.
    pub is_unpaced: bool,
    /// Replay speed in percent (`replay_time_scale`): 200 is twice as fast as the log.
    pub speed_percent: u32,
    /// File or device that receives all replayed I/O (`replay_redirect`); `None` keeps the files of
    /// the log.
    pub redirect: Option<String>,
    /// Divisor of the replayed offsets (`replay_scale`).
    pub scale: u64,
    /// Alignment of replayed offsets in bytes (`replay_align`). Offsets are rounded down.
    pub align_bytes: u64,
    /// Kinds of I/O that the replay skips (`replay_skip`).
    pub skips: Skips,
}

/// Kinds of I/O of a blktrace trace that a replay skips. As in fio, an iolog is replayed
/// completely.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skips {
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
            write: None,
            read: None,
            is_unpaced: false,
            speed_percent: 100,
            redirect: None,
            scale: 1,
            align_bytes: 1,
            skips: Skips::default(),
        }
    }
}

impl Iolog {
    /// Returns the path of the I/O log that a clone writes; the first clone is 0. fio writes the
    /// I/O of all clones into one file, which it cannot read again.
    pub fn written_by(&self, clone: u32) -> Option<String> {
        let path = self.write.as_ref().filter(|_| self.read.is_none())?;
        Some(match clone {
            0 => path.clone(),
            clone => format!("{path}.{clone}"),
        })
    }
}
