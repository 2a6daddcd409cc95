//! Creation of an io_uring with the best features of the kernel.

use super::super::EngineNote;
use super::super::buffers::RingBuffers;
use crate::{CallKind, EngineChoice, Error, RingOptions};
use io_uring::IoUring;
use rustix::io::Errno;
use std::fmt;
use std::io;

/// Maximum number of requests in an io_uring.
const RING_ENTRIES_MAX: u32 = 32_768;

/// Time that the kernel's submission thread polls an empty queue before it sleeps, in milliseconds.
const SUBMISSION_THREAD_IDLE_MS: u32 = 10;

/// Kernel setting for the use of io_uring: 0 permits all processes, 1 those of a group, 2 none.
const DISABLED_SETTING_PATH: &str = "/proc/sys/kernel/io_uring_disabled";

/// Reason why io_uring cannot be used.
pub(in super::super) struct SetupRefusal {
    errno: Errno,
    refusal_reason: RefusalReason,
}

enum RefusalReason {
    /// Error of the system call io_uring_setup(2).
    SetupFailed,
    /// Queue depth that exceeds the maximum of a ring.
    DepthTooLarge(u32),
    /// Kernel before Linux 5.11, which has no timed waits.
    KernelTooOld,
    /// Failure of io_uring_register(2) for files.
    FileRegistrationFailed,
    /// Failure of a test call of io_uring_enter(2) without requests.
    EnterFailed,
}

impl SetupRefusal {
    pub(super) fn from_registration(error: &io::Error) -> Self {
        Self {
            errno: errno_of_io_error(error),
            refusal_reason: RefusalReason::FileRegistrationFailed,
        }
    }

    pub(super) fn from_enter(errno: Errno) -> Self {
        Self {
            errno,
            refusal_reason: RefusalReason::EnterFailed,
        }
    }

    /// Reports whether the system denies io_uring to this process entirely.
    pub(in super::super) fn is_system_wide(&self) -> bool {
        let is_forbidden = matches!(self.errno, Errno::NOSYS | Errno::PERM | Errno::ACCESS);
        match self.refusal_reason {
            RefusalReason::KernelTooOld => true,
            RefusalReason::DepthTooLarge(_) => false,
            RefusalReason::FileRegistrationFailed | RefusalReason::EnterFailed => is_forbidden,
            RefusalReason::SetupFailed => is_forbidden || self.errno == Errno::NOMEM,
        }
    }

    pub(in super::super) fn into_error(self) -> Error {
        let what = match self.refusal_reason {
            RefusalReason::SetupFailed => "of a ring".to_owned(),
            RefusalReason::DepthTooLarge(depth) => {
                format!("of depth {depth} (at most {RING_ENTRIES_MAX})")
            }
            RefusalReason::KernelTooOld => "of a kernel before Linux 5.11".to_owned(),
            RefusalReason::FileRegistrationFailed => "of the files of a ring".to_owned(),
            RefusalReason::EnterFailed => "of requests of a ring".to_owned(),
        };
        Error::call_failed(CallKind::RingSetup, what, self.errno)
    }
}

/// Describes the rule of the system that denies io_uring, as far as it is known.
impl fmt::Display for SetupRefusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let disabled = std::fs::read_to_string(DISABLED_SETTING_PATH).unwrap_or_default();
        match (&self.refusal_reason, self.errno, disabled.trim()) {
            (RefusalReason::KernelTooOld, ..) => {
                out.write_str("this kernel's io_uring is older than Linux 5.11")
            }
            (RefusalReason::FileRegistrationFailed | RefusalReason::EnterFailed, errno, _) => {
                write!(
                    out,
                    "{} is forbidden here, probably by a system-call filter ({})",
                    match self.refusal_reason {
                        RefusalReason::FileRegistrationFailed => "io_uring_register",
                        _ => "io_uring_enter",
                    },
                    crate::Errno::from(errno)
                )
            }
            (_, Errno::NOSYS, _) => out.write_str(
                "this kernel has no io_uring, or a system-call filter hides it (ENOSYS)",
            ),
            (_, Errno::NOMEM, _) => {
                out.write_str("io_uring cannot lock enough memory (ENOMEM): raise `ulimit -l`")
            }
            (_, _, level @ ("1" | "2")) => {
                write!(
                    out,
                    "io_uring is disabled here (kernel.io_uring_disabled is {level})"
                )
            }
            (_, errno, _) => write!(
                out,
                "io_uring is forbidden here, as in many containers ({})",
                crate::Errno::from(errno)
            ),
        }
    }
}

