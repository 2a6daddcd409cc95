//! On-disk layout of a seventh edition file system: boot block, super block, inodes, data. This
//! module knows no time.
//!
//! Numbers are stored as on the 80286, least significant byte first. Block numbers in an inode have
//! three bytes.

use super::super::ffs::InodeKind;

/// Size of a seventh edition block in bytes.
pub const BLOCK_BYTES: usize = 512;
/// Size of a seventh edition inode on the drive, in bytes.
pub(crate) const INODE_BYTES: usize = 64;
/// Number of inodes per block.
pub(crate) const INODES_PER_BLOCK: u32 = (BLOCK_BYTES / INODE_BYTES) as u32;
/// Size of a seventh edition directory entry in bytes: an inode number and a name.
pub(crate) const DIRECTORY_ENTRY_BYTES: usize = 16;
/// Longest name in a seventh edition directory, in bytes. Longer names are truncated.
pub(crate) const NAME_BYTES_MAX: usize = 14;
/// Number of block numbers in a seventh edition inode.
pub(crate) const INODE_ADDRESS_COUNT: usize = 13;
/// Number of an inode's block numbers that point directly to data blocks.
pub(crate) const DIRECT_ADDRESS_COUNT: u32 = 10;
/// Number of block numbers in an indirect block.
pub(crate) const POINTERS_PER_BLOCK: u32 = (BLOCK_BYTES / 4) as u32;
/// Maximum length of a seventh edition file in blocks.
const FILE_BLOCKS_MAX: u64 = DIRECT_ADDRESS_COUNT as u64
    + POINTERS_PER_BLOCK as u64
    + POINTERS_PER_BLOCK as u64 * POINTERS_PER_BLOCK as u64
    + POINTERS_PER_BLOCK as u64 * POINTERS_PER_BLOCK as u64 * POINTERS_PER_BLOCK as u64;
pub(crate) const FILE_BYTES_MAX: u64 = FILE_BLOCKS_MAX * BLOCK_BYTES as u64;
/// Block number of the super block, directly behind the boot block.
pub(crate) const SUPERBLOCK_BLOCK: u32 = 1;
/// Block number of the first inode block.
pub(crate) const FIRST_INODE_BLOCK: u32 = 2;
/// Inode number of the root directory. Inode 1 is the file of bad blocks.
pub(crate) const ROOT_INODE: u32 = 2;
/// Maximum number of free blocks listed in the super block, or in a block of the free list's chain
/// (`NICFREE`).
pub(crate) const LISTED_FREE_BLOCKS_MAX: usize = 50;
/// Maximum number of free inodes listed in the super block (`NICINOD`).
pub(crate) const LISTED_FREE_INODES_MAX: usize = 100;
/// Maximum number of inodes that mkfs creates, before rounding to whole blocks.
const INODES_MAX: u32 = 65_500;
/// Number of partition blocks per inode block, the default of mkfs.
const BLOCKS_PER_INODE_BLOCK: u32 = 25;

/// Seventh edition inode as stored on a drive.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct V7Inode {
    /// Type of the inode; `None` for a free inode.
    pub(crate) kind: Option<InodeKind>,
    pub(crate) link_count: u16,
    pub(crate) size_bytes: u32,
    /// Block numbers: ten of data, then indirect, double and triple indirect; 0 is no block.
    pub(crate) addresses: [u32; INODE_ADDRESS_COUNT],
}

const MODE_FILE: u16 = 0o100_666;
const MODE_DIRECTORY: u16 = 0o040_777;
const MODE_KIND_MASK: u16 = 0o170_000;
const ADDRESSES_OFFSET: usize = 12;

impl V7Inode {
    pub(crate) fn decode_inode(bytes: &[u8]) -> Self {
        let kind = match read_u16(bytes, 0) & MODE_KIND_MASK {
            kind if kind == MODE_FILE & MODE_KIND_MASK => Some(InodeKind::RegularFile),
            kind if kind == MODE_DIRECTORY & MODE_KIND_MASK => Some(InodeKind::Directory),
            _ => None,
        };
        let mut inode = Self {
            kind,
            link_count: read_u16(bytes, 2),
            size_bytes: read_u32(bytes, 8),
            addresses: [0; INODE_ADDRESS_COUNT],
        };
        for (number, address) in inode.addresses.iter_mut().enumerate() {
            let at = ADDRESSES_OFFSET + 3 * number;
            *address = u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], 0]);
        }
        inode
    }

    /// Encodes an inode: mode, links, owner, group, size, addresses, three times. Owner, group and
    /// times stay zero, because the modelled machine has one user and no calendar.
    pub(crate) fn encode_inode(&self, bytes: &mut [u8]) {
        bytes.fill(0);
        let mode = match self.kind {
            None => 0,
            Some(InodeKind::RegularFile) => MODE_FILE,
            Some(InodeKind::Directory) => MODE_DIRECTORY,
        };
        write_u16(bytes, 0, mode);
        write_u16(bytes, 2, self.link_count);
        write_u32(bytes, 8, self.size_bytes);
        for (number, address) in self.addresses.iter().enumerate() {
            let at = ADDRESSES_OFFSET + 3 * number;
            bytes[at..at + 3].copy_from_slice(&address.to_le_bytes()[..3]);
        }
    }

    /// Returns the number of blocks that the contents of the inode extend over.
    pub(crate) fn block_count(&self) -> u32 {
        self.size_bytes.div_ceil(BLOCK_BYTES as u32)
    }
}

