//! On-disk layout of the first file system of Minix: boot block, super block, bit maps, inodes, and
//! zones of one block. This module knows no time.
//!
//! Numbers are stored as on the 68000, most significant byte first.

use super::check::BlockReader;

/// Size of a Minix block, and of a zone, in bytes.
pub const BLOCK_BYTES: usize = 1024;
/// Size of a Minix inode on the drive, in bytes.
pub(crate) const INODE_BYTES: usize = 32;
const INODES_PER_BLOCK: u32 = (BLOCK_BYTES / INODE_BYTES) as u32;
/// Size of a Minix directory entry in bytes: an inode number and a name.
pub(crate) const DIRECTORY_ENTRY_BYTES: usize = 16;
/// Longest name in a Minix directory, in bytes. Longer names are truncated.
pub(crate) const NAME_BYTES_MAX: usize = 14;
/// Number of zones to which a Minix inode points directly.
pub(crate) const DIRECT_ZONE_COUNT: u32 = 7;
/// Number of zones to which an indirect block points.
pub(crate) const ZONES_PER_BLOCK: u32 = (BLOCK_BYTES / 2) as u32;
/// Maximum length of a Minix file in blocks.
pub(crate) const FILE_BLOCKS_MAX: u32 =
    DIRECT_ZONE_COUNT + ZONES_PER_BLOCK + ZONES_PER_BLOCK * ZONES_PER_BLOCK;
pub(crate) const FILE_BYTES_MAX: u64 = FILE_BLOCKS_MAX as u64 * BLOCK_BYTES as u64;
pub(crate) const ROOT_INODE: u32 = 1;
/// Magic number that identifies a Minix super block.
const SUPERBLOCK_MAGIC: u16 = 0x137f;
/// First block of the bit maps, which follow the boot block and the super block.
const FIRST_MAP_BLOCK: u32 = 2;
const BITS_PER_BLOCK: u32 = BLOCK_BYTES as u32 * 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MinixInodeKind {
    /// Inode of a regular file.
    File,
    Directory,
}

const MODE_FILE: u16 = 0o100_666;
const MODE_DIRECTORY: u16 = 0o040_777;
const MODE_KIND_MASK: u16 = 0o170_000;

/// Minix inode as stored on a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MinixInode {
    pub(crate) kind: MinixInodeKind,
    pub(crate) size_bytes: u64,
    pub(crate) link_count: u8,
    /// Direct, indirect and double indirect zones; 0 is no zone.
    pub(crate) zones: [u16; 9],
}

impl MinixInode {
    pub(crate) fn new(kind: MinixInodeKind) -> Self {
        Self {
            kind,
            size_bytes: 0,
            link_count: 0,
            zones: [0; 9],
        }
    }

    /// Decodes an inode from its bytes. Returns `None` if they hold no inode.
    pub(crate) fn decode_inode(bytes: &[u8]) -> Option<Self> {
        let mode = read_u16(bytes, 0);
        let kind = match mode & MODE_KIND_MASK {
            kind if kind == MODE_FILE & MODE_KIND_MASK => MinixInodeKind::File,
            kind if kind == MODE_DIRECTORY & MODE_KIND_MASK => MinixInodeKind::Directory,
            _ => return None,
        };
        let mut zones = [0; 9];
        for (number, zone) in zones.iter_mut().enumerate() {
            *zone = read_u16(bytes, 14 + 2 * number);
        }
        Some(Self {
            kind,
            size_bytes: u64::from(read_u16(bytes, 4)) << 16 | u64::from(read_u16(bytes, 6)),
            link_count: bytes[13],
            zones,
        })
    }

    /// Encodes an inode: mode, owner, size, time, group, links, zones. Owner, group and time stay
    /// zero, because the modelled machine has one user and no calendar.
    pub(crate) fn encode_inode(&self, bytes: &mut [u8]) {
        bytes.fill(0);
        let mode = match self.kind {
            MinixInodeKind::File => MODE_FILE,
            MinixInodeKind::Directory => MODE_DIRECTORY,
        };
        write_u16(bytes, 0, mode);
        write_u16(bytes, 4, (self.size_bytes >> 16) as u16);
        write_u16(bytes, 6, self.size_bytes as u16);
        bytes[13] = self.link_count;
        for (number, zone) in self.zones.iter().enumerate() {
            write_u16(bytes, 14 + 2 * number, *zone);
        }
    }

