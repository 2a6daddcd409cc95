//! The file system of the seventh edition as it lies on a drive: boot block,
//! super block, inodes, data. Bytes and numbers, no time.
//!
//! Numbers are written as the 80286 has them, the least significant byte
//! first. Block numbers in an inode have three bytes.

use super::super::ffs::InodeKind;

/// Bytes of a block.
pub const BLOCK_BYTES: usize = 512;
/// Bytes of an inode on a drive.
pub(crate) const INODE_BYTES: usize = 64;
/// Inodes of a block.
pub(crate) const INODES_PER_BLOCK: u32 = (BLOCK_BYTES / INODE_BYTES) as u32;
/// Bytes of a directory's entry: an inode's number and a name.
pub(crate) const ENTRY_BYTES: usize = 16;
/// The longest name; what is longer is cut.
pub(crate) const NAME_BYTES: usize = 14;
/// Block numbers in an inode.
pub(crate) const ADDRESSES: usize = 13;
/// Those of them that are of blocks of data.
pub(crate) const DIRECT: u32 = 10;
/// Block numbers in an indirect block.
pub(crate) const POINTERS: u32 = (BLOCK_BYTES / 4) as u32;
/// The longest file, in blocks.
const MOST_BLOCKS: u64 = DIRECT as u64
    + POINTERS as u64
    + POINTERS as u64 * POINTERS as u64
    + POINTERS as u64 * POINTERS as u64 * POINTERS as u64;
/// The longest file.
pub(crate) const MOST_BYTES: u64 = MOST_BLOCKS * BLOCK_BYTES as u64;
/// The super block, behind the boot block.
pub(crate) const SUPERBLOCK: u32 = 1;
/// The first block of inodes.
pub(crate) const FIRST_INODE_BLOCK: u32 = 2;
/// The root directory's inode; the one before it is that of bad blocks.
pub(crate) const ROOT: u32 = 2;
/// Free blocks that the super block, or a block of the chain, names (NICFREE).
pub(crate) const MOST_FREE: usize = 50;
/// Free inodes that the super block names (NICINOD).
pub(crate) const MOST_INODES: usize = 100;
/// The most inodes that mkfs makes, before they are rounded to blocks.
const MOST_INODES_MADE: u32 = 65_500;
/// Blocks of a partition for each block of inodes, unless mkfs is told.
const BLOCKS_PER_INODE_BLOCK: u32 = 25;

/// An inode as it is on a drive.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Inode {
    /// None where no inode is.
    pub(crate) kind: Option<InodeKind>,
    pub(crate) links: u16,
    pub(crate) size: u32,
    /// Ten of data, then indirect, double and triple indirect; 0 is none.
    pub(crate) addresses: [u32; ADDRESSES],
}

const MODE_FILE: u16 = 0o100_666;
const MODE_DIRECTORY: u16 = 0o040_777;
const MODE_KIND: u16 = 0o170_000;
const ADDRESSES_AT: usize = 12;

impl Inode {
    pub(crate) fn decode(bytes: &[u8]) -> Self {
        let kind = match word(bytes, 0) & MODE_KIND {
            kind if kind == MODE_FILE & MODE_KIND => Some(InodeKind::File),
            kind if kind == MODE_DIRECTORY & MODE_KIND => Some(InodeKind::Directory),
            _ => None,
        };
        let mut inode = Self {
            kind,
            links: word(bytes, 2),
            size: long(bytes, 8),
            addresses: [0; ADDRESSES],
        };
        for (number, address) in inode.addresses.iter_mut().enumerate() {
            let at = ADDRESSES_AT + 3 * number;
            *address = u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], 0]);
        }
        inode
    }

    /// Its bytes: mode, links, owner, group, size, addresses, three times. The
    /// modelled machine has one user, and no calendar.
    pub(crate) fn encode(&self, bytes: &mut [u8]) {
        bytes.fill(0);
        let mode = match self.kind {
            None => 0,
            Some(InodeKind::File) => MODE_FILE,
            Some(InodeKind::Directory) => MODE_DIRECTORY,
        };
        put_word(bytes, 0, mode);
        put_word(bytes, 2, self.links);
        put_long(bytes, 8, self.size);
        for (number, address) in self.addresses.iter().enumerate() {
            let at = ADDRESSES_AT + 3 * number;
            bytes[at..at + 3].copy_from_slice(&address.to_le_bytes()[..3]);
        }
    }

    /// Blocks that its bytes reach over.
    pub(crate) fn blocks(&self) -> u32 {
        self.size.div_ceil(BLOCK_BYTES as u32)
    }
}

/// A number of two bytes.
pub(crate) fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// Writes one.
pub(crate) fn put_word(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
}

