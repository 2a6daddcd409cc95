//! Layout of a file system as mkfs.xfs 6.1 makes it.

use crate::block::{MetadataKind, SECTOR_BYTES};
use crate::xfs::XfsMakeOptions;

/// Bytes of a block.
pub(super) const BLOCK_BYTES: u64 = 4096;
/// Bytes of an inode.
pub(super) const INODE_BYTES: u64 = 512;
/// Inodes of a chunk, the unit in which they are allocated.
pub(super) const CHUNK_INODES: u64 = 64;
/// Blocks of a chunk of inodes.
pub(super) const CHUNK_BLOCKS: u64 = CHUNK_INODES * INODE_BYTES / BLOCK_BYTES;
/// Bytes of a cluster, the unit in which inodes are read and written.
const CLUSTER_BYTES: u64 = 16 * 1024;
/// Allocation groups of a device of at most 4 TiB that shows no stripes.
const GROUPS: u64 = 4;
/// Blocks that a free list keeps for splits of the free-space trees.
const FREE_LIST_BLOCKS: u64 = 4;
/// Smallest log that mkfs.xfs makes by default.
const LOG_BYTES_MIN: u64 = 64 << 20;
/// Share of the device that the log takes where that is more.
const LOG_SHARE: u64 = 2048;
/// Smallest device that mkfs.xfs takes.
pub(super) const DEVICE_BYTES_MIN: u64 = 300 << 20;
/// Largest device for which the rules here hold.
pub(super) const DEVICE_BYTES_MAX: u64 = 4 << 40;

/// Metadata that is read, written and logged as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MetadataBuffer {
    /// First sector on the device.
    pub(super) sector: u64,
    /// Length in sectors, at least 1.
    pub(super) sectors: u64,
    /// Structure that the sectors hold.
    pub(super) kind: MetadataKind,
}

/// Layout of an XFS file system.
#[derive(Clone, Copy, Debug)]
pub(super) struct XfsGeometry {
    /// Blocks of the device.
    pub(super) blocks: u64,
    /// Blocks of an allocation group; the last one may be shorter.
    pub(super) group_blocks: u64,
    /// Bytes of a sector of the group headers.
    pub(super) sector_bytes: u64,
    /// First block of the log in its group.
    log_first: u64,
    /// Blocks of the log.
    pub(super) log_blocks: u64,
    /// Blocks of the headers of a group.
    header_blocks: u64,
    has_reflink: bool,
}

impl XfsGeometry {
    /// Returns the layout that mkfs.xfs makes on a device of `bytes`.
    pub(super) fn new(bytes: u64, options: &XfsMakeOptions) -> Self {
        let blocks = bytes / BLOCK_BYTES;
        let sector_bytes = u64::from(options.sector_bytes);
        let header_blocks = (4 * sector_bytes).div_ceil(BLOCK_BYTES);
        let mut geometry = Self {
            blocks,
            group_blocks: blocks.div_ceil(GROUPS),
            sector_bytes,
            log_first: 0,
            log_blocks: LOG_BYTES_MIN.max(bytes / LOG_SHARE) / BLOCK_BYTES,
            header_blocks,
            has_reflink: options.has_reflink,
        };
        let stripe = options
            .log_stripe_bytes
            .map_or(1, u64::from)
            .div_ceil(BLOCK_BYTES)
            .max(1);
        geometry.log_first = geometry.roots_end().next_multiple_of(stripe);
        geometry
    }

    /// Number of allocation groups.
    pub(super) fn groups(&self) -> u64 {
        self.blocks.div_ceil(self.group_blocks)
    }

    /// Group that holds the log.
    pub(super) fn log_group(&self) -> u64 {
        self.groups() / 2
    }

    /// First sector of the log.
    pub(super) fn log_sector(&self) -> u64 {
        self.block_sector(self.log_group() * self.group_blocks + self.log_first)
    }

    /// First sector of a block of the device.
    pub(super) fn block_sector(&self, block: u64) -> u64 {
        block * (BLOCK_BYTES / SECTOR_BYTES)
    }

    /// First block after the roots of a group's trees.
    fn roots_end(&self) -> u64 {
        self.header_blocks + 4 + u64::from(self.has_reflink)
    }

