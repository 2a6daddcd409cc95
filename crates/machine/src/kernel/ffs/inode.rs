//! Inodes of a 4.2BSD file system: sizes, link counts, direct pointers, and the fragments at the
//! end of a small file.

use super::FastFileSystem;
use super::directory::Directory;
use super::indirect::IndirectBlockId;
use super::superblock::FragmentAddress;

/// Number of direct pointers in an inode (`NDADDR`).
pub const DIRECT_POINTERS: u32 = 12;
/// Size of an inode on the drive, in bytes.
pub const INODE_BYTES: u32 = 128;

/// Inode number, counted over all cylinder groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InodeNumber(pub u32);

/// Type of an inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InodeKind {
    /// Inode of a regular file.
    RegularFile,
    /// Inode of a directory.
    Directory,
}

/// Extension of the fragments at the end of a file that is necessary before the file grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TailGrowth {
    /// Block number within the file, also the index of the block's direct pointer.
    pub logical_block: u32,
    /// Address of the first fragment.
    pub address: FragmentAddress,
    /// Number of fragments before the extension.
    pub old_fragments: u32,
    /// Number of fragments after the extension.
    pub new_fragments: u32,
}

/// Preparation that a write to a directly addressed block of a file requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockNeed {
    /// No preparation: the block exists at this address and is large enough.
    AlreadyPresent(FragmentAddress),
    /// Allocation of fragments, because the block does not exist.
    AllocateFragments {
        /// Number of fragments to allocate, from 1 to a whole block.
        fragments: u32,
    },
    /// Extension of the fragments at the end of the file.
    GrowTail(TailGrowth),
}

/// In-core inode of a 4.2BSD file system. Pointers are fragment addresses; 0 is a hole.
#[derive(Debug, Clone)]
pub(super) struct Inode {
    pub(super) inode_kind: InodeKind,
    pub(super) link_count: u32,
    pub(super) size_bytes: u64,
    pub(super) direct: [u32; DIRECT_POINTERS as usize],
    /// Roots of the single and the double indirect tree.
    pub(super) indirect: [Option<IndirectBlockId>; 2],
    pub(super) directory: Option<Box<Directory>>,
}

impl Inode {
    fn new(kind: InodeKind) -> Self {
        Self {
            inode_kind: kind,
            link_count: 0,
            size_bytes: 0,
            direct: [0; DIRECT_POINTERS as usize],
            indirect: [None; 2],
            directory: None,
        }
    }

    pub(super) fn has_blocks(&self) -> bool {
        self.direct.iter().any(|&pointer| pointer != 0) || self.indirect.iter().any(Option::is_some)
    }
}

#[derive(Debug, Clone)]
pub(super) struct InodeTable {
    /// Record index plus one for each inode number; 0 is a free inode. Most slots are never
    /// written, so that the host never pages their memory in.
    record_index_by_inode: Vec<u32>,
    inode_records: Vec<Option<Inode>>,
    vacant_records: Vec<u32>,
}

impl InodeTable {
    pub(super) fn new(inodes: u32) -> Self {
        Self {
            record_index_by_inode: vec![0; inodes as usize],
            inode_records: Vec::new(),
            vacant_records: Vec::new(),
        }
    }

    pub(super) fn inode_count(&self) -> u32 {
        self.record_index_by_inode.len() as u32
    }

    pub(super) fn try_inode(&self, inode: InodeNumber) -> Option<&Inode> {
        let record = self
            .record_index_by_inode
            .get(inode.0 as usize)?
            .checked_sub(1)?;
        self.inode_records[record as usize].as_ref()
    }

    #[track_caller]
    pub(super) fn inode(&self, inode: InodeNumber) -> &Inode {
        self.try_inode(inode)
            .unwrap_or_else(|| panic!("inode {} is not allocated", inode.0))
    }

    #[track_caller]
    pub(super) fn inode_mut(&mut self, inode: InodeNumber) -> &mut Inode {
        self.record_index_by_inode
            .get(inode.0 as usize)
            .and_then(|slot| slot.checked_sub(1))
            .and_then(|record| self.inode_records[record as usize].as_mut())
            .unwrap_or_else(|| panic!("inode {} is not allocated", inode.0))
    }

