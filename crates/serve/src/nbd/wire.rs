//! Requests and replies of the transmission phase, as bytes.

use super::Export;
use crate::{Extent, RequestKind};

/// Longest payload of a request or reply, and the largest block size that clients are told.
pub const PAYLOAD_BYTES_MAX: u32 = 32 * 1024 * 1024;

/// Length of a request without its data.
pub const REQUEST_BYTES: usize = 28;

/// Extents that one answer to a block status request has. The client asks again for the rest.
pub const EXTENTS_MAX: usize = 1024;

const REQUEST_MAGIC: u32 = 0x2560_9513;
const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

/// Flag of the last chunk of a structured reply.
const CHUNK_DONE: u16 = 1;

const CHUNK_NONE: u16 = 0;
const CHUNK_DATA: u16 = 1;
const CHUNK_BLOCK_STATUS: u16 = 5;
const CHUNK_ERROR: u16 = 32_769;

/// Context id of `base:allocation`.
pub const ALLOCATION_CONTEXT_ID: u32 = 1;

/// Transmission flags of an export.
pub(super) mod export_flags {
    pub(crate) const HAS_FLAGS: u16 = 1;
    pub(crate) const READ_ONLY: u16 = 1 << 1;
    pub(crate) const FLUSH: u16 = 1 << 2;
    pub(crate) const FUA: u16 = 1 << 3;
    pub(crate) const ROTATIONAL: u16 = 1 << 4;
    pub(crate) const TRIM: u16 = 1 << 5;
    pub(crate) const WRITE_ZEROES: u16 = 1 << 6;
    pub(crate) const DF: u16 = 1 << 7;
    pub(crate) const MULTI_CONN: u16 = 1 << 8;
    pub(crate) const CACHE: u16 = 1 << 10;
    pub(crate) const FAST_ZERO: u16 = 1 << 11;
}

/// Command flags of a request.
mod request_flags {
    pub(super) const FUA: u16 = 1;
    pub(super) const NO_HOLE: u16 = 1 << 1;
    pub(super) const DF: u16 = 1 << 2;
    pub(super) const REQ_ONE: u16 = 1 << 3;
    pub(super) const FAST_ZERO: u16 = 1 << 4;
}

/// Error numbers of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NbdError {
    /// A change of a read-only drive.
    NotPermitted = 1,
    /// The data could not be read or written.
    Io = 5,
    /// There is no memory for the request.
    NoMemory = 12,
    /// An unknown command or flag, or a range that ends behind the drive.
    Invalid = 22,
    /// A write that ends behind the drive.
    NoSpace = 28,
    /// Zeroes that could not be made faster than by writing them.
    NotSupported = 95,
    /// The server ends while it serves.
    ShutDown = 108,
}

impl NbdError {
    /// Text of a structured error.
    fn message(self) -> &'static str {
        match self {
            Self::NotPermitted => "the drive is served read-only",
            Self::Io => "the data of the served drive cannot be read or written",
            Self::NoMemory => "no memory for the request",
            Self::Invalid => "an unknown command or flag, or a range behind the end of the drive",
            Self::NoSpace => "the range ends behind the end of the drive",
            Self::NotSupported => "zeroes are not made faster than by writing them",
            Self::ShutDown => "serving ends",
        }
    }
}

/// A request as it was received, its magic number being right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    /// Command flags of the request.
    pub flags: u16,
    /// Number of the command.
    pub command: u16,
    /// Number by which the client knows the answer.
    pub cookie: u64,
    /// Offset of the first byte.
    pub offset: u64,
    /// Length of the request, in bytes.
    pub bytes: u32,
}

/// Number of the command that is answered with data.
pub const COMMAND_READ: u16 = 0;

/// Number of the command that data follow.
pub const COMMAND_WRITE: u16 = 1;

