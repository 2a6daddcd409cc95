//! The file server's cache: a fixed number of blocks, the least recently used
//! of which is the next to go.

use super::layout::BLOCK_BYTES;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Memory of one process that others are given to work on: a block of the
/// cache, or a program's buffer.
pub(crate) type Memory = Rc<RefCell<Vec<u8>>>;

/// A block of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BlockKey {
    /// The drive; none of the block device without data.
    pub(crate) drive: Option<u32>,
    /// The block, from the start of its partition.
    pub(crate) block: u32,
}

/// A buffer, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BufferId(usize);

struct Buffer {
    key: Option<BlockKey>,
    data: Memory,
    /// Newer than what is on the drive.
    dirty: bool,
    users: u32,
    /// Its place among those that nobody uses.
    stamp: i64,
}

/// Memory that a block of the cache takes.
pub(crate) const CACHED_BLOCK_BYTES: u64 =
    (BLOCK_BYTES + size_of::<Buffer>() + size_of::<RefCell<Vec<u8>>>() + 2 * PLACE_BYTES) as u64;

/// A place in one of the two maps.
const PLACE_BYTES: usize = 4 * size_of::<usize>();

/// How useful a block will be that is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// Perhaps: it goes to the rear of the chain.
    Perhaps,
    /// Hardly: it goes to the front.
    Hardly,
}

/// The cache.
pub(crate) struct Cache {
    buffers: Vec<Buffer>,
    by_key: BTreeMap<BlockKey, usize>,
    /// Those that nobody uses, the next to go first.
    chain: BTreeMap<i64, usize>,
    front: i64,
    rear: i64,
}

impl Cache {
    /// An empty cache of so many blocks.
    pub(crate) fn new(blocks: u32) -> Self {
        let buffer = |number: u32| Buffer {
            key: None,
            data: Rc::new(RefCell::new(vec![0; BLOCK_BYTES])),
            dirty: false,
            users: 0,
            stamp: i64::from(number),
        };
        Self {
            buffers: (0..blocks).map(buffer).collect(),
            by_key: BTreeMap::new(),
            chain: (0..blocks as usize)
                .map(|number| (number as i64, number))
                .collect(),
            front: -1,
            rear: i64::from(blocks),
        }
    }

    /// The buffer of a block, if it is there; in use until it is put back.
    pub(crate) fn take(&mut self, key: BlockKey) -> Option<BufferId> {
        let number = *self.by_key.get(&key)?;
        self.hold(number);
        Some(BufferId(number))
    }

    fn hold(&mut self, number: usize) {
        let buffer = &mut self.buffers[number];
        if buffer.users == 0 {
            self.chain.remove(&buffer.stamp);
        }
        buffer.users += 1;
    }

    /// Whether a block is there.
    pub(crate) fn holds(&self, key: BlockKey) -> bool {
        self.by_key.contains_key(&key)
    }

    /// The block that goes next, if it must be written first.
    pub(crate) fn dirty_victim(&self) -> Option<BlockKey> {
        let (_, number) = self.chain.first_key_value()?;
        let buffer = &self.buffers[*number];
        buffer.key.filter(|_| buffer.dirty)
    }

    /// Blocks that nobody uses.
    pub(crate) fn free(&self) -> usize {
        self.chain.len()
    }

    /// Makes the least recently used buffer that of a block.
    ///
    /// # Panics
    ///
    /// When all are in use, when it is dirty, and when the block is there.
    pub(crate) fn replace(&mut self, key: BlockKey) -> BufferId {
        let (_, number) = self
            .chain
            .first_key_value()
            .expect("a buffer that nobody uses");
        let number = *number;
        self.hold(number);
        let buffer = &mut self.buffers[number];
        assert!(!buffer.dirty, "what is newer than the drive was written");
        if let Some(old) = buffer.key.replace(key) {
            self.by_key.remove(&old);
        }
        let known = self.by_key.insert(key, number);
        assert!(known.is_none(), "a block has one buffer");
        BufferId(number)
    }

    /// Gives a buffer back.
    pub(crate) fn put(&mut self, id: BufferId, again: Again) {
        let buffer = &mut self.buffers[id.0];
        assert!(buffer.users > 0, "a buffer is given back once");
        buffer.users -= 1;
        if buffer.users > 0 {
            return;
        }
        buffer.stamp = match again {
            Again::Perhaps => {
                self.rear += 1;
                self.rear
            }
            Again::Hardly => {
                self.front -= 1;
                self.front
            }
        };
        self.chain.insert(buffer.stamp, id.0);
    }

    /// Gives a buffer back that holds nothing after all.
    pub(crate) fn put_empty(&mut self, id: BufferId) {
        if let Some(key) = self.buffers[id.0].key.take() {
            self.by_key.remove(&key);
        }
        self.buffers[id.0].dirty = false;
        self.put(id, Again::Hardly);
    }

    /// A buffer's memory.
    pub(crate) fn data(&self, id: BufferId) -> Memory {
        Rc::clone(&self.buffers[id.0].data)
    }

    /// A buffer was changed.
    pub(crate) fn soil(&mut self, id: BufferId) {
        self.buffers[id.0].dirty = true;
    }

    /// The dirty blocks of a drive, in order.
    pub(crate) fn dirty(&self, drive: u32) -> Vec<BlockKey> {
        let of = |key: &&BlockKey| key.drive == Some(drive);
        let dirty = |key: &&BlockKey| self.buffers[self.by_key[*key]].dirty;
        self.by_key
            .keys()
            .filter(of)
            .filter(dirty)
            .copied()
            .collect()
    }

    /// A block is on its drive as it is here.
    pub(crate) fn clean(&mut self, key: BlockKey) {
        let number = self.by_key[&key];
        self.buffers[number].dirty = false;
    }

    /// The memory of a block that is there.
    pub(crate) fn look(&self, key: BlockKey) -> Option<Memory> {
        let number = self.by_key.get(&key)?;
        Some(Rc::clone(&self.buffers[*number].data))
    }

    /// Forgets a block, whatever it holds, unless somebody uses it.
    pub(crate) fn forget(&mut self, key: BlockKey) {
        if let Some(id) = self.take(key) {
            if self.buffers[id.0].users == 1 {
                self.put_empty(id);
            } else {
                self.put(id, Again::Perhaps);
            }
        }
    }

    /// Forgets every block that nobody uses and that is on its drive.
    pub(crate) fn forget_clean(&mut self) {
        let clean = |key: &&BlockKey| !self.buffers[self.by_key[*key]].dirty;
        let keys: Vec<BlockKey> = self.by_key.keys().filter(clean).copied().collect();
        for key in keys {
            self.forget(key);
        }
    }
}
