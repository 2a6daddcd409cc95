//! Format of the records that the programs write. It does not depend on the kernel.
//!
//! A record starts with its time (8 bytes), the task (4), the processor (2) and its kind (2). Words
//! of eight bytes follow, as many as its kind has.

/// Offset of the first word, in bytes.
pub(super) const HEADER_BYTES: i16 = 16;
/// Number of words that no record exceeds.
pub(super) const WORDS_MAX: usize = 9;

/// Declares the kinds of records with the tracepoints that they come from.
macro_rules! record_kinds {
    ($($name:ident = $tracepoint:literal,)*) => {
        /// Kind of a record, which is also that of the program that writes it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u16)]
        pub(super) enum RecordKind {
            $($name,)*
        }

        impl RecordKind {
            /// Every kind, in the order in which their programs are attached: first those that say
            /// which task runs.
            pub(super) const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Returns the name of the tracepoint whose events have this kind.
            pub(super) const fn tracepoint(self) -> &'static str {
                match self {
                    $(Self::$name => $tracepoint,)*
                }
            }
        }
    };
}

record_kinds! {
    Switch = "sched_switch",
    Waking = "sched_waking",
    NewTask = "sched_wakeup_new",
    InterruptEntry = "irq_handler_entry",
    InterruptExit = "irq_handler_exit",
    SoftInterruptEntry = "softirq_entry",
    SoftInterruptExit = "softirq_exit",
    SoftInterruptRaise = "softirq_raise",
    TimerEntry = "hrtimer_expire_entry",
    TimerExit = "hrtimer_expire_exit",
    BioQueue = "block_bio_queue",
    BioRemap = "block_bio_remap",
    BioSplit = "block_split",
    BioRequestAllocated = "block_getrq",
    BioBackMerge = "block_bio_backmerge",
    BioFrontMerge = "block_bio_frontmerge",
    RequestInsert = "block_rq_insert",
    RequestIssue = "block_rq_issue",
    RequestComplete = "block_rq_complete",
    RequestDone = "block_io_done",
    CommitStart = "jbd2_start_commit",
    CommitLocking = "jbd2_commit_locking",
    CommitFlushing = "jbd2_commit_flushing",
    CommitLogging = "jbd2_commit_logging",
    CommitEnd = "jbd2_end_commit",
    DirtyThrottle = "balance_dirty_pages",
    ReclaimBegin = "mm_vmscan_direct_reclaim_begin",
    ReclaimEnd = "mm_vmscan_direct_reclaim_end",
    CgroupReclaimBegin = "mm_vmscan_memcg_reclaim_begin",
    CgroupReclaimEnd = "mm_vmscan_memcg_reclaim_end",
    WorkQueue = "workqueue_queue_work",
    WorkStart = "workqueue_execute_start",
    WorkEnd = "workqueue_execute_end",
    RingSubmit = "io_uring_submit_req",
    RingQueueAsync = "io_uring_queue_async_work",
    RingComplete = "io_uring_complete",
    CallEnter = "sys_enter",
    CallExit = "sys_exit",
}

/// Words of a bio's record.
pub(super) mod bio {
    pub(in super::super) const ADDRESS: usize = 0;
    pub(in super::super) const SECTOR: usize = 1;
    pub(in super::super) const BYTES: usize = 2;
    pub(in super::super) const FLAGS: usize = 3;
    pub(in super::super) const DEVICE: usize = 4;
    /// Device and inode of the data's file, of a bio that arrives; 0 where unknown.
    pub(in super::super) const FILE_DEVICE: usize = 5;
    pub(in super::super) const FILE_INODE: usize = 6;
}

/// Words of a request's record.
pub(super) mod request {
    pub(in super::super) const ADDRESS: usize = 0;
    pub(in super::super) const BIO: usize = 1;
    pub(in super::super) const SECTOR: usize = 2;
    pub(in super::super) const BYTES: usize = 3;
    pub(in super::super) const FLAGS: usize = 4;
    pub(in super::super) const STATE_FLAGS: usize = 5;
    pub(in super::super) const MAJOR: usize = 6;
    pub(in super::super) const MINOR: usize = 7;
    pub(in super::super) const COMPLETED_BYTES: usize = 8;
}

/// Word in place of the request of an idle worker thread of io_uring.
pub(super) const IDLE_RING_WORKER: u64 = 1;

/// Words of a switch between tasks.
pub(super) mod switch {
    pub(in super::super) const NEXT_THREAD: usize = 0;
    /// State of the task that leaves; 0 if it can run on.
    pub(in super::super) const STATE: usize = 1;
    /// Requests of io_uring that worker threads run; 0 for other tasks.
    pub(in super::super) const PREVIOUS_RING_REQUEST: usize = 2;
    pub(in super::super) const NEXT_RING_REQUEST: usize = 3;
}

/// Words of a wake-up, after the task that is woken.
pub(super) mod waking {
    /// Request of io_uring that the waker runs as a worker thread; 0 for other tasks.
    pub(in super::super) const WAKER_RING_REQUEST: usize = 1;
}

/// Record in the form in which a program wrote it.
#[derive(Clone, Copy)]
pub(super) struct RecordView<'a>(pub(super) &'a [u8]);

impl RecordView<'_> {
    fn number<const N: usize>(self, at: usize) -> u64 {
        let mut value = [0; 8];
        if let Some(bytes) = self.0.get(at..at + N) {
            value[..N].copy_from_slice(bytes);
        }
        u64::from_le_bytes(value)
    }

    pub(super) fn time(self) -> u64 {
        self.number::<8>(0)
    }

    pub(super) fn thread(self) -> u32 {
        self.number::<4>(8) as u32
    }

    pub(super) fn cpu(self) -> u32 {
        self.number::<2>(12) as u32
    }

    pub(super) fn kind(self) -> Option<RecordKind> {
        RecordKind::ALL.get(self.number::<2>(14) as usize).copied()
    }

    /// Returns a word; 0 where the record ends before it.
    pub(super) fn word(self, index: usize) -> u64 {
        self.number::<8>(HEADER_BYTES as usize + 8 * index)
    }
}
