//! Reads that fsck performs on a file system, in order (4.2BSD `fsck.c`): the walk of its passes
//! over the layout, with its few buffers.
//!
//! The file system is assumed to be sound. Repairs and the questions to the user are not modelled.
//! Passes 3 and 4 read nothing, because all that they need is in core.

use super::superblock::Fragment;
use super::{FileSystem, Group, IndirectId, InodeKind, InodeNumber};

/// Pass of fsck that a read belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FsckPass {
    /// Preparation before pass 1: the superblock, the copy that it is compared with, and the
    /// summaries.
    Setup,
    /// Inode blocks in pass 1. fsck reads all of them.
    Inodes,
    /// Indirect blocks of files in pass 1, for the addresses in them.
    Indirect,
    /// Inode block of a directory, in pass 2.
    DirectoryInode,
    /// Block of a directory's contents, in pass 2.
    Directory,
    /// Maps of the cylinder groups, in pass 5.
    Map,
}

/// Read of the raw device by fsck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FsckRead {
    /// Pass of fsck that performs the read.
    pub pass: FsckPass,
    /// First fragment of the read.
    pub address: Fragment,
    /// Length of the read in bytes.
    pub bytes: u32,
}

/// Progress of fsck: its reads so far, and its two buffers, which are checked before any block is
/// read again.
struct FsckWalk<'a> {
    fs: &'a FileSystem,
    reads: Vec<FsckRead>,
    inode_block: Option<Fragment>,
    directory_piece: Option<Fragment>,
}

/// Remaining work of pass 2. A stack of tasks replaces the recursion of `descend()` in the source.
enum DirectoryTask {
    Enter(InodeNumber),
    /// Piece of a directory to read, or to read again, with its length in bytes.
    ReadPiece(Fragment, u32),
}

impl FileSystem {
    /// Returns all reads of fsck, in order.
    #[must_use]
    pub fn fsck_reads(&self) -> Vec<FsckRead> {
        let mut walk = FsckWalk {
            fs: self,
            reads: Vec::new(),
            inode_block: None,
            directory_piece: None,
        };
        walk.read_superblock_and_summary();
        for group in (0..self.superblock.group_count()).map(Group) {
            walk.scan_inodes(group);
        }
        walk.descend();
        for group in (0..self.superblock.group_count()).map(Group) {
            let address = self.superblock.group_map_address(group);
            walk.add_read(FsckPass::Map, address, self.superblock.group_map_bytes());
        }
        walk.reads
    }
}

impl FsckWalk<'_> {
    fn add_read(&mut self, pass: FsckPass, address: Fragment, bytes: u32) {
        self.reads.push(FsckRead {
            pass,
            address,
            bytes,
        });
    }

    /// Reads the superblock, its copy in the last cylinder group, and the summaries, a block at a
    /// time.
    fn read_superblock_and_summary(&mut self) {
        let superblock = &self.fs.superblock;
        let last = Group(superblock.group_count() - 1);
        let bytes = superblock.superblock_bytes();
        for address in [
            superblock.superblock_address(),
            superblock.superblock_copy_address(last),
        ] {
            self.add_read(FsckPass::Setup, address, bytes);
        }
        let (start, all) = (superblock.summary_address(), superblock.summary_bytes());
        let block_bytes = superblock.block_bytes();
        for offset in (0..all).step_by(block_bytes as usize) {
            let address = Fragment(start.0 + offset / superblock.fragment_bytes());
            self.add_read(FsckPass::Setup, address, block_bytes.min(all - offset));
        }
    }

    /// Performs pass 1 for a cylinder group: reads the inodes in order, each followed by its
    /// indirect blocks, which have buffers of their own.
    fn scan_inodes(&mut self, group: Group) {
        let first = group.0 * self.fs.superblock.inodes_per_group();
        for index in 0..self.fs.superblock.inodes_per_group() {
            let inode = InodeNumber(first + index);
            self.read_inode(FsckPass::Inodes, inode);
            if self.fs.is_inode_allocated(inode) {
                for depth in [1, 2] {
                    if let Some(root) = self.fs.indirect_root(inode, depth) {
                        self.read_indirect(root, depth);
                    }
                }
            }
        }
    }

    fn read_indirect(&mut self, block: IndirectId, depth: u32) {
        let bytes = self.fs.superblock.block_bytes();
        self.add_read(FsckPass::Indirect, self.fs.indirect_address(block), bytes);
        if depth == 2 {
            for index in 0..self.fs.superblock.pointers_per_block() {
                if let Some(child) = self.fs.indirect_child(block, index) {
                    self.read_indirect(child, 1);
                }
            }
        }
    }

    /// Reads the block of an inode unless the buffer holds it (`ginode`).
    fn read_inode(&mut self, pass: FsckPass, inode: InodeNumber) {
        let address = self.fs.superblock.inode_block_address(inode);
        if self.inode_block.replace(address) != Some(address) {
            self.add_read(pass, address, self.fs.superblock.block_bytes());
        }
    }

    /// Performs pass 2: walks the directories depth first. fsck has one buffer for pieces of
    /// directories, so that it reads the parent's piece again after each subdirectory.
    fn descend(&mut self) {
        let mut stack = vec![DirectoryTask::Enter(FileSystem::ROOT)];
        while let Some(task) = stack.pop() {
            match task {
                DirectoryTask::Enter(directory) => {
                    self.read_inode(FsckPass::DirectoryInode, directory);
                    let tasks = self.directory_tasks(directory);
                    stack.extend(tasks.into_iter().rev());
                }
                DirectoryTask::ReadPiece(address, bytes) => {
                    if self.directory_piece.replace(address) != Some(address) {
                        self.add_read(FsckPass::Directory, address, bytes);
                    }
                }
            }
        }
    }

    fn directory_tasks(&self, directory: InodeNumber) -> Vec<DirectoryTask> {
        let superblock = &self.fs.superblock;
        let size_bytes = self.fs.size_bytes(directory);
        let mut subdirectories = self
            .fs
            .directory_entries(directory)
            .filter(|entry| !matches!(entry.name, "." | ".."))
            .filter(|entry| self.fs.kind(entry.inode) == InodeKind::Directory)
            .peekable();
        let mut tasks = Vec::new();
        for lbn in 0..size_bytes.div_ceil(u64::from(superblock.block_bytes())) as u32 {
            let address = self.fs.block_address(directory, lbn);
            let address = address.expect("a directory has no holes");
            let fragments = self.fs.fragments_of_block(directory, lbn);
            let bytes = fragments * superblock.fragment_bytes();
            tasks.push(DirectoryTask::ReadPiece(address, bytes));
            let in_piece = |offset: u64| superblock.block_index_at(offset) == lbn;
            while let Some(entry) = subdirectories.next_if(|entry| in_piece(entry.offset_bytes)) {
                tasks.push(DirectoryTask::Enter(entry.inode));
                tasks.push(DirectoryTask::ReadPiece(address, bytes));
            }
        }
        tasks
    }
}
