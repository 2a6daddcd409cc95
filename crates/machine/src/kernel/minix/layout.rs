//! The first file system of Minix as it lies on a drive: boot block, super
//! block, bit maps, inodes, zones of one block. Bytes and numbers, no time.
//!
//! Numbers are written as the 68000 has them, the most significant byte first.

use super::check::BlockReader;

/// Bytes of a block, and of a zone.
pub const BLOCK_BYTES: usize = 1024;
/// Bytes of an inode on a drive.
pub(crate) const INODE_BYTES: usize = 32;
/// Inodes of a block.
const INODES_PER_BLOCK: u32 = (BLOCK_BYTES / INODE_BYTES) as u32;
/// Bytes of a directory's entry: an inode's number and a name.
pub(crate) const ENTRY_BYTES: usize = 16;
/// The longest name; what is longer is cut.
pub(crate) const NAME_BYTES: usize = 14;
/// Zones that an inode names itself.
pub(crate) const DIRECT_ZONES: u32 = 7;
/// Zones that an indirect block names.
pub(crate) const ZONES_PER_BLOCK: u32 = (BLOCK_BYTES / 2) as u32;
/// The longest file, in blocks.
pub(crate) const MOST_BLOCKS: u32 =
    DIRECT_ZONES + ZONES_PER_BLOCK + ZONES_PER_BLOCK * ZONES_PER_BLOCK;
/// The longest file.
pub(crate) const MOST_BYTES: u64 = MOST_BLOCKS as u64 * BLOCK_BYTES as u64;
/// The root directory's inode.
pub(crate) const ROOT: u32 = 1;
/// What tells a super block.
const MAGIC: u16 = 0x137f;
/// Where the bit maps begin: behind the boot block and the super block.
const FIRST_MAP_BLOCK: u32 = 2;
const BITS_PER_BLOCK: u32 = BLOCK_BYTES as u32 * 8;

/// What an inode is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
}

const MODE_FILE: u16 = 0o100_666;
const MODE_DIRECTORY: u16 = 0o040_777;
const MODE_KIND: u16 = 0o170_000;

/// An inode as it is on a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Inode {
    pub(crate) kind: Kind,
    pub(crate) size: u64,
    pub(crate) links: u8,
    /// Direct, indirect, and double indirect; 0 is none.
    pub(crate) zones: [u16; 9],
}

impl Inode {
    pub(crate) fn new(kind: Kind) -> Self {
        Self {
            kind,
            size: 0,
            links: 0,
            zones: [0; 9],
        }
    }

    /// From its bytes; none where no inode is.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mode = word(bytes, 0);
        let kind = match mode & MODE_KIND {
            kind if kind == MODE_FILE & MODE_KIND => Kind::File,
            kind if kind == MODE_DIRECTORY & MODE_KIND => Kind::Directory,
            _ => return None,
        };
        let mut zones = [0; 9];
        for (number, zone) in zones.iter_mut().enumerate() {
            *zone = word(bytes, 14 + 2 * number);
        }
        Some(Self {
            kind,
            size: u64::from(word(bytes, 4)) << 16 | u64::from(word(bytes, 6)),
            links: bytes[13],
            zones,
        })
    }

    /// Its bytes: mode, owner, size, time, group, links, zones. The modelled
    /// machine has one user, and no calendar.
    pub(crate) fn encode(&self, bytes: &mut [u8]) {
        bytes.fill(0);
        let mode = match self.kind {
            Kind::File => MODE_FILE,
            Kind::Directory => MODE_DIRECTORY,
        };
        put_word(bytes, 0, mode);
        put_word(bytes, 4, (self.size >> 16) as u16);
        put_word(bytes, 6, self.size as u16);
        bytes[13] = self.links;
        for (number, zone) in self.zones.iter().enumerate() {
            put_word(bytes, 14 + 2 * number, *zone);
        }
    }

    /// Blocks that its bytes reach over.
    pub(crate) fn blocks(&self) -> u32 {
        self.size.div_ceil(BLOCK_BYTES as u64) as u32
    }
}

/// A number of two bytes.
pub(crate) fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Writes one.
pub(crate) fn put_word(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// Where the number of a block's zone stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pointer {
    /// In the inode.
    Direct(usize),
    /// In the indirect block, at this place.
    Indirect(usize),
    /// In the second of the double indirect blocks: the place of that in the
    /// first, and the place in it.
    Double(usize, usize),
}

/// Where the zone of a file's block is named.
pub(crate) fn pointer(block: u32) -> Pointer {
    let Some(beyond) = block.checked_sub(DIRECT_ZONES) else {
        return Pointer::Direct(block as usize);
    };
    match beyond.checked_sub(ZONES_PER_BLOCK) {
        None => Pointer::Indirect(beyond as usize),
        Some(beyond) => Pointer::Double(
            (beyond / ZONES_PER_BLOCK) as usize,
            (beyond % ZONES_PER_BLOCK) as usize,
        ),
    }
}

