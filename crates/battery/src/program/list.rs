//! The programs that there are, with their defaults.

use super::{CYLINDER_BYTES, Kind, Program, TRACK_BYTES};
use crate::programs::copy::{Copy, Destination};
use crate::programs::dump_restore::DumpRestore;
use crate::programs::fsck::Fsck;
use crate::programs::random_mix::RandomMix;
use crate::programs::read::Read;
use crate::programs::read_files::ReadFiles;
use crate::programs::rewrite::Rewrite;
use crate::programs::scan::{Areas, Scan};
use crate::programs::seqread::{Layer, SequentialRead};
use crate::programs::track_read::TrackRead;
use crate::programs::write::Write;
use crate::workload::populate::Populate;

impl Program {
    /// All programs, each with what it does.
    pub fn all() -> [(&'static str, &'static str); 13] {
        [
            ("read_8192", "reads a file, 8192 bytes a call (1983)"),
            ("write_4096", "writes a new file, 4096 bytes a call (1983)"),
            ("write_8192", "writes a new file, 8192 bytes a call (1983)"),
            (
                "rewrite_8192",
                "writes over a file that exists, 8192 bytes a call (1983)",
            ),
            (
                "read_files",
                "reads files of one size, on a file system that is fresh or has aged (1991)",
            ),
            (
                "seqread",
                "reads the same bytes over different layers of the system (1989)",
            ),
            (
                "copy",
                "dd: from a file to nothing, to another file, to another file system (1987)",
            ),
            (
                "scan",
                "several readers of the same or of different areas (1987)",
            ),
            (
                "random_mix",
                "a measured mix of requests at random places (DEC's approach of 1983)",
            ),
            (
                "track_read",
                "reads a drive past every cache, over and over within an area (1991)",
            ),
            (
                "populate",
                "makes a tree of directories and files of all sizes (1987)",
            ),
            (
                "fsck",
                "reads a populated file system past every cache as fsck does (1987)",
            ),
            (
                "dump_restore",
                "dump | restore: two processes copy a tree through a pipe (1987)",
            ),
        ]
    }

    /// The program of this name with its defaults.
    pub fn named(name: &str) -> Option<Self> {
        let (name, _) = Self::all().into_iter().find(|(known, _)| *known == name)?;
        let kind = match name {
            "read_8192" => Kind::Read(Read { call_bytes: 8192 }),
            "read_files" => Kind::ReadFiles(ReadFiles {
                file_bytes: 2048,
                churn: 0,
                call_bytes: 8192,
            }),
            "write_4096" => Kind::Write(Write { call_bytes: 4096 }),
            "write_8192" => Kind::Write(Write { call_bytes: 8192 }),
            "rewrite_8192" => Kind::Rewrite(Rewrite { call_bytes: 8192 }),
            "seqread" => Kind::SequentialRead(SequentialRead {
                layer: Layer::Dropped,
                call_bytes: 8192,
            }),
            "copy" => Kind::Copy(Copy {
                destination: Destination::Null,
                call_bytes: 8192,
            }),
            "scan" => Kind::Scan(Scan {
                readers: 4,
                areas: Areas::Same,
                offset_ms: 100,
                call_bytes: 8192,
            }),
            "random_mix" => Kind::RandomMix(RandomMix::default()),
            "track_read" => Kind::TrackRead(TrackRead {
                call_bytes: TRACK_BYTES,
                area_bytes: CYLINDER_BYTES,
            }),
            "populate" => Kind::Populate(Populate { tree_seed: 1 }),
            "fsck" => Kind::Fsck(Fsck::default()),
            "dump_restore" => Kind::DumpRestore(DumpRestore::default()),
            _ => return None,
        };
        Some(Self {
            name,
            kind,
            think_ns: 0,
        })
    }
}
