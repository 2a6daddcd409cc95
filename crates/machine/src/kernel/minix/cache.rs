//! Cache of the Minix file server: a fixed number of blocks, replaced least recently used first.

use super::layout::BLOCK_BYTES;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Memory of one process that other processes may access: a block of the cache, or a program's
/// buffer.
pub(crate) type SharedBytes = Rc<RefCell<Vec<u8>>>;

/// Key of a block in the Minix cache: its device and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DriveBlockKey {
    /// Index of the drive; `None` for the null device, which has no data.
    pub(crate) drive: Option<u32>,
    /// Block number, counted from the start of the partition.
    pub(crate) block: u32,
}

/// Index of a buffer in the Minix cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheBufferId(usize);

struct CacheBuffer {
    key: Option<DriveBlockKey>,
    data: SharedBytes,
    is_dirty: bool,
    user_count: u32,
    /// Position among the unused buffers; the lowest value is replaced first.
    replacement_order: i64,
}

/// Host memory of one cached block, in bytes, with its bookkeeping.
pub(crate) const CACHED_BLOCK_BYTES: u64 =
    (BLOCK_BYTES + size_of::<CacheBuffer>() + size_of::<RefCell<Vec<u8>>>() + 2 * MAP_ENTRY_BYTES)
        as u64;

/// Host memory of an entry in one of the cache's two maps, in bytes.
const MAP_ENTRY_BYTES: usize = 4 * size_of::<usize>();

/// Probability that a released block is used again, which decides its place in the chain of unused
/// buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReuseExpectation {
    /// Reuse is possible: the block goes to the rear of the chain and is replaced last.
    ReusePossible,
    /// Reuse is unlikely: the block goes to the front of the chain and is replaced first.
    ReuseUnlikely,
}

/// Block cache of the Minix file server.
pub(crate) struct BlockCache {
    buffers: Vec<CacheBuffer>,
    buffer_index_by_key: BTreeMap<DriveBlockKey, usize>,
    /// Unused buffers by stamp, the next one to be replaced first.
    unused_by_order: BTreeMap<i64, usize>,
    front_order: i64,
    rear_order: i64,
}

impl BlockCache {
    /// Creates an empty cache of `blocks` blocks.
    pub(crate) fn new(blocks: u32) -> Self {
        let buffer = |number: u32| CacheBuffer {
            key: None,
            data: Rc::new(RefCell::new(vec![0; BLOCK_BYTES])),
            is_dirty: false,
            user_count: 0,
            replacement_order: i64::from(number),
        };
        Self {
            buffers: (0..blocks).map(buffer).collect(),
            buffer_index_by_key: BTreeMap::new(),
            unused_by_order: (0..blocks as usize)
                .map(|number| (number as i64, number))
                .collect(),
            front_order: -1,
            rear_order: i64::from(blocks),
        }
    }

    /// Returns the buffer of a cached block, in use until it is put back.
    pub(crate) fn take_cached(&mut self, key: DriveBlockKey) -> Option<CacheBufferId> {
        let number = *self.buffer_index_by_key.get(&key)?;
        self.remove_from_unused(number);
        Some(CacheBufferId(number))
    }

    fn remove_from_unused(&mut self, number: usize) {
        let buffer = &mut self.buffers[number];
        if buffer.user_count == 0 {
            self.unused_by_order.remove(&buffer.replacement_order);
        }
        buffer.user_count += 1;
    }

    pub(crate) fn is_cached(&self, key: DriveBlockKey) -> bool {
        self.buffer_index_by_key.contains_key(&key)
    }

    /// Returns the block that is replaced next, if it is dirty and must be written first.
    pub(crate) fn dirty_victim(&self) -> Option<DriveBlockKey> {
        let (_, number) = self.unused_by_order.first_key_value()?;
        let buffer = &self.buffers[*number];
        buffer.key.filter(|_| buffer.is_dirty)
    }

    pub(crate) fn unused_buffer_count(&self) -> usize {
        self.unused_by_order.len()
    }

