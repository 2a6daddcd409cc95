//! Processes that serve storage to the kernel they run on.

use std::io;

/// Marks the calling thread, and the threads that it starts, as servers of storage: memory that the
/// kernel frees for them is freed without writing to storage, which they might have to serve.
///
/// # Errors
///
/// The process is not root's, or the kernel is older than Linux 5.6.
#[allow(unsafe_code)]
pub fn become_io_flusher() -> io::Result<()> {
    /// Operation of prctl(2), of `linux/prctl.h`.
    const PR_SET_IO_FLUSHER: libc::c_int = 57;
    // SAFETY: the call takes numbers, and changes a flag of the thread.
    match unsafe { libc::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
