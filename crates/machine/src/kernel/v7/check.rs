//! Consistency check of a seventh edition file system in the manner of fsck: each block belongs to
//! one file or is free, and the link count of each inode is its number of names.

use super::super::buffers::BlockKey;
use super::super::ffs::{InodeKind, InodeNumber};
use super::V7View;
use super::layout::{
    BLOCK_BYTES, DIRECT_ADDRESS_COUNT, DIRECTORY_ENTRY_BYTES, INODE_BYTES, ROOT_INODE, V7Inode,
    V7Superblock, decode_free, read_u16, read_u32, truncate_name,
};
use std::collections::{BTreeMap, BTreeSet};

/// Counts of files, directories and blocks in a consistent seventh edition file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct V7CheckSummary {
    /// Number of files that have names.
    pub file_count: u32,
    /// Number of directories, including the root.
    pub directory_count: u32,
    /// Number of files without a name that a process has open.
    pub open_unlinked_count: u32,
    /// Number of blocks that files use.
    pub used_block_count: u32,
    /// Number of free blocks.
    pub free_block_count: u32,
}

/// Function that returns the contents of a block.
pub(super) type V7BlockReader<'a> = dyn Fn(u32) -> Vec<u8> + 'a;

pub(super) struct V7Checker<'a> {
    pub(super) read_block: &'a V7BlockReader<'a>,
    pub(super) superblock: &'a V7Superblock,
    /// Inodes that the kernel has in core. They supersede the inodes on the drive.
    pub(super) in_core: &'a BTreeMap<InodeNumber, V7Inode>,
}

#[derive(Default)]
struct CheckState {
    claimed_blocks: BTreeSet<u32>,
    /// Number of names of each inode, including `.` and `..`.
    link_counts: BTreeMap<u32, u32>,
    /// Number of names of each inode, without `.` and `..`.
    name_counts: BTreeMap<u32, u32>,
    summary: V7CheckSummary,
    problems: Vec<String>,
}

impl V7View<'_> {
    /// Returns the current contents of a block, from the cache or else from the drive, without
    /// passing virtual time.
    pub(super) fn current_block(&self, volume: u32, block: u32) -> Vec<u8> {
        let key = BlockKey::new(volume, block);
        let buffers = self.buffers.borrow();
        let held = buffers.find_cached(key);
        let page = held.and_then(|id| buffers.buffers[id.0 as usize].page.clone());
        match page {
            Some(page) => page.to_vec(),
            None => {
                let mut bytes = vec![0; BLOCK_BYTES];
                let at = u64::from(block) * BLOCK_BYTES as u64;
                self.volumes
                    .with_contents(volume, |medium| medium.read_bytes(at, &mut bytes));
                bytes
            }
        }
    }

    /// Checks the seventh edition file system of a volume, with the in-core and cached data in
    /// place of the data on the drive. Returns all inconsistencies as an error.
    pub(crate) fn check_volume(&self, volume: u32) -> Result<V7CheckSummary, Vec<String>> {
        let (superblock, in_core) = self.with_volume(volume, |volume| {
            let read = |(number, core): (&InodeNumber, &super::V7InodeInCore)| {
                core.inode.clone().map(|inode| (*number, inode))
            };
            let inodes: BTreeMap<_, _> = volume.inodes.iter().filter_map(read).collect();
            (volume.superblock.clone(), inodes)
        });
        let check = V7Checker {
            read_block: &|block| self.current_block(volume, block),
            superblock: &superblock,
            in_core: &in_core,
        };
        check.check_all()
    }
}

