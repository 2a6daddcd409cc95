//! Conversion of records into the events of `diskperf_chains`.

use super::layout::FlagBits;
use super::reader::RecordedBytes;
use super::record::{IDLE_RING_WORKER, RecordKind, RecordView, bio, request, switch, waking};
use diskperf_chains::event::{
    BlockExtent, EventKind, FileIdentity, KernelEvent, KernelRecording, ReportedRequest,
    SoftInterrupt,
};
use diskperf_chains::identity::{
    BioAddress, CallKind, CommitStep, CpuNumber, FileInode, FunctionAddress, KernelDevice,
    OperationNumber, RequestAddress, RequestFlags, RequestOperation, RingRequestAddress,
    SwitchOutState, ThreadId, TransactionId, WorkAddress,
};
use diskperf_timeline::Nanoseconds;
use std::collections::HashMap;

/// Highest of the descriptors through which a process talks to its user.
const STANDARD_ERROR: u64 = 2;

/// Decoder of the records of one recording.
pub(super) struct RecordDecoder {
    flag_bits: FlagBits,
    operation_count: u64,
    /// Operation that each task is in.
    open_operations: HashMap<ThreadId, OperationNumber>,
}

impl RecordDecoder {
    pub(super) fn new(flag_bits: FlagBits) -> Self {
        Self {
            flag_bits,
            operation_count: 0,
            open_operations: HashMap::new(),
        }
    }

    /// Decodes all records, in order of time.
    pub(super) fn decode(mut self, recorded: &RecordedBytes) -> KernelRecording {
        // The order of the ring is that of time but for some 30 ns.
        let mut records: Vec<RecordView<'_>> = recorded.iter().map(RecordView).collect();
        records.sort_by_key(|record| record.time());
        let mut recording = KernelRecording::default();
        for record in records {
            self.decode_record(record, &mut recording.events);
        }
        for loss in &recorded.losses {
            recording.lost_event_count += loss.count;
            recording.events.push(KernelEvent {
                time: loss.noticed_at,
                cpu: CpuNumber(0),
                thread: ThreadId(0),
                kind: EventKind::Loss {
                    count: loss.count,
                    since: loss.since,
                },
            });
        }
        recording.events.sort_by_key(|event| event.time);
        recording
    }

    fn decode_record(&mut self, record: RecordView<'_>, events: &mut Vec<KernelEvent>) {
        let Some(kind) = record.kind() else {
            return;
        };
        let thread = ThreadId(record.thread());
        let mut add = |thread, kind| {
            events.push(KernelEvent {
                time: Nanoseconds(record.time()),
                cpu: CpuNumber(record.cpu()),
                thread,
                kind,
            });
        };
        let runs = |request: u64| EventKind::RingWorkerRuns {
            request: Some(RingRequestAddress(request)).filter(|_| request != IDLE_RING_WORKER),
        };
        if kind == RecordKind::Switch {
            let next = ThreadId(record.word(switch::NEXT_THREAD) as u32);
            let (left, entered) = (
                record.word(switch::PREVIOUS_RING_REQUEST),
                record.word(switch::NEXT_RING_REQUEST),
            );
            // An idle worker that leaves has nothing to tell.
            if left > IDLE_RING_WORKER {
                add(thread, runs(left));
            }
            add(
                thread,
                EventKind::Switch {
                    previous: thread,
                    previous_state: decode_state(record.word(switch::STATE)),
                    next,
                },
            );
            if entered != 0 {
                add(next, runs(entered));
            }
            return;
        }
        let waker_request = record.word(waking::WAKER_RING_REQUEST);
        if kind == RecordKind::Waking && waker_request > IDLE_RING_WORKER {
            add(thread, runs(waker_request));
        }
        let decoded = self
            .decode_call(kind, thread, record)
            .or_else(|| self.decode_block_event(kind, record))
            .or_else(|| decode_task_event(kind, record));
        if let Some(decoded) = decoded {
            add(thread, decoded);
        }
    }

    fn decode_call(
        &mut self,
        kind: RecordKind,
        thread: ThreadId,
        record: RecordView<'_>,
    ) -> Option<EventKind> {
        match kind {
            RecordKind::CallEnter => {
                let call = classify_call(record.word(0) as i64)?;
                let is_terminal = record.word(1) <= STANDARD_ERROR
                    && matches!(call, CallKind::Read | CallKind::Write);
                if is_terminal {
                    return None;
                }
                let operation = OperationNumber(self.operation_count);
                self.operation_count += 1;
                self.open_operations.insert(thread, operation);
                Some(EventKind::OperationStart { operation, call })
            }
            RecordKind::CallExit => {
                let operation = self.open_operations.remove(&thread)?;
                Some(EventKind::OperationEnd { operation })
            }
            _ => None,
        }
    }