    /// Returns the number of blocks that the contents of the inode extend over.
    pub(crate) fn block_count(&self) -> u32 {
        self.size_bytes.div_ceil(BLOCK_BYTES as u64) as u32
    }
}

/// Decodes a 16-bit number at an offset, most significant byte first.
pub(crate) fn read_u16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Encodes a 16-bit number at an offset, most significant byte first.
pub(crate) fn write_u16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// Location of the zone number of a file's block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockPointer {
    /// Index in the inode itself.
    Direct(usize),
    Indirect(usize),
    /// Index in the double indirect block, and index in the second-level block that it points to.
    DoubleIndirect(usize, usize),
}

/// Returns the location of the zone number of a file's block.
pub(crate) fn locate_pointer(block: u32) -> BlockPointer {
    let Some(beyond) = block.checked_sub(DIRECT_ZONE_COUNT) else {
        return BlockPointer::Direct(block as usize);
    };
    match beyond.checked_sub(ZONES_PER_BLOCK) {
        None => BlockPointer::Indirect(beyond as usize),
        Some(beyond) => BlockPointer::DoubleIndirect(
            (beyond / ZONES_PER_BLOCK) as usize,
            (beyond % ZONES_PER_BLOCK) as usize,
        ),
    }
}

/// Bit map of the inodes or zones in use. Bit 0 is never free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AllocationMap {
    map_bytes: Vec<u8>,
    bit_count: u32,
    pub(crate) is_dirty: bool,
}

impl AllocationMap {
    fn new(bits: u32) -> Self {
        let blocks = bits.div_ceil(BITS_PER_BLOCK) as usize;
        let mut map = Self {
            map_bytes: vec![0; blocks * BLOCK_BYTES],
            bit_count: bits,
            is_dirty: true,
        };
        map.set_bit(0, true);
        map
    }

    pub(crate) fn is_bit_taken(&self, bit: u32) -> bool {
        self.map_bytes[bit as usize / 8] >> (bit % 8) & 1 == 1
    }

    fn set_bit(&mut self, bit: u32, taken: bool) {
        let mask = 1 << (bit % 8);
        if taken {
            self.map_bytes[bit as usize / 8] |= mask;
        } else {
            self.map_bytes[bit as usize / 8] &= !mask;
        }
        self.is_dirty = true;
    }

    /// Takes the first free bit of the map from `origin` on, or else from the start.
    pub(crate) fn take_bit(&mut self, origin: u32) -> Option<u32> {
        let origin = origin.clamp(1, self.bit_count - 1);
        let mut order = (origin..self.bit_count).chain(1..origin);
        let bit = order.find(|bit| !self.is_bit_taken(*bit))?;
        self.set_bit(bit, true);
        Some(bit)
    }

    /// Frees a bit of the map.
    ///
    /// # Panics
    ///
    /// Panics if the bit is free.
    pub(crate) fn free_bit(&mut self, bit: u32) {
        assert!(self.is_bit_taken(bit), "bit {bit} was free");
        self.set_bit(bit, false);
    }

    fn map_block_count(&self) -> u32 {
        (self.map_bytes.len() / BLOCK_BYTES) as u32
    }

    pub(crate) fn bit_count(&self) -> u32 {
        self.bit_count
    }

    pub(crate) fn count_free(&self) -> u32 {
        (1..self.bit_count)
            .filter(|bit| !self.is_bit_taken(*bit))
            .count() as u32
    }
}

/// Parameters of mkfs for a Minix file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinixFileSystemParameters {
    /// Bytes of space per inode. mkfs creates one inode for this many bytes.
    pub bytes_per_inode: u32,
}