/// A map of what is taken. Bit 0 never is free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BitMap {
    bytes: Vec<u8>,
    bits: u32,
    pub(crate) dirty: bool,
}

impl BitMap {
    fn new(bits: u32) -> Self {
        let blocks = bits.div_ceil(BITS_PER_BLOCK) as usize;
        let mut map = Self {
            bytes: vec![0; blocks * BLOCK_BYTES],
            bits,
            dirty: true,
        };
        map.set(0, true);
        map
    }

    /// Whether a bit is taken.
    pub(crate) fn is_taken(&self, bit: u32) -> bool {
        self.bytes[bit as usize / 8] >> (bit % 8) & 1 == 1
    }

    fn set(&mut self, bit: u32, taken: bool) {
        let mask = 1 << (bit % 8);
        if taken {
            self.bytes[bit as usize / 8] |= mask;
        } else {
            self.bytes[bit as usize / 8] &= !mask;
        }
        self.dirty = true;
    }

    /// Takes the first free bit from `origin` on, or else from the start.
    pub(crate) fn take(&mut self, origin: u32) -> Option<u32> {
        let origin = origin.clamp(1, self.bits - 1);
        let mut order = (origin..self.bits).chain(1..origin);
        let bit = order.find(|bit| !self.is_taken(*bit))?;
        self.set(bit, true);
        Some(bit)
    }

    /// Frees a bit.
    ///
    /// # Panics
    ///
    /// When it is free.
    pub(crate) fn free(&mut self, bit: u32) {
        assert!(self.is_taken(bit), "bit {bit} was free");
        self.set(bit, false);
    }

    fn blocks(&self) -> u32 {
        (self.bytes.len() / BLOCK_BYTES) as u32
    }

    pub(crate) fn bits(&self) -> u32 {
        self.bits
    }

    /// How many are free.
    pub(crate) fn count_free(&self) -> u32 {
        (1..self.bits).filter(|bit| !self.is_taken(*bit)).count() as u32
    }
}

/// What a file system is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinixParameters {
    /// One inode is made for this much.
    pub bytes_per_inode: u32,
}

/// Why a file system cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MkfsError {
    /// Too few blocks for what every file system has.
    #[error("a partition of {0} blocks has no room for a file system of Minix")]
    TooSmall(u32),
    /// Zones are numbered with two bytes.
    #[error("a partition of {0} blocks is larger than the 65535 zones that Minix can number")]
    TooLarge(u64),
}

/// A mounted file system: its super block, and its maps, which are in memory
/// as long as it is mounted.
#[derive(Clone, Debug)]
pub(crate) struct Volume {
    /// Blocks of the partition.
    blocks: u32,
    first_data_zone: u32,
    pub(crate) inode_map: BitMap,
    pub(crate) zone_map: BitMap,
}

impl Volume {
    /// An empty file system (mkfs), of which nothing is written yet.
    pub(crate) fn new(bytes: u64, parameters: MinixParameters) -> Result<Self, MkfsError> {
        let blocks = bytes / BLOCK_BYTES as u64;
        let blocks = match u16::try_from(blocks) {
            Ok(blocks) => u32::from(blocks),
            Err(_) => return Err(MkfsError::TooLarge(blocks)),
        };
        let wanted = (bytes / u64::from(parameters.bytes_per_inode)).clamp(1, 65_535) as u32;
        let inodes = wanted
            .next_multiple_of(INODES_PER_BLOCK)
            .min(65_535 / 32 * 32);
        let inode_map = BitMap::new(inodes + 1);
        // The zone map is as large as the whole partition would need it, as
        // mkfs has it.
        let zone_blocks = blocks.div_ceil(BITS_PER_BLOCK);
        let first_data_zone =
            FIRST_MAP_BLOCK + inode_map.blocks() + zone_blocks + inodes / INODES_PER_BLOCK;
        if first_data_zone + 1 >= blocks {
            return Err(MkfsError::TooSmall(blocks));
        }
        let mut zone_map = BitMap::new(blocks - first_data_zone + 1);
        zone_map.bytes.resize(zone_blocks as usize * BLOCK_BYTES, 0);
        let mut volume = Self {
            blocks,
            first_data_zone,
            inode_map,
            zone_map,
        };
        volume.inode_map.take(ROOT);
        volume.zone_map.take(1);
        Ok(volume)
    }

