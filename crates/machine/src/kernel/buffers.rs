//! Data structures of the UNIX buffer cache: headers that share a fixed amount of memory. Hash
//! chains find the buffer of a block; lists order the unused buffers for reuse.

use super::process::Process;
use crate::medium::{Page, PageCache};
use diskperf_device::RequestId;
use diskperf_timeline::RequestTimeline as Spans;
use std::rc::Rc;

/// Key of a block in the buffer cache: its volume and its first fragment there. Both are packed in
/// one word, because each call of the cache copies a key, and a processor cannot read back two
/// freshly written halves as a whole without delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockKey(u64);

impl BlockKey {
    #[inline]
    pub(crate) fn new(volume: u32, fragment: u32) -> Self {
        Self(u64::from(volume) << 32 | u64::from(fragment))
    }

    #[inline]
    pub(crate) fn volume(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline]
    pub(crate) fn fragment(self) -> u32 {
        self.0 as u32
    }
}

/// Index of a buffer in the buffer cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BufferId(pub(crate) u32);

/// Free list of the buffer cache. An unused buffer is on exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FreeList {
    /// Buffers whose contents may be useful again. They are reused last, least recently used first.
    LeastRecentlyUsed,
    /// Buffers whose contents are not expected to be useful. They are reused first.
    ReuseFirst,
    /// Buffer headers without memory.
    NoMemory,
}

/// Buffer of the buffer cache: a header, its share of the memory, and the block that it holds.
pub(crate) struct Buffer {
    pub(crate) key: Option<BlockKey>,
    /// Memory assigned to the buffer, in bytes.
    pub(crate) memory_bytes: u32,
    /// Length of the block that the buffer holds, in bytes.
    pub(crate) valid_bytes: u32,
    /// Whether a process or a transfer holds the buffer. A busy buffer is on no free list.
    pub(crate) is_busy: bool,
    /// Whether the buffer holds the valid contents of its block.
    pub(crate) is_transfer_done: bool,
    /// Whether the buffer holds newer contents than the drive and is still to be written.
    has_delayed_write: bool,
    /// Whether the transfer of the buffer is asynchronous: no process waits for it, and its
    /// completion releases the buffer.
    pub(crate) is_asynchronous: bool,
    /// Whether the buffer goes to the `ReuseFirst` list on release, for early reuse.
    pub(crate) should_reuse_early: bool,
    pub(crate) page: Option<Page>,
    pub(crate) waiting_processes: Vec<Rc<Process>>,
    /// Request for this buffer that is in flight at the drive.
    pub(crate) request: Option<RequestId>,
    /// Time of the buffer's last completed request, split by stage.
    pub(crate) transfer_spans: Spans,
    free_list: Option<FreeList>,
    previous_in_list: u32,
    next_in_list: u32,
    next_in_chain: u32,
}

/// Host memory of one buffer header, in bytes.
pub(crate) const HEADER_BYTES: u64 = size_of::<Buffer>() as u64;

const NO_BUFFER: u32 = u32::MAX;

/// Hash chains of the buffer cache. 4.2BSD has 63. The number does not change modelled time: the
/// kernel's costs fix the time of a look-up, however long the chains are.
const HASH_CHAINS: usize = 1024;

/// Buffer cache of a UNIX kernel: all buffers, their hash chains and free lists.
pub(crate) struct Buffers {
    pub(crate) buffers: Vec<Buffer>,
    delayed_write_count: usize,
    chains: [u32; HASH_CHAINS],
    /// First and last buffer of each free list, by index of [`FreeList`].
    lists: [(u32, u32); 3],
    /// Processes that wait for any buffer to become free.
    pub(crate) processes_awaiting_buffer: Vec<Rc<Process>>,
    pub(crate) pages: PageCache,
    /// Writes in flight of each volume, and the processes that wait until there are no more.
    /// Indexed by volume.
    pub(crate) writes_in_flight: Vec<(usize, Vec<Rc<Process>>)>,
}