/// Reason why a Minix file system cannot be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MinixMkfsError {
    /// Partition with too few blocks for the metadata of any file system.
    #[error("a partition of {0} blocks is too small for a Minix file system")]
    PartitionTooSmall(u32),
    /// Partition with more zones than 16-bit zone numbers can address.
    #[error("a partition of {0} blocks is too large: Minix can address 65535 zones")]
    PartitionTooLarge(u64),
}

/// Mounted Minix file system: its super block, and its bit maps, which stay in memory while it is
/// mounted.
#[derive(Clone, Debug)]
pub(crate) struct MinixVolume {
    block_count: u32,
    first_data_zone: u32,
    pub(crate) inode_map: AllocationMap,
    pub(crate) zone_map: AllocationMap,
}

impl MinixVolume {
    /// Computes the layout of an empty file system (`mkfs`) without writing anything.
    pub(crate) fn new(
        bytes: u64,
        parameters: MinixFileSystemParameters,
    ) -> Result<Self, MinixMkfsError> {
        let blocks = bytes / BLOCK_BYTES as u64;
        let blocks = match u16::try_from(blocks) {
            Ok(blocks) => u32::from(blocks),
            Err(_) => return Err(MinixMkfsError::PartitionTooLarge(blocks)),
        };
        let wanted = (bytes / u64::from(parameters.bytes_per_inode)).clamp(1, 65_535) as u32;
        let inodes = wanted
            .next_multiple_of(INODES_PER_BLOCK)
            .min(65_535 / 32 * 32);
        let inode_map = AllocationMap::new(inodes + 1);
        // The zone map is as large as the whole partition would need it, as
        // mkfs has it.
        let zone_blocks = blocks.div_ceil(BITS_PER_BLOCK);
        let first_data_zone =
            FIRST_MAP_BLOCK + inode_map.map_block_count() + zone_blocks + inodes / INODES_PER_BLOCK;
        if first_data_zone + 1 >= blocks {
            return Err(MinixMkfsError::PartitionTooSmall(blocks));
        }
        let mut zone_map = AllocationMap::new(blocks - first_data_zone + 1);
        zone_map
            .map_bytes
            .resize(zone_blocks as usize * BLOCK_BYTES, 0);
        let mut volume = Self {
            block_count: blocks,
            first_data_zone,
            inode_map,
            zone_map,
        };
        volume.inode_map.take_bit(ROOT_INODE);
        volume.zone_map.take_bit(1);
        Ok(volume)
    }

    /// Writes all blocks of an empty file system, with its root directory.
    pub(crate) fn write_empty(&self, write: &mut impl FnMut(u32, &[u8])) {
        for (block, bytes) in self.superblock_and_map_blocks(true) {
            write(block, &bytes);
        }
        let mut root = MinixInode::new(MinixInodeKind::Directory);
        root.link_count = 2;
        root.size_bytes = 2 * DIRECTORY_ENTRY_BYTES as u64;
        root.zones[0] = self.first_data_zone as u16;
        let mut bytes = vec![0; BLOCK_BYTES];
        root.encode_inode(&mut bytes[..INODE_BYTES]);
        write(self.inode_block(ROOT_INODE), &bytes);
        bytes.fill(0);
        for (place, name) in [".", ".."].into_iter().enumerate() {
            let entry =
                &mut bytes[place * DIRECTORY_ENTRY_BYTES..(place + 1) * DIRECTORY_ENTRY_BYTES];
            write_u16(entry, 0, ROOT_INODE as u16);
            entry[2..2 + name.len()].copy_from_slice(name.as_bytes());
        }
        write(self.first_data_zone, &bytes);
    }

    /// Returns the blocks that sync writes: the changed bit maps, or with `all` the super block and
    /// both maps.
    pub(crate) fn superblock_and_map_blocks(&self, all: bool) -> Vec<(u32, Vec<u8>)> {
        let mut blocks = Vec::new();
        if all {
            blocks.push((1, self.superblock_block()));
        }
        let mut first = FIRST_MAP_BLOCK;
        for map in [&self.inode_map, &self.zone_map] {
            if all || map.is_dirty {
                let parts = map.map_bytes.chunks(BLOCK_BYTES).enumerate();
                blocks.extend(parts.map(|(part, bytes)| (first + part as u32, bytes.to_vec())));
            }
            first += map.map_block_count();
        }
        blocks
    }

