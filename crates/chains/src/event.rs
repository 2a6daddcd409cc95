//! Events of the kernel, of which chains are made. A recorder converts what it records into them.
//!
//! Each event is reported by the task that ran on the processor. In an interrupt that task is a
//! bystander; the brackets (interrupts, soft interrupts, timers, completions) tell.

use crate::identity::{
    BioAddress, CallKind, CommitStep, CpuNumber, FileInode, FunctionAddress, KernelDevice,
    OperationNumber, RequestAddress, RequestFlags, RingRequestAddress, SwitchOutState, ThreadId,
    TransactionId, WorkAddress,
};
use diskperf_spans::Nanoseconds;
use std::collections::BTreeMap;

/// Event of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelEvent {
    /// Time of the event, by the clock that also times the workers (`CLOCK_MONOTONIC`).
    pub time: Nanoseconds,
    /// Processor that reported the event.
    pub cpu: CpuNumber,
    /// Task that ran on the processor.
    pub thread: ThreadId,
    /// Kind of the event, with its arguments.
    pub kind: EventKind,
}

/// Extent of a bio or a request on its device. A flush has the sector `u64::MAX`, and no bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockExtent {
    /// Device to which the bio or request goes; of a bio it may be a partition.
    pub device: KernelDevice,
    /// First sector of 512 bytes on that device.
    pub sector: u64,
    /// Length of the extent; 0 for a flush.
    pub bytes: u32,
}

/// File to which data, or a call, belongs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileIdentity {
    /// Device of the file system.
    pub device: KernelDevice,
    /// Inode number of the file. Pages of a block device, which hold a journal and metadata, have
    /// the device 0:3 and the number of the block device.
    pub inode: FileInode,
}

/// Block request, as its events report it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReportedRequest {
    /// Address of the request.
    pub request: RequestAddress,
    /// First bio of the request; `None` for a flush and after the last completion.
    pub bio: Option<BioAddress>,
    /// Extent of the request on the whole disk.
    pub extent: BlockExtent,
    /// Operation and flags of the request.
    pub flags: RequestFlags,
}