    /// Free extents of a new group as pairs of first block and length, without inodes.
    pub(super) fn free_extents(&self, group: u64) -> Vec<FreeExtent> {
        let length = self
            .group_blocks
            .min(self.blocks - group * self.group_blocks);
        let mut first = self.roots_end();
        let mut extents = Vec::new();
        if group == self.log_group() {
            if self.log_first > first {
                extents.push(FreeExtent {
                    first,
                    length: self.log_first - first,
                });
            }
            first = self.log_first + self.log_blocks;
        }
        extents.push(FreeExtent {
            first,
            length: length - first,
        });
        take_free_list(&mut extents);
        extents
    }

    /// Superblock of the first group.
    pub(super) fn superblock(&self) -> MetadataBuffer {
        self.header(0, 0, MetadataKind::Superblock)
    }

    /// Header of free space of a group (AGF).
    pub(super) fn free_space_header(&self, group: u64) -> MetadataBuffer {
        self.header(group, 1, MetadataKind::FreeSpaceHeader)
    }

    /// Header of inodes of a group (AGI).
    pub(super) fn inode_header(&self, group: u64) -> MetadataBuffer {
        self.header(group, 2, MetadataKind::InodeHeader)
    }

    /// Free list of a group (AGFL).
    pub(super) fn free_list(&self, group: u64) -> MetadataBuffer {
        self.header(group, 3, MetadataKind::FreeList)
    }

    fn header(&self, group: u64, index: u64, kind: MetadataKind) -> MetadataBuffer {
        let sectors = self.sector_bytes / SECTOR_BYTES;
        let start = self.block_sector(group * self.group_blocks);
        MetadataBuffer {
            sector: start + index * sectors,
            sectors,
            kind,
        }
    }

    /// Root of the tree of free space by block.
    pub(super) fn by_block_root(&self, group: u64) -> MetadataBuffer {
        self.root(group, 0, MetadataKind::FreeSpaceByBlock)
    }

    /// Root of the tree of free space by length.
    pub(super) fn by_count_root(&self, group: u64) -> MetadataBuffer {
        self.root(group, 1, MetadataKind::FreeSpaceByCount)
    }

    /// Root of the tree of inodes.
    pub(super) fn inode_root(&self, group: u64) -> MetadataBuffer {
        self.root(group, 2, MetadataKind::InodeTree)
    }

    /// Root of the tree of chunks with free inodes.
    pub(super) fn free_inode_root(&self, group: u64) -> MetadataBuffer {
        self.root(group, 3, MetadataKind::FreeInodeTree)
    }

    fn root(&self, group: u64, index: u64, kind: MetadataKind) -> MetadataBuffer {
        self.block(group * self.group_blocks + self.header_blocks + index, kind)
    }

    /// Block of the device as metadata of `kind`.
    pub(super) fn block(&self, block: u64, kind: MetadataKind) -> MetadataBuffer {
        let sectors = BLOCK_BYTES / SECTOR_BYTES;
        MetadataBuffer {
            sector: self.block_sector(block),
            sectors,
            kind,
        }
    }

    /// Cluster that holds an inode of a group.
    pub(super) fn inode_cluster(&self, group: u64, inode: u64) -> MetadataBuffer {
        let per_cluster = CLUSTER_BYTES / INODE_BYTES;
        let byte = inode / per_cluster * CLUSTER_BYTES;
        let sector = self.block_sector(group * self.group_blocks) + byte / SECTOR_BYTES;
        let kind = MetadataKind::InodeCluster;
        MetadataBuffer {
            sector,
            sectors: CLUSTER_BYTES / SECTOR_BYTES,
            kind,
        }
    }

    /// Clusters of the chunk that holds an inode of a group.
    pub(super) fn chunk_clusters(&self, group: u64, inode: u64) -> [MetadataBuffer; 2] {
        let first = inode / CHUNK_INODES * CHUNK_INODES;
        [first, first + CHUNK_INODES / 2].map(|inode| self.inode_cluster(group, inode))
    }
}

/// Run of free blocks of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FreeExtent {
    /// First block in the group.
    pub(super) first: u64,
    /// Length in blocks, at least 1.
    pub(super) length: u64,
}

impl FreeExtent {
    /// First block after the extent.
    pub(super) fn end(self) -> u64 {
        self.first + self.length
    }
}

/// Takes the blocks of the free list from the smallest extents, as mkfs.xfs fills it.
fn take_free_list(extents: &mut Vec<FreeExtent>) {
    for _ in 0..FREE_LIST_BLOCKS {
        if let Some(smallest) = extents.iter_mut().min_by_key(|extent| extent.length) {
            smallest.first += 1;
            smallest.length -= 1;
        }
        extents.retain(|extent| extent.length > 0);
    }
}
