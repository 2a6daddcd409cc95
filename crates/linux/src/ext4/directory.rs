//! Blocks of a directory: entries one behind the other, and an index by hash when there is more
//! than one block.

/// Bytes of the checksum at the end of a block.
const TAIL_BYTES: u32 = 12;
/// Bytes of an entry without its name.
const ENTRY_BYTES: u32 = 8;
/// Bytes of the entries `.` and `..` with what an index block has before its first index entry.
const INDEX_HEADER_BYTES: u32 = 40;
/// Bytes of an entry of an index block.
const INDEX_ENTRY_BYTES: u32 = 8;

/// Entry of a directory: its place in the block, and a name that may be empty.
#[derive(Clone, Debug)]
struct Slot {
    length: u32,
    name: String,
}

/// Block of entries, the last of which reach to its end.
#[derive(Clone, Debug)]
struct EntryBlock {
    physical: u64,
    slots: Vec<Slot>,
    /// Smallest hash of the block's names, where the directory has an index.
    hash_min: u32,
}

/// Blocks of a directory.
#[derive(Clone, Debug)]
pub(super) struct EntryBlocks {
    block_bytes: u32,
    /// Block of the index. `None`: there is one block of entries alone.
    index: Option<u64>,
    blocks: Vec<EntryBlock>,
}

/// Blocks that an insertion needs before it is possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Insertion {
    /// The name is in; this block changed.
    Done(u64),
    /// The directory needs that many new blocks first.
    NeedsBlocks(usize),
}

fn slot_bytes(name: &str) -> u32 {
    if name.is_empty() {
        0
    } else {
        (ENTRY_BYTES + name.len() as u32).next_multiple_of(4)
    }
}

impl EntryBlock {
    fn insert(&mut self, name: &str) -> bool {
        let needed = slot_bytes(name);
        let fits = |slot: &Slot| slot.length - slot_bytes(&slot.name) >= needed;
        let Some(index) = self.slots.iter().position(fits) else {
            return false;
        };
        let slot = &mut self.slots[index];
        let used = slot_bytes(&slot.name);
        if used == 0 {
            name.clone_into(&mut slot.name);
        } else {
            let length = slot.length - used;
            slot.length = used;
            self.slots.insert(
                index + 1,
                Slot {
                    length,
                    name: name.to_owned(),
                },
            );
        }
        true
    }

    fn remove(&mut self, name: &str) -> bool {
        let Some(index) = self.slots.iter().position(|slot| slot.name == name) else {
            return false;
        };
        if index == 0 {
            self.slots[0].name.clear();
        } else {
            let slot = self.slots.remove(index);
            self.slots[index - 1].length += slot.length;
        }
        true
    }
}

impl EntryBlocks {
    pub(super) fn new(block_bytes: u32, physical: u64) -> Self {
        let mut blocks = Self {
            block_bytes,
            index: None,
            blocks: Vec::new(),
        };
        blocks.add_block(physical, 0);
        for name in [".", ".."] {
            blocks.blocks[0].insert(name);
        }
        blocks
    }

    fn add_block(&mut self, physical: u64, hash_min: u32) {
        let length = self.block_bytes - TAIL_BYTES;
        let slots = vec![Slot {
            length,
            name: String::new(),
        }];
        self.blocks.push(EntryBlock {
            physical,
            slots,
            hash_min,
        });
    }

    /// Number of blocks, that of the index among them.
    pub(super) fn count(&self) -> usize {
        self.blocks.len() + usize::from(self.index.is_some())
    }

    /// Places of all blocks.
    pub(super) fn all(&self) -> impl Iterator<Item = u64> + '_ {
        self.index
            .into_iter()
            .chain(self.blocks.iter().map(|block| block.physical))
    }

    fn leaf(&self, name: &str) -> usize {
        let hash = hash_name(name);
        self.blocks
            .iter()
            .rposition(|block| block.hash_min <= hash)
            .unwrap_or(0)
    }

    /// Inserts a name, where there is room.
    pub(super) fn insert(&mut self, name: &str) -> Insertion {
        let leaf = self.leaf(name);
        if self.blocks[leaf].insert(name) {
            return Insertion::Done(self.blocks[leaf].physical);
        }
        Insertion::NeedsBlocks(if self.index.is_some() { 1 } else { 2 })
    }

    /// Splits the full block that a name belongs to; returns the blocks that changed. `None`: the
    /// index is full.
    pub(super) fn split(&mut self, name: &str, new: &[u64]) -> Option<Vec<u64>> {
        let leaf = self.leaf(name);
        let mut changed = new.to_vec();
        if self.index.is_none() {
            // The first block becomes the index; its names move to a new one.
            let block = &mut self.blocks[0];
            self.index = Some(block.physical);
            changed.push(block.physical);
            block.physical = new[0];
            block
                .slots
                .retain(|slot| slot.name != "." && slot.name != "..");
        }
        let entries = (self.block_bytes - INDEX_HEADER_BYTES - TAIL_BYTES) / INDEX_ENTRY_BYTES;
        if self.blocks.len() as u32 >= entries {
            return None;
        }
        changed.extend(self.index);
        changed.push(self.blocks[leaf].physical);
        let slots = std::mem::take(&mut self.blocks[leaf].slots);
        let mut names: Vec<String> = slots.into_iter().map(|slot| slot.name).collect();
        names.retain(|name| !name.is_empty());
        names.sort_by_key(|name| hash_name(name));
        let middle = names.len() / 2;
        let physical = *new.last()?;
        self.add_block(physical, hash_name(&names[middle]));
        let length = self.block_bytes - TAIL_BYTES;
        self.blocks[leaf].slots = vec![Slot {
            length,
            name: String::new(),
        }];
        let upper = self.blocks.len() - 1;
        for (index, name) in names.iter().enumerate() {
            let block = if index < middle { leaf } else { upper };
            self.blocks[block].insert(name);
        }
        self.blocks.sort_by_key(|block| block.hash_min);
        changed.sort_unstable();
        changed.dedup();
        Some(changed)
    }

    /// Removes a name; returns the block that changed.
    pub(super) fn remove(&mut self, name: &str) -> Option<u64> {
        self.blocks.iter_mut().find_map(|block| {
            let physical = block.physical;
            block.remove(name).then_some(physical)
        })
    }

    /// Block that holds a name.
    pub(super) fn block_with(&self, name: &str) -> Option<u64> {
        let holds = |block: &&EntryBlock| block.slots.iter().any(|slot| slot.name == name);
        self.blocks.iter().find(holds).map(|block| block.physical)
    }
}

/// Hash by which an index orders names. The kernel's is keyed by a seed that mke2fs draws; any that
/// spreads names has the same lists of requests in the mean.
pub(super) fn hash_name(name: &str) -> u32 {
    let start = 0x811c_9dc5_u32;
    let hash = name.bytes().fold(start, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    // FNV spreads short names poorly in its upper bits.
    (hash ^ (hash >> 15)).wrapping_mul(0x2c1b_3c6d)
}