/// Kind of an event, with its arguments. The names of the tracepoints are in parentheses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A bio arrives, after the throttling of its cgroup (`block_bio_queue`).
    BioQueue {
        /// Address of the bio.
        bio: BioAddress,
        /// Extent of the bio, on the partition if it is for one.
        extent: BlockExtent,
        /// Operation and flags of the bio.
        flags: RequestFlags,
        /// File to which the data belongs; `None` where unknown, as for direct I/O.
        file: Option<FileIdentity>,
    },
    /// A bio, or a clone of one, goes to another device (`block_bio_remap`).
    BioRemap {
        /// Address of the bio that now points to the new device.
        bio: BioAddress,
        /// Extent on the new device.
        extent: BlockExtent,
    },
    /// A bio is split: its front part becomes a new bio, and the rest keeps the address
    /// (`block_split`).
    BioSplit {
        /// Address of the front part.
        bio: BioAddress,
        /// Extent of the front part, which starts where the whole bio did.
        extent: BlockExtent,
    },
    /// A bio has a request, after waits for quality of service and for a tag (`block_getrq`).
    BioRequestAllocated {
        /// Address of the bio.
        bio: BioAddress,
        /// Extent of the bio.
        extent: BlockExtent,
    },
    /// A bio joins the request of another one, behind or before it (`block_bio_backmerge`,
    /// `block_bio_frontmerge`). The request is not reported.
    BioMerge {
        /// Address of the bio.
        bio: BioAddress,
        /// Extent of the bio.
        extent: BlockExtent,
    },
    /// A request enters the scheduler or a queue (`block_rq_insert`).
    RequestInsert(ReportedRequest),
    /// The driver hands the request to the device (`block_rq_issue`).
    RequestIssue(ReportedRequest),
    /// The device completed the request, or `completed_bytes` of it (`block_rq_complete`). The
    /// completions of its bios follow, on the same processor.
    RequestComplete {
        /// Request that the device completed.
        reported: ReportedRequest,
        /// Bytes that this completion covers.
        completed_bytes: u32,
    },
    /// All bios of a request have ended (`block_io_done`).
    RequestDone {
        /// Address of the request.
        request: RequestAddress,
    },
    /// Step of a journal's commit, by the journal's thread (`jbd2_start_commit` to
    /// `jbd2_end_commit`).
    JournalCommit {
        /// Transaction that is committed; 0 if it is not readable.
        transaction: TransactionId,
        /// Step that the journal's thread enters.
        step: CommitStep,
    },
    /// The task is about to sleep, since too many pages are dirty (`balance_dirty_pages`).
    DirtyThrottle {
        /// Planned duration of the sleep; 0 if the task does not sleep.
        pause: Nanoseconds,
    },
    /// The task reclaims memory, for the machine or its cgroup (`mm_vmscan_*reclaim_begin`).
    ReclaimBegin,
    /// The task has reclaimed memory (`mm_vmscan_*reclaim_end`).
    ReclaimEnd,
    /// A request of io_uring is about to be issued (`io_uring_submit_req`).
    RingSubmit {
        /// Address of the request.
        request: RingRequestAddress,
        /// Tag that the submitter chose.
        user_data: u64,
        /// Operation of the request.
        call: CallKind,
    },
    /// A request of io_uring goes to a worker thread (`io_uring_queue_async_work`).
    RingQueueAsync {
        /// Address of the request.
        request: RingRequestAddress,
    },
    /// A worker thread of io_uring gets or leaves the processor, or wakes a task.
    RingWorkerRuns {
        /// Request that it runs; `None` if it is idle, and takes the next one that waits.
        request: Option<RingRequestAddress>,
    },
    /// The completion of a request is visible to its submitter (`io_uring_complete`).
    RingComplete {
        /// Address of the request.
        request: RingRequestAddress,
    },
    /// A work item is queued (`workqueue_queue_work`).
    WorkQueue {
        /// Address of the work item.
        work: WorkAddress,
        /// Function that will run.
        function: FunctionAddress,
    },
    /// A worker begins a work item (`workqueue_execute_start`).
    WorkStart {
        /// Address of the work item.
        work: WorkAddress,
        /// Function that the worker calls for the item.
        function: FunctionAddress,
    },
    /// A worker ends a work item (`workqueue_execute_end`).
    WorkEnd {
        /// Address of the work item.
        work: WorkAddress,
    },
    /// The processor goes from its task to the next one (`sched_switch`).
    Switch {
        /// Task that leaves the processor, which is also the event's thread.
        previous: ThreadId,
        /// State of the task that leaves.
        previous_state: SwitchOutState,
        /// Task that gets the processor.
        next: ThreadId,
    },
    /// A task is woken, or a new one becomes ready, by the event's thread or in an interrupt
    /// (`sched_waking`, `sched_wakeup_new`).
    Waking {
        /// Task that is woken.
        target: ThreadId,
    },
    /// The processor begins to handle an interrupt (`irq_handler_entry`).
    InterruptEntry,
    /// The processor has handled an interrupt (`irq_handler_exit`).
    InterruptExit,
    /// A soft interrupt is marked to run on this processor (`softirq_raise`).
    SoftInterruptRaise {
        /// Number of the soft interrupt.
        vector: SoftInterrupt,
    },
    /// A soft interrupt begins (`softirq_entry`).
    SoftInterruptEntry {
        /// Number of the soft interrupt.
        vector: SoftInterrupt,
    },
    /// A soft interrupt ends (`softirq_exit`).
    SoftInterruptExit {
        /// Number of the soft interrupt.
        vector: SoftInterrupt,
    },
    /// A high-resolution timer fires (`hrtimer_expire_entry`).
    TimerEntry,
    /// The function of a timer has returned (`hrtimer_expire_exit`).
    TimerExit,
    /// A task begins an operation: a system call on files (`sys_enter`).
    OperationStart {
        /// Number of the operation.
        operation: OperationNumber,
        /// Kind of the call.
        call: CallKind,
    },
    /// A task ends an operation (`sys_exit`).
    OperationEnd {
        /// Number of the operation.
        operation: OperationNumber,
    },
    /// Events were lost between a time and this event.
    Loss {
        /// Number of lost events.
        count: u64,
        /// Earliest time at which one may have been lost.
        since: Nanoseconds,
    },
}

/// Kind of a soft interrupt, by its number in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SoftInterrupt {
    /// Timers (`TIMER`, 1) and high-resolution timers (`HRTIMER`, 8).
    Timer,
    /// Completions of the block layer (`BLOCK`, 4).
    Block,
    /// Any other soft interrupt.
    Other,
}

/// Description of a block device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceDescription {
    /// Kernel name of the device, such as `vda1`.
    pub name: String,
    /// Whole disk of a partition; the device itself for a disk.
    pub disk: KernelDevice,
    /// File behind a loop device; `None` for others.
    pub backing_file: Option<FileIdentity>,
}

/// Recorded events, with what their numbers mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelRecording {
    /// Events in order of time.
    pub events: Vec<KernelEvent>,
    /// Names of the tasks that occur in the events and still run at the end.
    pub task_names: BTreeMap<ThreadId, String>,
    /// Block devices that occur in the events.
    pub devices: BTreeMap<KernelDevice, DeviceDescription>,
    /// Names of the kernel functions that occur in the events.
    pub functions: BTreeMap<FunctionAddress, String>,
    /// Number of events that the recorder counted as lost. Each [`EventKind::Loss`] is a part.
    pub lost_event_count: u64,
}
