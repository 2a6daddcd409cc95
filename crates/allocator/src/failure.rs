//! Termination of the process when an allocation fails, with a message on standard error.

use std::fmt::{self, Write};

/// Size limit of the message about a failed allocation, in bytes. The message is formatted in this
/// fixed buffer because no memory can be allocated for it.
const MESSAGE_BYTES_MAX: usize = 400;

/// Returns the pointer of an allocation, or ends the process if it is null, with a message that
/// names the memory limit.
#[inline]
pub(crate) fn require_memory(block: *mut u8, bytes: usize) -> *mut u8 {
    if block.is_null() {
        abort_out_of_memory(bytes);
    }
    block
}

#[cold]
fn abort_out_of_memory(bytes: usize) -> ! {
    let mut message = FailureMessage {
        text: [0; MESSAGE_BYTES_MAX],
        message_bytes: 0,
    };
    // What does not fit is left out.
    let _ = write_message(&mut message, bytes);
    // SAFETY: the bytes are those of the message; nothing of this process runs again.
    unsafe {
        libc::write(2, message.text.as_ptr().cast(), message.message_bytes);
        libc::_exit(1)
    }
}

fn write_message(message: &mut FailureMessage, bytes: usize) -> fmt::Result {
    // The type of a limit's number is not the same in every C library.
    let limit_bytes = |limit| {
        let mut found = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: the pointer is to a structure of the kernel's layout that outlives
        // the call.
        let outcome = unsafe { libc::getrlimit(limit, &raw mut found) };
        (outcome == 0 && found.rlim_cur != libc::RLIM_INFINITY).then_some(found.rlim_cur)
    };
    write!(message, "diskperf: cannot allocate {bytes} bytes: ")?;
    let limits = [
        (libc::RLIMIT_AS, "address space", "ulimit -v"),
        (libc::RLIMIT_DATA, "data", "ulimit -d"),
    ];
    let found = limits
        .into_iter()
        .find_map(|(limit, what, command)| Some((limit_bytes(limit)?, what, command)));
    match found {
        Some((most, what, command)) => write!(
            message,
            "the limit of {what} is {} MiB (`{command}`); raise it",
            most >> 20
        )?,
        None => write!(message, "the system has no free memory; free some")?,
    }
    writeln!(
        message,
        ", or measure less (--size, --threads). `diskperf clean` removes files that earlier runs left"
    )
}

struct FailureMessage {
    text: [u8; MESSAGE_BYTES_MAX],
    message_bytes: usize,
}

impl Write for FailureMessage {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = &mut self.text[self.message_bytes..];
        let length = text.len().min(room.len());
        room[..length].copy_from_slice(&text.as_bytes()[..length]);
        self.message_bytes += length;
        Ok(())
    }
}
