//! First process of `dump_restore`: dump of 4.2BSD at level 0, of one tree.
//!
//! It maps the inodes (passes 1 and 2), then dumps the directories and then the files in the order
//! of their inodes (passes 3 and 4). Each block is read directly to its position in the tape's
//! buffer, so that a read ends where the buffer ends. The ring of processes with which dump kept a
//! tape moving is left out, because a pipe has no tape to keep moving.

use crate::blocks::{read_block, seek_to_offset};
use crate::program::ProgramError;
use crate::worker::Worker;
use crate::workload::populate::top_path_below_mount;
use crate::workload::tape::{RecordHeader, TAPE_BLOCK_BYTES, TapeWriter};
use crate::workload::tree::{TOP_NAME, Tree, footprint_bytes_max};
use diskperf_system::{
    ByteExtent, File, FileSegment, InodeLayout, OpenOptions, ProgramWork, System,
};
use diskperf_timeline::Nanoseconds;

/// Layout of the file system that dump knows before it starts.
#[derive(Clone, Debug)]
pub(crate) struct DumpPlan {
    device_path: Option<String>,
    inode_blocks: Vec<ByteExtent>,
    top_inode: u32,
    dumped_inodes: Vec<DumpedInode>,
}

#[derive(Clone, Debug)]
struct DumpedInode {
    inode_layout: InodeLayout,
    file_segments: Vec<FileSegment>,
    /// Records of a directory, empty for a file. A modelled drive stores no data, so that they are
    /// kept here.
    directory_records: Vec<u8>,
}

/// Source from which dump reads file contents.
enum DumpSource {
    DriveDevice(File),
    /// Files of a real file system, read through that file system, because its drive has an unknown
    /// format.
    FileSystem,
}

/// Sector size in bytes. A raw read is a multiple of it.
pub(crate) const SECTOR_BYTES: usize = 512;

impl DumpPlan {
    /// Determines the tree to be dumped and its layout on the drive.
    pub(crate) fn survey_filesystem(
        system: &System,
        worker: &Worker,
        tree: impl FnOnce() -> Tree,
    ) -> Result<Self, ProgramError> {
        let (layout, top) = match system.layout_of_mount(worker.drive_index) {
            Some(layout) => (layout, top_path_below_mount(worker)),
            None => {
                let tree = tree();
                let layout =
                    tree.layout_on_image(footprint_bytes_max(tree.description.content_bytes) * 2)?;
                (layout, TOP_NAME.to_owned())
            }
        };
        let under_top = |path: &str| {
            let rest = path.strip_prefix(&top);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let inodes = layout.inode_layouts().into_iter();
        let inodes: Vec<DumpedInode> = inodes
            .filter(|laid_out| under_top(&laid_out.path))
            .map(|laid_out| DumpedInode {
                file_segments: layout.file_segments(laid_out.inode),
                directory_records: if laid_out.is_directory {
                    layout.directory_bytes(laid_out.inode)
                } else {
                    Vec::new()
                },
                inode_layout: laid_out,
            })
            .collect();
        let top = inodes.iter().find(|dumped| dumped.inode_layout.path == top);
        let top = top.ok_or(ProgramError::TapeDamaged(
            "the file system has no tree to dump",
        ))?;
        Ok(Self {
            device_path: layout.device_path().map(str::to_owned),
            inode_blocks: layout.inode_blocks(),
            top_inode: top.inode_layout.inode,
            dumped_inodes: inodes,
        })
    }

    pub(crate) async fn run_dump(
        &self,
        system: &mut System,
        worker: &Worker,
        (pipe, buffer): (File, &mut [u8]),
    ) -> Result<(), ProgramError> {
        let source = match &self.device_path {
            Some(device) => DumpSource::DriveDevice(
                system
                    .open(device, OpenOptions::READ.with_direct(true))
                    .await?,
            ),
            None => DumpSource::FileSystem,
        };
        let (tape, scratch) = buffer.split_at_mut(SCRATCH_OFFSET_BYTES);
        let mut dumper = Dumper {
            dump_source: source,
            inode_block: None,
            scratch_buffer: scratch,
            worker,
        };
        let mut tape = TapeWriter {
            pipe_file: pipe,
            buffer: &mut tape[..TAPE_BLOCK_BYTES],
            filled_bytes: 0,
            think_time: worker.think_time,
        };
        for block in &self.inode_blocks {
            dumper.read_inode_block(system, *block).await?;
        }
        for dumped in self.inodes_of_kind(true) {
            dumper
                .read_inode_block(system, dumped.inode_layout.inode_block)
                .await?;
        }
        tape.write_header(
            system,
            RecordHeader::Volume {
                top: self.top_inode,
            },
        )
        .await?;
        let (mut files, mut content_bytes) = (0, 0);
        for directories in [true, false] {
            for dumped in self.inodes_of_kind(directories) {
                dumper.dump_inode(system, dumped, &mut tape).await?;
                files += u32::from(!directories);
                content_bytes += dumped.content_bytes_total();
            }
        }
        let end = RecordHeader::EndOfTape {
            files,
            content_bytes,
        };
        tape.write_header(system, end).await?;
        tape.finish_tape(system).await?;
        // Whoever reads the pipe sees its end.
        Ok(system.close(pipe).await?)
    }

    /// Iterates over the dumped directories if `directories` is set, else over the dumped files.
    fn inodes_of_kind(&self, directories: bool) -> impl Iterator<Item = &DumpedInode> {
        let inodes = self.dumped_inodes.iter();
        inodes.filter(move |dumped| dumped.inode_layout.is_directory == directories)
    }
}

/// Offset in the worker's buffer of the area for reads that are not dumped. It lies after the
/// tape's buffer, aligned to every block size.
const SCRATCH_OFFSET_BYTES: usize = 16 << 10;

impl DumpedInode {
    /// Returns the bytes of a file, and 0 for a directory.
    fn content_bytes_total(&self) -> u64 {
        if self.inode_layout.is_directory {
            0
        } else {
            self.inode_layout.size_bytes
        }
    }
}

struct Dumper<'a> {
    dump_source: DumpSource,
    inode_block: Option<ByteExtent>,
    scratch_buffer: &'a mut [u8],
    worker: &'a Worker,
}

