//! Layout of a file system on its device, for programs that read the device directly, such as fsck
//! and dump.
//!
//! On a model it is the layout of the mounted file system. On the host there is no portable way to
//! obtain one. An image of the same size replaces the drive, with the layout of the same tree, laid
//! out by the same allocator ([`FilesystemLayout::from_tree`]).

use crate::{ProgramWork, Result, System};
use diskperf_machine::kernel::ffs::{
    DiskLabel, DumpBlock, FastFileSystem, FragmentAddress, InodeKind, InodeNumber, NewfsParameters,
    UntimedWriter,
};

pub use diskperf_machine::kernel::ffs::FsckPass;

/// Contiguous range of bytes on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteExtent {
    /// Offset of the extent's first byte on the device.
    pub offset_bytes: u64,
    /// Length of the extent in bytes.
    pub length_bytes: u32,
}

/// Read request of fsck, with the pass that makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FsckRead {
    /// Pass of fsck that makes the read.
    pub fsck_pass: FsckPass,
    /// Extent that fsck reads.
    pub extent: ByteExtent,
}

/// File or directory with its place in a file system's layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InodeLayout {
    /// Inode number of the file or directory.
    pub inode: u32,
    /// Whether the inode is a directory.
    pub is_directory: bool,
    /// Length of the file's or directory's contents in bytes.
    pub size_bytes: u64,
    /// Block on the device that contains the inode.
    pub inode_block: ByteExtent,
    /// Path of the file or directory from the root of the file system, without a leading slash.
    pub path: String,
}

/// Segment of a file's contents, in order. Indirect blocks precede the data that they are needed
/// for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSegment {
    /// Extent of an indirect block.
    IndirectBlock(ByteExtent),
    /// Extent with data of the file.
    DataBlocks(ByteExtent),
    /// Hole: zeroes that occupy no space on the device.
    SparseHole {
        /// Length of the hole in bytes.
        length_bytes: u32,
    },
}

/// File or directory of a tree to be laid out. Its parent is a number among the directories given
/// before it, counted from 1; 0 is the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeNode<'a> {
    /// Directory of the tree.
    Directory {
        /// Number of the parent directory.
        parent: usize,
        /// Name of the directory in its parent.
        name: &'a str,
    },
    /// File of the tree.
    RegularFile {
        /// Number of the parent directory.
        parent: usize,
        /// Name of the file in its directory.
        name: &'a str,
        /// Length of the file in bytes.
        size_bytes: u64,
    },
}

/// Geometry of a drive, as a file system assumes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageGeometry {
    /// Sectors of 512 bytes per track.
    pub sectors_per_track: u32,
    /// Number of tracks on a cylinder.
    pub tracks_per_cylinder: u32,
    /// Rotation rate in revolutions per second.
    pub revolutions_per_second: u32,
}

/// Reason why a tree cannot be laid out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// Image on which no file system can be created.
    #[error("cannot create a file system in {image_bytes} bytes: {reason}")]
    InvalidImage {
        /// Size of the image in bytes.
        image_bytes: u64,
        /// Reason why no file system can be created on the image.
        reason: String,
    },
    /// Tree that is larger than the file system.
    #[error("the tree does not fit into a file system of {image_bytes} bytes")]
    ImageTooSmall {
        /// Size of the file system's image in bytes.
        image_bytes: u64,
    },
}

/// Layout of a file system at one time.
#[derive(Clone, Debug)]
pub struct FilesystemLayout {
    device_path: Option<String>,
    file_system: FastFileSystem,
}

const SECTOR_BYTES: u32 = 512;

