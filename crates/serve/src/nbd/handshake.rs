//! The fixed newstyle handshake, up to the transmission phase.

use super::Export;
use super::wire::{
    ALLOCATION_CONTEXT_ID, Agreement, PAYLOAD_BYTES_MAX, be32, be64, export_flags as flags,
};

/// Longest data of an option.
pub const OPTION_BYTES_MAX: u32 = 64 * 1024;

/// Longest name of an export, by the protocol.
const NAME_BYTES_MAX: usize = 4096;

/// Length of an option without its data.
pub const OPTION_HEADER_BYTES: usize = 16;

/// Context that the server knows: which parts of a drive have data.
const ALLOCATION_CONTEXT: &[u8] = b"base:allocation";

const SERVER_MAGIC: u64 = 0x4e42_444d_4147_4943;
const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
const REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;

const FIXED_NEWSTYLE: u16 = 1;
const NO_ZEROES: u16 = 2;

/// Zeroes behind the answer to [`OPTION_EXPORT_NAME`].
const ZEROES_BYTES: usize = 124;

const OPTION_EXPORT_NAME: u32 = 1;
const OPTION_ABORT: u32 = 2;
const OPTION_LIST: u32 = 3;
const OPTION_INFO: u32 = 6;
const OPTION_GO: u32 = 7;
const OPTION_STRUCTURED_REPLY: u32 = 8;
const OPTION_LIST_META_CONTEXT: u32 = 9;
const OPTION_SET_META_CONTEXT: u32 = 10;

const REPLY_ACK: u32 = 1;
const REPLY_SERVER: u32 = 2;
const REPLY_INFO: u32 = 3;
const REPLY_META_CONTEXT: u32 = 4;
const ERROR_UNSUPPORTED: u32 = (1 << 31) + 1;
const ERROR_INVALID: u32 = (1 << 31) + 3;
const ERROR_UNKNOWN: u32 = (1 << 31) + 6;
const ERROR_SHUT_DOWN: u32 = (1 << 31) + 7;
const ERROR_TOO_BIG: u32 = (1 << 31) + 9;

const INFO_EXPORT: u16 = 0;
const INFO_BLOCK_SIZE: u16 = 3;

/// Next step of a handshake after an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The server reads the next option.
    Continue,
    /// The connection is closed.
    Close,
    /// The transmission phase begins.
    Transmit,
}

/// Head of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionHeader {
    /// Number of the option.
    pub option: u32,
    /// Length of its data.
    pub bytes: u32,
}

impl OptionHeader {
    /// Parses the head of an option; `None` where the magic number is wrong.
    pub fn parse(bytes: &[u8; OPTION_HEADER_BYTES]) -> Option<Self> {
        (be64(bytes, 0) == OPTION_MAGIC).then(|| Self {
            option: be32(bytes, 8),
            bytes: be32(bytes, 12),
        })
    }
}

/// State of a handshake. The served drive is the default export, whose name is empty.
#[derive(Clone, Debug)]
pub struct Handshake {
    export: Export,
    agreed: Agreement,
    no_zeroes: bool,
}

impl Handshake {
    /// Returns a handshake in which nothing is agreed.
    pub fn new(export: Export) -> Self {
        Self {
            export,
            agreed: Agreement::default(),
            no_zeroes: false,
        }
    }

    /// Returns what the server sends first.
    pub fn greeting() -> Vec<u8> {
        let mut greeting = Vec::new();
        greeting.extend(SERVER_MAGIC.to_be_bytes());
        greeting.extend(OPTION_MAGIC.to_be_bytes());
        greeting.extend((FIXED_NEWSTYLE | NO_ZEROES).to_be_bytes());
        greeting
    }

    /// Takes the flags with which the client answers the greeting. [`Step::Close`] where it has
    /// an unknown one.
    pub fn take_client_flags(&mut self, client_flags: u32) -> Step {
        let known = u32::from(FIXED_NEWSTYLE | NO_ZEROES);
        self.no_zeroes = client_flags & u32::from(NO_ZEROES) != 0;
        match client_flags & !known {
            0 => Step::Continue,
            _ => Step::Close,
        }
    }