/// A number of four bytes.
pub(crate) fn long(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Writes one.
pub(crate) fn put_long(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// The way to the number of a file's block: its place in the inode, and then
/// in one indirect block after the other. None of a block that no file has.
pub(crate) fn path(block: u32) -> Option<Vec<usize>> {
    if block < DIRECT {
        return Some(vec![block as usize]);
    }
    let mut beyond = block - DIRECT;
    let mut below = 1;
    for depth in 1..=3_u32 {
        below *= POINTERS;
        if beyond < below {
            let mut path = vec![(DIRECT + depth - 1) as usize];
            for _ in 0..depth {
                below /= POINTERS;
                path.push((beyond / below % POINTERS) as usize);
            }
            return Some(path);
        }
        beyond -= below;
    }
    None
}

/// The first `NAME_BYTES` of a name, with zeroes behind it.
pub(crate) fn cut(name: &str) -> [u8; NAME_BYTES] {
    let mut cut = [0; NAME_BYTES];
    for (to, from) in cut.iter_mut().zip(name.bytes()) {
        *to = from;
    }
    cut
}

/// An entry of a directory.
pub(crate) fn entry(inode: u32, name: &[u8; NAME_BYTES]) -> [u8; ENTRY_BYTES] {
    let mut bytes = [0; ENTRY_BYTES];
    put_word(&mut bytes, 0, inode as u16);
    bytes[2..].copy_from_slice(name);
    bytes
}

/// The super block (struct filsys).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Superblock {
    /// The first block behind the inodes (s_isize).
    pub(crate) first_data_block: u32,
    /// Blocks of the file system (s_fsize).
    pub(crate) blocks: u32,
    /// Free blocks; the last is taken first. The first one holds the next of
    /// them, and is 0 where there are none (s_free).
    pub(crate) free: Vec<u32>,
    /// Free inodes; the last is taken first (s_inode).
    pub(crate) inodes: Vec<u32>,
    /// What mkfs was told (s_m, s_n).
    pub(crate) step: u16,
    pub(crate) blocks_per_cylinder: u16,
}

const FREE_AT: usize = 6;
const INODES_AT: usize = FREE_AT + 2 + 4 * MOST_FREE;
/// Behind the inodes: four flags, the time, and how many blocks and inodes are
/// free, which the kernel does not keep.
const INTERLEAVE_AT: usize = INODES_AT + 2 + 2 * MOST_INODES + 14;

impl Superblock {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; BLOCK_BYTES];
        put_word(&mut bytes, 0, self.first_data_block as u16);
        put_long(&mut bytes, 2, self.blocks);
        bytes[FREE_AT..INODES_AT].copy_from_slice(&encode_free(&self.free)[..2 + 4 * MOST_FREE]);
        put_word(&mut bytes, INODES_AT, self.inodes.len() as u16);
        for (place, inode) in self.inodes.iter().enumerate() {
            put_word(&mut bytes, INODES_AT + 2 + 2 * place, *inode as u16);
        }
        put_word(&mut bytes, INTERLEAVE_AT, self.step);
        put_word(&mut bytes, INTERLEAVE_AT + 2, self.blocks_per_cylinder);
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Self {
        let inodes = usize::from(word(bytes, INODES_AT)).min(MOST_INODES);
        Self {
            first_data_block: u32::from(word(bytes, 0)),
            blocks: long(bytes, 2),
            free: decode_free(&bytes[FREE_AT..]),
            inodes: (0..inodes)
                .map(|place| u32::from(word(bytes, INODES_AT + 2 + 2 * place)))
                .collect(),
            step: word(bytes, INTERLEAVE_AT),
            blocks_per_cylinder: word(bytes, INTERLEAVE_AT + 2),
        }
    }

    /// Whether a block is one of data.
    pub(crate) fn is_data(&self, block: u32) -> bool {
        (self.first_data_block..self.blocks).contains(&block)
    }

    /// The block that an inode is in, and where in it.
    pub(crate) fn inode_place(inode: u32) -> (u32, usize) {
        let place = inode - 1;
        (
            FIRST_INODE_BLOCK + place / INODES_PER_BLOCK,
            (place % INODES_PER_BLOCK) as usize * INODE_BYTES,
        )
    }

    /// Inodes that there are.
    pub(crate) fn inode_count(&self) -> u32 {
        (self.first_data_block - FIRST_INODE_BLOCK) * INODES_PER_BLOCK
    }
}

/// The numbers of free blocks as a block of the chain has them (struct fblk).
pub(crate) fn encode_free(free: &[u32]) -> Vec<u8> {
    let mut bytes = vec![0; BLOCK_BYTES];
    put_word(&mut bytes, 0, free.len() as u16);
    for (place, block) in free.iter().enumerate() {
        put_long(&mut bytes, 2 + 4 * place, *block);
    }
    bytes
}

/// The same, read.
pub(crate) fn decode_free(bytes: &[u8]) -> Vec<u32> {
    let count = usize::from(word(bytes, 0)).min(MOST_FREE);
    (0..count).map(|place| long(bytes, 2 + 4 * place)).collect()
}

