//! System calls of io_uring's submission loop. They are made directly because the io_uring crate
//! does not keep a ring's registered number between calls.

use rustix::io::Errno;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

/// Flag `IORING_ENTER_GETEVENTS`: wait for completions.
pub(super) const GET_EVENTS: u32 = 1;
/// Flag `IORING_ENTER_SQ_WAKEUP`: wake the kernel's submission thread.
pub(super) const WAKE_SUBMISSION_THREAD: u32 = 1 << 1;
/// Flag `IORING_ENTER_SQ_WAIT`: wait for room in the submission queue.
pub(super) const WAIT_FOR_ROOM: u32 = 1 << 2;
const EXTENDED_ARGUMENT: u32 = 1 << 3;
const REGISTERED_RING: u32 = 1 << 4;
/// Code of `IORING_REGISTER_RING_FDS`, which registers a ring with a thread.
const REGISTER_RING: u32 = 20;
const UNREGISTER_RING: u32 = 21;

/// Size of the signal mask argument in bytes; no mask is passed.
const SIGNAL_MASK_BYTES: usize = 8;

/// Layout of the kernel's `struct io_uring_getevents_arg`.
#[repr(C)]
struct WaitArgument {
    signal_mask_address: u64,
    signal_mask_bytes: u32,
    min_wait_us: u32,
    timeout_address: u64,
}

/// Layout of the kernel's `struct io_uring_rsrc_update`.
#[repr(C)]
struct RingRegistration {
    registration_index: u32,
    reserved: u32,
    ring_descriptor: u64,
}

/// Number by which this thread's system calls refer to a ring.
pub(super) struct RingHandle {
    ring_number: RawFd,
    enter_flags: u32,
}

impl RingHandle {
    /// Registers the ring with this thread, which saves each call the descriptor look-up (Linux
    /// 5.18). If that fails, calls use the descriptor.
    #[allow(unsafe_code)]
    pub(super) fn new(ring: BorrowedFd<'_>) -> Self {
        let mut update = RingRegistration {
            registration_index: u32::MAX,
            reserved: 0,
            ring_descriptor: ring.as_raw_fd() as u64,
        };
        // SAFETY: the pointer is to one structure of the kernel's layout, which outlives
        // the call.
        let registered = unsafe {
            libc::syscall(
                libc::SYS_io_uring_register,
                ring.as_raw_fd(),
                REGISTER_RING,
                &raw mut update,
                1,
            )
        };
        match registered {
            1 => Self {
                ring_number: update.registration_index as RawFd,
                enter_flags: REGISTERED_RING,
            },
            _ => Self {
                ring_number: ring.as_raw_fd(),
                enter_flags: 0,
            },
        }
    }

    /// Unregisters an io_uring from this thread.
    #[allow(unsafe_code)]
    pub(super) fn unregister_ring(&self, ring: BorrowedFd<'_>) {
        if self.enter_flags == 0 {
            return;
        }
        let update = RingRegistration {
            registration_index: self.ring_number as u32,
            reserved: 0,
            ring_descriptor: 0,
        };
        // SAFETY: as in `new`.
        unsafe {
            libc::syscall(
                libc::SYS_io_uring_register,
                ring.as_raw_fd(),
                UNREGISTER_RING,
                &raw const update,
                1,
            );
        }
    }

    /// Calls io_uring_enter(2), and returns the number of submissions that the kernel accepted.
    #[inline]
    #[allow(unsafe_code)]
    pub(super) fn enter_ring(
        &self,
        submit: u32,
        completions_min: u32,
        flags: u32,
    ) -> Result<u32, Errno> {
        let flags = flags | self.enter_flags;
        // SAFETY: the kernel reads and writes the ring, whose memory is mapped for as long
        // as there is a gate to it, and the buffers of the submissions in it, for which
        // answers who pushed them. There is no mask.
        let result = unsafe {
            libc::syscall(
                libc::SYS_io_uring_enter,
                self.ring_number,
                submit,
                completions_min,
                flags,
                std::ptr::null::<u8>(),
                SIGNAL_MASK_BYTES,
            )
        };
        submitted_count(result)
    }

    /// Calls io_uring_enter(2) with a time limit, and returns the number of submissions that the
    /// kernel accepted.
    #[allow(unsafe_code)]
    pub(super) fn enter_ring_with_timeout(
        &self,
        submit: u32,
        completions_min: u32,
        flags: u32,
        time_max_ns: u64,
    ) -> Result<u32, Errno> {
        let timeout = io_uring::types::Timespec::new()
            .sec(time_max_ns / 1_000_000_000)
            .nsec((time_max_ns % 1_000_000_000) as u32);
        let argument = WaitArgument {
            signal_mask_address: 0,
            signal_mask_bytes: SIGNAL_MASK_BYTES as u32,
            min_wait_us: 0,
            timeout_address: (&raw const timeout) as u64,
        };
        let flags = flags | self.enter_flags | EXTENDED_ARGUMENT;
        // SAFETY: as in `enter`; argument and time outlive the call.
        let result = unsafe {
            libc::syscall(
                libc::SYS_io_uring_enter,
                self.ring_number,
                submit,
                completions_min,
                flags,
                &raw const argument,
                size_of::<WaitArgument>(),
            )
        };
        submitted_count(result)
    }
}

#[inline]
fn submitted_count(result: libc::c_long) -> Result<u32, Errno> {
    u32::try_from(result).map_err(|_| last_error())
}

#[cold]
fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}
