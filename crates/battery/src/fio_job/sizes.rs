//! Choice of the block size of the next I/O.

use crate::random::RandomDraws;
use diskperf_fio::job::{BlockSizeChoice, BlockSizes};
use diskperf_fio::{Direction, PerDirection};

const SIZE_STREAM: u128 = 8;

/// Random source of block sizes, drawn as fio does.
#[derive(Clone, Debug)]
pub(super) struct SizeDraws {
    block_sizes: PerDirection<BlockSizeChoice>,
    allows_unaligned: bool,
    is_by_access_order: bool,
    random: RandomDraws,
}

impl SizeDraws {
    pub(super) fn new(blocks: &BlockSizes, seed: u64) -> Self {
        Self {
            block_sizes: PerDirection {
                read: blocks.choice(Direction::Read),
                write: blocks.choice(Direction::Write),
                trim: blocks.choice(Direction::Trim),
            },
            allows_unaligned: blocks.allows_unaligned,
            is_by_access_order: blocks.is_by_sequence,
            random: RandomDraws::new(seed, SIZE_STREAM),
        }
    }

    /// Returns the block size of the next I/O of a direction, or `None` if not even the smallest
    /// size fits into `room_bytes`. A drawn size that does not fit is drawn again. A single fixed
    /// size is not checked against the room.
    pub(super) fn draw_block_size(
        &mut self,
        direction: Direction,
        is_random: bool,
        room_bytes: u64,
    ) -> Option<u64> {
        let of = match (self.is_by_access_order, is_random) {
            (true, false) => Direction::Read,
            (true, true) => Direction::Write,
            (false, _) => direction,
        };
        let sizes = self.block_sizes.get(of);
        if let Some(bytes) = sizes.single_bytes() {
            return Some(bytes);
        }
        let (least, most) = sizes.bounds_bytes();
        if least > room_bytes {
            return None;
        }
        loop {
            let point = self.random.draw_unit_interval();
            let drawn = match sizes {
                BlockSizeChoice::Fixed(bytes) => *bytes,
                BlockSizeChoice::Range { .. } => least + (most as f64 * point) as u64,
                BlockSizeChoice::Weighted(parts) => {
                    let mut percent = 0;
                    let owner = parts.iter().find(|part| {
                        percent += part.percent;
                        point * 100.0 <= f64::from(percent)
                    });
                    owner.map_or(least, |part| part.bytes)
                }
            };
            let whole = match self.allows_unaligned {
                true => drawn,
                false => drawn - drawn % least,
            };
            let bytes = whole.min(most);
            if bytes > 0 && bytes <= room_bytes {
                return Some(bytes);
            }
        }
    }
}
