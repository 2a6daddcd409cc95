//! Layout of a file system on its device, for programs that read the device directly, such as fsck
//! and dump.
//!
//! On a model it is the layout of the mounted file system. On the host there is no portable way to
//! obtain one. An image of the same size replaces the drive, with the layout of the same tree, laid
//! out by the same allocator ([`Layout::of_tree`]).

use crate::{Result, System, Work};
use diskperf_machine::kernel::ffs::{
    DumpBlock, FileSystem, Fragment, Geometry, InodeKind, InodeNumber, Parameters, Writer,
};

pub use diskperf_machine::kernel::ffs::FsckPass;

/// Contiguous range of bytes on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Extent {
    /// Offset of the extent's first byte on the device.
    pub offset_bytes: u64,
    /// Length of the extent in bytes.
    pub length_bytes: u32,
}

/// Read request of fsck, with the pass that makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FsckRead {
    /// Pass of fsck that makes the read.
    pub pass: FsckPass,
    /// Extent that fsck reads.
    pub extent: Extent,
}

/// File or directory with its place in a file system's layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaidOut {
    /// Inode number of the file or directory.
    pub inode: u32,
    /// Whether the inode is a directory.
    pub directory: bool,
    /// Length of the file's or directory's contents in bytes.
    pub size_bytes: u64,
    /// Block on the device that contains the inode.
    pub inode_block: Extent,
    /// Path of the file or directory from the root of the file system, without a leading slash.
    pub path: String,
}

/// Segment of a file's contents, in order. Indirect blocks precede the data that they are needed
/// for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSegment {
    /// Extent of an indirect block.
    Indirect(Extent),
    /// Extent with data of the file.
    Data(Extent),
    /// Hole: zeroes that occupy no space on the device.
    Hole {
        /// Length of the hole in bytes.
        length_bytes: u32,
    },
}

