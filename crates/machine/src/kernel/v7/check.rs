//! Consistency check of a seventh edition file system in the manner of fsck: each block belongs to
//! one file or is free, and the link count of each inode is its number of names.

use super::super::buffers::BlockKey;
use super::super::ffs::{InodeKind, InodeNumber};
use super::OnV7;
use super::layout::{
    BLOCK_BYTES, DIRECT, ENTRY_BYTES, INODE_BYTES, Inode, ROOT, Superblock, cut, decode_free, long,
    word,
};
use std::collections::{BTreeMap, BTreeSet};

/// Counts of files, directories and blocks in a consistent seventh edition file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct V7Check {
    /// Number of files that have names.
    pub files: u32,
    /// Number of directories, including the root.
    pub directories: u32,
    /// Number of files without a name that a process has open.
    pub open_unlinked: u32,
    /// Number of blocks that files use.
    pub blocks: u32,
    /// Number of free blocks.
    pub free_blocks: u32,
}

/// Function that returns the contents of a block.
pub(super) type BlockReader<'a> = dyn Fn(u32) -> Vec<u8> + 'a;

pub(super) struct Check<'a> {
    pub(super) read: &'a BlockReader<'a>,
    pub(super) superblock: &'a Superblock,
    /// Inodes that the kernel has in core. They supersede the inodes on the drive.
    pub(super) in_core: &'a BTreeMap<InodeNumber, Inode>,
}

#[derive(Default)]
struct State {
    blocks: BTreeSet<u32>,
    /// Number of names of each inode, including `.` and `..`.
    names: BTreeMap<u32, u32>,
    /// Number of names of each inode, without `.` and `..`.
    proper: BTreeMap<u32, u32>,
    found: V7Check,
    problems: Vec<String>,
}

impl OnV7<'_> {
    /// Returns the current contents of a block, from the cache or else from the drive, without
    /// passing virtual time.
    pub(super) fn present(&self, volume: u32, block: u32) -> Vec<u8> {
        let key = BlockKey::new(volume, block);
        let buffers = self.buffers.borrow();
        let held = buffers.find(key);
        let page = held.and_then(|id| buffers.buffers[id.0 as usize].page.clone());
        match page {
            Some(page) => page.to_vec(),
            None => {
                let mut bytes = vec![0; BLOCK_BYTES];
                let at = u64::from(block) * BLOCK_BYTES as u64;
                self.volumes
                    .medium(volume, |medium| medium.read_bytes(at, &mut bytes));
                bytes
            }
        }
    }

    /// Checks the seventh edition file system of a volume, with the in-core and cached data in
    /// place of the data on the drive. Returns all inconsistencies as an error.
    pub(crate) fn check_volume(&self, volume: u32) -> Result<V7Check, Vec<String>> {
        let (superblock, in_core) = self.volume(volume, |volume| {
            let read = |(number, core): (&InodeNumber, &super::CoreInode)| {
                core.inode.clone().map(|inode| (*number, inode))
            };
            let inodes: BTreeMap<_, _> = volume.inodes.iter().filter_map(read).collect();
            (volume.superblock.clone(), inodes)
        });
        let check = Check {
            read: &|block| self.present(volume, block),
            superblock: &superblock,
            in_core: &in_core,
        };
        check.all()
    }
}