impl Buffers {
    /// Creates a cache of `headers` buffers for blocks of `volumes` volumes. The buffers share
    /// `memory_bytes` equally, in whole kilobytes, each with at most `most_bytes`.
    pub(crate) fn new(
        headers: u32,
        (memory_bytes, most_bytes): (u32, u32),
        volumes: usize,
    ) -> Self {
        let mut buffers = Self {
            buffers: Vec::with_capacity(headers as usize),
            delayed_write_count: 0,
            chains: [NO_BUFFER; HASH_CHAINS],
            lists: [(NO_BUFFER, NO_BUFFER); 3],
            processes_awaiting_buffer: Vec::new(),
            pages: PageCache::default(),
            writes_in_flight: vec![(0, Vec::new()); volumes],
        };
        let clicks = memory_bytes / CLICK_BYTES;
        for number in 0..headers {
            let more = u32::from(number < clicks % headers);
            let memory = ((clicks / headers + more) * CLICK_BYTES).min(most_bytes);
            buffers.buffers.push(Buffer::new(memory));
            let list = if memory == 0 {
                FreeList::NoMemory
            } else {
                FreeList::ReuseFirst
            };
            buffers.append_to_free_list(BufferId(number), list);
        }
        buffers
    }

    #[inline]
    pub(crate) fn buffer_mut(&mut self, id: BufferId) -> &mut Buffer {
        &mut self.buffers[id.0 as usize]
    }

    /// Sets or clears the delayed-write mark of a buffer.
    pub(crate) fn delay_write(&mut self, id: BufferId, delayed: bool) {
        let was = std::mem::replace(&mut self.buffer_mut(id).has_delayed_write, delayed);
        self.delayed_write_count += usize::from(delayed);
        self.delayed_write_count -= usize::from(was);
    }

    /// Returns the first unused buffer with a delayed write for a volume. Returns `None` without a
    /// search if the cache holds no delayed write, which is the usual case when many files are
    /// synced one by one.
    pub(crate) fn find_delayed(&self, volume: u32) -> Option<BufferId> {
        if self.delayed_write_count == 0 {
            return None;
        }
        let place = self.buffers.iter().position(|buffer| {
            buffer.has_delayed_write
                && !buffer.is_busy
                && buffer.key.is_some_and(|key| key.volume() == volume)
        })?;
        Some(BufferId(place as u32))
    }

    fn chain_index(key: BlockKey) -> usize {
        // Neighbouring blocks share a chain, as in the kernel of the day.
        ((key.volume() as usize) + (key.fragment() as usize) / 8) % HASH_CHAINS
    }

    /// Returns the buffer that holds a block, if the cache has it.
    #[inline]
    pub(crate) fn find_cached(&self, key: BlockKey) -> Option<BufferId> {
        let mut number = self.chains[Self::chain_index(key)];
        while number != NO_BUFFER {
            let buffer = &self.buffers[number as usize];
            if buffer.key == Some(key) {
                return Some(BufferId(number));
            }
            number = buffer.next_in_chain;
        }
        None
    }

    /// Returns a buffer of another block that shares fragments with the given block. Such a buffer
    /// remains from a file whose fragments were freed. All blocks that can overlap are in one hash
    /// chain.
    pub(crate) fn find_overlapping(
        &self,
        key: BlockKey,
        fragments: u32,
        fragment_bytes: u32,
    ) -> Option<BufferId> {
        let mut number = self.chains[Self::chain_index(key)];
        while number != NO_BUFFER {
            let buffer = &self.buffers[number as usize];
            let shares = |other: BlockKey| {
                other != key
                    && other.volume() == key.volume()
                    && other.fragment() < key.fragment() + fragments
                    && key.fragment()
                        < other.fragment() + buffer.valid_bytes.div_ceil(fragment_bytes)
            };
            if buffer.key.is_some_and(shares) {
                return Some(BufferId(number));
            }
            number = buffer.next_in_chain;
        }
        None
    }