    /// Writes all that is on an empty file system.
    pub(crate) fn make(&self, write: &mut impl FnMut(u32, &[u8])) {
        for (block, bytes) in self.super_blocks(true) {
            write(block, &bytes);
        }
        let mut root = Inode::new(Kind::Directory);
        root.links = 2;
        root.size = 2 * ENTRY_BYTES as u64;
        root.zones[0] = self.first_data_zone as u16;
        let mut bytes = vec![0; BLOCK_BYTES];
        root.encode(&mut bytes[..INODE_BYTES]);
        write(self.inode_block(ROOT), &bytes);
        bytes.fill(0);
        for (place, name) in [".", ".."].into_iter().enumerate() {
            let entry = &mut bytes[place * ENTRY_BYTES..(place + 1) * ENTRY_BYTES];
            put_word(entry, 0, ROOT as u16);
            entry[2..2 + name.len()].copy_from_slice(name.as_bytes());
        }
        write(self.first_data_zone, &bytes);
    }

    /// The blocks that sync writes: of the super block and the maps what has
    /// changed, or all.
    pub(crate) fn super_blocks(&self, all: bool) -> Vec<(u32, Vec<u8>)> {
        let mut blocks = Vec::new();
        if all {
            blocks.push((1, self.super_block()));
        }
        let mut first = FIRST_MAP_BLOCK;
        for map in [&self.inode_map, &self.zone_map] {
            if all || map.dirty {
                let parts = map.bytes.chunks(BLOCK_BYTES).enumerate();
                blocks.extend(parts.map(|(part, bytes)| (first + part as u32, bytes.to_vec())));
            }
            first += map.blocks();
        }
        blocks
    }

    fn super_block(&self) -> Vec<u8> {
        let mut bytes = vec![0; BLOCK_BYTES];
        let words = [
            self.inode_map.bits - 1,
            self.blocks,
            self.inode_map.blocks(),
            self.zone_map.blocks(),
            self.first_data_zone,
            0,
            (MOST_BYTES >> 16) as u32,
            MOST_BYTES as u32 & 0xffff,
            u32::from(MAGIC),
        ];
        for (place, value) in words.into_iter().enumerate() {
            put_word(&mut bytes, 2 * place, value as u16);
        }
        bytes
    }

    /// The maps as they are on the drive; none where no file system is.
    pub(crate) fn read(read: &mut BlockReader<'_>) -> Option<Self> {
        let head = read(1);
        let at = |place: usize| u32::from(word(&head, 2 * place));
        if at(8) != u32::from(MAGIC) {
            return None;
        }
        let mut map = |first: u32, blocks: u32, bits: u32| BitMap {
            bytes: (first..first + blocks).flat_map(&mut *read).collect(),
            bits,
            dirty: false,
        };
        let (inodes, blocks, first_data_zone) = (at(0), at(1), at(4));
        Some(Self {
            inode_map: map(FIRST_MAP_BLOCK, at(2), inodes + 1),
            zone_map: map(FIRST_MAP_BLOCK + at(2), at(3), blocks - first_data_zone + 1),
            blocks,
            first_data_zone,
        })
    }

    /// The block that an inode is in.
    pub(crate) fn inode_block(&self, inode: u32) -> u32 {
        let first = FIRST_MAP_BLOCK + self.inode_map.blocks() + self.zone_map.blocks();
        first + (inode - 1) / INODES_PER_BLOCK
    }

    /// Where in that block.
    pub(crate) fn inode_offset(inode: u32) -> usize {
        ((inode - 1) % INODES_PER_BLOCK) as usize * INODE_BYTES
    }

    /// Takes a zone near another; the first free one of all, if that is none.
    pub(crate) fn take_zone(&mut self, near: u16) -> Option<u16> {
        let origin = self.bit_of(near).unwrap_or(1);
        let bit = self.zone_map.take(origin)?;
        Some((bit + self.first_data_zone - 1) as u16)
    }

    /// Frees a zone.
    pub(crate) fn free_zone(&mut self, zone: u16) {
        let bit = self.bit_of(zone).expect("a zone of data");
        self.zone_map.free(bit);
    }

    /// A zone's bit; none of what lies before the data.
    pub(crate) fn bit_of(&self, zone: u16) -> Option<u32> {
        let bit = (u32::from(zone) + 1).checked_sub(self.first_data_zone)?;
        (bit > 0 && bit < self.zone_map.bits).then_some(bit)
    }

    /// Bytes that files may still have.
    pub(crate) fn free_bytes(&self) -> u64 {
        u64::from(self.zone_map.count_free()) * BLOCK_BYTES as u64
    }
}

/// Bytes that a fresh file system on so many bytes has for files, with what
/// one file needs to point at them.
///
/// # Errors
///
/// [`MkfsError`] where there can be none.
pub fn room_bytes(bytes: u64, parameters: MinixParameters) -> Result<u64, MkfsError> {
    let free = Volume::new(bytes, parameters)?.free_bytes();
    let pointing = free / BLOCK_BYTES as u64 / u64::from(ZONES_PER_BLOCK) + 4;
    Ok(free.saturating_sub(pointing * BLOCK_BYTES as u64))
}