/// Valid request of a client, which the server executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCommand {
    /// Request that the drive executes.
    Drive {
        /// Kind of the request.
        kind: RequestKind,
        /// Whether it is durable at the answer.
        fua: bool,
        /// Whether zeroes are to stay allocated.
        keep_allocated: bool,
    },
    /// Which extents of a range have data.
    BlockStatus {
        /// Whether the client wants the first extent alone.
        only_first: bool,
    },
    /// The client is about to close the connection.
    Disconnect,
}

/// Options that client and server agreed on before the transmission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// Replies may be structured, and those to reads are.
    pub has_structured_replies: bool,
    /// The client selected `base:allocation`.
    pub has_allocation_context: bool,
}

impl RequestHeader {
    /// Parses a request; `None` where the magic number is wrong.
    pub fn parse(bytes: &[u8; REQUEST_BYTES]) -> Option<Self> {
        if be32(bytes, 0) != REQUEST_MAGIC {
            return None;
        }
        Some(Self {
            flags: be16(bytes, 4),
            command: be16(bytes, 6),
            cookie: be64(bytes, 8),
            offset: be64(bytes, 16),
            bytes: be32(bytes, 24),
        })
    }

    /// Returns the request as bytes.
    pub fn encode(&self) -> [u8; REQUEST_BYTES] {
        let mut bytes = [0; REQUEST_BYTES];
        bytes[..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.flags.to_be_bytes());
        bytes[6..8].copy_from_slice(&self.command.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.offset.to_be_bytes());
        bytes[24..].copy_from_slice(&self.bytes.to_be_bytes());
        bytes
    }

    /// Returns the bytes of data that follow the request.
    pub fn data_bytes(&self) -> u32 {
        match self.command {
            COMMAND_WRITE => self.bytes,
            _ => 0,
        }
    }

    /// Checks a request against what is served and agreed.
    ///
    /// # Errors
    ///
    /// The number that the client is answered.
    pub fn validate(&self, export: &Export, agreed: Agreement) -> Result<ClientCommand, NbdError> {
        let (kind, allowed) = match self.command {
            0 => (RequestKind::Read, request_flags::DF),
            1 => (RequestKind::Write, 0),
            2 => return Ok(ClientCommand::Disconnect),
            3 => (RequestKind::Flush, 0),
            4 => (RequestKind::Trim, 0),
            5 => (RequestKind::Cache, 0),
            6 => (
                RequestKind::WriteZeroes,
                request_flags::NO_HOLE | request_flags::FAST_ZERO,
            ),
            7 => return self.validate_block_status(export, agreed),
            _ => return Err(NbdError::Invalid),
        };
        // Force unit access is valid on every command.
        if self.flags & !(allowed | request_flags::FUA) != 0 {
            return Err(NbdError::Invalid);
        }
        if self.has(request_flags::DF) && !agreed.has_structured_replies {
            return Err(NbdError::Invalid);
        }
        let changes = matches!(
            kind,
            RequestKind::Write | RequestKind::Trim | RequestKind::WriteZeroes
        );
        if changes && export.is_read_only {
            return Err(NbdError::NotPermitted);
        }
        if kind == RequestKind::Trim && export.is_rotational {
            return Err(NbdError::Invalid);
        }
        let is_transfer = matches!(kind, RequestKind::Read | RequestKind::Write);
        if is_transfer && self.bytes > PAYLOAD_BYTES_MAX {
            return Err(NbdError::Invalid);
        }
        if kind != RequestKind::Flush && !self.is_within(export) {
            return Err(match kind {
                RequestKind::Write | RequestKind::WriteZeroes => NbdError::NoSpace,
                _ => NbdError::Invalid,
            });
        }
        if self.has(request_flags::FAST_ZERO) && export.is_rotational {
            return Err(NbdError::NotSupported);
        }
        Ok(ClientCommand::Drive {
            kind,
            fua: self.has(request_flags::FUA),
            keep_allocated: self.has(request_flags::NO_HOLE),
        })
    }

