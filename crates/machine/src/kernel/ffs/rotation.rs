//! Rotational position of a block on its track, and the tables that find a free block near a
//! position.

/// Number of rotational positions that 4.2BSD distinguishes on a track (`NRPOS`).
pub const ROTATIONAL_POSITIONS: usize = 8;

/// Maximum number of blocks in the chain table, which has one byte for each block. The superblock's
/// 8192 bytes, less its own fields, must hold the table.
pub(super) const TABLE_BLOCKS_MAX: u32 = 8192 - 1380;

/// End of a chain, or a rotational position without blocks.
const NO_BLOCK: u16 = u16::MAX;

/// Cylinder (within the group) and rotational position of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockPosition {
    pub(super) cylinder: u8,
    pub(super) rotational_position: u8,
}

/// Computes the cylinder and rotational position of each block of a cylinder group.
pub(super) fn block_positions(
    blocks: u32,
    sectors_per_block: u32,
    sectors_per_track: u32,
    sectors_per_cylinder: u32,
) -> Vec<BlockPosition> {
    (0..blocks)
        .map(|block| {
            let sector = block * sectors_per_block;
            let in_track = sector % sectors_per_track;
            BlockPosition {
                cylinder: (sector / sectors_per_cylinder) as u8,
                rotational_position: (in_track * ROTATIONAL_POSITIONS as u32 / sectors_per_track)
                    as u8,
            }
        })
        .collect()
}

/// Blocks of one cycle of cylinders, chained by rotational position. The cycle is the smallest
/// number of cylinders that holds a whole number of blocks; the tables repeat after it.
#[derive(Debug, Clone)]
pub(super) struct RotationTables {
    cycle_cylinders: u32,
    cycle_blocks: u32,
    /// First block of the cycle at each cylinder and rotational position (`fs_postbl`).
    first: Vec<[u16; ROTATIONAL_POSITIONS]>,
    /// Next block with the same cylinder and rotational position (`fs_rotbl`).
    next_blocks: Vec<u16>,
}

impl RotationTables {
    pub(super) fn new(cycle_cylinders: u32, cycle_blocks: u32, places: &[BlockPosition]) -> Self {
        let mut first = vec![[NO_BLOCK; ROTATIONAL_POSITIONS]; cycle_cylinders as usize];
        let mut next = vec![NO_BLOCK; cycle_blocks as usize];
        for block in (0..cycle_blocks as usize).rev() {
            let BlockPosition {
                cylinder,
                rotational_position: position,
            } = places[block];
            let head = &mut first[cylinder as usize][position as usize];
            next[block] = *head;
            *head = block as u16;
        }
        Self {
            cycle_cylinders,
            cycle_blocks,
            first,
            next_blocks: next,
        }
    }

    /// Returns the blocks of a group that start in a cylinder at a rotational position, in
    /// ascending order.
    pub(super) fn blocks_at_position(
        &self,
        cylinder: u32,
        position: usize,
    ) -> impl Iterator<Item = u32> + '_ {
        let base = cylinder / self.cycle_cylinders * self.cycle_blocks;
        let mut block = self.first[(cylinder % self.cycle_cylinders) as usize][position];
        std::iter::from_fn(move || {
            if block == NO_BLOCK {
                return None;
            }
            let found = base + u32::from(block);
            block = self.next_blocks[block as usize];
            Some(found)
        })
    }
}
