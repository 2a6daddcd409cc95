//! Checks a file system as fsck does: every block is in one file or free,
//! every inode has as many names as it says.

use super::super::buffers::BlockKey;
use super::super::ffs::{InodeKind, InodeNumber};
use super::OnV7;
use super::layout::{
    BLOCK_BYTES, DIRECT, ENTRY_BYTES, INODE_BYTES, Inode, ROOT, Superblock, cut, decode_free, long,
    word,
};
use std::collections::{BTreeMap, BTreeSet};

/// What a check found on a sound file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct V7Check {
    /// Files that have names.
    pub files: u32,
    /// Directories, the root among them.
    pub directories: u32,
    /// Files without a name that somebody has open.
    pub open_unlinked: u32,
    /// Blocks of files.
    pub blocks: u32,
    /// Blocks that are free.
    pub free_blocks: u32,
}

/// Gives a block's bytes.
pub(super) type BlockReader<'a> = dyn Fn(u32) -> Vec<u8> + 'a;

pub(super) struct Check<'a> {
    pub(super) read: &'a BlockReader<'a>,
    pub(super) superblock: &'a Superblock,
    /// Inodes as the kernel has them in core.
    pub(super) in_core: &'a BTreeMap<InodeNumber, Inode>,
}

#[derive(Default)]
struct State {
    blocks: BTreeSet<u32>,
    /// Names of each inode, `.` and `..` among them.
    names: BTreeMap<u32, u32>,
    /// Those in directories above.
    proper: BTreeMap<u32, u32>,
    found: V7Check,
    problems: Vec<String>,
}

impl OnV7<'_> {
    /// A block as it should be: from the cache, or else from the drive.
    pub(super) fn present(&self, volume: u32, block: u32) -> Vec<u8> {
        let key = BlockKey::new(volume, block);
        let buffers = self.buffers.borrow();
        let held = buffers.find(key);
        let page = held.and_then(|id| buffers.all[id.0 as usize].page.clone());
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

    /// Checks a volume's file system, as the kernel, the cache and the drive
    /// have it.
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

    /// The blocks of an inode, each of which nobody else may have.
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

    /// A block of a directory.
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

    /// The free list, with what is used all blocks.
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

/// Whether an inode has as many names as it says.
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