    fn decode_block_event(&self, kind: RecordKind, record: RecordView<'_>) -> Option<EventKind> {
        let bio = BioAddress(record.word(bio::ADDRESS));
        let extent = BlockExtent {
            device: KernelDevice(record.word(bio::DEVICE) as u32),
            sector: record.word(bio::SECTOR),
            bytes: record.word(bio::BYTES) as u32,
        };
        Some(match kind {
            RecordKind::BioQueue => EventKind::BioQueue {
                bio,
                extent,
                flags: self.decode_flags(record.word(bio::FLAGS), 0),
                file: Some(FileIdentity {
                    device: KernelDevice(record.word(bio::FILE_DEVICE) as u32),
                    inode: FileInode(record.word(bio::FILE_INODE)),
                })
                .filter(|file| *file != FileIdentity::default()),
            },
            RecordKind::BioRemap => EventKind::BioRemap { bio, extent },
            RecordKind::BioSplit => EventKind::BioSplit { bio, extent },
            RecordKind::BioRequestAllocated => EventKind::BioRequestAllocated { bio, extent },
            RecordKind::BioBackMerge | RecordKind::BioFrontMerge => {
                EventKind::BioMerge { bio, extent }
            }
            RecordKind::RequestInsert => EventKind::RequestInsert(self.decode_request(record)),
            RecordKind::RequestIssue => EventKind::RequestIssue(self.decode_request(record)),
            RecordKind::RequestComplete => EventKind::RequestComplete {
                reported: self.decode_request(record),
                completed_bytes: record.word(request::COMPLETED_BYTES) as u32,
            },
            RecordKind::RequestDone => EventKind::RequestDone {
                request: RequestAddress(record.word(0)),
            },
            _ => return None,
        })
    }

    fn decode_request(&self, record: RecordView<'_>) -> ReportedRequest {
        let (major, minor) = (record.word(request::MAJOR), record.word(request::MINOR));
        ReportedRequest {
            request: RequestAddress(record.word(request::ADDRESS)),
            bio: Some(BioAddress(record.word(request::BIO))).filter(|bio| bio.0 != 0),
            extent: BlockExtent {
                device: KernelDevice::from_major_minor(major as u32, minor as u32),
                sector: record.word(request::SECTOR),
                bytes: record.word(request::BYTES) as u32,
            },
            flags: self.decode_flags(
                record.word(request::FLAGS),
                record.word(request::STATE_FLAGS),
            ),
        }
    }

    fn decode_flags(&self, flags: u64, state_flags: u64) -> RequestFlags {
        /// Bits of the flags that hold the operation (`REQ_OP_MASK`).
        const OPERATION_BITS: u64 = 0xff;
        let has = |bit: u32| flags & u64::from(bit) != 0;
        RequestFlags {
            operation: match flags & OPERATION_BITS {
                0 => RequestOperation::Read,
                1 => RequestOperation::Write,
                2 => RequestOperation::Flush,
                3 => RequestOperation::Discard,
                _ => RequestOperation::Other,
            },
            is_preflush: has(self.flag_bits.preflush),
            is_fua: has(self.flag_bits.fua),
            is_metadata: has(self.flag_bits.metadata),
            is_read_ahead: has(self.flag_bits.read_ahead),
            is_in_flush_sequence: state_flags & u64::from(self.flag_bits.flush_sequence) != 0,
        }
    }
}