    fn validate_block_status(
        &self,
        export: &Export,
        agreed: Agreement,
    ) -> Result<ClientCommand, NbdError> {
        let allowed = request_flags::FUA | request_flags::REQ_ONE;
        let is_valid = agreed.has_allocation_context
            && self.flags & !allowed == 0
            && self.bytes > 0
            && self.is_within(export);
        match is_valid {
            true => Ok(ClientCommand::BlockStatus {
                only_first: self.has(request_flags::REQ_ONE),
            }),
            false => Err(NbdError::Invalid),
        }
    }

    fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    fn is_within(&self, export: &Export) -> bool {
        let end = self.offset.checked_add(u64::from(self.bytes));
        end.is_some_and(|end| end <= export.size_bytes)
    }
}

/// A reply: its head, and after it the data of a read.
#[derive(Debug, Default)]
pub struct Reply {
    /// Everything before the data.
    pub head: Vec<u8>,
    /// Data of a read.
    pub data: Vec<u8>,
}

impl Reply {
    /// Returns the answer to a request that has no data to return.
    pub fn done(request: &RequestHeader) -> Self {
        Self::of_head(simple(0, request.cookie))
    }

    /// Returns the answer to a read.
    pub fn data(request: &RequestHeader, agreed: Agreement, data: Vec<u8>) -> Self {
        let head = match (agreed.has_structured_replies, data.is_empty()) {
            (false, _) => simple(0, request.cookie),
            // A chunk of data has at least one byte.
            (true, true) => chunk(CHUNK_NONE, request.cookie, 0),
            (true, false) => {
                let mut head = chunk(CHUNK_DATA, request.cookie, 8 + data.len() as u32);
                head.extend(request.offset.to_be_bytes());
                head
            }
        };
        Self { head, data }
    }

    /// Returns the answer to a block status request.
    pub fn extents(request: &RequestHeader, extents: &[Extent]) -> Self {
        let length = 4 + 8 * extents.len() as u32;
        let mut head = chunk(CHUNK_BLOCK_STATUS, request.cookie, length);
        head.extend(ALLOCATION_CONTEXT_ID.to_be_bytes());
        for extent in extents {
            // A hole that reads as zeroes has both flags.
            let flags = if extent.is_hole { 3_u32 } else { 0 };
            head.extend((extent.bytes as u32).to_be_bytes());
            head.extend(flags.to_be_bytes());
        }
        Self::of_head(head)
    }

    /// Returns the answer to a request that failed or was refused.
    pub fn error(request: &RequestHeader, agreed: Agreement, error: NbdError) -> Self {
        let must_be_structured = matches!(request.command, COMMAND_READ | 7);
        if !(agreed.has_structured_replies && must_be_structured) {
            return Self::of_head(simple(error as u32, request.cookie));
        }
        let message = error.message().as_bytes();
        let mut head = chunk(CHUNK_ERROR, request.cookie, 6 + message.len() as u32);
        head.extend((error as u32).to_be_bytes());
        head.extend((message.len() as u16).to_be_bytes());
        head.extend(message);
        Self::of_head(head)
    }

    fn of_head(head: Vec<u8>) -> Self {
        let data = Vec::new();
        Self { head, data }
    }
}

fn simple(error: u32, cookie: u64) -> Vec<u8> {
    let mut head = Vec::with_capacity(16);
    head.extend(SIMPLE_REPLY_MAGIC.to_be_bytes());
    head.extend(error.to_be_bytes());
    head.extend(cookie.to_be_bytes());
    head
}

/// Returns the head of the only chunk of a structured reply.
fn chunk(kind: u16, cookie: u64, length: u32) -> Vec<u8> {
    let mut head = Vec::with_capacity(64);
    head.extend(STRUCTURED_REPLY_MAGIC.to_be_bytes());
    head.extend(CHUNK_DONE.to_be_bytes());
    head.extend(kind.to_be_bytes());
    head.extend(cookie.to_be_bytes());
    head.extend(length.to_be_bytes());
    head
}

fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

pub(super) fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(super) fn be64(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests;
