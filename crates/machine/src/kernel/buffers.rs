//! The buffer cache: headers that share a fixed amount of memory, found
//! through hash chains, reused from lists.

use super::process::Process;
use crate::medium::{Page, Pages};
use diskperf_device::RequestId;
use diskperf_timeline::Request as Spans;
use std::rc::Rc;

/// Which block: the drive it is on, and its first fragment there. In one word, since a key
/// is copied at each call of the cache: two halves that were just written are not read as a
/// whole at once.
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

/// A buffer, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BufferId(pub(crate) u32);

/// The lists of buffers that nobody uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum List {
    /// Useful again perhaps; reused last.
    Lru,
    /// Not expected to be useful; reused first.
    Age,
    /// Headers without memory.
    Empty,
}

/// A buffer.
pub(crate) struct Buffer {
    pub(crate) key: Option<BlockKey>,
    /// Memory that it has.
    pub(crate) memory: u32,
    /// Bytes of the block that it holds.
    pub(crate) count: u32,
    /// In use: on no list.
    pub(crate) busy: bool,
    /// What it holds is what the block should be.
    pub(crate) done: bool,
    /// The block on the drive is older than this.
    delayed_write: bool,
    /// Nobody waits for the transfer.
    pub(crate) asynchronous: bool,
    /// To be reused early.
    pub(crate) age: bool,
    pub(crate) page: Option<Page>,
    pub(crate) waiters: Vec<Rc<Process>>,
    /// What its drive was asked for and has not completed.
    pub(crate) request: Option<RequestId>,
    /// Where the time of its last request went that completed.
    pub(crate) spent: Spans,
    list: Option<List>,
    previous: u32,
    next: u32,
    chain_next: u32,
}

/// What a header takes.
pub(crate) const HEADER_BYTES: u64 = size_of::<Buffer>() as u64;

const NONE: u32 = u32::MAX;

/// Hash chains. 4.2BSD has 63; what a look-up takes is a cost of the kernel's, however
/// long they are.
const CHAINS: usize = 1024;

/// All buffers.
pub(crate) struct Buffers {
    pub(crate) all: Vec<Buffer>,
    /// How many of them hold a delayed write.
    delayed_writes: usize,
    chains: [u32; CHAINS],
    /// Of each list, its first and last.
    lists: [(u32, u32); 3],
    /// Who waits for any buffer.
    pub(crate) waiters: Vec<Rc<Process>>,
    pub(crate) pages: Pages,
    /// Writes that are under way, by volume, and who waits for them to end.
    pub(crate) writing: Vec<(usize, Vec<Rc<Process>>)>,
}

impl Buffers {
    /// `headers` buffers that share `memory_bytes`: an equal part for each, in
    /// whole kilobytes, none more than `most_bytes`; for blocks of so many volumes.
    pub(crate) fn new(
        headers: u32,
        (memory_bytes, most_bytes): (u32, u32),
        volumes: usize,
    ) -> Self {
        let mut buffers = Self {
            all: Vec::with_capacity(headers as usize),
            delayed_writes: 0,
            chains: [NONE; CHAINS],
            lists: [(NONE, NONE); 3],
            waiters: Vec::new(),
            pages: Pages::default(),
            writing: vec![(0, Vec::new()); volumes],
        };
        let clicks = memory_bytes / CLICK;
        for number in 0..headers {
            let more = u32::from(number < clicks % headers);
            let memory = ((clicks / headers + more) * CLICK).min(most_bytes);
            buffers.all.push(Buffer::new(memory));
            let list = if memory == 0 { List::Empty } else { List::Age };
            buffers.append(BufferId(number), list);
        }
        buffers
    }

    #[inline]
    pub(crate) fn get(&mut self, id: BufferId) -> &mut Buffer {
        &mut self.all[id.0 as usize]
    }

    /// Says whether the block on the drive is older than a buffer.
    pub(crate) fn delay_write(&mut self, id: BufferId, delayed: bool) {
        let was = std::mem::replace(&mut self.get(id).delayed_write, delayed);
        self.delayed_writes += usize::from(delayed);
        self.delayed_writes -= usize::from(was);
    }

    /// The first buffer of a volume that nobody uses and that has to go out. There is none
    /// as a rule, for who has each of many files written out.
    pub(crate) fn delayed(&self, volume: u32) -> Option<BufferId> {
        if self.delayed_writes == 0 {
            return None;
        }
        let place = self.all.iter().position(|buffer| {
            buffer.delayed_write
                && !buffer.busy
                && buffer.key.is_some_and(|key| key.volume() == volume)
        })?;
        Some(BufferId(place as u32))
    }

    fn chain(key: BlockKey) -> usize {
        // Neighbouring blocks share a chain, as in the kernel of the day.
        ((key.volume() as usize) + (key.fragment() as usize) / 8) % CHAINS
    }

