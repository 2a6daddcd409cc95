//! Answers to the kernel that wait for the drive.

use fuser::{Errno, ReplyData, ReplyEmpty, ReplyWrite};

/// Answer that is sent when the drive completes its request.
pub(super) enum PendingReply {
    Read {
        reply: ReplyData,
        offset: u64,
        bytes: u32,
    },
    Write {
        reply: ReplyWrite,
        bytes: u32,
    },
    Empty(ReplyEmpty),
}

impl PendingReply {
    /// Sends the answer. `read` fills a buffer from an offset, and returns whether it could.
    pub(super) fn send(self, read: impl FnOnce(u64, &mut [u8]) -> bool) {
        match self {
            Self::Empty(reply) => reply.ok(),
            Self::Write { reply, bytes } => reply.written(bytes),
            Self::Read {
                reply,
                offset,
                bytes,
            } => {
                let mut buffer = vec![0; bytes as usize];
                match read(offset, &mut buffer) {
                    true => reply.data(&buffer),
                    false => reply.error(Errno::EIO),
                }
            }
        }
    }

    /// Replies with an error.
    pub(super) fn fail(self, error: Errno) {
        match self {
            Self::Empty(reply) => reply.error(error),
            Self::Write { reply, .. } => reply.error(error),
            Self::Read { reply, .. } => reply.error(error),
        }
    }
}