    /// Assigns a block to a buffer, or no block if `key` is `None`, and updates the hash chains.
    pub(crate) fn set_key(&mut self, id: BufferId, key: Option<BlockKey>) {
        if let Some(old) = self.buffer_mut(id).key.take() {
            let chain = Self::chain_index(old);
            let next = self.buffer_mut(id).next_in_chain;
            if self.chains[chain] == id.0 {
                self.chains[chain] = next;
            } else {
                let mut number = self.chains[chain];
                while self.buffers[number as usize].next_in_chain != id.0 {
                    number = self.buffers[number as usize].next_in_chain;
                }
                self.buffers[number as usize].next_in_chain = next;
            }
        }
        if let Some(key) = key {
            let chain = Self::chain_index(key);
            let first = self.chains[chain];
            let buffer = self.buffer_mut(id);
            buffer.key = Some(key);
            buffer.next_in_chain = first;
            self.chains[chain] = id.0;
        }
    }

    /// Returns the first buffer of a free list, which is reused first.
    pub(crate) fn free_list_head(&self, list: FreeList) -> Option<BufferId> {
        let (first, _) = self.lists[list as usize];
        (first != NO_BUFFER).then_some(BufferId(first))
    }

    /// Takes a buffer off its free list and marks it busy. Panics if the buffer is in use.
    pub(crate) fn remove_from_free_list(&mut self, id: BufferId) {
        let buffer = self.buffer_mut(id);
        let list = buffer
            .free_list
            .take()
            .expect("a buffer in use is on no list");
        let (previous, next) = (buffer.previous_in_list, buffer.next_in_list);
        buffer.is_busy = true;
        let ends = &mut self.lists[list as usize];
        if previous == NO_BUFFER {
            ends.0 = next;
        }
        if next == NO_BUFFER {
            ends.1 = previous;
        }
        if previous != NO_BUFFER {
            self.buffers[previous as usize].next_in_list = next;
        }
        if next != NO_BUFFER {
            self.buffers[next as usize].previous_in_list = previous;
        }
    }

    /// Puts a buffer that is no longer in use at the end of a free list.
    pub(crate) fn append_to_free_list(&mut self, id: BufferId, list: FreeList) {
        let last = self.lists[list as usize].1;
        let buffer = self.buffer_mut(id);
        assert!(buffer.free_list.is_none(), "a buffer is on one list");
        buffer.is_busy = false;
        buffer.free_list = Some(list);
        buffer.previous_in_list = last;
        buffer.next_in_list = NO_BUFFER;
        if last == NO_BUFFER {
            self.lists[list as usize].0 = id.0;
        } else {
            self.buffers[last as usize].next_in_list = id.0;
        }
        self.lists[list as usize].1 = id.0;
    }

    /// Puts an empty buffer at the head of a free list, where it is reused first.
    pub(crate) fn prepend_to_free_list(&mut self, id: BufferId, list: FreeList) {
        let first = self.lists[list as usize].0;
        let buffer = self.buffer_mut(id);
        assert!(buffer.free_list.is_none(), "a buffer is on one list");
        buffer.is_busy = false;
        buffer.free_list = Some(list);
        buffer.previous_in_list = NO_BUFFER;
        buffer.next_in_list = first;
        if first == NO_BUFFER {
            self.lists[list as usize].1 = id.0;
        } else {
            self.buffers[first as usize].previous_in_list = id.0;
        }
        self.lists[list as usize].0 = id.0;
    }

    /// Returns the total memory of all buffers, in bytes. The total never changes.
    pub(crate) fn allocated_memory_bytes(&self) -> u64 {
        self.buffers
            .iter()
            .map(|buffer| u64::from(buffer.memory_bytes))
            .sum()
    }
}

/// Unit in which memory moves between buffers, in bytes.
pub(crate) const CLICK_BYTES: u32 = 1024;

impl Buffer {
    /// Reports whether the buffer holds a delayed write.
    #[inline]
    pub(crate) fn is_delayed(&self) -> bool {
        self.has_delayed_write
    }

    fn new(memory: u32) -> Self {
        Self {
            key: None,
            memory_bytes: memory,
            valid_bytes: 0,
            is_busy: false,
            is_transfer_done: false,
            has_delayed_write: false,
            is_asynchronous: false,
            should_reuse_early: false,
            page: None,
            waiting_processes: Vec::new(),
            request: None,
            transfer_spans: Spans::default(),
            free_list: None,
            previous_in_list: NO_BUFFER,
            next_in_list: NO_BUFFER,
            next_in_chain: NO_BUFFER,
        }
    }
}