fn decode_task_event(kind: RecordKind, record: RecordView<'_>) -> Option<EventKind> {
    use RecordKind as Kind;
    let vector = match record.word(0) {
        1 | 8 => SoftInterrupt::Timer,
        4 => SoftInterrupt::Block,
        _ => SoftInterrupt::Other,
    };
    let commit = |step| EventKind::JournalCommit {
        transaction: TransactionId(record.word(0) as u32),
        step,
    };
    let (work, function) = (WorkAddress(record.word(0)), FunctionAddress(record.word(1)));
    let request = RingRequestAddress(record.word(0));
    Some(match kind {
        // A new task becomes ready to run like one that is woken.
        Kind::Waking | Kind::NewTask => EventKind::Waking {
            target: ThreadId(record.word(0) as u32),
        },
        Kind::InterruptEntry => EventKind::InterruptEntry,
        Kind::InterruptExit => EventKind::InterruptExit,
        Kind::SoftInterruptEntry => EventKind::SoftInterruptEntry { vector },
        Kind::SoftInterruptExit => EventKind::SoftInterruptExit { vector },
        Kind::SoftInterruptRaise => EventKind::SoftInterruptRaise { vector },
        Kind::TimerEntry => EventKind::TimerEntry,
        Kind::TimerExit => EventKind::TimerExit,
        Kind::CommitStart => commit(CommitStep::Start),
        Kind::CommitLocking => commit(CommitStep::Locking),
        Kind::CommitFlushing => commit(CommitStep::Flushing),
        Kind::CommitLogging => commit(CommitStep::Logging),
        Kind::CommitEnd => commit(CommitStep::End),
        Kind::DirtyThrottle => {
            // In ticks of the kernel, and negative where the task does not sleep; only whether it
            // sleeps matters here.
            let pause = (record.word(0) as i64).max(0);
            EventKind::DirtyThrottle {
                pause: Nanoseconds(pause as u64),
            }
        }
        Kind::ReclaimBegin | Kind::CgroupReclaimBegin => EventKind::ReclaimBegin,
        Kind::ReclaimEnd | Kind::CgroupReclaimEnd => EventKind::ReclaimEnd,
        Kind::WorkQueue => EventKind::WorkQueue { work, function },
        Kind::WorkStart => EventKind::WorkStart { work, function },
        Kind::WorkEnd => EventKind::WorkEnd { work },
        Kind::RingSubmit => EventKind::RingSubmit {
            request,
            user_data: record.word(1),
            call: classify_ring_operation(record.word(2))?,
        },
        Kind::RingQueueAsync => EventKind::RingQueueAsync { request },
        Kind::RingComplete => EventKind::RingComplete { request },
        _ => return None,
    })
}

fn decode_state(state: u64) -> SwitchOutState {
    match state & 0xff {
        0 => SwitchOutState::Runnable,
        1 => SwitchOutState::Interruptible,
        2 => SwitchOutState::Uninterruptible,
        _ => SwitchOutState::Other,
    }
}

/// Returns the kind of an operation of io_uring on files; `None` for others, such as timeouts (`IORING_OP_*` in the kernel's
/// include/uapi/linux/io_uring.h).
fn classify_ring_operation(number: u64) -> Option<CallKind> {
    Some(match number {
        1 | 4 | 22 | 49 | 58 | 60 => CallKind::Read,
        2 | 5 | 23 | 59 | 61 => CallKind::Write,
        3 => CallKind::Fsync,
        8 => CallKind::Fdatasync,
        18 | 21 | 28 | 35..=39 => CallKind::Names,
        _ => return None,
    })
}

/// Returns the kind of a system call that works with files; `None` for others.
fn classify_call(number: i64) -> Option<CallKind> {
    Some(match number {
        libc::SYS_read
        | libc::SYS_pread64
        | libc::SYS_readv
        | libc::SYS_preadv
        | libc::SYS_preadv2 => CallKind::Read,
        libc::SYS_write
        | libc::SYS_pwrite64
        | libc::SYS_writev
        | libc::SYS_pwritev
        | libc::SYS_pwritev2 => CallKind::Write,
        libc::SYS_fsync | libc::SYS_sync | libc::SYS_syncfs => CallKind::Fsync,
        libc::SYS_fdatasync | libc::SYS_sync_file_range | libc::SYS_msync => CallKind::Fdatasync,
        libc::SYS_io_uring_enter => CallKind::RingEnter,
        libc::SYS_openat
        | libc::SYS_openat2
        | libc::SYS_unlinkat
        | libc::SYS_renameat
        | libc::SYS_renameat2
        | libc::SYS_mkdirat
        | libc::SYS_linkat
        | libc::SYS_symlinkat
        | libc::SYS_newfstatat
        | libc::SYS_statx
        | libc::SYS_getdents64 => CallKind::Names,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open
        | libc::SYS_creat
        | libc::SYS_unlink
        | libc::SYS_rename
        | libc::SYS_mkdir
        | libc::SYS_rmdir
        | libc::SYS_link
        | libc::SYS_stat
        | libc::SYS_lstat => CallKind::Names,
        libc::SYS_close
        | libc::SYS_fallocate
        | libc::SYS_ftruncate
        | libc::SYS_fstat
        | libc::SYS_fadvise64
        | libc::SYS_copy_file_range => CallKind::Other,
        _ => return None,
    })
}