    fn superblock_block(&self) -> Vec<u8> {
        let mut bytes = vec![0; BLOCK_BYTES];
        let words = [
            self.inode_map.bit_count - 1,
            self.block_count,
            self.inode_map.map_block_count(),
            self.zone_map.map_block_count(),
            self.first_data_zone,
            0,
            (FILE_BYTES_MAX >> 16) as u32,
            FILE_BYTES_MAX as u32 & 0xffff,
            u32::from(SUPERBLOCK_MAGIC),
        ];
        for (place, value) in words.into_iter().enumerate() {
            write_u16(&mut bytes, 2 * place, value as u16);
        }
        bytes
    }

    /// Reads the super block and bit maps from a drive. Returns `None` if the drive holds no Minix
    /// file system.
    pub(crate) fn read_from_drive(read: &mut BlockReader<'_>) -> Option<Self> {
        let head = read(1);
        let at = |place: usize| u32::from(read_u16(&head, 2 * place));
        if at(8) != u32::from(SUPERBLOCK_MAGIC) {
            return None;
        }
        let mut map = |first: u32, blocks: u32, bits: u32| AllocationMap {
            map_bytes: (first..first + blocks).flat_map(&mut *read).collect(),
            bit_count: bits,
            is_dirty: false,
        };
        let (inodes, blocks, first_data_zone) = (at(0), at(1), at(4));
        Some(Self {
            inode_map: map(FIRST_MAP_BLOCK, at(2), inodes + 1),
            zone_map: map(FIRST_MAP_BLOCK + at(2), at(3), blocks - first_data_zone + 1),
            block_count: blocks,
            first_data_zone,
        })
    }

    pub(crate) fn inode_block(&self, inode: u32) -> u32 {
        let first =
            FIRST_MAP_BLOCK + self.inode_map.map_block_count() + self.zone_map.map_block_count();
        first + (inode - 1) / INODES_PER_BLOCK
    }

    /// Returns the byte offset of an inode in its block.
    pub(crate) fn inode_offset(inode: u32) -> usize {
        ((inode - 1) % INODES_PER_BLOCK) as usize * INODE_BYTES
    }

    /// Allocates the first free zone from `near` on, or from the start if `near` is no data zone.
    pub(crate) fn take_zone(&mut self, near: u16) -> Option<u16> {
        let origin = self.zone_bit(near).unwrap_or(1);
        let bit = self.zone_map.take_bit(origin)?;
        Some((bit + self.first_data_zone - 1) as u16)
    }

    /// Frees a zone. Panics if the zone is free or is no data zone.
    pub(crate) fn free_zone(&mut self, zone: u16) {
        let bit = self.zone_bit(zone).expect("a zone of data");
        self.zone_map.free_bit(bit);
    }

    /// Returns the map bit of a zone, or `None` for a block before the data zones.
    pub(crate) fn zone_bit(&self, zone: u16) -> Option<u32> {
        let bit = (u32::from(zone) + 1).checked_sub(self.first_data_zone)?;
        (bit > 0 && bit < self.zone_map.bit_count).then_some(bit)
    }

    /// Returns the free space of the file system in bytes.
    pub(crate) fn free_bytes(&self) -> u64 {
        u64::from(self.zone_map.count_free()) * BLOCK_BYTES as u64
    }
}

/// Returns the bytes that a new Minix file system has for files, when `bytes` is the size of its
/// partition. The indirect blocks of one file are subtracted.
///
/// # Errors
///
/// [`MinixMkfsError`] if no file system can be created.
pub fn file_capacity_bytes(
    bytes: u64,
    parameters: MinixFileSystemParameters,
) -> Result<u64, MinixMkfsError> {
    let free = MinixVolume::new(bytes, parameters)?.free_bytes();
    let pointing = free / BLOCK_BYTES as u64 / u64::from(ZONES_PER_BLOCK) + 4;
    Ok(free.saturating_sub(pointing * BLOCK_BYTES as u64))
}