    pub(super) fn insert_inode(&mut self, inode: InodeNumber, kind: InodeKind) {
        let record = Some(Inode::new(kind));
        let place = match self.vacant_records.pop() {
            Some(place) => {
                self.inode_records[place as usize] = record;
                place
            }
            None => {
                self.inode_records.push(record);
                self.inode_records.len() as u32 - 1
            }
        };
        let slot = &mut self.record_index_by_inode[inode.0 as usize];
        assert!(*slot == 0, "inode {} is allocated twice", inode.0);
        *slot = place + 1;
    }

    #[track_caller]
    pub(super) fn remove_inode(&mut self, inode: InodeNumber) -> Inode {
        let slot = std::mem::take(&mut self.record_index_by_inode[inode.0 as usize]);
        assert!(slot != 0, "inode {} is not allocated", inode.0);
        self.vacant_records.push(slot - 1);
        self.inode_records[slot as usize - 1]
            .take()
            .expect("a slot refers to a record")
    }
}

impl FastFileSystem {
    /// Reports whether an inode is in use.
    #[must_use]
    pub fn is_inode_allocated(&self, inode: InodeNumber) -> bool {
        self.inodes.try_inode(inode).is_some()
    }

    /// Returns the type of an inode.
    ///
    /// # Panics
    /// Panics if the inode is not allocated. All other calls on an inode do so too.
    #[must_use]
    pub fn inode_kind(&self, inode: InodeNumber) -> InodeKind {
        self.inodes.inode(inode).inode_kind
    }

    /// Returns the link count of an inode: the number of its names.
    #[must_use]
    pub fn link_count(&self, inode: InodeNumber) -> u32 {
        self.inodes.inode(inode).link_count
    }

    /// Sets the link count of an inode. The kernel writes the inode block.
    pub fn set_link_count(&mut self, inode: InodeNumber, links: u32) {
        self.inodes.inode_mut(inode).link_count = links;
    }

    /// Returns the length of a file in bytes.
    #[must_use]
    pub fn size_bytes(&self, inode: InodeNumber) -> u64 {
        self.inodes.inode(inode).size_bytes
    }

    /// Increases the length of a file. The fragments at its end must have been extended before
    /// ([`Self::tail_growth`]); [`Self::release_blocks`] shortens a file.
    ///
    /// # Panics
    /// Panics if the length would decrease, or the inode is a directory.
    pub fn set_size_bytes(&mut self, inode: InodeNumber, size_bytes: u64) {
        let record = self.inodes.inode_mut(inode);
        assert!(
            size_bytes >= record.size_bytes,
            "set_size only grows a file"
        );
        assert!(
            record.inode_kind == InodeKind::RegularFile,
            "a directory grows by its entries"
        );
        record.size_bytes = size_bytes;
    }

    /// Returns the maximum length of a file in bytes, as single and double indirect blocks allow.
    /// Triple indirect blocks do not exist, as in the 1983 kernel.
    #[must_use]
    pub fn file_size_bytes_max(&self) -> u64 {
        let pointers = u64::from(self.superblock.pointers_per_block());
        let blocks = u64::from(DIRECT_POINTERS) + pointers + pointers * pointers;
        blocks * u64::from(self.superblock.block_bytes())
    }

    /// Returns the number of fragments of a file's block `lbn` if the block exists: a whole block,
    /// except at the end of a file that needs only direct pointers.
    #[must_use]
    pub fn fragment_count_of_block(&self, inode: InodeNumber, lbn: u32) -> u32 {
        self.fragments_at_size(self.inodes.inode(inode).size_bytes, lbn)
    }

    pub(super) fn fragments_at_size(&self, size_bytes: u64, lbn: u32) -> u32 {
        let block_bytes = u64::from(self.superblock.block_bytes());
        if lbn >= DIRECT_POINTERS || size_bytes >= (u64::from(lbn) + 1) * block_bytes {
            return self.superblock.fragments_per_block();
        }
        let in_block = size_bytes.saturating_sub(u64::from(lbn) * block_bytes);
        self.superblock.bytes_to_fragments(in_block as u32)
    }