    /// Assigns the least recently used buffer to a block.
    ///
    /// # Panics
    ///
    /// Panics if all buffers are in use, if the buffer is dirty, or if the cache holds the block
    /// already.
    pub(crate) fn replace_unused(&mut self, key: DriveBlockKey) -> CacheBufferId {
        let (_, number) = self
            .unused_by_order
            .first_key_value()
            .expect("the cache has an unused buffer");
        let number = *number;
        self.remove_from_unused(number);
        let buffer = &mut self.buffers[number];
        assert!(!buffer.is_dirty, "a replaced buffer is clean");
        if let Some(old) = buffer.key.replace(key) {
            self.buffer_index_by_key.remove(&old);
        }
        let known = self.buffer_index_by_key.insert(key, number);
        assert!(known.is_none(), "a block has one buffer");
        CacheBufferId(number)
    }

    /// Releases a buffer. After its last user, the buffer may be replaced.
    pub(crate) fn release_buffer(&mut self, id: CacheBufferId, again: ReuseExpectation) {
        let buffer = &mut self.buffers[id.0];
        assert!(buffer.user_count > 0, "a buffer is released once per use");
        buffer.user_count -= 1;
        if buffer.user_count > 0 {
            return;
        }
        buffer.replacement_order = match again {
            ReuseExpectation::ReusePossible => {
                self.rear_order += 1;
                self.rear_order
            }
            ReuseExpectation::ReuseUnlikely => {
                self.front_order -= 1;
                self.front_order
            }
        };
        self.unused_by_order.insert(buffer.replacement_order, id.0);
    }

    /// Releases a buffer and discards its contents, which are not valid.
    pub(crate) fn put_empty(&mut self, id: CacheBufferId) {
        if let Some(key) = self.buffers[id.0].key.take() {
            self.buffer_index_by_key.remove(&key);
        }
        self.buffers[id.0].is_dirty = false;
        self.release_buffer(id, ReuseExpectation::ReuseUnlikely);
    }

    pub(crate) fn buffer_data(&self, id: CacheBufferId) -> SharedBytes {
        Rc::clone(&self.buffers[id.0].data)
    }

    pub(crate) fn mark_dirty(&mut self, id: CacheBufferId) {
        self.buffers[id.0].is_dirty = true;
    }

    /// Returns the dirty blocks of a drive, in ascending order.
    pub(crate) fn dirty_blocks(&self, drive: u32) -> Vec<DriveBlockKey> {
        let of = |key: &&DriveBlockKey| key.drive == Some(drive);
        let dirty = |key: &&DriveBlockKey| self.buffers[self.buffer_index_by_key[*key]].is_dirty;
        self.buffer_index_by_key
            .keys()
            .filter(of)
            .filter(dirty)
            .copied()
            .collect()
    }

    /// Marks a block as clean after its write to the drive.
    pub(crate) fn mark_clean(&mut self, key: DriveBlockKey) {
        let number = self.buffer_index_by_key[&key];
        self.buffers[number].is_dirty = false;
    }

    /// Returns the memory of a block if the cache holds it, without changing its place in the
    /// chain.
    pub(crate) fn cached_data(&self, key: DriveBlockKey) -> Option<SharedBytes> {
        let number = self.buffer_index_by_key.get(&key)?;
        Some(Rc::clone(&self.buffers[*number].data))
    }

    /// Drops a block from the cache, even if it is dirty. A block in use stays.
    pub(crate) fn discard_block(&mut self, key: DriveBlockKey) {
        if let Some(id) = self.take_cached(key) {
            if self.buffers[id.0].user_count == 1 {
                self.put_empty(id);
            } else {
                self.release_buffer(id, ReuseExpectation::ReusePossible);
            }
        }
    }

    /// Drops all unused clean blocks from the cache.
    pub(crate) fn discard_clean_blocks(&mut self) {
        let clean = |key: &&DriveBlockKey| !self.buffers[self.buffer_index_by_key[*key]].is_dirty;
        let keys: Vec<DriveBlockKey> = self
            .buffer_index_by_key
            .keys()
            .filter(clean)
            .copied()
            .collect();
        for key in keys {
            self.discard_block(key);
        }
    }
}