/// Decodes a 16-bit number at an offset, least significant byte first.
pub(crate) fn read_u16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// Encodes a 16-bit number at an offset, least significant byte first.
pub(crate) fn write_u16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
}

/// Decodes a 32-bit number at an offset, least significant byte first.
pub(crate) fn read_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Encodes a 32-bit number at an offset, least significant byte first.
pub(crate) fn write_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// Returns the path to the number of a file's block: an index in the inode, followed by an index in
/// each indirect block. Returns `None` beyond the largest file.
pub(crate) fn pointer_path(block: u32) -> Option<Vec<usize>> {
    if block < DIRECT_ADDRESS_COUNT {
        return Some(vec![block as usize]);
    }
    let mut beyond = block - DIRECT_ADDRESS_COUNT;
    let mut below = 1;
    for depth in 1..=3_u32 {
        below *= POINTERS_PER_BLOCK;
        if beyond < below {
            let mut path = vec![(DIRECT_ADDRESS_COUNT + depth - 1) as usize];
            for _ in 0..depth {
                below /= POINTERS_PER_BLOCK;
                path.push((beyond / below % POINTERS_PER_BLOCK) as usize);
            }
            return Some(path);
        }
        beyond -= below;
    }
    None
}

/// Converts a name to its form in a directory entry: at most `NAME_BYTES_MAX` bytes, padded with
/// zeroes.
pub(crate) fn truncate_name(name: &str) -> [u8; NAME_BYTES_MAX] {
    let mut cut = [0; NAME_BYTES_MAX];
    for (to, from) in cut.iter_mut().zip(name.bytes()) {
        *to = from;
    }
    cut
}

pub(crate) fn encode_entry(inode: u32, name: &[u8; NAME_BYTES_MAX]) -> [u8; DIRECTORY_ENTRY_BYTES] {
    let mut bytes = [0; DIRECTORY_ENTRY_BYTES];
    write_u16(&mut bytes, 0, inode as u16);
    bytes[2..].copy_from_slice(name);
    bytes
}

/// Super block of a seventh edition file system (`struct filsys`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct V7Superblock {
    /// First block behind the inodes (`s_isize`).
    pub(crate) first_data_block: u32,
    /// Size of the file system in blocks (`s_fsize`).
    pub(crate) block_count: u32,
    /// Free blocks; the last is allocated first. The first entry is the block that holds the next
    /// part of the free list, or 0 at the end of the list (`s_free`).
    pub(crate) free_block_cache: Vec<u32>,
    /// Free inodes; the last is allocated first (`s_inode`).
    pub(crate) free_inode_cache: Vec<u32>,
    /// Interleave step given to mkfs, in blocks (`s_m`). The next field is `s_n`.
    pub(crate) interleave_step: u16,
    pub(crate) blocks_per_cylinder: u16,
}

const FREE_BLOCKS_OFFSET: usize = 6;
const FREE_INODES_OFFSET: usize = FREE_BLOCKS_OFFSET + 2 + 4 * LISTED_FREE_BLOCKS_MAX;
/// Offset of the interleave parameters in the super block. They follow the free inodes, four flags,
/// the time, and the counts of free blocks and inodes, which the kernel does not keep.
const INTERLEAVE_OFFSET: usize = FREE_INODES_OFFSET + 2 + 2 * LISTED_FREE_INODES_MAX + 14;

impl V7Superblock {
    pub(crate) fn encode_superblock(&self) -> Vec<u8> {
        let mut bytes = vec![0; BLOCK_BYTES];
        write_u16(&mut bytes, 0, self.first_data_block as u16);
        write_u32(&mut bytes, 2, self.block_count);
        bytes[FREE_BLOCKS_OFFSET..FREE_INODES_OFFSET].copy_from_slice(
            &encode_free(&self.free_block_cache)[..2 + 4 * LISTED_FREE_BLOCKS_MAX],
        );
        write_u16(
            &mut bytes,
            FREE_INODES_OFFSET,
            self.free_inode_cache.len() as u16,
        );
        for (place, inode) in self.free_inode_cache.iter().enumerate() {
            write_u16(
                &mut bytes,
                FREE_INODES_OFFSET + 2 + 2 * place,
                *inode as u16,
            );
        }
        write_u16(&mut bytes, INTERLEAVE_OFFSET, self.interleave_step);
        write_u16(&mut bytes, INTERLEAVE_OFFSET + 2, self.blocks_per_cylinder);
        bytes
    }

