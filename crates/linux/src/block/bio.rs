//! Bios: what file systems submit.

use super::SECTOR_BYTES;

/// File or directory, by the order of creation. Never reused, in contrast to inode numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// Kind of metadata that a bio reads or writes in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MetadataKind {
    /// Superblock of the file system.
    Superblock,
    /// Group descriptors, behind the superblock (ext4).
    GroupDescriptors,
    /// Bitmap of blocks (ext4).
    BlockBitmap,
    /// Bitmap of inodes (ext4).
    InodeBitmap,
    /// Table of inodes (ext4).
    InodeTable,
    /// Superblock of the journal (ext4).
    JournalSuperblock,
    /// Block of a directory.
    Directory,
    /// Block of a file's extent tree.
    ExtentTree,
    /// Header of free space of an allocation group (XFS).
    FreeSpaceHeader,
    /// Header of inodes of an allocation group (XFS).
    InodeHeader,
    /// Free list of an allocation group (XFS).
    FreeList,
    /// B-tree of free space by block (XFS).
    FreeSpaceByBlock,
    /// B-tree of free space by count (XFS).
    FreeSpaceByCount,
    /// B-tree of inodes (XFS).
    InodeTree,
    /// B-tree of free inodes (XFS).
    FreeInodeTree,
    /// Cluster of inodes (XFS).
    InodeCluster,
}

/// Operation of a bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BioOperation {
    /// Read of sectors into memory.
    Read,
    /// Write of sectors from memory.
    Write,
    /// Write of zeroes without data.
    WriteZeroes,
    /// Discard of sectors without data.
    Discard,
    /// Flush of the device's write cache without data.
    Flush,
}

/// Content of the sectors of a bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BioContent {
    /// Nothing: flushes and discards.
    None,
    /// Data of a file.
    Data {
        /// File that holds the data.
        file: FileId,
        /// Offset in the file in bytes.
        offset: u64,
    },
    /// Blocks of ext4's journal, or of XFS's log.
    Journal,
    /// Metadata at its home place.
    Metadata(MetadataKind),
}

/// Flags of a bio (REQ_…).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BioFlags {
    /// Flush of the write cache before the data (REQ_PREFLUSH).
    pub preflush: bool,
    /// Durable at completion (REQ_FUA).
    pub fua: bool,
    /// Somebody waits for it (REQ_SYNC).
    pub sync: bool,
    /// Metadata of a file system (REQ_META).
    pub metadata: bool,
    /// Read-ahead, which may fail (REQ_RAHEAD).
    pub read_ahead: bool,
}

/// Bio: an operation on contiguous sectors of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bio {
    /// Operation on the sectors.
    pub operation: BioOperation,
    /// Content of the sectors.
    pub content: BioContent,
    /// First sector on the device.
    pub sector: u64,
    /// Length in sectors; 0 of a flush.
    pub sectors: u64,
    /// Segments in memory: runs of adjacent pages.
    pub segments: u32,
    /// Flags of the bio.
    pub flags: BioFlags,
}

impl Bio {
    /// Returns a flush without data.
    #[must_use]
    pub fn flush() -> Self {
        let flags = BioFlags {
            preflush: true,
            sync: true,
            ..BioFlags::default()
        };
        Self {
            operation: BioOperation::Flush,
            content: BioContent::None,
            sector: 0,
            sectors: 0,
            segments: 0,
            flags,
        }
    }

    /// Returns the first sector after the bio.
    #[must_use]
    pub fn end_sector(&self) -> u64 {
        self.sector + self.sectors
    }

    /// Returns the length in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.sectors * SECTOR_BYTES
    }
}
