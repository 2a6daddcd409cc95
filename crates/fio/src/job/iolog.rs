//! Logs of a job's I/O.

/// The log that a job writes, and the one that it repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Iolog {
    /// `write_iolog`: path of the log of what the job does. As in fio, a job that repeats a
    /// log writes none: see [`Self::written_by`].
    pub write: Option<String>,
    /// `read_iolog`: path of the log that the job repeats, in place of I/O of its own.
    pub read: Option<String>,
    /// `replay_no_stall`: the times of the log do not count.
    pub is_unpaced: bool,
    /// `replay_time_scale`: 200 is twice as fast as the log.
    pub speed_percent: u32,
    /// `replay_redirect`: one file for all I/O of the log.
    pub redirect: Option<String>,
    /// `replay_scale`: offsets are divided by it.
    pub scale: u64,
    /// `replay_align`: offsets are rounded down to multiples of so many bytes.
    pub align_bytes: u64,
    /// `replay_skip`.
    pub skips: Skips,
}

/// I/O of a trace of blktrace that is left out. As in fio, an iolog keeps all of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skips {
    /// `read`.
    pub reads: bool,
    /// `write`.
    pub writes: bool,
    /// `trim`.
    pub trims: bool,
    /// `sync`.
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
    /// Returns the path of the log that a clone writes, the first being 0: fio writes those
    /// of all clones into one file, which it cannot read again.
    pub fn written_by(&self, clone: u32) -> Option<String> {
        let path = self.write.as_ref().filter(|_| self.read.is_none())?;
        Some(match clone {
            0 => path.clone(),
            clone => format!("{path}.{clone}"),
        })
    }
}