    pub(crate) fn decode_superblock(bytes: &[u8]) -> Self {
        let inodes = usize::from(read_u16(bytes, FREE_INODES_OFFSET)).min(LISTED_FREE_INODES_MAX);
        Self {
            first_data_block: u32::from(read_u16(bytes, 0)),
            block_count: read_u32(bytes, 2),
            free_block_cache: decode_free(&bytes[FREE_BLOCKS_OFFSET..]),
            free_inode_cache: (0..inodes)
                .map(|place| u32::from(read_u16(bytes, FREE_INODES_OFFSET + 2 + 2 * place)))
                .collect(),
            interleave_step: read_u16(bytes, INTERLEAVE_OFFSET),
            blocks_per_cylinder: read_u16(bytes, INTERLEAVE_OFFSET + 2),
        }
    }

    /// Reports whether a block lies in the data area of the file system.
    pub(crate) fn is_data_block(&self, block: u32) -> bool {
        (self.first_data_block..self.block_count).contains(&block)
    }

    /// Returns the block that holds an inode, and the inode's byte offset in it.
    pub(crate) fn inode_position(inode: u32) -> (u32, usize) {
        let place = inode - 1;
        (
            FIRST_INODE_BLOCK + place / INODES_PER_BLOCK,
            (place % INODES_PER_BLOCK) as usize * INODE_BYTES,
        )
    }

    /// Returns the number of inodes of the file system, free ones included.
    pub(crate) fn inode_count(&self) -> u32 {
        (self.first_data_block - FIRST_INODE_BLOCK) * INODES_PER_BLOCK
    }
}

/// Encodes a list of free blocks as a block of the free list's chain (`struct fblk`).
pub(crate) fn encode_free(free: &[u32]) -> Vec<u8> {
    let mut bytes = vec![0; BLOCK_BYTES];
    write_u16(&mut bytes, 0, free.len() as u16);
    for (place, block) in free.iter().enumerate() {
        write_u32(&mut bytes, 2 + 4 * place, *block);
    }
    bytes
}

/// Decodes a list of free blocks from a block of the free list's chain.
pub(crate) fn decode_free(bytes: &[u8]) -> Vec<u32> {
    let count = usize::from(read_u16(bytes, 0)).min(LISTED_FREE_BLOCKS_MAX);
    (0..count)
        .map(|place| read_u32(bytes, 2 + 4 * place))
        .collect()
}

/// Parameters of mkfs for a seventh edition file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct V7Parameters {
    /// Number of blocks that mkfs leaves between one block of a file and the next in the same
    /// cylinder.
    pub gap_blocks: u32,
    /// Number of sectors by which the block order of each cylinder starts later than that of the
    /// previous cylinder.
    pub cylinder_gap_sectors: u32,
    /// Number of blocks per cylinder.
    pub blocks_per_cylinder: u32,
}

/// Reason why a seventh edition file system cannot be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum V7MkfsError {
    /// Partition with too few blocks for the metadata of any file system.
    #[error("a partition of {0} blocks is too small for a seventh edition file system")]
    PartitionTooSmall(u64),
    /// Partition with more blocks than 24-bit block numbers can address.
    #[error("a partition of {0} blocks is too large: an inode can address 16777216 blocks")]
    PartitionTooLarge(u64),
}

/// Returns the order in which mkfs frees the blocks of a cylinder (the first half of `bflist`).
/// Block numbers count down from the end of the cylinder, starting with 1. Each block is `interleave_step`
/// blocks after the previous one, modulo the cylinder; if that block is taken, the next free one
/// follows.
pub(crate) fn cylinder_order(step: u32, blocks_per_cylinder: u32) -> Vec<u32> {
    let count = blocks_per_cylinder;
    let mut taken = vec![false; count as usize];
    let mut place = 0;
    let mut order = Vec::with_capacity(count as usize);
    for _ in 0..count {
        while taken[place as usize] {
            place = (place + 1) % count;
        }
        taken[place as usize] = true;
        order.push(place + 1);
        place = (place + step) % count;
    }
    order
}

