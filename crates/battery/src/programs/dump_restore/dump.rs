//! First process of `dump_restore`: dump of 4.2BSD at level 0, of one tree.
//!
//! It maps the inodes (passes 1 and 2), then dumps the directories and then the files in the order
//! of their inodes (passes 3 and 4). Each block is read directly to its position in the tape's
//! buffer, so that a read ends where the buffer ends. The ring of processes with which dump kept a
//! tape moving is left out, because a pipe has no tape to keep moving.

use crate::blocks::{read_block, seek_to};
use crate::program::ProgramError;
use crate::worker::Worker;
use crate::workload::populate::top_on_mount;
use crate::workload::tape::{Header, TAPE_BYTES, TapeWriter};
use crate::workload::tree::{TOP, Tree, room_bytes};
use diskperf_system::{Extent, File, FileSegment, LaidOut, Open, System, Work};
use diskperf_timeline::Nanoseconds;

/// Layout of the file system that dump knows before it starts.
#[derive(Clone, Debug)]
pub(crate) struct Dump {
    device: Option<String>,
    inode_blocks: Vec<Extent>,
    top: u32,
    inodes: Vec<Dumped>,
}

#[derive(Clone, Debug)]
struct Dumped {
    laid_out: LaidOut,
    parts: Vec<FileSegment>,
    /// Records of a directory, empty for a file. A modelled drive stores no data, so that they are
    /// kept here.
    records: Vec<u8>,
}

/// Source from which dump reads file contents.
enum Source {
    Drive(File),
    /// Files of a real file system, read through that file system, because its drive has an unknown
    /// format.
    Files,
}

/// Sector size in bytes. A raw read is a multiple of it.
pub(crate) const SECTOR_BYTES: usize = 512;

impl Dump {
    /// Determines the tree to be dumped and its layout on the drive.
    pub(crate) fn survey(
        system: &System,
        worker: &Worker,
        tree: impl FnOnce() -> Tree,
    ) -> Result<Self, ProgramError> {
        let (layout, top) = match system.layout(worker.drive) {
            Some(layout) => (layout, top_on_mount(worker)),
            None => {
                let tree = tree();
                let layout = tree.layout(room_bytes(tree.kind.content_bytes) * 2)?;
                (layout, TOP.to_owned())
            }
        };
        let under_top = |path: &str| {
            let rest = path.strip_prefix(&top);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let inodes = layout.inodes().into_iter();
        let inodes: Vec<Dumped> = inodes
            .filter(|laid_out| under_top(&laid_out.path))
            .map(|laid_out| Dumped {
                parts: layout.parts(laid_out.inode),
                records: if laid_out.directory {
                    layout.directory_bytes(laid_out.inode)
                } else {
                    Vec::new()
                },
                laid_out,
            })
            .collect();
        let top = inodes.iter().find(|dumped| dumped.laid_out.path == top);
        let top = top.ok_or(ProgramError::Tape("there is no tree to dump"))?;
        Ok(Self {
            device: layout.device().map(str::to_owned),
            inode_blocks: layout.inode_blocks(),
            top: top.laid_out.inode,
            inodes,
        })
    }

    pub(crate) async fn run(
        &self,
        system: &mut System,
        worker: &Worker,
        (pipe, buffer): (File, &mut [u8]),
    ) -> Result<(), ProgramError> {
        let source = match &self.device {
            Some(device) => Source::Drive(system.open(device, Open::READ.direct(true)).await?),
            None => Source::Files,
        };
        let (tape, scratch) = buffer.split_at_mut(SCRATCH_AT);
        let mut dumper = Dumper {
            source,
            inode_block: None,
            scratch,
            worker,
        };
        let mut tape = TapeWriter {
            pipe,
            buffer: &mut tape[..TAPE_BYTES],
            filled: 0,
            think: worker.think,
        };
        for block in &self.inode_blocks {
            dumper.inode_block(system, *block).await?;
        }
        for dumped in self.directories(true) {
            dumper
                .inode_block(system, dumped.laid_out.inode_block)
                .await?;
        }
        tape.header(system, Header::Volume { top: self.top })
            .await?;
        let (mut files, mut content_bytes) = (0, 0);
        for directories in [true, false] {
            for dumped in self.directories(directories) {
                dumper.dump(system, dumped, &mut tape).await?;
                files += u32::from(!directories);
                content_bytes += dumped.content_bytes();
            }
        }
        let end = Header::End {
            files,
            content_bytes,
        };
        tape.header(system, end).await?;
        tape.finish(system).await?;
        // Whoever reads the pipe sees its end.
        Ok(system.close(pipe).await?)
    }

    /// Iterates over the dumped directories if `directories` is set, else over the dumped files.
    fn directories(&self, directories: bool) -> impl Iterator<Item = &Dumped> {
        let inodes = self.inodes.iter();
        inodes.filter(move |dumped| dumped.laid_out.directory == directories)
    }
}

/// Offset in the worker's buffer of the area for reads that are not dumped. It lies after the
/// tape's buffer, aligned to every block size.
const SCRATCH_AT: usize = 16 << 10;

impl Dumped {
    /// Returns the bytes of a file, and 0 for a directory.
    fn content_bytes(&self) -> u64 {
        if self.laid_out.directory {
            0
        } else {
            self.laid_out.size_bytes
        }
    }
}

struct Dumper<'a> {
    source: Source,
    /// Block of inodes that is in memory.
    inode_block: Option<Extent>,
    scratch: &'a mut [u8],
    worker: &'a Worker,
}