impl FilesystemLayout {
    /// Returns the layout of a tree on a fresh file system of 4.2BSD with blocks of 8 KB and
    /// fragments of 1 KB and without rotational gaps (`tunefs -a 40 -d 0`). Each node is created in
    /// order, as by ordinary calls.
    ///
    /// # Errors
    ///
    /// The file system cannot be created, or is too small for the tree.
    pub fn from_tree<'a>(
        (image_bytes, shape): (u64, ImageGeometry),
        nodes: impl IntoIterator<Item = TreeNode<'a>>,
    ) -> std::result::Result<Self, LayoutError> {
        let impossible = |reason: String| LayoutError::InvalidImage {
            image_bytes,
            reason,
        };
        let sectors = u32::try_from(image_bytes / u64::from(SECTOR_BYTES));
        let geometry = DiskLabel {
            sector_bytes: SECTOR_BYTES,
            sectors_per_track: shape.sectors_per_track,
            tracks_per_cylinder: shape.tracks_per_cylinder,
            partition_sectors: sectors
                .map_err(|_| impossible("its sector count exceeds 32 bits".into()))?,
            revolutions_per_second: shape.revolutions_per_second,
        };
        let parameters = NewfsParameters {
            rotdelay_ms: 0,
            maxcontig_blocks: 40,
            ..NewfsParameters::bsd42_defaults(8192, 1024)
        };
        let made = FastFileSystem::make_file_system(geometry, parameters);
        let mut writer = UntimedWriter::new(made.map_err(|error| impossible(error.to_string()))?);
        let mut directories = vec![FastFileSystem::ROOT_INODE];
        for node in nodes {
            // What a kernel would read and write meanwhile is of no interest.
            writer.metadata_accesses.clear();
            let made = match node {
                TreeNode::Directory { parent, name } => writer
                    .make_directory(directories[parent], name)
                    .map(|inode| directories.push(inode)),
                TreeNode::RegularFile {
                    parent,
                    name,
                    size_bytes,
                } => writer
                    .create_file(directories[parent], name)
                    .and_then(|inode| writer.write_range(inode, 0, size_bytes)),
            };
            made.map_err(|_| LayoutError::ImageTooSmall { image_bytes })?;
        }
        Ok(Self {
            device_path: None,
            file_system: writer.file_system,
        })
    }

    pub(crate) fn from_device(device: String, file_system: FastFileSystem) -> Self {
        Self {
            device_path: Some(device),
            file_system,
        }
    }

    /// Returns the name under which the worker can read the device past every cache; `None` for a
    /// tree that was laid out without a device.
    pub fn device_path(&self) -> Option<&str> {
        self.device_path.as_deref()
    }

    /// Returns the bytes that files, directories and their indirect blocks occupy.
    pub fn used_bytes(&self) -> u64 {
        let inodes = self.file_system.dumped_inodes().into_iter();
        let fragments: u64 = inodes
            .map(|dumped| u64::from(self.file_system.allocated_fragment_count(dumped.inode)))
            .sum();
        fragments * u64::from(self.file_system.superblock().fragment_bytes())
    }

    /// Returns the extents that fsck reads, in its order.
    pub fn fsck_reads(&self) -> Vec<FsckRead> {
        let reads = self.file_system.fsck_reads().into_iter();
        reads
            .map(|read| FsckRead {
                fsck_pass: read.fsck_pass,
                extent: self.to_extent(read.address, read.bytes),
            })
            .collect()
    }

    /// Returns the blocks of all inodes, in order.
    pub fn inode_blocks(&self) -> Vec<ByteExtent> {
        let blocks = self.file_system.inode_blocks().into_iter();
        blocks.map(|block| self.block_extent(block)).collect()
    }

    /// Returns all files and directories in order of their inodes.
    pub fn inode_layouts(&self) -> Vec<InodeLayout> {
        let dumped = self.file_system.dumped_inodes().into_iter();
        dumped
            .map(|dumped| InodeLayout {
                inode: dumped.inode.0,
                is_directory: dumped.kind == InodeKind::Directory,
                size_bytes: dumped.size_bytes,
                inode_block: self.block_extent(dumped.inode_block),
                path: dumped.path,
            })
            .collect()
    }

    /// Returns the contents of a file or directory, segment by segment.
    ///
    /// # Panics
    ///
    /// If there is no such inode.
    pub fn file_segments(&self, inode: u32) -> Vec<FileSegment> {
        let blocks = self.file_system.dump_blocks(InodeNumber(inode)).into_iter();
        blocks
            .map(|block| match block {
                DumpBlock::IndirectBlock { address, bytes } => {
                    FileSegment::IndirectBlock(self.to_extent(address, bytes))
                }
                DumpBlock::DataBlock { address, bytes } => {
                    FileSegment::DataBlocks(self.to_extent(address, bytes))
                }
                DumpBlock::UnallocatedBlock { bytes } => FileSegment::SparseHole {
                    length_bytes: bytes,
                },
            })
            .collect()
    }

    /// Returns the records of a directory in the on-disk format.
    ///
    /// # Panics
    ///
    /// If the inode is not a directory.
    pub fn directory_bytes(&self, inode: u32) -> Vec<u8> {
        self.file_system.directory_bytes(InodeNumber(inode))
    }

    fn to_extent(&self, address: FragmentAddress, bytes: u32) -> ByteExtent {
        let fragment_bytes = self.file_system.superblock().fragment_bytes();
        ByteExtent {
            offset_bytes: u64::from(address.0) * u64::from(fragment_bytes),
            length_bytes: bytes,
        }
    }

    fn block_extent(&self, address: FragmentAddress) -> ByteExtent {
        self.to_extent(address, self.file_system.superblock().block_bytes())
    }
}

/// Calls of a program that only a modelled computer can answer.
impl System {
    /// Returns the layout of a mounted file system at this time, with the name of its device. The
    /// call takes no virtual time. `None` on the host, where the layout is not known.
    pub fn layout_of_mount(&self, mount: u32) -> Option<FilesystemLayout> {
        match self {
            #[cfg(feature = "host")]
            System::HostWorker(_) => {
                let _ = mount;
                None
            }
            System::ModelWorker(model) => model.layout_of_mount(mount),
        }
    }

    /// Performs computing work of the program itself. A modelled computer takes as long as the
    /// catalogue and its speed determine. A real computer of today does such work in less time than
    /// a clock resolves, so that it takes no time.
    pub async fn perform_program_work(&mut self, work: ProgramWork) -> Result<()> {
        match self {
            #[cfg(feature = "host")]
            System::HostWorker(_) => {
                let _ = work;
                Ok(())
            }
            System::ModelWorker(model) => {
                let span = model.program_work_time(work);
                model.consume_cpu_time(span).await
            }
        }
    }
}
