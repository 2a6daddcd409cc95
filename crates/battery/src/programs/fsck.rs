//! Program `fsck`: reads a populated file system past every cache as fsck of 4.2BSD does
//! (Zachariassen 1987), in one process or in several that start one after the other.
//!
//! On a modelled system it reads the drive of the mounted file system, at the addresses of its
//! parts. On the host, an image of a file system of the same shape stands for the drive, or a
//! device, which is only read. The same allocator computes the addresses from the same tree.
//! Nothing is checked: the checking of the original takes CPU time on a machine of 1987.

use crate::blocks::{ensure_file, read_block, seek_to_offset};
use crate::parameter::{ParameterField, ParameterValue};
use crate::pattern::{
    AccessPattern, PhaseFuture, ProgramEntry, ProgramProperties, SystemAndWorker,
};
use crate::program::{InputFile, ProgramError};
use crate::worker::{Medium, Worker};
use crate::workload::populate::{self, TREE_CALL_BYTES, seed_field};
use crate::workload::tree::{self, TREE_NAME, Tree};
use diskperf_system::{
    Buffer, FilesystemLayout, FsckPass, FsckRead, OpenOptions, ProgramWork, System,
};

pub(crate) const PROGRAMS: &[ProgramEntry] = &[ProgramEntry {
    name: "fsck",
    summary: "reads a populated file system like fsck, bypassing all caches (1987)",
    file_set_name: "image",
    new_pattern: || Box::new(Fsck::default()),
}];

#[derive(Clone, Debug)]
struct Fsck {
    checker_count: u64,
    offset_ms: u64,
    tree_seed: u64,
    used_share: f64,
    surveyed_reads: Option<SurveyedReads>,
}

impl Default for Fsck {
    fn default() -> Self {
        Self {
            checker_count: 1,
            // "4 parallel fsck's, offset 5 secs each".
            offset_ms: 5000,
            tree_seed: 1,
            // Of the 280,395 sectors of Zachariassen 1987's partition.
            used_share: 0.63,
            surveyed_reads: None,
        }
    }
}

/// Reads of a worker, determined before it starts.
#[derive(Clone, Debug)]
struct SurveyedReads {
    device_path: Option<String>,
    fsck_reads: Vec<FsckRead>,
}

