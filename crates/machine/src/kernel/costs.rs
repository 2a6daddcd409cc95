//! What each routine of the kernel costs on the machine that it runs on.

use diskperf_sim::Time;

/// Processor time of the kernel's routines, at this machine's speed.
#[derive(Clone, Debug, Default)]
pub struct Costs {
    /// Entering and leaving the kernel, with nothing in between.
    pub system_call: Time,
    /// read(2) and write(2) around the blocks: file, inode, offset.
    pub read_write: Time,
    /// Finding a block of a file (bmap).
    pub block_map: Time,
    /// Finding a buffer, or giving one back (getblk, incore, brelse).
    pub cache_lookup: Time,
    /// Making a buffer that nobody uses one's own (getnewbuf, pagemove).
    pub new_buffer: Time,
    /// Choosing a block and booking it (alloc, blkpref, alloccg).
    pub allocate: Time,
    /// Looking whether a kilobyte that is written is in a text segment
    /// (mfind).
    pub text_check_per_kb: Time,
    /// Giving the processor to somebody else and getting it back (sleep,
    /// swtch, resume).
    pub switch: Time,
    /// Entering and leaving a handler of an interrupt.
    pub interrupt: Time,
    /// One tick of the clock, at the clock's level.
    pub clock: Time,
    /// The same, of what is left for later.
    pub soft_clock: Time,
    /// Ticks per second.
    pub clock_hz: u64,
    /// Finding one name (namei, per component).
    pub name_lookup: Time,
    /// Moving a kilobyte between kernel and process.
    pub copy_per_kb: Time,
    /// Zeroing a kilobyte.
    pub clear_per_kb: Time,
    /// Between two rounds of update.
    pub update_interval: Time,
    /// Blocks that are read ahead: none, or one.
    pub read_ahead: bool,
    /// A change of a file's owner, mode or times is on the drive when its call
    /// returns.
    pub attributes_synchronous: bool,
    /// What programs of the time do besides their calls.
    pub programs: ProgramCosts,
}

/// Work of a program of the time besides its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// fsck checks the inodes of a block.
    FsckInodes,
    /// fsck looks at what any other read gave it.
    FsckRead,
    /// restore takes so many records of 1 KB off the tape.
    RestoreRecords(u32),
    /// dump or restore finds an inode, or its place, and makes or reads its header.
    DumpInode,
}

/// Processor time of that work on a machine of speed 1: what several pieces of it take
/// is rounded once.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProgramCosts {
    /// [`Work::FsckInodes`].
    pub fsck_inodes: Time,
    /// [`Work::FsckRead`].
    pub fsck_read: Time,
    /// One of [`Work::RestoreRecords`].
    pub restore_record: Time,
    /// [`Work::DumpInode`].
    pub dump_inode: Time,
}

impl ProgramCosts {
    /// What some work takes on a machine of speed 1.
    pub(crate) fn of(&self, work: Work) -> Time {
        match work {
            Work::FsckInodes => self.fsck_inodes,
            Work::FsckRead => self.fsck_read,
            Work::RestoreRecords(count) => Time(self.restore_record.0 * u64::from(count)),
            Work::DumpInode => self.dump_inode,
        }
    }
}

impl Costs {
    /// Copying this many bytes.
    #[inline]
    pub(crate) fn copy(&self, bytes: usize) -> Time {
        per_kb(self.copy_per_kb, bytes)
    }

    /// Looking for this many bytes among text segments.
    #[inline]
    pub(crate) fn text_check(&self, bytes: u32) -> Time {
        let kilobytes = u64::from(bytes.div_ceil(1024));
        Time(self.text_check_per_kb.0.saturating_mul(kilobytes)).min(LONGEST)
    }

    /// Zeroing this many bytes.
    #[inline]
    pub(crate) fn clear(&self, bytes: usize) -> Time {
        per_kb(self.clear_per_kb, bytes)
    }
}

#[inline]
fn per_kb(cost: Time, bytes: usize) -> Time {
    Time(cost.0.saturating_mul(bytes as u64).div_ceil(1024)).min(LONGEST)
}

/// No routine takes longer than a year, so that the end of its work is a moment.
const LONGEST: Time = Time::from_millis(365 * 24 * 3600 * 1000);
