//! Reads that fsck performs on a file system, in order (4.2BSD `fsck.c`): the walk of its passes
//! over the layout, with its few buffers.
//!
//! The file system is assumed to be sound. Repairs and the questions to the user are not modelled.
//! Passes 3 and 4 read nothing, because all that they need is in core.

use super::superblock::FragmentAddress;
use super::{FastFileSystem, GroupIndex, IndirectBlockId, InodeKind, InodeNumber};

/// Pass of fsck that a read belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FsckPass {
    /// Preparation before pass 1: the superblock, the copy that it is compared with, and the
    /// summaries.
    SuperblockSetup,
    /// Inode blocks in pass 1. fsck reads all of them.
    InodeScan,
    /// Indirect blocks of files in pass 1, for the addresses in them.
    IndirectBlocks,
    /// Inode block of a directory, in pass 2.
    DirectoryInodes,
    /// Block of a directory's contents, in pass 2.
    DirectoryContents,
    /// Maps of the cylinder groups, in pass 5.
    GroupMaps,
}

/// Read of the raw device by fsck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FsckRead {
    /// Pass of fsck that performs the read.
    pub fsck_pass: FsckPass,
    /// First fragment of the read.
    pub address: FragmentAddress,
    /// Length of the read in bytes.
    pub bytes: u32,
}

/// Progress of fsck: its reads so far, and its two buffers, which are checked before any block is
/// read again.
struct FsckWalk<'a> {
    file_system: &'a FastFileSystem,
    reads: Vec<FsckRead>,
    inode_block: Option<FragmentAddress>,
    directory_piece: Option<FragmentAddress>,
}

/// Remaining work of pass 2. A stack of tasks replaces the recursion of `descend()` in the source.
enum DirectoryTask {
    EnterDirectory(InodeNumber),
    /// Piece of a directory to read, or to read again, with its length in bytes.
    ReadDirectoryPiece(FragmentAddress, u32),
}

impl FastFileSystem {
    /// Returns all reads of fsck, in order.
    #[must_use]
    pub fn fsck_reads(&self) -> Vec<FsckRead> {
        let mut walk = FsckWalk {
            file_system: self,
            reads: Vec::new(),
            inode_block: None,
            directory_piece: None,
        };
        walk.read_superblock_and_summary();
        for group in (0..self.superblock.group_count()).map(GroupIndex) {
            walk.scan_inodes(group);
        }
        walk.descend_directories();
        for group in (0..self.superblock.group_count()).map(GroupIndex) {
            let address = self.superblock.group_map_address(group);
            walk.add_read(
                FsckPass::GroupMaps,
                address,
                self.superblock.group_map_bytes(),
            );
        }
        walk.reads
    }
}

impl FsckWalk<'_> {
    fn add_read(&mut self, pass: FsckPass, address: FragmentAddress, bytes: u32) {
        self.reads.push(FsckRead {
            fsck_pass: pass,
            address,
            bytes,
        });
    }

    /// Reads the superblock, its copy in the last cylinder group, and the summaries, a block at a
    /// time.
    fn read_superblock_and_summary(&mut self) {
        let superblock = &self.file_system.superblock;
        let last = GroupIndex(superblock.group_count() - 1);
        let bytes = superblock.superblock_bytes();
        for address in [
            superblock.superblock_address(),
            superblock.superblock_copy_address(last),
        ] {
            self.add_read(FsckPass::SuperblockSetup, address, bytes);
        }
        let (start, all) = (superblock.summary_address(), superblock.summary_bytes());
        let block_bytes = superblock.block_bytes();
        for offset in (0..all).step_by(block_bytes as usize) {
            let address = FragmentAddress(start.0 + offset / superblock.fragment_bytes());
            self.add_read(
                FsckPass::SuperblockSetup,
                address,
                block_bytes.min(all - offset),
            );
        }
    }

    /// Performs pass 1 for a cylinder group: reads the inodes in order, each followed by its
    /// indirect blocks, which have buffers of their own.
    fn scan_inodes(&mut self, group: GroupIndex) {
        let first = group.0 * self.file_system.superblock.inodes_per_group();
        for index in 0..self.file_system.superblock.inodes_per_group() {
            let inode = InodeNumber(first + index);
            self.read_inode(FsckPass::InodeScan, inode);
            if self.file_system.is_inode_allocated(inode) {
                for depth in [1, 2] {
                    if let Some(root) = self.file_system.indirect_root(inode, depth) {
                        self.read_indirect(root, depth);
                    }
                }
            }
        }
    }

    fn read_indirect(&mut self, block: IndirectBlockId, depth: u32) {
        let bytes = self.file_system.superblock.block_bytes();
        self.add_read(
            FsckPass::IndirectBlocks,
            self.file_system.indirect_address(block),
            bytes,
        );
        if depth == 2 {
            for index in 0..self.file_system.superblock.pointers_per_block() {
                if let Some(child) = self.file_system.indirect_child(block, index) {
                    self.read_indirect(child, 1);
                }
            }
        }
    }

    /// Reads the block of an inode unless the buffer holds it (`ginode`).
    fn read_inode(&mut self, pass: FsckPass, inode: InodeNumber) {
        let address = self.file_system.superblock.inode_block_address(inode);
        if self.inode_block.replace(address) != Some(address) {
            self.add_read(pass, address, self.file_system.superblock.block_bytes());
        }
    }

    /// Performs pass 2: walks the directories depth first. fsck has one buffer for pieces of
    /// directories, so that it reads the parent's piece again after each subdirectory.
    fn descend_directories(&mut self) {
        let mut stack = vec![DirectoryTask::EnterDirectory(FastFileSystem::ROOT_INODE)];
        while let Some(task) = stack.pop() {
            match task {
                DirectoryTask::EnterDirectory(directory) => {
                    self.read_inode(FsckPass::DirectoryInodes, directory);
                    let tasks = self.directory_tasks(directory);
                    stack.extend(tasks.into_iter().rev());
                }
                DirectoryTask::ReadDirectoryPiece(address, bytes) => {
                    if self.directory_piece.replace(address) != Some(address) {
                        self.add_read(FsckPass::DirectoryContents, address, bytes);
                    }
                }
            }
        }
    }

    fn directory_tasks(&self, directory: InodeNumber) -> Vec<DirectoryTask> {
        let superblock = &self.file_system.superblock;
        let size_bytes = self.file_system.size_bytes(directory);
        let mut subdirectories = self
            .file_system
            .directory_entries(directory)
            .filter(|entry| !matches!(entry.name, "." | ".."))
            .filter(|entry| self.file_system.inode_kind(entry.inode) == InodeKind::Directory)
            .peekable();
        let mut tasks = Vec::new();
        for lbn in 0..size_bytes.div_ceil(u64::from(superblock.block_bytes())) as u32 {
            let address = self.file_system.block_address(directory, lbn);
            let address = address.expect("a directory has no holes");
            let fragments = self.file_system.fragment_count_of_block(directory, lbn);
            let bytes = fragments * superblock.fragment_bytes();
            tasks.push(DirectoryTask::ReadDirectoryPiece(address, bytes));
            let in_piece = |offset: u64| superblock.block_index_at(offset) == lbn;
            while let Some(entry) = subdirectories.next_if(|entry| in_piece(entry.offset_bytes)) {
                tasks.push(DirectoryTask::EnterDirectory(entry.inode));
                tasks.push(DirectoryTask::ReadDirectoryPiece(address, bytes));
            }
        }
        tasks
    }
}