impl Check<'_> {
    pub(super) fn all(&self) -> Result<V7Check, Vec<String>> {
        let mut state = State::default();
        let mut inodes = Vec::new();
        for number in ROOT..=self.superblock.inode_count() {
            let inode = self.inode(number);
            if inode.kind.is_some() {
                self.claim(&mut state, number, &inode);
                // What is removed and still open has no names of others.
                if inode.kind == Some(InodeKind::Directory) && inode.links > 0 {
                    self.directory(&mut state, number, &inode);
                }
                inodes.push((number, inode));
            }
        }
        for (number, inode) in &inodes {
            count(&mut state, *number, inode);
        }
        let used: BTreeSet<u32> = inodes.iter().map(|(number, _)| *number).collect();
        for named in state.names.keys().filter(|named| !used.contains(named)) {
            let problem = format!("there is a name of inode {named}, which is free");
            state.problems.push(problem);
        }
        state.found.blocks = state.blocks.len() as u32;
        self.free(&mut state);
        if state.problems.is_empty() {
            Ok(state.found)
        } else {
            Err(state.problems)
        }
    }

    fn inode(&self, number: u32) -> Inode {
        let known = self.in_core.get(&InodeNumber(number));
        known.cloned().unwrap_or_else(|| {
            let (block, at) = Superblock::inode_place(number);
            Inode::decode(&(self.read)(block)[at..at + INODE_BYTES])
        })
    }

    /// Claims all blocks of an inode, and reports a problem for a block that another inode has
    /// claimed.
    fn claim(&self, state: &mut State, number: u32, inode: &Inode) {
        let levels = |place: usize| (place as u32 + 1).saturating_sub(DIRECT);
        let mut left: Vec<(u32, u32)> = inode
            .addresses
            .iter()
            .copied()
            .enumerate()
            .map(|(place, block)| (block, levels(place)))
            .collect();
        while let Some((block, below)) = left.pop() {
            if block == 0 {
                continue;
            }
            if !self.superblock.is_data(block) || !state.blocks.insert(block) {
                let problem = format!("inode {number} has block {block}, which is not its own");
                state.problems.push(problem);
                continue;
            }
            if below > 0 {
                let bytes = (self.read)(block);
                left.extend(bytes.chunks(4).map(|bytes| (long(bytes, 0), below - 1)));
            }
        }
    }

    fn directory(&self, state: &mut State, number: u32, inode: &Inode) {
        let mut dots = 0;
        for lbn in 0..inode.blocks() {
            let Some(block) = self.block(inode, lbn) else {
                let problem = format!("directory {number} has a hole at block {lbn}");
                state.problems.push(problem);
                continue;
            };
            let bytes = (self.read)(block);
            let end = (inode.size as usize - lbn as usize * BLOCK_BYTES).min(BLOCK_BYTES);
            for bytes in bytes[..end].chunks(ENTRY_BYTES) {
                let named = u32::from(word(bytes, 0));
                if named == 0 {
                    continue;
                }
                *state.names.entry(named).or_default() += 1;
                if bytes[2..] == cut(".") || bytes[2..] == cut("..") {
                    dots += 1;
                } else {
                    *state.proper.entry(named).or_default() += 1;
                }
            }
        }
        if dots != 2 {
            let problem = format!("directory {number} has {dots} of the two names . and ..");
            state.problems.push(problem);
        }
    }

    fn block(&self, inode: &Inode, lbn: u32) -> Option<u32> {
        let path = super::layout::path(lbn)?;
        let mut block = inode.addresses[path[0]];
        for place in &path[1..] {
            if block == 0 {
                return None;
            }
            block = long(&(self.read)(block), 4 * place);
        }
        (block != 0).then_some(block)
    }

    /// Checks the free list: its blocks must be unused, and together with the used blocks they must
    /// be all data blocks.
    fn free(&self, state: &mut State) {
        let mut list = self.superblock.free.clone();
        let mut free = BTreeSet::new();
        while let Some(block) = list.pop() {
            if block == 0 {
                break;
            }
            let used = state.blocks.contains(&block);
            if used || !self.superblock.is_data(block) || !free.insert(block) {
                let problem = format!("block {block} is free, and used: {used}");
                state.problems.push(problem);
                return;
            }
            if list.is_empty() {
                list = decode_free(&(self.read)(block));
            }
        }
        state.found.free_blocks = free.len() as u32;
        let all = self.superblock.blocks - self.superblock.first_data_block;
        let known = state.found.blocks + state.found.free_blocks;
        if known != all {
            let problem = format!("{known} of {all} blocks are used or free");
            state.problems.push(problem);
        }
    }
}

fn count(state: &mut State, number: u32, inode: &Inode) {
    let of = |names: &BTreeMap<u32, u32>| names.get(&number).copied().unwrap_or(0);
    let (names, proper) = (of(&state.names), of(&state.proper));
    let directory = inode.kind == Some(InodeKind::Directory);
    if inode.links == 0 {
        state.found.open_unlinked += 1;
        if proper > 0 {
            let problem = format!("inode {number} has {proper} names and says none");
            state.problems.push(problem);
        }
        return;
    }
    match directory {
        true => state.found.directories += 1,
        false => state.found.files += 1,
    }
    if u32::from(inode.links) != names {
        let said = inode.links;
        let problem = format!("inode {number} has {names} names and says {said}");
        state.problems.push(problem);
    }
    if directory && proper != u32::from(number != ROOT) {
        let problem = format!("directory {number} is in {proper} directories");
        state.problems.push(problem);
    }
}
