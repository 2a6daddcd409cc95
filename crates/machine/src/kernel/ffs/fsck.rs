//! What fsck reads of a file system (4.2BSD fsck.c), in its order: the walk of
//! its passes over the layout, with its few buffers.
//!
//! A sound file system is assumed: what fsck asks its user about, and the
//! passes 3 and 4, which then find all that they need in core, read nothing.

use super::superblock::Fragment;
use super::{FileSystem, Group, IndirectId, InodeKind, InodeNumber};

/// The pass that a read belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FsckPass {
    /// Before the first: the superblock, the copy that it is compared with, and
    /// the summaries.
    Setup,
    /// Pass 1: the blocks of inodes, all of them.
    Inodes,
    /// Pass 1: the indirect blocks of files, for the addresses in them.
    Indirect,
    /// Pass 2: the block of a directory's inode.
    DirectoryInode,
    /// Pass 2: a piece of a directory.
    Directory,
    /// Pass 5: the maps of the groups.
    Map,
}

/// One read of the raw device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FsckRead {
    /// Its pass.
    pub pass: FsckPass,
    /// Where it starts.
    pub address: Fragment,
    /// How many bytes.
    pub bytes: u32,
}

/// fsck at its work: what it has read, and its two buffers that are looked at
/// before anything is read again.
struct Walk<'a> {
    fs: &'a FileSystem,
    reads: Vec<FsckRead>,
    inode_block: Option<Fragment>,
    directory_piece: Option<Fragment>,
}

/// What is left to do of pass 2; a stack of these is the recursion of descend().
enum Task {
    /// A directory that was come to.
    Enter(InodeNumber),
    /// A piece of a directory that is read, or read again.
    Piece(Fragment, u32),
}

impl FileSystem {
    /// Every read of fsck, in order.
    #[must_use]
    pub fn fsck_reads(&self) -> Vec<FsckRead> {
        let mut walk = Walk {
            fs: self,
            reads: Vec::new(),
            inode_block: None,
            directory_piece: None,
        };
        walk.set_up();
        for group in (0..self.superblock.groups()).map(Group) {
            walk.scan_inodes(group);
        }
        walk.descend();
        for group in (0..self.superblock.groups()).map(Group) {
            let address = self.superblock.group_map_address(group);
            walk.read(FsckPass::Map, address, self.superblock.group_map_bytes());
        }
        walk.reads
    }
}

impl Walk<'_> {
    fn read(&mut self, pass: FsckPass, address: Fragment, bytes: u32) {
        self.reads.push(FsckRead {
            pass,
            address,
            bytes,
        });
    }

    /// The superblock is compared with the copy in the last group; the
    /// summaries are read a block at a time.
    fn set_up(&mut self) {
        let superblock = &self.fs.superblock;
        let last = Group(superblock.groups() - 1);
        let bytes = superblock.superblock_bytes();
        for address in [
            superblock.superblock_address(),
            superblock.superblock_copy_address(last),
        ] {
            self.read(FsckPass::Setup, address, bytes);
        }
        let (start, all) = (superblock.summary_address(), superblock.summary_bytes());
        let block_bytes = superblock.block_bytes();
        for offset in (0..all).step_by(block_bytes as usize) {
            let address = Fragment(start.0 + offset / superblock.fragment_bytes());
            self.read(FsckPass::Setup, address, block_bytes.min(all - offset));
        }
    }

    /// Pass 1 of a group: the inodes in order, each followed by its indirect
    /// blocks, which have buffers of their own.
    fn scan_inodes(&mut self, group: Group) {
        let first = group.0 * self.fs.superblock.inodes_per_group();
        for index in 0..self.fs.superblock.inodes_per_group() {
            let inode = InodeNumber(first + index);
            self.inode(FsckPass::Inodes, inode);
            if self.fs.is_inode_allocated(inode) {
                for depth in [1, 2] {
                    if let Some(root) = self.fs.indirect_root(inode, depth) {
                        self.indirect(root, depth);
                    }
                }
            }
        }
    }

    fn indirect(&mut self, block: IndirectId, depth: u32) {
        let bytes = self.fs.superblock.block_bytes();
        self.read(FsckPass::Indirect, self.fs.indirect_address(block), bytes);
        if depth == 2 {
            for index in 0..self.fs.superblock.pointers_per_block() {
                if let Some(child) = self.fs.indirect_child(block, index) {
                    self.indirect(child, 1);
                }
            }
        }
    }

    /// ginode: the block of an inode, unless it is the one in core.
    fn inode(&mut self, pass: FsckPass, inode: InodeNumber) {
        let address = self.fs.superblock.inode_block_address(inode);
        if self.inode_block.replace(address) != Some(address) {
            self.read(pass, address, self.fs.superblock.block_bytes());
        }
    }

    /// Pass 2: the directories depth first. There is one buffer for pieces of
    /// directories, so that after a subdirectory the parent's piece is read
    /// again to go on in it.
    fn descend(&mut self) {
        let mut stack = vec![Task::Enter(FileSystem::ROOT)];
        while let Some(task) = stack.pop() {
            match task {
                Task::Enter(directory) => {
                    self.inode(FsckPass::DirectoryInode, directory);
                    let tasks = self.tasks_of(directory);
                    stack.extend(tasks.into_iter().rev());
                }
                Task::Piece(address, bytes) => {
                    if self.directory_piece.replace(address) != Some(address) {
                        self.read(FsckPass::Directory, address, bytes);
                    }
                }
            }
        }
    }

    fn tasks_of(&self, directory: InodeNumber) -> Vec<Task> {
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
            tasks.push(Task::Piece(address, bytes));
            let in_piece = |offset: u64| superblock.block_of(offset) == lbn;
            while let Some(entry) = subdirectories.next_if(|entry| in_piece(entry.offset_bytes)) {
                tasks.push(Task::Enter(entry.inode));
                tasks.push(Task::Piece(address, bytes));
            }
        }
        tasks
    }
}