impl V7Checker<'_> {
    pub(super) fn check_all(&self) -> Result<V7CheckSummary, Vec<String>> {
        let mut state = CheckState::default();
        let mut inodes = Vec::new();
        for number in ROOT_INODE..=self.superblock.inode_count() {
            let inode = self.read_inode(number);
            if inode.kind.is_some() {
                self.claim_blocks(&mut state, number, &inode);
                // What is removed and still open has no names of others.
                if inode.kind == Some(InodeKind::Directory) && inode.link_count > 0 {
                    self.check_directory(&mut state, number, &inode);
                }
                inodes.push((number, inode));
            }
        }
        for (number, inode) in &inodes {
            count_inode(&mut state, *number, inode);
        }
        let used: BTreeSet<u32> = inodes.iter().map(|(number, _)| *number).collect();
        for named in state
            .link_counts
            .keys()
            .filter(|named| !used.contains(named))
        {
            let problem = format!("a directory entry names inode {named}, which is free");
            state.problems.push(problem);
        }
        state.summary.used_block_count = state.claimed_blocks.len() as u32;
        self.check_free_blocks(&mut state);
        if state.problems.is_empty() {
            Ok(state.summary)
        } else {
            Err(state.problems)
        }
    }

    fn read_inode(&self, number: u32) -> V7Inode {
        let known = self.in_core.get(&InodeNumber(number));
        known.cloned().unwrap_or_else(|| {
            let (block, at) = V7Superblock::inode_position(number);
            V7Inode::decode_inode(&(self.read_block)(block)[at..at + INODE_BYTES])
        })
    }

    /// Claims all blocks of an inode, and reports a problem for a block that another inode has
    /// claimed.
    fn claim_blocks(&self, state: &mut CheckState, number: u32, inode: &V7Inode) {
        let levels = |place: usize| (place as u32 + 1).saturating_sub(DIRECT_ADDRESS_COUNT);
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
            if !self.superblock.is_data_block(block) || !state.claimed_blocks.insert(block) {
                let problem = format!(
                    "inode {number} claims block {block}, which is no data block or belongs to another inode"
                );
                state.problems.push(problem);
                continue;
            }
            if below > 0 {
                let bytes = (self.read_block)(block);
                left.extend(bytes.chunks(4).map(|bytes| (read_u32(bytes, 0), below - 1)));
            }
        }
    }

    fn check_directory(&self, state: &mut CheckState, number: u32, inode: &V7Inode) {
        let mut dots = 0;
        for lbn in 0..inode.block_count() {
            let Some(block) = self.block_address(inode, lbn) else {
                let problem = format!("directory {number} has a hole at block {lbn}");
                state.problems.push(problem);
                continue;
            };
            let bytes = (self.read_block)(block);
            let end = (inode.size_bytes as usize - lbn as usize * BLOCK_BYTES).min(BLOCK_BYTES);
            for bytes in bytes[..end].chunks(DIRECTORY_ENTRY_BYTES) {
                let named = u32::from(read_u16(bytes, 0));
                if named == 0 {
                    continue;
                }
                *state.link_counts.entry(named).or_default() += 1;
                if bytes[2..] == truncate_name(".") || bytes[2..] == truncate_name("..") {
                    dots += 1;
                } else {
                    *state.name_counts.entry(named).or_default() += 1;
                }
            }
        }
        if dots != 2 {
            let problem = format!("directory {number} has {dots} of its two entries . and ..");
            state.problems.push(problem);
        }
    }

    fn block_address(&self, inode: &V7Inode, lbn: u32) -> Option<u32> {
        let path = super::layout::pointer_path(lbn)?;
        let mut block = inode.addresses[path[0]];
        for place in &path[1..] {
            if block == 0 {
                return None;
            }
            block = read_u32(&(self.read_block)(block), 4 * place);
        }
        (block != 0).then_some(block)
    }

    /// Checks the free list: its blocks must be unused, and together with the used blocks they must
    /// be all data blocks.
    fn check_free_blocks(&self, state: &mut CheckState) {
        let mut list = self.superblock.free_block_cache.clone();
        let mut free = BTreeSet::new();
        while let Some(block) = list.pop() {
            if block == 0 {
                break;
            }
            let used = state.claimed_blocks.contains(&block);
            if used || !self.superblock.is_data_block(block) || !free.insert(block) {
                let problem = format!(
                    "free list: invalid or duplicate block {block} (used by a file: {used})"
                );
                state.problems.push(problem);
                return;
            }
            if list.is_empty() {
                list = decode_free(&(self.read_block)(block));
            }
        }
        state.summary.free_block_count = free.len() as u32;
        let all = self.superblock.block_count - self.superblock.first_data_block;
        let known = state.summary.used_block_count + state.summary.free_block_count;
        if known != all {
            let problem = format!("{known} of {all} blocks belong to a file or to the free list");
            state.problems.push(problem);
        }
    }
}

fn count_inode(state: &mut CheckState, number: u32, inode: &V7Inode) {
    let of = |names: &BTreeMap<u32, u32>| names.get(&number).copied().unwrap_or(0);
    let (names, proper) = (of(&state.link_counts), of(&state.name_counts));
    let directory = inode.kind == Some(InodeKind::Directory);
    if inode.link_count == 0 {
        state.summary.open_unlinked_count += 1;
        if proper > 0 {
            let problem = format!("inode {number}: link count 0, {proper} names");
            state.problems.push(problem);
        }
        return;
    }
    match directory {
        true => state.summary.directory_count += 1,
        false => state.summary.file_count += 1,
    }
    if u32::from(inode.link_count) != names {
        let said = inode.link_count;
        let problem = format!("inode {number}: link count {said}, {names} names");
        state.problems.push(problem);
    }
    if directory && proper != u32::from(number != ROOT_INODE) {
        let problem = format!("directory {number} has {proper} parent directories");
        state.problems.push(problem);
    }
}