    /// The buffer that holds this block.
    #[inline]
    pub(crate) fn find(&self, key: BlockKey) -> Option<BufferId> {
        let mut number = self.chains[Self::chain(key)];
        while number != NONE {
            let buffer = &self.all[number as usize];
            if buffer.key == Some(key) {
                return Some(BufferId(number));
            }
            number = buffer.chain_next;
        }
        None
    }

    /// A buffer of another block that shares fragments with this one: what is
    /// left of a file that gave them back. They are all in one chain.
    pub(crate) fn overlapping(
        &self,
        key: BlockKey,
        fragments: u32,
        fragment_bytes: u32,
    ) -> Option<BufferId> {
        let mut number = self.chains[Self::chain(key)];
        while number != NONE {
            let buffer = &self.all[number as usize];
            let shares = |other: BlockKey| {
                other != key
                    && other.volume() == key.volume()
                    && other.fragment() < key.fragment() + fragments
                    && key.fragment() < other.fragment() + buffer.count.div_ceil(fragment_bytes)
            };
            if buffer.key.is_some_and(shares) {
                return Some(BufferId(number));
            }
            number = buffer.chain_next;
        }
        None
    }

    /// Names the block that a buffer holds from now on; none, if it holds
    /// nothing.
    pub(crate) fn name(&mut self, id: BufferId, key: Option<BlockKey>) {
        if let Some(old) = self.get(id).key.take() {
            let chain = Self::chain(old);
            let next = self.get(id).chain_next;
            if self.chains[chain] == id.0 {
                self.chains[chain] = next;
            } else {
                let mut number = self.chains[chain];
                while self.all[number as usize].chain_next != id.0 {
                    number = self.all[number as usize].chain_next;
                }
                self.all[number as usize].chain_next = next;
            }
        }
        if let Some(key) = key {
            let chain = Self::chain(key);
            let first = self.chains[chain];
            let buffer = self.get(id);
            buffer.key = Some(key);
            buffer.chain_next = first;
            self.chains[chain] = id.0;
        }
    }

    /// The first of a list.
    pub(crate) fn first(&self, list: List) -> Option<BufferId> {
        let (first, _) = self.lists[list as usize];
        (first != NONE).then_some(BufferId(first))
    }

    /// Takes a buffer off its list: it is in use.
    pub(crate) fn take(&mut self, id: BufferId) {
        let buffer = self.get(id);
        let list = buffer.list.take().expect("a buffer in use is on no list");
        let (previous, next) = (buffer.previous, buffer.next);
        buffer.busy = true;
        let ends = &mut self.lists[list as usize];
        if previous == NONE {
            ends.0 = next;
        }
        if next == NONE {
            ends.1 = previous;
        }
        if previous != NONE {
            self.all[previous as usize].next = next;
        }
        if next != NONE {
            self.all[next as usize].previous = previous;
        }
    }

    /// Puts a buffer at the end of a list: nobody uses it.
    pub(crate) fn append(&mut self, id: BufferId, list: List) {
        let last = self.lists[list as usize].1;
        let buffer = self.get(id);
        assert!(buffer.list.is_none(), "a buffer is on one list");
        buffer.busy = false;
        buffer.list = Some(list);
        buffer.previous = last;
        buffer.next = NONE;
        if last == NONE {
            self.lists[list as usize].0 = id.0;
        } else {
            self.all[last as usize].next = id.0;
        }
        self.lists[list as usize].1 = id.0;
    }

    /// Puts a buffer that holds nothing where it is reused first.
    pub(crate) fn prepend(&mut self, id: BufferId, list: List) {
        let first = self.lists[list as usize].0;
        let buffer = self.get(id);
        assert!(buffer.list.is_none(), "a buffer is on one list");
        buffer.busy = false;
        buffer.list = Some(list);
        buffer.previous = NONE;
        buffer.next = first;
        if first == NONE {
            self.lists[list as usize].1 = id.0;
        } else {
            self.all[first as usize].previous = id.0;
        }
        self.lists[list as usize].0 = id.0;
    }

    /// All memory, which never changes.
    pub(crate) fn memory(&self) -> u64 {
        self.all.iter().map(|buffer| u64::from(buffer.memory)).sum()
    }
}

/// Memory moves between buffers in units of this.
pub(crate) const CLICK: u32 = 1024;

impl Buffer {
    /// Whether the block on the drive is older than this.
    #[inline]
    pub(crate) fn is_delayed(&self) -> bool {
        self.delayed_write
    }

    fn new(memory: u32) -> Self {
        Self {
            key: None,
            memory,
            count: 0,
            busy: false,
            done: false,
            delayed_write: false,
            asynchronous: false,
            age: false,
            page: None,
            waiters: Vec::new(),
            request: None,
            spent: Spans::default(),
            list: None,
            previous: NONE,
            next: NONE,
            chain_next: NONE,
        }
    }
}