    /// Returns a direct pointer of an inode, or `None` for a hole.
    #[must_use]
    pub fn direct_pointer(&self, inode: InodeNumber, index: u32) -> Option<FragmentAddress> {
        decode_pointer(self.inodes.inode(inode).direct[index as usize])
    }

    /// Sets a direct pointer of an inode, after an allocation or a move of fragments.
    pub fn set_direct_pointer(&mut self, inode: InodeNumber, index: u32, address: FragmentAddress) {
        self.inodes.inode_mut(inode).direct[index as usize] = address.0;
    }

    /// Returns the extension that the fragments at the end of a file need before the file can have
    /// `new_size_bytes`. Only the last block of a file may consist of fragments. Before a write of
    /// block `lbn`, pass `lbn * block_bytes`.
    ///
    /// After the extension call [`Self::set_direct_pointer`], and (as the source does when another
    /// block follows) [`Self::set_size_bytes`] to the end of the full block.
    #[must_use]
    pub fn tail_growth(&self, inode: InodeNumber, new_size_bytes: u64) -> Option<TailGrowth> {
        let record = self.inodes.inode(inode);
        let lbn = self.superblock.block_index_at(record.size_bytes);
        if lbn >= DIRECT_POINTERS || new_size_bytes <= record.size_bytes {
            return None;
        }
        let address = decode_pointer(record.direct[lbn as usize])?;
        let old_fragments = self.fragments_at_size(record.size_bytes, lbn);
        let new_fragments = self.fragments_at_size(new_size_bytes, lbn);
        (new_fragments > old_fragments).then_some(TailGrowth {
            logical_block: lbn,
            address,
            old_fragments,
            new_fragments,
        })
    }

    /// Returns the preparation that a write to a directly addressed block requires, if the write
    /// ends `end_in_block_bytes` after the start of the block.
    ///
    /// # Panics
    /// Panics if the end is 0 or beyond a block.
    #[must_use]
    pub fn direct_block_need(
        &self,
        inode: InodeNumber,
        lbn: u32,
        end_in_block_bytes: u32,
    ) -> BlockNeed {
        let block_bytes = self.superblock.block_bytes();
        assert!(
            (1..=block_bytes).contains(&end_in_block_bytes),
            "a write ends inside its block"
        );
        let record = self.inodes.inode(inode);
        let end = u64::from(lbn) * u64::from(block_bytes) + u64::from(end_in_block_bytes);
        let fragments = self.fragments_at_size(end.max(record.size_bytes), lbn);
        let Some(address) = decode_pointer(record.direct[lbn as usize]) else {
            return BlockNeed::AllocateFragments { fragments };
        };
        let old_fragments = self.fragments_at_size(record.size_bytes, lbn);
        if fragments <= old_fragments {
            return BlockNeed::AlreadyPresent(address);
        }
        BlockNeed::GrowTail(TailGrowth {
            logical_block: lbn,
            address,
            old_fragments,
            new_fragments: fragments,
        })
    }

    /// Returns the number of fragments that a file uses, including its indirect blocks.
    #[must_use]
    pub fn allocated_fragment_count(&self, inode: InodeNumber) -> u32 {
        let record = self.inodes.inode(inode);
        let per_block = self.superblock.fragments_per_block();
        let direct: u32 = (0..DIRECT_POINTERS)
            .filter(|&lbn| record.direct[lbn as usize] != 0)
            .map(|lbn| self.fragments_at_size(record.size_bytes, lbn))
            .sum();
        let indirect: u32 = record
            .indirect
            .iter()
            .flatten()
            .map(|&root| self.indirect_blocks.blocks_under(root))
            .sum();
        direct + indirect * per_block
    }
}

/// Decodes a stored block pointer, in which 0 is a hole.
pub(super) fn decode_pointer(stored: u32) -> Option<FragmentAddress> {
    (stored != 0).then_some(FragmentAddress(stored))
}