/// Feature sets of a ring, from the best to the one that every kernel has. Deferring completions
/// until the thread waits (Linux 6.1) is left out: it costs a sixth more CPU time for a disk
/// request at depth 32 (`bench/ring`), and is no faster.
#[derive(Clone, Copy)]
enum SetupFeatures {
    /// Single issuer thread without interrupts for completions, and no submission index array
    /// (Linux 6.6).
    CooperativeWithoutArray,
    /// Completions without interrupts of the thread (Linux 5.19).
    CooperativeTaskrun,
    NoOptionalFeatures,
}

const FEATURES_BEST_FIRST: [SetupFeatures; 3] = [
    SetupFeatures::CooperativeWithoutArray,
    SetupFeatures::CooperativeTaskrun,
    SetupFeatures::NoOptionalFeatures,
];

/// Creates the ring with the best features that the kernel supports.
pub(super) fn create_ring(options: &RingOptions) -> Result<IoUring, SetupRefusal> {
    let depth = options.queue_depth;
    if depth > RING_ENTRIES_MAX {
        return Err(SetupRefusal {
            errno: Errno::INVAL,
            refusal_reason: RefusalReason::DepthTooLarge(depth),
        });
    }
    let mut refused = Errno::INVAL;
    for features in FEATURES_BEST_FIRST {
        match build_ring(options, features) {
            Ok(ring) if !ring.params().is_feature_ext_arg() => {
                return Err(SetupRefusal {
                    errno: Errno::NOSYS,
                    refusal_reason: RefusalReason::KernelTooOld,
                });
            }
            Ok(ring) => return Ok(ring),
            Err(error) => refused = errno_of_io_error(&error),
        }
        if refused != Errno::INVAL {
            break;
        }
    }
    Err(SetupRefusal {
        errno: refused,
        refusal_reason: RefusalReason::SetupFailed,
    })
}

fn build_ring(options: &RingOptions, features: SetupFeatures) -> io::Result<IoUring> {
    let mut builder = IoUring::builder();
    // A child of this process has no part in it.
    builder.dontfork();
    if options.polls_completions {
        builder.setup_iopoll();
    }
    let polls = options.engine_choice == EngineChoice::SqPoll;
    if polls {
        builder.setup_sqpoll(SUBMISSION_THREAD_IDLE_MS);
    }
    if !polls && !matches!(features, SetupFeatures::NoOptionalFeatures) {
        builder.setup_coop_taskrun().setup_taskrun_flag();
    }
    if matches!(features, SetupFeatures::CooperativeWithoutArray) {
        builder.setup_single_issuer().setup_submit_all();
        builder.setup_no_sqarray();
    }
    builder.build(options.queue_depth)
}

/// Registers each slot's buffer, so that the kernel need not look up its pages for each request.
///
/// # Errors
///
/// A note why the ring works without registration; for example, the process may lock too little
/// memory.
#[allow(unsafe_code)]
pub(super) fn register_buffers(
    ring: &IoUring,
    options: &RingOptions,
    buffers: &RingBuffers,
) -> Result<(), EngineNote> {
    let slots: Vec<libc::iovec> = (0..options.queue_depth)
        .map(|slot| libc::iovec {
            iov_base: buffers.buffer_address(slot).cast(),
            iov_len: options.buffer_bytes as usize,
        })
        .collect();
    // SAFETY: the memory outlives what is under way in it; the kernel holds its pages.
    let registered = unsafe { ring.submitter().register_buffers(&slots) };
    registered.map_err(|error| EngineNote {
        message: format!(
            "buffers are not registered with io_uring: {} (`ulimit -l` limits what is locked)",
            crate::Errno::from(error)
        ),
    })
}

fn errno_of_io_error(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