/// File or directory of a tree to be laid out. Its parent is a number among the directories given
/// before it, counted from 1; 0 is the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node<'a> {
    /// Directory of the tree.
    Directory {
        /// Number of the parent directory.
        parent: usize,
        /// Name of the directory in its parent.
        name: &'a str,
    },
    /// File of the tree.
    File {
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
pub struct Shape {
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
    Image {
        /// Size of the image in bytes.
        image_bytes: u64,
        /// Reason why no file system can be created on the image.
        reason: String,
    },
    /// Tree that is larger than the file system.
    #[error("the tree does not fit into a file system of {image_bytes} bytes")]
    NoSpace {
        /// Size of the file system's image in bytes.
        image_bytes: u64,
    },
}

/// Layout of a file system at one time.
#[derive(Clone, Debug)]
pub struct Layout {
    device: Option<String>,
    file_system: FileSystem,
}

const SECTOR_BYTES: u32 = 512;

impl Layout {
    /// Returns the layout of a tree on a fresh file system of 4.2BSD with blocks of 8 KB and
    /// fragments of 1 KB and without rotational gaps (`tunefs -a 40 -d 0`). Each node is created in
    /// order, as by ordinary calls.
    ///
    /// # Errors
    ///
    /// The file system cannot be created, or is too small for the tree.
    pub fn of_tree<'a>(
        (image_bytes, shape): (u64, Shape),
        nodes: impl IntoIterator<Item = Node<'a>>,
    ) -> std::result::Result<Self, LayoutError> {
        let impossible = |reason: String| LayoutError::Image {
            image_bytes,
            reason,
        };
        let sectors = u32::try_from(image_bytes / u64::from(SECTOR_BYTES));
        let geometry = Geometry {
            sector_bytes: SECTOR_BYTES,
            sectors_per_track: shape.sectors_per_track,
            tracks_per_cylinder: shape.tracks_per_cylinder,
            partition_sectors: sectors
                .map_err(|_| impossible("its sector count exceeds 32 bits".into()))?,
            revolutions_per_second: shape.revolutions_per_second,
        };
        let parameters = Parameters {
            rotdelay_ms: 0,
            maxcontig_blocks: 40,
            ..Parameters::bsd42(8192, 1024)
        };
        let made = FileSystem::newfs(geometry, parameters);
        let mut writer = Writer::new(made.map_err(|error| impossible(error.to_string()))?);
        let mut directories = vec![FileSystem::ROOT];
        for node in nodes {
            // What a kernel would read and write meanwhile is of no interest.
            writer.metadata.clear();
            let made = match node {
                Node::Directory { parent, name } => writer
                    .make_directory(directories[parent], name)
                    .map(|inode| directories.push(inode)),
                Node::File {
                    parent,
                    name,
                    size_bytes,
                } => writer
                    .create(directories[parent], name)
                    .and_then(|inode| writer.write(inode, 0, size_bytes)),
            };
            made.map_err(|_| LayoutError::NoSpace { image_bytes })?;
        }
        Ok(Self {
            device: None,
            file_system: writer.file_system,
        })
    }

    pub(crate) fn of_device(device: String, file_system: FileSystem) -> Self {
        Self {
            device: Some(device),
            file_system,
        }
    }

    /// Returns the name under which the worker can read the device past every cache; `None` for a
    /// tree that was laid out without a device.
    pub fn device(&self) -> Option<&str> {
        self.device.as_deref()
    }

    /// Returns the bytes that files, directories and their indirect blocks occupy.
    pub fn used_bytes(&self) -> u64 {
        let inodes = self.file_system.dumped_inodes().into_iter();
        let fragments: u64 = inodes
            .map(|dumped| u64::from(self.file_system.held_fragments(dumped.inode)))
            .sum();
        fragments * u64::from(self.file_system.superblock().fragment_bytes())
    }

    /// Returns the extents that fsck reads, in its order.
    pub fn fsck_reads(&self) -> Vec<FsckRead> {
        let reads = self.file_system.fsck_reads().into_iter();
        reads
            .map(|read| FsckRead {
                pass: read.pass,
                extent: self.to_extent(read.address, read.bytes),
            })
            .collect()
    }

    /// Returns the blocks of all inodes, in order.
    pub fn inode_blocks(&self) -> Vec<Extent> {
        let blocks = self.file_system.inode_blocks().into_iter();
        blocks.map(|block| self.block_extent(block)).collect()
    }

    /// Returns all files and directories in order of their inodes.
    pub fn inodes(&self) -> Vec<LaidOut> {
        let dumped = self.file_system.dumped_inodes().into_iter();
        dumped
            .map(|dumped| LaidOut {
                inode: dumped.inode.0,
                directory: dumped.kind == InodeKind::Directory,
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
    pub fn parts(&self, inode: u32) -> Vec<FileSegment> {
        let blocks = self.file_system.dump_blocks(InodeNumber(inode)).into_iter();
        blocks
            .map(|block| match block {
                DumpBlock::Indirect { address, bytes } => {
                    FileSegment::Indirect(self.to_extent(address, bytes))
                }
                DumpBlock::Data { address, bytes } => {
                    FileSegment::Data(self.to_extent(address, bytes))
                }
                DumpBlock::Hole { bytes } => FileSegment::Hole {
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

    fn to_extent(&self, address: Fragment, bytes: u32) -> Extent {
        let fragment_bytes = self.file_system.superblock().fragment_bytes();
        Extent {
            offset_bytes: u64::from(address.0) * u64::from(fragment_bytes),
            length_bytes: bytes,
        }
    }

    fn block_extent(&self, address: Fragment) -> Extent {
        self.to_extent(address, self.file_system.superblock().block_bytes())
    }
}

/// Calls of a program that only a modelled computer can answer.
impl System {
    /// Returns the layout of a mounted file system at this time, with the name of its device. The
    /// call takes no virtual time. `None` on the host, where the layout is not known.
    pub fn layout(&self, mount: u32) -> Option<Layout> {
        match self {
            #[cfg(feature = "host")]
            System::Host(_) => {
                let _ = mount;
                None
            }
            System::Model(model) => model.layout(mount),
        }
    }

    /// Performs computing work of the program itself. A modelled computer takes as long as the
    /// catalogue and its speed determine. A real computer of today does such work in less time than
    /// a clock resolves, so that it takes no time.
    pub async fn work(&mut self, work: Work) -> Result<()> {
        match self {
            #[cfg(feature = "host")]
            System::Host(_) => {
                let _ = work;
                Ok(())
            }
            System::Model(model) => {
                let span = model.service_time_of(work);
                model.compute(span).await
            }
        }
    }
}
