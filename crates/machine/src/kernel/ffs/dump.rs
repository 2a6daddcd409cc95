//! File system contents as `dump` reads them (4.2BSD `dumptraverse.c`): the inodes in use, and the
//! blocks of each inode in read order.
//!
//! The modelled drive holds no metadata. The contents of a directory's blocks are built from its
//! entries here.

use super::superblock::FragmentAddress;
use super::{
    BlockPath, DIRECTORY_CHUNK_BYTES, FastFileSystem, IndirectBlockId, InodeKind, InodeNumber,
};

/// Inode that `dump` saves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DumpedInode {
    /// Number of the dumped inode.
    pub inode: InodeNumber,
    /// Type of the dumped inode.
    pub kind: InodeKind,
    /// Length of the inode's contents in bytes.
    pub size_bytes: u64,
    /// Address of the block that holds the inode.
    pub inode_block: FragmentAddress,
    /// Path from the root, without a leading slash. Of several paths, the first that a depth-first
    /// walk finds. Empty for the root.
    pub path: String,
}

/// Step of `dump` over the contents of an inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DumpBlock {
    /// Read of an indirect block, for the addresses in it.
    IndirectBlock {
        /// Address of the indirect block.
        address: FragmentAddress,
        /// Size of the indirect block in bytes.
        bytes: u32,
    },
    /// Read of file contents.
    DataBlock {
        /// Address of the contents on the drive.
        address: FragmentAddress,
        /// Number of bytes of the file that the block holds.
        bytes: u32,
    },
    /// Hole of the file: zeroes without a block on the drive.
    UnallocatedBlock {
        /// Length of the hole in bytes.
        bytes: u32,
    },
}

impl FastFileSystem {
    /// Returns the addresses of all inode blocks, group by group, as the first pass of `dump` reads
    /// them.
    #[must_use]
    pub fn inode_blocks(&self) -> Vec<FragmentAddress> {
        let superblock = &self.superblock;
        let inodes = superblock.group_count() * superblock.inodes_per_group();
        (0..inodes)
            .step_by(superblock.inodes_per_block() as usize)
            .map(|inode| superblock.inode_block_address(InodeNumber(inode)))
            .collect()
    }

    /// Returns all inodes that have a name, in the order of their numbers.
    #[must_use]
    pub fn dumped_inodes(&self) -> Vec<DumpedInode> {
        let mut found = Vec::new();
        let mut stack = vec![(Self::ROOT_INODE, String::new())];
        while let Some((inode, path)) = stack.pop() {
            let kind = self.inode_kind(inode);
            if kind == InodeKind::Directory {
                let prefix = if path.is_empty() {
                    String::new()
                } else {
                    format!("{path}/")
                };
                let entries = self.directory_entries(inode);
                let named = entries.filter(|entry| !matches!(entry.name, "." | ".."));
                stack.extend(named.map(|entry| (entry.inode, format!("{prefix}{}", entry.name))));
            }
            found.push(DumpedInode {
                inode,
                kind,
                size_bytes: self.size_bytes(inode),
                inode_block: self.superblock.inode_block_address(inode),
                path,
            });
        }
        // A file of several names is dumped once.
        found.sort_by_key(|dumped| dumped.inode);
        found.dedup_by_key(|dumped| dumped.inode);
        found
    }

    /// Returns the steps in which `dump` reads an inode's contents, block by block.
    #[must_use]
    pub fn dump_blocks(&self, inode: InodeNumber) -> Vec<DumpBlock> {
        let block_bytes = u64::from(self.superblock.block_bytes());
        let size_bytes = self.size_bytes(inode);
        let mut steps = Vec::new();
        let mut last = Vec::new();
        for lbn in 0..size_bytes.div_ceil(block_bytes) as u32 {
            let way = self.indirect_path(inode, lbn);
            // What the block before was found by is still in core.
            for id in way.iter().filter(|id| !last.contains(*id)) {
                let address = self.indirect_address(*id);
                let bytes = self.superblock.block_bytes();
                steps.push(DumpBlock::IndirectBlock { address, bytes });
            }
            last = way;
            let bytes = block_bytes.min(size_bytes - u64::from(lbn) * block_bytes) as u32;
            steps.push(match self.block_address(inode, lbn) {
                Some(address) => DumpBlock::DataBlock { address, bytes },
                None => DumpBlock::UnallocatedBlock { bytes },
            });
        }
        steps
    }

    /// Returns the indirect blocks on the path to a block of a file, from the top. The list is
    /// empty for a block whose address is in the inode.
    fn indirect_path(&self, inode: InodeNumber, lbn: u32) -> Vec<IndirectBlockId> {
        let Some(path) = self.locate_block(lbn) else {
            return Vec::new();
        };
        let root = match path {
            BlockPath::DirectPointer { .. } => None,
            BlockPath::SingleIndirect { .. } | BlockPath::DoubleIndirect { .. } => {
                self.indirect_root(inode, path.indirection_depth())
            }
        };
        let child = match path {
            BlockPath::DoubleIndirect { outer, .. } => {
                root.and_then(|root| self.indirect_child(root, outer))
            }
            BlockPath::DirectPointer { .. } | BlockPath::SingleIndirect { .. } => None,
        };
        root.into_iter().chain(child).collect()
    }

    /// Encodes a directory as it is on the drive: records of inode, length of record, length of
    /// name and name, in chunks that no record crosses.
    ///
    /// # Panics
    /// Panics if the inode is not a directory.
    #[must_use]
    pub fn directory_bytes(&self, directory: InodeNumber) -> Vec<u8> {
        let chunk_bytes = u64::from(DIRECTORY_CHUNK_BYTES);
        let mut bytes = vec![0; self.size_bytes(directory) as usize];
        // The start of each record with what is in it; a chunk that starts
        // with none has a vacant one there.
        let mut records: Vec<(u64, u32, &str)> = self
            .directory_entries(directory)
            .map(|entry| (entry.offset_bytes, entry.inode.0, entry.name))
            .collect();
        for start in (0..bytes.len() as u64).step_by(chunk_bytes as usize) {
            if let Err(place) = records.binary_search_by_key(&start, |record| record.0) {
                records.insert(place, (start, 0, ""));
            }
        }
        for (number, (start, inode, name)) in records.iter().enumerate() {
            let chunk_end = (start / chunk_bytes + 1) * chunk_bytes;
            let next = records.get(number + 1).map_or(chunk_end, |record| record.0);
            let length = next.min(chunk_end) - start;
            let record = &mut bytes[*start as usize..][..length as usize];
            record[..4].copy_from_slice(&inode.to_be_bytes());
            record[4..6].copy_from_slice(&(length as u16).to_be_bytes());
            record[6..8].copy_from_slice(&(name.len() as u16).to_be_bytes());
            record[8..][..name.len()].copy_from_slice(name.as_bytes());
        }
        bytes
    }
}