/// Creates an empty super block for a partition of `bytes` bytes. No block is free yet.
fn empty_superblock(bytes: u64, parameters: V7Parameters) -> Result<V7Superblock, V7MkfsError> {
    let blocks = bytes / BLOCK_BYTES as u64;
    if blocks > 1 << 24 {
        return Err(V7MkfsError::PartitionTooLarge(blocks));
    }
    let inode_blocks =
        (blocks as u32 / BLOCKS_PER_INODE_BLOCK).clamp(1, INODES_MAX / INODES_PER_BLOCK);
    let first_data_block = FIRST_INODE_BLOCK + inode_blocks;
    if blocks <= u64::from(first_data_block) + 1 {
        return Err(V7MkfsError::PartitionTooSmall(blocks));
    }
    Ok(V7Superblock {
        first_data_block,
        block_count: blocks as u32,
        free_block_cache: vec![0],
        free_inode_cache: Vec::new(),
        interleave_step: (parameters.gap_blocks + 1) as u16,
        blocks_per_cylinder: parameters.blocks_per_cylinder as u16,
    })
}

/// Returns the data blocks in the order in which mkfs frees them (the second half of `bflist`):
/// cylinder by cylinder from the end of the disk downwards. An empty file system allocates them in
/// the reverse order.
pub(crate) fn free_order(superblock: &V7Superblock, parameters: V7Parameters) -> Vec<u32> {
    let count = parameters.blocks_per_cylinder;
    let order = cylinder_order(parameters.gap_blocks + 1, count);
    let (first, end) = (superblock.first_data_block, superblock.block_count);
    (0..end.div_ceil(count))
        .rev()
        .flat_map(|cylinder| {
            let turn = u64::from(cylinder) * u64::from(parameters.cylinder_gap_sectors);
            let turn = (turn % u64::from(count)) as u32;
            let block = |from_end: &u32| cylinder * count + (count - from_end + turn) % count;
            order.iter().map(block).collect::<Vec<_>>()
        })
        .filter(|block| (first..end).contains(block))
        .collect()
}

/// Creates an empty seventh edition file system (`mkfs`). Writes all its non-zero blocks.
///
/// # Errors
///
/// [`V7MkfsError`] if no file system can be created.
pub(crate) fn make_file_system(
    bytes: u64,
    parameters: V7Parameters,
    write: &mut impl FnMut(u32, &[u8]),
) -> Result<(), V7MkfsError> {
    let mut superblock = empty_superblock(bytes, parameters)?;
    let mut chained = Vec::new();
    for block in free_order(&superblock, parameters) {
        if superblock.free_block_cache.len() == LISTED_FREE_BLOCKS_MAX {
            write(block, &encode_free(&superblock.free_block_cache));
            chained = std::mem::take(&mut superblock.free_block_cache);
        }
        superblock.free_block_cache.push(block);
    }
    let home = superblock
        .free_block_cache
        .pop()
        .expect("a data block is free");
    if superblock.free_block_cache.is_empty() {
        // It was the one that names the next.
        superblock.free_block_cache = chained;
    }
    let mut root = vec![0; BLOCK_BYTES];
    for (place, name) in [".", ".."].into_iter().enumerate() {
        let at = place * DIRECTORY_ENTRY_BYTES;
        root[at..at + DIRECTORY_ENTRY_BYTES]
            .copy_from_slice(&encode_entry(ROOT_INODE, &truncate_name(name)));
    }
    write(home, &root);
    let mut inodes = vec![0; BLOCK_BYTES];
    let mut inode = V7Inode {
        kind: Some(InodeKind::RegularFile),
        ..V7Inode::default()
    };
    // The file of the bad blocks has none, and no name.
    inode.encode_inode(&mut inodes[..INODE_BYTES]);
    inode.kind = Some(InodeKind::Directory);
    inode.link_count = 2;
    inode.size_bytes = 2 * DIRECTORY_ENTRY_BYTES as u32;
    inode.addresses[0] = home;
    inode.encode_inode(&mut inodes[INODE_BYTES..2 * INODE_BYTES]);
    write(FIRST_INODE_BLOCK, &inodes);
    write(SUPERBLOCK_BLOCK, &superblock.encode_superblock());
    Ok(())
}

/// Returns the bytes that a new seventh edition file system has for files, when `bytes` is the size
/// of its partition. The indirect blocks of one file are subtracted.
///
/// # Errors
///
/// [`V7MkfsError`] if no file system can be created.
pub fn file_capacity_bytes(bytes: u64, parameters: V7Parameters) -> Result<u64, V7MkfsError> {
    let superblock = empty_superblock(bytes, parameters)?;
    let free = u64::from(superblock.block_count - superblock.first_data_block - 1);
    let pointing = free.div_ceil(u64::from(POINTERS_PER_BLOCK)) + 4;
    Ok(free.saturating_sub(pointing) * BLOCK_BYTES as u64)
}
