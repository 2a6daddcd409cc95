//! The calls of a sequence, and how they are chosen.

use diskperf_system::{OpenOptions, SeekOrigin};
use proptest::prelude::{Just, Strategy, prop, prop_oneof};

/// All names that a sequence uses; each can become a file or a directory.
pub(crate) const NAMES: [&str; 7] = ["a", "b", "d", "d/a", "d/b", "d/d", "a/b"];

/// Descriptors that a sequence uses, from 0.
const FILES: usize = 6;

/// One call. A file is the number of a descriptor, which may be closed.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Open {
        name: &'static str,
        how: OpenOptions,
    },
    Read {
        file: usize,
        length: usize,
    },
    /// Writes [`data`].
    Write {
        file: usize,
        length: usize,
        first: u8,
    },
    Lseek {
        file: usize,
        offset: i64,
        whence: SeekOrigin,
    },
    Length {
        file: usize,
    },
    Ftruncate {
        file: usize,
        length: u64,
    },
    Fsync {
        file: usize,
    },
    Close {
        file: usize,
    },
    Fchown {
        file: usize,
    },
    Fchmod {
        file: usize,
    },
    Unlink {
        name: &'static str,
    },
    Mkdir {
        name: &'static str,
    },
    Rmdir {
        name: &'static str,
    },
    Rename {
        from: &'static str,
        to: &'static str,
    },
    Chown {
        name: &'static str,
    },
    Chmod {
        name: &'static str,
    },
    Utimes {
        name: &'static str,
    },
}

/// What a call gave.
#[derive(PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    /// The number of a descriptor.
    Opened(usize),
    Number(u64),
    Bytes(Vec<u8>),
}

impl Outcome {
    pub(crate) fn done((): ()) -> Self {
        Self::Done
    }
}

/// Thousands of bytes in a message help nobody.
impl std::fmt::Debug for Outcome {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Done => out.write_str("done"),
            Self::Opened(number) => write!(out, "descriptor {number}"),
            Self::Number(number) => write!(out, "{number}"),
            Self::Bytes(bytes) if bytes.len() <= 16 => write!(out, "{bytes:?}"),
            Self::Bytes(bytes) => write!(out, "{} bytes, {:?}...", bytes.len(), &bytes[..16]),
        }
    }
}

/// The path of a name.
pub(crate) fn path(name: &str) -> String {
    format!("/mnt0/{name}")
}

/// The bytes of a write: neither all alike nor ever 0, which a hole is.
pub(crate) fn data(length: usize, first: u8) -> Vec<u8> {
    (0..length)
        .map(|offset| 1 + ((usize::from(first) + offset) % 255) as u8)
        .collect()
}

/// Any call, those on files more often than those on names.
pub(crate) fn any() -> impl Strategy<Value = Call> {
    let file = || 0..FILES;
    let name = || prop::sample::select(&NAMES[..]);
    prop_oneof![
        5 => (name(), how()).prop_map(|(name, how)| Call::Open { name, how }),
        6 => (file(), length()).prop_map(|(file, length)| Call::Read { file, length }),
        6 => (file(), length(), 0..=u8::MAX)
            .prop_map(|(file, length, first)| Call::Write { file, length, first }),
        5 => (file(), place()).prop_map(|(file, (offset, whence))| {
            Call::Lseek { file, offset, whence }
        }),
        2 => (file(), offset()).prop_map(|(file, length)| {
            Call::Ftruncate { file, length: length as u64 }
        }),
        1 => file().prop_map(|file| Call::Length { file }),
        1 => file().prop_map(|file| Call::Fsync { file }),
        1 => prop_oneof![
            file().prop_map(|file| Call::Fchown { file }),
            file().prop_map(|file| Call::Fchmod { file }),
            name().prop_map(|name| Call::Chown { name }),
            name().prop_map(|name| Call::Chmod { name }),
            name().prop_map(|name| Call::Utimes { name }),
        ],
        2 => file().prop_map(|file| Call::Close { file }),
        1 => name().prop_map(|name| Call::Unlink { name }),
        2 => name().prop_map(|name| Call::Mkdir { name }),
        1 => name().prop_map(|name| Call::Rmdir { name }),
        2 => (name(), name()).prop_map(|(from, to)| Call::Rename { from, to }),
    ]
}

/// Every way to open that POSIX defines: O_TRUNC only for writing.
fn how() -> impl Strategy<Value = OpenOptions> {
    let way = prop::sample::select(vec![
        OpenOptions::READ,
        OpenOptions::WRITE,
        OpenOptions::READ_WRITE,
    ]);
    let create = prop::sample::select(vec![(false, false), (true, false), (true, true)]);
    (way, create, prop::bool::ANY).prop_map(|(way, (create, exclusive), truncate)| OpenOptions {
        create,
        create_exclusive: exclusive,
        truncate: truncate && way.write,
        ..way
    })
}

/// Lengths of reads and writes.
fn length() -> impl Strategy<Value = usize> {
    prop_oneof![
        Just(0),
        1_usize..100,
        near_a_border().prop_map(|length| length as usize),
        0_usize..40_000
    ]
}

/// Offsets up to 3 MiB.
fn offset() -> impl Strategy<Value = i64> {
    prop_oneof![Just(0), 1_i64..100, near_a_border(), 0_i64..3 << 20]
}

/// On and beside a border of a sector, page or block.
fn near_a_border() -> impl Strategy<Value = i64> {
    let unit = prop::sample::select(vec![512_i64, 4096, 8192]);
    (unit, 1_i64..8, -1_i64..=1).prop_map(|(unit, count, beside)| unit * count + beside)
}

/// Where lseek goes; now and then before the start.
fn place() -> impl Strategy<Value = (i64, SeekOrigin)> {
    prop_oneof![
        offset().prop_map(|offset| (offset, SeekOrigin::FileStart)),
        Just((-1, SeekOrigin::FileStart)),
        (-20_000_i64..40_000).prop_map(|offset| (offset, SeekOrigin::CurrentPosition)),
        (-40_000_i64..20_000).prop_map(|offset| (offset, SeekOrigin::FileEnd)),
    ]
}
