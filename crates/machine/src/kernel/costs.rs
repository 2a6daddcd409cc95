//! Processor time that each kernel routine takes on the machine that it runs on.

use diskperf_sim::Time;

/// Processor time of the kernel's routines, at the speed of the modelled machine.
#[derive(Clone, Debug, Default)]
pub struct KernelCosts {
    /// Processor time to enter and leave the kernel for a system call that does nothing.
    pub system_call_time: Time,
    /// Processor time of read(2) and write(2) outside of the block operations, for the open file,
    /// the inode and the offset.
    pub read_write_time: Time,
    /// Processor time to find the disk address of a file's block (`bmap`).
    pub block_map_time: Time,
    /// Processor time to find or release a buffer of the cache (`getblk`, `incore`, `brelse`).
    pub cache_lookup_time: Time,
    /// Processor time to take over an unused buffer (`getnewbuf`, `pagemove`).
    pub new_buffer_time: Time,
    /// Processor time to choose a free block and enter it in the map (`alloc`, `blkpref`,
    /// `alloccg`).
    pub allocation_time: Time,
    /// Processor time to check whether one written kilobyte belongs to a text segment (`mfind`).
    pub text_check_time_per_kb: Time,
    /// Processor time to give the processor to another process and to get it back (`sleep`,
    /// `swtch`, `resume`).
    pub process_switch_time: Time,
    /// Processor time to enter and leave an interrupt handler.
    pub interrupt_time: Time,
    /// Processor time of one clock tick at the interrupt level of the clock.
    pub clock_tick_time: Time,
    /// Processor time of the part of a clock tick that the kernel defers to a lower interrupt
    /// level.
    pub soft_clock_time: Time,
    /// Clock ticks per second.
    pub clock_hz: u64,
    /// Processor time to look up one component of a path (`namei`).
    pub name_lookup_time: Time,
    /// Processor time to copy one kilobyte between kernel and process.
    pub copy_time_per_kb: Time,
    /// Processor time to zero one kilobyte of memory.
    pub clear_time_per_kb: Time,
    /// Interval between two rounds of update, which syncs the file systems.
    pub update_interval: Time,
    /// Whether the kernel reads one block ahead.
    pub reads_ahead: bool,
    /// Whether a change of a file's owner, mode or times is on the drive when the system call
    /// returns.
    pub writes_attributes_synchronously: bool,
    /// Processor time of user programs outside of their system calls.
    pub program_costs: ProgramCosts,
}

/// Piece of work of a historical user program outside of its system calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramWork {
    /// Check by `fsck` of all inodes in one block.
    FsckInodeBlock,
    /// Check by `fsck` of the data of one read other than an inode block.
    FsckRead,
    /// Reading of this number of 1 KB tape records by `restore`.
    RestoreRecords(u32),
    /// Handling of one inode by `dump` or `restore`: finding the inode or its place, and writing or
    /// reading its header.
    DumpInode,
}

/// Processor time of user programs' work on a machine of speed 1. The time of several pieces of
/// work is rounded once.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProgramCosts {
    /// Processor time of one [`ProgramWork::FsckInodeBlock`].
    pub fsck_inode_block_time: Time,
    /// Processor time of one [`ProgramWork::FsckRead`].
    pub fsck_read_time: Time,
    /// Processor time of one record of [`ProgramWork::RestoreRecords`].
    pub restore_record_time: Time,
    /// Processor time of one [`ProgramWork::DumpInode`].
    pub dump_inode_time: Time,
}

impl ProgramCosts {
    /// Returns the processor time of a piece of work on a machine of speed 1.
    pub(crate) fn program_work_time(&self, work: ProgramWork) -> Time {
        match work {
            ProgramWork::FsckInodeBlock => self.fsck_inode_block_time,
            ProgramWork::FsckRead => self.fsck_read_time,
            ProgramWork::RestoreRecords(count) => {
                Time(self.restore_record_time.0 * u64::from(count))
            }
            ProgramWork::DumpInode => self.dump_inode_time,
        }
    }
}

impl KernelCosts {
    /// Returns the processor time to copy a number of bytes between kernel and process.
    #[inline]
    pub(crate) fn copy_time(&self, bytes: usize) -> Time {
        scale_cost_to_bytes(self.copy_time_per_kb, bytes)
    }

    /// Returns the processor time to check written bytes against the text segments.
    #[inline]
    pub(crate) fn text_check_time(&self, bytes: u32) -> Time {
        let kilobytes = u64::from(bytes.div_ceil(1024));
        Time(self.text_check_time_per_kb.0.saturating_mul(kilobytes)).min(WORK_TIME_MAX)
    }

    /// Returns the processor time to zero a number of bytes.
    #[inline]
    pub(crate) fn clear_time(&self, bytes: usize) -> Time {
        scale_cost_to_bytes(self.clear_time_per_kb, bytes)
    }
}

#[inline]
fn scale_cost_to_bytes(cost: Time, bytes: usize) -> Time {
    Time(cost.0.saturating_mul(bytes as u64).div_ceil(1024)).min(WORK_TIME_MAX)
}

/// Upper limit for the processor time of one kernel routine: one year. It keeps end times
/// representable.
const WORK_TIME_MAX: Time = Time::from_millis(365 * 24 * 3600 * 1000);