    /// Returns what was agreed so far.
    pub fn agreed(&self) -> Agreement {
        self.agreed
    }

    /// Takes an option with its data, and appends the answer to `reply`.
    pub fn answer(&mut self, option: u32, data: &[u8], reply: &mut Vec<u8>) -> Step {
        match option {
            OPTION_EXPORT_NAME => return self.export_name(data, reply),
            OPTION_ABORT => {
                add_reply(reply, option, REPLY_ACK, &[]);
                return Step::Close;
            }
            OPTION_LIST if data.is_empty() => {
                // One export, whose name has no bytes.
                add_reply(reply, option, REPLY_SERVER, &0_u32.to_be_bytes());
                add_reply(reply, option, REPLY_ACK, &[]);
            }
            OPTION_INFO | OPTION_GO => return self.info(option, data, reply),
            OPTION_STRUCTURED_REPLY if data.is_empty() => {
                self.agreed.has_structured_replies = true;
                add_reply(reply, option, REPLY_ACK, &[]);
            }
            OPTION_LIST | OPTION_STRUCTURED_REPLY => {
                add_error(reply, option, ERROR_INVALID, "the option has no data");
            }
            OPTION_LIST_META_CONTEXT | OPTION_SET_META_CONTEXT => {
                self.meta_context(option, data, reply);
            }
            _ => add_error(reply, option, ERROR_UNSUPPORTED, "unknown option"),
        }
        Step::Continue
    }

    /// Appends the answer to an option whose data were too long to be read.
    pub fn refuse_long(option: u32, reply: &mut Vec<u8>) -> Step {
        if option == OPTION_EXPORT_NAME {
            return Step::Close;
        }
        add_error(reply, option, ERROR_TOO_BIG, "the option is too long");
        Step::Continue
    }

    /// Appends the answer to an option that comes when serving ends.
    pub fn refuse_ending(option: u32, reply: &mut Vec<u8>) -> Step {
        if option != OPTION_EXPORT_NAME {
            add_error(reply, option, ERROR_SHUT_DOWN, "serving ends");
        }
        Step::Close
    }

    fn export_name(&self, name: &[u8], reply: &mut Vec<u8>) -> Step {
        // The option has no answer that says what is wrong.
        if !name.is_empty() {
            return Step::Close;
        }
        reply.extend(self.export.size_bytes.to_be_bytes());
        reply.extend(self.export_flags().to_be_bytes());
        if !self.no_zeroes {
            reply.extend([0; ZEROES_BYTES]);
        }
        Step::Transmit
    }

    fn info(&self, option: u32, data: &[u8], reply: &mut Vec<u8>) -> Step {
        let Some(name) = parse_info(data) else {
            add_error(reply, option, ERROR_INVALID, "malformed option");
            return Step::Continue;
        };
        if !name.is_empty() {
            let message = "no such export: the drive is the default export, with an empty name";
            add_error(reply, option, ERROR_UNKNOWN, message);
            return Step::Continue;
        }
        let mut export = INFO_EXPORT.to_be_bytes().to_vec();
        export.extend(self.export.size_bytes.to_be_bytes());
        export.extend(self.export_flags().to_be_bytes());
        add_reply(reply, option, REPLY_INFO, &export);
        let mut sizes = INFO_BLOCK_SIZE.to_be_bytes().to_vec();
        for bytes in [1, self.export.preferred_bytes, PAYLOAD_BYTES_MAX] {
            sizes.extend(bytes.to_be_bytes());
        }
        add_reply(reply, option, REPLY_INFO, &sizes);
        add_reply(reply, option, REPLY_ACK, &[]);
        match option {
            OPTION_GO => Step::Transmit,
            _ => Step::Continue,
        }
    }

