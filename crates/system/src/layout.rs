//! Where the parts of a file system lie on its device: what programs that read
//! the device itself, as fsck and dump do, have to know.
//!
//! On a model it is the layout of the mounted file system. On the host nobody
//! can be asked for it portably; an image of the same size takes the drive's
//! place, and its layout is that of the same tree, laid out by the same
//! allocator ([`Layout::of_tree`]).

use crate::{Result, System, Work};
use diskperf_machine::kernel::ffs::{
    DumpBlock, FileSystem, Fragment, Geometry, InodeKind, InodeNumber, Parameters, Writer,
};

pub use diskperf_machine::kernel::ffs::FsckPass;

/// Bytes of a device, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Extent {
    /// Where they start.
    pub offset_bytes: u64,
    /// How many.
    pub length_bytes: u32,
}

/// One read of fsck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FsckRead {
    /// The pass that it belongs to.
    pub pass: FsckPass,
    /// What is read.
    pub extent: Extent,
}

/// A file or a directory of a file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaidOut {
    /// The number of its inode.
    pub inode: u32,
    /// Whether it is a directory.
    pub directory: bool,
    /// Bytes of its contents.
    pub size_bytes: u64,
    /// The block that its inode is in.
    pub inode_block: Extent,
    /// Its name from the top of the file system on, without a slash at the
    /// start.
    pub path: String,
}

/// A part of a file's contents, in order; indirect blocks are in between, where
/// they have to be read to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSegment {
    /// An indirect block.
    Indirect(Extent),
    /// Contents.
    Data(Extent),
    /// Zeroes that are nowhere.
    Hole {
        /// How many.
        length_bytes: u32,
    },
}

/// A file or a directory of a tree that is to be laid out. The parent is a
/// number among the directories that were given before it, from 1; 0 is the top.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node<'a> {
    /// A directory.
    Directory {
        /// The directory that it is in.
        parent: usize,
        /// Its name there.
        name: &'a str,
    },
    /// A file.
    File {
        /// The directory that it is in.
        parent: usize,
        /// Its name there.
        name: &'a str,
        /// How long it is.
        size_bytes: u64,
    },
}

/// The shape of a drive, as a file system believes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Sectors of 512 bytes in a track.
    pub sectors_per_track: u32,
    /// Tracks in a cylinder.
    pub tracks_per_cylinder: u32,
    /// Revolutions in a second.
    pub revolutions_per_second: u32,
}

/// Why a tree cannot be laid out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// No such file system can be made.
    #[error("no file system can be made in {image_bytes} bytes: {reason}")]
    Image {
        /// Its size.
        image_bytes: u64,
        /// What is wrong.
        reason: String,
    },
    /// The tree is larger than the file system.
    #[error("the tree does not fit into a file system of {image_bytes} bytes")]
    NoSpace {
        /// The size of the file system.
        image_bytes: u64,
    },
}

/// The layout of a file system at one moment.
#[derive(Clone, Debug)]
pub struct Layout {
    device: Option<String>,
    file_system: FileSystem,
}

const SECTOR_BYTES: u32 = 512;

impl Layout {
    /// A tree on a fresh file system of 4.2BSD with blocks of 8 KB and
    /// fragments of 1 KB that is laid out without gaps (`tunefs -a 40 -d 0`),
    /// as each node would be made, in order, by ordinary calls.
    ///
    /// # Errors
    ///
    /// Where no such file system can be made, or it is too small.
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
                .map_err(|_| impossible("it is larger than its sectors can be counted".into()))?,
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

    /// The name under which the worker can read the device past every cache;
    /// none of a tree that was laid out for itself.
    pub fn device(&self) -> Option<&str> {
        self.device.as_deref()
    }

    /// Bytes that files, directories and their indirect blocks take.
    pub fn used_bytes(&self) -> u64 {
        let inodes = self.file_system.dumped_inodes().into_iter();
        let fragments: u64 = inodes
            .map(|dumped| u64::from(self.file_system.held_fragments(dumped.inode)))
            .sum();
        fragments * u64::from(self.file_system.superblock().fragment_bytes())
    }

    /// What fsck reads, in its order.
    pub fn fsck_reads(&self) -> Vec<FsckRead> {
        let reads = self.file_system.fsck_reads().into_iter();
        reads
            .map(|read| FsckRead {
                pass: read.pass,
                extent: self.extent(read.address, read.bytes),
            })
            .collect()
    }

    /// The blocks of all inodes, in order.
    pub fn inode_blocks(&self) -> Vec<Extent> {
        let blocks = self.file_system.inode_blocks().into_iter();
        blocks.map(|block| self.block(block)).collect()
    }

    /// All files and directories, in the order of their inodes.
    pub fn inodes(&self) -> Vec<LaidOut> {
        let dumped = self.file_system.dumped_inodes().into_iter();
        dumped
            .map(|dumped| LaidOut {
                inode: dumped.inode.0,
                directory: dumped.kind == InodeKind::Directory,
                size_bytes: dumped.size_bytes,
                inode_block: self.block(dumped.inode_block),
                path: dumped.path,
            })
            .collect()
    }

    /// The contents of a file or a directory, part by part.
    ///
    /// # Panics
    ///
    /// If there is no such inode.
    pub fn parts(&self, inode: u32) -> Vec<FileSegment> {
        let blocks = self.file_system.dump_blocks(InodeNumber(inode)).into_iter();
        blocks
            .map(|block| match block {
                DumpBlock::Indirect { address, bytes } => {
                    FileSegment::Indirect(self.extent(address, bytes))
                }
                DumpBlock::Data { address, bytes } => {
                    FileSegment::Data(self.extent(address, bytes))
                }
                DumpBlock::Hole { bytes } => FileSegment::Hole {
                    length_bytes: bytes,
                },
            })
            .collect()
    }

    /// The records of a directory, as they are on the drive.
    ///
    /// # Panics
    ///
    /// If it is not a directory.
    pub fn directory_bytes(&self, inode: u32) -> Vec<u8> {
        self.file_system.directory_bytes(InodeNumber(inode))
    }

    fn extent(&self, address: Fragment, bytes: u32) -> Extent {
        let fragment_bytes = self.file_system.superblock().fragment_bytes();
        Extent {
            offset_bytes: u64::from(address.0) * u64::from(fragment_bytes),
            length_bytes: bytes,
        }
    }

    fn block(&self, address: Fragment) -> Extent {
        self.extent(address, self.file_system.superblock().block_bytes())
    }
}

/// What only a modelled computer knows.
impl System {
    /// The layout of a mounted file system at this moment, and the name of its
    /// device. It takes no time. None where that is not known: on the host.
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

    /// Does work of the program's own. A modelled computer takes as long as the
    /// catalogue and its speed have it; one of today has done it before a clock
    /// could tell, and takes no time.
    pub async fn work(&mut self, work: Work) -> Result<()> {
        match self {
            #[cfg(feature = "host")]
            System::Host(_) => {
                let _ = work;
                Ok(())
            }
            System::Model(model) => {
                let span = model.time_of(work);
                model.compute(span).await
            }
        }
    }
}