impl Dumper<'_> {
    /// Reads the block of an inode unless it is in memory already (`getino`).
    async fn read_inode_block(
        &mut self,
        system: &mut System,
        block: ByteExtent,
    ) -> Result<(), ProgramError> {
        match self.dump_source {
            DumpSource::DriveDevice(drive) if self.inode_block.replace(block) != Some(block) => {
                self.read_from_source(system, drive, block).await
            }
            DumpSource::DriveDevice(_) | DumpSource::FileSystem => Ok(()),
        }
    }

    async fn read_from_source(
        &mut self,
        system: &mut System,
        drive: File,
        extent: ByteExtent,
    ) -> Result<(), ProgramError> {
        seek_to_offset(system, drive, extent.offset_bytes).await?;
        let into = &mut self.scratch_buffer[..extent.length_bytes as usize];
        read_block(system, drive, into, Nanoseconds::ZERO).await
    }

    async fn dump_inode(
        &mut self,
        system: &mut System,
        dumped: &DumpedInode,
        tape: &mut TapeWriter<'_>,
    ) -> Result<(), ProgramError> {
        let laid_out = &dumped.inode_layout;
        system.perform_program_work(ProgramWork::DumpInode).await?;
        self.read_inode_block(system, laid_out.inode_block).await?;
        let (inode, size_bytes) = (laid_out.inode, laid_out.size_bytes);
        let header = if laid_out.is_directory {
            RecordHeader::Directory { inode, size_bytes }
        } else {
            RecordHeader::File { inode, size_bytes }
        };
        tape.write_header(system, header).await?;
        match (&self.dump_source, laid_out.is_directory) {
            (DumpSource::DriveDevice(drive), _) => {
                let drive = *drive;
                self.dump_blocks(system, (drive, dumped), tape).await
            }
            (DumpSource::FileSystem, true) => {
                dump_contents(system, &dumped.directory_records, tape).await
            }
            (DumpSource::FileSystem, false) => {
                let path = self.worker.file_path(&laid_out.path);
                dump_file(system, (&path, size_bytes), tape).await
            }
        }
    }

    async fn dump_blocks(
        &mut self,
        system: &mut System,
        (drive, dumped): (File, &DumpedInode),
        tape: &mut TapeWriter<'_>,
    ) -> Result<(), ProgramError> {
        let mut done = 0;
        for part in &dumped.file_segments {
            let (from, length) = match *part {
                FileSegment::IndirectBlock(extent) => {
                    self.read_from_source(system, drive, extent).await?;
                    continue;
                }
                FileSegment::DataBlocks(extent) => {
                    (Some(extent.offset_bytes), extent.length_bytes as usize)
                }
                FileSegment::SparseHole { length_bytes } => (None, length_bytes as usize),
            };
            let mut within = 0;
            while within < length {
                let piece = (length - within).min(tape.free_bytes());
                let space = tape.space_mut(piece.next_multiple_of(SECTOR_BYTES));
                match from {
                    Some(from) => {
                        seek_to_offset(system, drive, from + within as u64).await?;
                        read_block(system, drive, space, Nanoseconds::ZERO).await?;
                    }
                    None => space.fill(0),
                }
                if dumped.inode_layout.is_directory {
                    space[..piece].copy_from_slice(&dumped.directory_records[done..done + piece]);
                }
                tape.write_full_records(system, piece).await?;
                within += piece;
                done += piece;
            }
        }
        assert_eq!(
            done as u64, dumped.inode_layout.size_bytes,
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
    let file = system.open(path, OpenOptions::READ).await?;
    let mut left = size_bytes;
    while left > 0 {
        let piece = tape
            .free_bytes()
            .min(usize::try_from(left).unwrap_or(TAPE_BLOCK_BYTES));
        read_block(system, file, tape.space_mut(piece), Nanoseconds::ZERO).await?;
        tape.write_full_records(system, piece).await?;
        left -= piece as u64;
    }
    Ok(system.close(file).await?)
}

async fn dump_contents(
    system: &mut System,
    contents: &[u8],
    tape: &mut TapeWriter<'_>,
) -> Result<(), ProgramError> {
    let mut left = contents;
    while !left.is_empty() {
        let (piece, rest) = left.split_at(left.len().min(tape.free_bytes()));
        tape.space_mut(piece.len()).copy_from_slice(piece);
        tape.write_full_records(system, piece.len()).await?;
        left = rest;
    }
    Ok(())
}