    fn meta_context(&mut self, option: u32, data: &[u8], reply: &mut Vec<u8>) {
        let is_set = option == OPTION_SET_META_CONTEXT;
        if is_set {
            // A second selection takes the place of the first, even one that fails.
            self.agreed.has_allocation_context = false;
        }
        if !self.agreed.has_structured_replies && is_set {
            let message = "select structured replies first";
            add_error(reply, option, ERROR_INVALID, message);
            return;
        }
        let Some((name, queries)) = parse_meta_context(data) else {
            add_error(reply, option, ERROR_INVALID, "malformed option");
            return;
        };
        if !name.is_empty() {
            add_error(reply, option, ERROR_UNKNOWN, "no such export");
            return;
        }
        let matches =
            |query: &&[u8]| *query == ALLOCATION_CONTEXT || (!is_set && *query == b"base:");
        let is_listing_all = !is_set && queries.is_empty();
        if is_listing_all || queries.iter().any(matches) {
            let id = if is_set { ALLOCATION_CONTEXT_ID } else { 0 };
            let mut context = id.to_be_bytes().to_vec();
            context.extend(ALLOCATION_CONTEXT);
            add_reply(reply, option, REPLY_META_CONTEXT, &context);
            self.agreed.has_allocation_context |= is_set;
        }
        add_reply(reply, option, REPLY_ACK, &[]);
    }

    fn export_flags(&self) -> u16 {
        let mut set = flags::HAS_FLAGS
            | flags::FLUSH
            | flags::FUA
            | flags::WRITE_ZEROES
            | flags::MULTI_CONN
            | flags::CACHE
            | flags::FAST_ZERO;
        set |= match self.export.is_rotational {
            true => flags::ROTATIONAL,
            false => flags::TRIM,
        };
        if self.export.is_read_only {
            set |= flags::READ_ONLY;
        }
        if self.agreed.has_structured_replies {
            set |= flags::DF;
        }
        set
    }
}

fn add_reply(to: &mut Vec<u8>, option: u32, reply: u32, data: &[u8]) {
    to.extend(REPLY_MAGIC.to_be_bytes());
    to.extend(option.to_be_bytes());
    to.extend(reply.to_be_bytes());
    to.extend((data.len() as u32).to_be_bytes());
    to.extend(data);
}

fn add_error(to: &mut Vec<u8>, option: u32, error: u32, message: &str) {
    add_reply(to, option, error, message.as_bytes());
}

/// Returns the first bytes of a text, and removes them; `None` where there are fewer.
fn take<'d>(data: &mut &'d [u8], bytes: usize) -> Option<&'d [u8]> {
    let (taken, rest) = data.split_at_checked(bytes)?;
    *data = rest;
    Some(taken)
}

fn take_u32(data: &mut &[u8]) -> Option<u32> {
    take(data, 4).map(|bytes| be32(bytes, 0))
}

fn take_name<'d>(data: &mut &'d [u8]) -> Option<&'d [u8]> {
    let length = take_u32(data)? as usize;
    match length <= NAME_BYTES_MAX {
        true => take(data, length),
        false => None,
    }
}

/// Returns the name in the data of an INFO or GO option; `None` of malformed data. Every kind
/// of information is sent, whichever is asked for.
fn parse_info(mut data: &[u8]) -> Option<&[u8]> {
    let name = take_name(&mut data)?;
    let count = take(&mut data, 2)?;
    let count = usize::from(u16::from_be_bytes([count[0], count[1]]));
    (data.len() == 2 * count).then_some(name)
}

/// Returns the name and the queries in the data of a meta context option; `None` of malformed
/// data.
fn parse_meta_context(mut data: &[u8]) -> Option<(&[u8], Vec<&[u8]>)> {
    let name = take_name(&mut data)?;
    let count = take_u32(&mut data)?;
    let mut queries = Vec::new();
    for _ in 0..count {
        queries.push(take_name(&mut data)?);
    }
    data.is_empty().then_some((name, queries))
}

#[cfg(test)]
mod tests;