impl AccessPattern for Fsck {
    fn parameter_fields(&mut self) -> Vec<ParameterField<'_>> {
        vec![
            ParameterField {
                name: "checkers",
                description: "processes that check the file system in parallel",
                value: ParameterValue::Count(&mut self.checker_count, 1, 256),
            },
            ParameterField {
                name: "offset_ms",
                description: "delay between the starts of two processes, in milliseconds",
                value: ParameterValue::Count(&mut self.offset_ms, 0, 3_600_000),
            },
            seed_field(&mut self.tree_seed),
            ParameterField {
                name: "used_share",
                description: "share of the image or device that the tree fills; a mounted file system \
                stays as it is",
                value: ParameterValue::Share(&mut self.used_share),
            },
        ]
    }

    fn program_properties(&self) -> ProgramProperties {
        ProgramProperties {
            works_on_tree: true,
            worker_count: self.checker_count as u32,
            start_offset_ms: self.offset_ms,
            ..ProgramProperties::new_for_reads(TREE_CALL_BYTES)
        }
    }

    fn unit_bytes(&self, _size_bytes: u64) -> u64 {
        SIZE_UNIT_BYTES
    }

    fn validation_error(&self) -> Option<String> {
        let share = self.used_share;
        (!(USED_SHARE_MIN..=USED_SHARE_MAX).contains(&share)).then(|| {
            format!(
                "used_share={share} leaves too little space for the file system's metadata or for \
                 the tree; give {USED_SHARE_MIN} to {USED_SHARE_MAX}"
            )
        })
    }

    /// Returns the size of the image on which a tree of this size is laid out, in bytes.
    fn file_bytes(&self, size_bytes: u64) -> u64 {
        let bytes = (size_bytes as f64 / self.used_share.max(USED_SHARE_MIN)) as u64 + (2 << 20);
        bytes.next_multiple_of(IMAGE_SIZE_UNIT_BYTES)
    }

    fn files_without_images(&self, size_bytes: u64) -> Option<(&'static str, u64)> {
        Some((TREE_NAME, tree::footprint_bytes_max(size_bytes)))
    }

    /// Returns the image as the input to prepare. If the drive itself is read, no image exists.
    fn input_files(&self, worker: &Worker) -> Vec<InputFile> {
        vec![InputFile::new_read(
            Self::image_path(worker),
            self.file_bytes(worker.size_bytes),
        )]
    }

    /// Makes the tree, or the image that stands for it. The first process does this for all.
    fn prepare_target<'a>(&'a self, system: &'a mut System, worker: &'a Worker) -> PhaseFuture<'a> {
        Box::pin(async move {
            if worker.worker_index > 0 || worker.medium != Medium::Directory {
                return Ok(());
            }
            if system.layout_of_mount(worker.drive_index).is_some() {
                return populate::ensure_tree(system, worker, self.tree_seed).await;
            }
            let image_bytes = self.file_bytes(worker.size_bytes);
            ensure_file(system, worker, &Self::image_path(worker), image_bytes).await
        })
    }

    /// Determines the reads from the layout of the file system, once it is complete.
    fn survey_target<'a>(
        &'a mut self,
        system: &'a mut System,
        worker: &'a Worker,
    ) -> PhaseFuture<'a> {
        Box::pin(async move {
            let layout = match (worker.medium, system.layout_of_mount(worker.drive_index)) {
                (Medium::Directory, Some(layout)) => layout,
                (Medium::Directory, None) => self.image_layout(worker)?,
                (Medium::Device | Medium::File, _) => {
                    let how = OpenOptions::READ.with_direct(worker.direct_io);
                    let file = system.open(&Self::image_path(worker), how).await?;
                    let room_bytes = system.file_length(file).await?;
                    system.close(file).await?;
                    if self.file_bytes(worker.size_bytes) > room_bytes {
                        return Err(ProgramError::ShortFile);
                    }
                    self.image_layout(worker)?
                }
            };
            self.surveyed_reads = Some(SurveyedReads {
                device_path: layout.device_path().map(str::to_owned),
                fsck_reads: layout.fsck_reads(),
            });
            Ok(())
        })
    }

    fn run_timed_part<'a>(
        &'a self,
        (system, worker): SystemAndWorker<'a>,
        buffer: &'a mut Buffer,
    ) -> PhaseFuture<'a> {
        Box::pin(async move {
            let reads = self
                .surveyed_reads
                .as_ref()
                .expect("the survey found what to read");
            let file = match &reads.device_path {
                Some(device) => {
                    system
                        .open(device, OpenOptions::READ.with_direct(true))
                        .await?
                }
                None => {
                    let how = OpenOptions::READ.with_direct(worker.direct_io);
                    system.open(&Self::image_path(worker), how).await?
                }
            };
            for FsckRead {
                fsck_pass: pass,
                extent,
            } in &reads.fsck_reads
            {
                seek_to_offset(system, file, extent.offset_bytes).await?;
                let block = &mut buffer[..extent.length_bytes as usize];
                read_block(system, file, block, worker.think_time).await?;
                let work = match pass {
                    FsckPass::InodeScan => ProgramWork::FsckInodeBlock,
                    FsckPass::SuperblockSetup
                    | FsckPass::IndirectBlocks
                    | FsckPass::DirectoryInodes
                    | FsckPass::DirectoryContents
                    | FsckPass::GroupMaps => ProgramWork::FsckRead,
                };
                system.perform_program_work(work).await?;
            }
            Ok(())
        })
    }
}

impl Fsck {
    fn image_path(worker: &Worker) -> String {
        worker.file_path("fsck.image")
    }

    fn image_layout(&self, worker: &Worker) -> Result<FilesystemLayout, ProgramError> {
        let tree = Tree::new(populate::tree_description(worker, self.tree_seed));
        tree.layout_on_image(self.file_bytes(worker.size_bytes))
    }
}

/// Minimum share of an image that a tree takes. `USED_SHARE_MAX` is the maximum. The rest holds the
/// inodes and the reserve.
const USED_SHARE_MIN: f64 = 0.05;
const USED_SHARE_MAX: f64 = 0.75;

/// Common divisor of the offsets and lengths of all reads: a fragment, in bytes.
const SIZE_UNIT_BYTES: u64 = 1024;

/// Unit of an image's size, in bytes: a block of the file system, and a multiple of a memory page.
const IMAGE_SIZE_UNIT_BYTES: u64 = 8192;