impl Dumper<'_> {
    /// Reads the block of an inode unless it is in memory already (`getino`).
    async fn inode_block(
        &mut self,
        system: &mut System,
        block: Extent,
    ) -> Result<(), ProgramError> {
        match self.source {
            Source::Drive(drive) if self.inode_block.replace(block) != Some(block) => {
                self.read(system, drive, block).await
            }
            Source::Drive(_) | Source::Files => Ok(()),
        }
    }

    async fn read(
        &mut self,
        system: &mut System,
        drive: File,
        extent: Extent,
    ) -> Result<(), ProgramError> {
        seek_to(system, drive, extent.offset_bytes).await?;
        let into = &mut self.scratch[..extent.length_bytes as usize];
        read_block(system, drive, into, Nanoseconds::ZERO).await
    }

    async fn dump(
        &mut self,
        system: &mut System,
        dumped: &Dumped,
        tape: &mut TapeWriter<'_>,
    ) -> Result<(), ProgramError> {
        let laid_out = &dumped.laid_out;
        system.work(Work::DumpInode).await?;
        self.inode_block(system, laid_out.inode_block).await?;
        let (inode, size_bytes) = (laid_out.inode, laid_out.size_bytes);
        let header = if laid_out.directory {
            Header::Directory { inode, size_bytes }
        } else {
            Header::File { inode, size_bytes }
        };
        tape.header(system, header).await?;
        match (&self.source, laid_out.directory) {
            (Source::Drive(drive), _) => {
                let drive = *drive;
                self.dump_blocks(system, (drive, dumped), tape).await
            }
            (Source::Files, true) => put(system, &dumped.records, tape).await,
            (Source::Files, false) => {
                let path = self.worker.file(&laid_out.path);
                dump_file(system, (&path, size_bytes), tape).await
            }
        }
    }

    /// Dumps the contents of an inode from the drive, block by block.
    async fn dump_blocks(
        &mut self,
        system: &mut System,
        (drive, dumped): (File, &Dumped),
        tape: &mut TapeWriter<'_>,
    ) -> Result<(), ProgramError> {
        let mut done = 0;
        for part in &dumped.parts {
            let (from, length) = match *part {
                FileSegment::Indirect(extent) => {
                    self.read(system, drive, extent).await?;
                    continue;
                }
                FileSegment::Data(extent) => {
                    (Some(extent.offset_bytes), extent.length_bytes as usize)
                }
                FileSegment::Hole { length_bytes } => (None, length_bytes as usize),
            };
            let mut within = 0;
            while within < length {
                let piece = (length - within).min(tape.room());
                let space = tape.space(piece.next_multiple_of(SECTOR_BYTES));
                match from {
                    Some(from) => {
                        seek_to(system, drive, from + within as u64).await?;
                        read_block(system, drive, space, Nanoseconds::ZERO).await?;
                    }
                    None => space.fill(0),
                }
                if dumped.laid_out.directory {
                    space[..piece].copy_from_slice(&dumped.records[done..done + piece]);
                }
                tape.take(system, piece).await?;
                within += piece;
                done += piece;
            }
        }
        assert_eq!(
            done as u64, dumped.laid_out.size_bytes,
            "the blocks of an inode hold all of its contents"
        );
        Ok(())
    }
}

/// Dumps the contents of a file through its file system.
async fn dump_file(
    system: &mut System,
    (path, size_bytes): (&str, u64),
    tape: &mut TapeWriter<'_>,
) -> Result<(), ProgramError> {
    let file = system.open(path, Open::READ).await?;
    let mut left = size_bytes;
    while left > 0 {
        let piece = tape.room().min(usize::try_from(left).unwrap_or(TAPE_BYTES));
        read_block(system, file, tape.space(piece), Nanoseconds::ZERO).await?;
        tape.take(system, piece).await?;
        left -= piece as u64;
    }
    Ok(system.close(file).await?)
}

/// Dumps contents that are in memory.
async fn put(
    system: &mut System,
    contents: &[u8],
    tape: &mut TapeWriter<'_>,
) -> Result<(), ProgramError> {
    let mut left = contents;
    while !left.is_empty() {
        let (piece, rest) = left.split_at(left.len().min(tape.room()));
        tape.space(piece.len()).copy_from_slice(piece);
        tape.take(system, piece.len()).await?;
        left = rest;
    }
    Ok(())
}