/// What mkfs is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct V7Parameters {
    /// Blocks of a cylinder between one block of a file and the next.
    pub gap_blocks: u32,
    /// By how many sectors each cylinder's order starts later than that of the
    /// cylinder before it.
    pub cylinder_gap_sectors: u32,
    /// Blocks of a cylinder.
    pub blocks_per_cylinder: u32,
}

/// Why a file system cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MkfsError {
    /// Too few blocks for what every file system has.
    #[error("a partition of {0} blocks has no room for a file system of the seventh edition")]
    TooSmall(u64),
    /// Blocks are numbered with three bytes.
    #[error("a partition of {0} blocks is larger than the 16777216 that an inode can number")]
    TooLarge(u64),
}

/// The numbers of a cylinder's blocks, counted down from its end and from 1, in
/// the order in which mkfs frees them (the first half of bflist): `step` on
/// from the last, round the cylinder, and on by one from one that is taken.
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

/// Empty super block for a partition of these bytes; no block is free yet.
fn bare(bytes: u64, parameters: V7Parameters) -> Result<Superblock, MkfsError> {
    let blocks = bytes / BLOCK_BYTES as u64;
    if blocks > 1 << 24 {
        return Err(MkfsError::TooLarge(blocks));
    }
    let inode_blocks =
        (blocks as u32 / BLOCKS_PER_INODE_BLOCK).clamp(1, MOST_INODES_MADE / INODES_PER_BLOCK);
    let first_data_block = FIRST_INODE_BLOCK + inode_blocks;
    if blocks <= u64::from(first_data_block) + 1 {
        return Err(MkfsError::TooSmall(blocks));
    }
    Ok(Superblock {
        first_data_block,
        blocks: blocks as u32,
        free: vec![0],
        inodes: Vec::new(),
        step: (parameters.gap_blocks + 1) as u16,
        blocks_per_cylinder: parameters.blocks_per_cylinder as u16,
    })
}

/// The blocks of data in the order in which mkfs frees them (the second half of
/// bflist): cylinder by cylinder from the end of the disk downwards. An empty
/// file system gives them out the other way round, the last one first.
pub(crate) fn free_order(superblock: &Superblock, parameters: V7Parameters) -> Vec<u32> {
    let count = parameters.blocks_per_cylinder;
    let order = cylinder_order(parameters.gap_blocks + 1, count);
    let (first, end) = (superblock.first_data_block, superblock.blocks);
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

/// Makes an empty file system (mkfs): writes all its blocks that are not
/// zeroes.
///
/// # Errors
///
/// [`MkfsError`] where there can be none.
pub(crate) fn mkfs(
    bytes: u64,
    parameters: V7Parameters,
    write: &mut impl FnMut(u32, &[u8]),
) -> Result<(), MkfsError> {
    let mut superblock = bare(bytes, parameters)?;
    let mut chained = Vec::new();
    for block in free_order(&superblock, parameters) {
        if superblock.free.len() == MOST_FREE {
            write(block, &encode_free(&superblock.free));
            chained = std::mem::take(&mut superblock.free);
        }
        superblock.free.push(block);
    }
    let home = superblock.free.pop().expect("a block of data is free");
    if superblock.free.is_empty() {
        // It was the one that names the next.
        superblock.free = chained;
    }
    let mut root = vec![0; BLOCK_BYTES];
    for (place, name) in [".", ".."].into_iter().enumerate() {
        let at = place * ENTRY_BYTES;
        root[at..at + ENTRY_BYTES].copy_from_slice(&entry(ROOT, &cut(name)));
    }
    write(home, &root);
    let mut inodes = vec![0; BLOCK_BYTES];
    let mut inode = Inode {
        kind: Some(InodeKind::File),
        ..Inode::default()
    };
    // The file of the bad blocks has none, and no name.
    inode.encode(&mut inodes[..INODE_BYTES]);
    inode.kind = Some(InodeKind::Directory);
    inode.links = 2;
    inode.size = 2 * ENTRY_BYTES as u32;
    inode.addresses[0] = home;
    inode.encode(&mut inodes[INODE_BYTES..2 * INODE_BYTES]);
    write(FIRST_INODE_BLOCK, &inodes);
    write(SUPERBLOCK, &superblock.encode());
    Ok(())
}

/// Bytes that a fresh file system on so many bytes has for files, with what
/// one file needs to point at them.
///
/// # Errors
///
/// [`MkfsError`] where there can be none.
pub fn room_bytes(bytes: u64, parameters: V7Parameters) -> Result<u64, MkfsError> {
    let superblock = bare(bytes, parameters)?;
    let free = u64::from(superblock.blocks - superblock.first_data_block - 1);
    let pointing = free.div_ceil(u64::from(POINTERS)) + 4;
    Ok(free.saturating_sub(pointing) * BLOCK_BYTES as u64)
}
