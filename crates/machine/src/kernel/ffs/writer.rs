//! Synchronous writer of a 4.2BSD file system. It makes the calls of the kernel's `bmap`, `alloc`,
//! `maknode` and `itrunc` in their order, and notes each metadata block that a kernel would need in
//! core.
//!
//! The writer creates a file tree without a kernel and without passing virtual time: for images of
//! file systems, and in tests of the layout.

use super::{
    AllocationSearch, BlockNeed, BlockPath, DIRECTORY_CHUNK_BYTES, FastFileSystem, FragmentAddress,
    GroupCandidate, GroupIndex, IndirectBlockId, InodeKind, InodeNumber, NoSpaceLeft, PointerArray,
    ReleaseStep, TailGrowth,
};

/// Access to a metadata block: a read, or a write that the kernel waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetadataAccess {
    /// Read of a cylinder group's map.
    ReadGroupMap(GroupIndex),
    /// Read of an indirect block.
    ReadIndirect(FragmentAddress),
    /// Write of an indirect block.
    WriteIndirect(FragmentAddress),
    /// Write of an inode's block.
    WriteInode(FragmentAddress),
    /// Write of a directory block.
    WriteDirectory(FragmentAddress),
}

/// Writer of a 4.2BSD file system, with a log of its metadata accesses.
pub struct UntimedWriter {
    /// File system that the writer changes.
    pub file_system: FastFileSystem,
    /// Whether the writer may use the reserve, as the super-user may.
    pub is_super_user: bool,
    /// Metadata accesses of all calls so far, in order.
    pub metadata_accesses: Vec<MetadataAccess>,
    pending_release_steps: Vec<ReleaseStep>,
}

impl UntimedWriter {
    /// Creates a writer that acts as an ordinary user.
    #[must_use]
    pub fn new(file_system: FastFileSystem) -> Self {
        Self {
            file_system,
            is_super_user: false,
            metadata_accesses: Vec::new(),
            pending_release_steps: Vec::new(),
        }
    }

    /// Allocates a block or fragments near a preferred address (`alloc`).
    fn allocate_fragments(
        &mut self,
        inode: InodeNumber,
        preference: Option<FragmentAddress>,
        fragments: u32,
    ) -> Result<FragmentAddress, NoSpaceLeft> {
        self.file_system
            .require_free_space(fragments, self.is_super_user)?;
        let search = self.file_system.allocation_search(inode, preference);
        self.search_groups(search, preference, fragments)
    }

    fn search_groups(
        &mut self,
        search: AllocationSearch,
        preference: Option<FragmentAddress>,
        fragments: u32,
    ) -> Result<FragmentAddress, NoSpaceLeft> {
        for GroupCandidate {
            group,
            is_preferred,
        } in search
        {
            if !self.file_system.group_may_hold(group, fragments) {
                continue;
            }
            self.metadata_accesses
                .push(MetadataAccess::ReadGroupMap(group));
            let preference = preference.filter(|_| is_preferred);
            let found = self
                .file_system
                .allocate_in_group(group, preference, fragments);
            if let Some(address) = found {
                return Ok(address);
            }
        }
        Err(NoSpaceLeft)
    }

    fn free_fragments(&mut self, address: FragmentAddress, fragments: u32) {
        let group = self.file_system.superblock().group_of(address);
        self.metadata_accesses
            .push(MetadataAccess::ReadGroupMap(group));
        self.file_system.free_fragments(address, fragments);
    }

    /// Extends the fragments at the end of a file, in place or by moving them (`realloccg`).
    fn grow_tail(
        &mut self,
        inode: InodeNumber,
        growth: TailGrowth,
    ) -> Result<FragmentAddress, NoSpaceLeft> {
        let TailGrowth {
            logical_block: lbn,
            address,
            old_fragments,
            new_fragments,
        } = growth;
        self.file_system
            .require_free_space_for_growth(self.is_super_user)?;
        let preference =
            self.file_system
                .block_preference(inode, lbn, PointerArray::InodePointers, lbn);
        if self
            .file_system
            .may_extend(address, old_fragments, new_fragments)
        {
            let group = self.file_system.superblock().group_of(address);
            self.metadata_accesses
                .push(MetadataAccess::ReadGroupMap(group));
            if self
                .file_system
                .extend_fragments(address, old_fragments, new_fragments)
            {
                return Ok(address);
            }
        }
        let search = self.file_system.relocation_search(address);
        let moved = self.search_groups(search, preference, new_fragments)?;
        self.free_fragments(address, old_fragments);
        self.file_system.set_direct_pointer(inode, lbn, moved);
        Ok(moved)
    }

    /// Returns the address of a file's block for writing, and allocates the block if it does not
    /// exist (`bmap`). The write ends `end_in_block_bytes` after the start of the block.
    fn map_block_for_write(
        &mut self,
        inode: InodeNumber,
        lbn: u32,
        end_in_block_bytes: u32,
    ) -> Result<FragmentAddress, NoSpaceLeft> {
        let block_bytes = u64::from(self.file_system.superblock().block_bytes());
        let block_start = u64::from(lbn) * block_bytes;
        if let Some(growth) = self.file_system.tail_growth(inode, block_start) {
            self.grow_tail(inode, growth)?;
            self.file_system
                .set_size_bytes(inode, (u64::from(growth.logical_block) + 1) * block_bytes);
        }
        let path = self
            .file_system
            .locate_block(lbn)
            .expect("a file below the size limit");
        if path.indirection_depth() > 0 {
            return self.map_indirect(inode, lbn, path);
        }
        match self
            .file_system
            .direct_block_need(inode, lbn, end_in_block_bytes)
        {
            BlockNeed::AlreadyPresent(address) => Ok(address),
            BlockNeed::GrowTail(growth) => self.grow_tail(inode, growth),
            BlockNeed::AllocateFragments { fragments } => {
                let preference =
                    self.file_system
                        .block_preference(inode, lbn, PointerArray::InodePointers, lbn);
                let address = self.allocate_fragments(inode, preference, fragments)?;
                self.file_system.set_direct_pointer(inode, lbn, address);
                Ok(address)
            }
        }
    }

    fn allocate_indirect(
        &mut self,
        inode: InodeNumber,
        lbn: u32,
        preference: &mut Option<FragmentAddress>,
    ) -> Result<FragmentAddress, NoSpaceLeft> {
        if preference.is_none() {
            *preference =
                self.file_system
                    .block_preference(inode, lbn, PointerArray::NewIndirectBlock, 0);
        }
        let per_block = self.file_system.superblock().fragments_per_block();
        let address = self.allocate_fragments(inode, *preference, per_block)?;
        self.metadata_accesses
            .push(MetadataAccess::WriteIndirect(address));
        Ok(address)
    }

    fn map_indirect(
        &mut self,
        inode: InodeNumber,
        lbn: u32,
        path: BlockPath,
    ) -> Result<FragmentAddress, NoSpaceLeft> {
        // What an indirect block was asked near, the first block under it is
        // asked near as well.
        let mut preference = None;
        let root = match self
            .file_system
            .indirect_root(inode, path.indirection_depth())
        {
            Some(root) => root,
            None => {
                let address = self.allocate_indirect(inode, lbn, &mut preference)?;
                self.file_system
                    .attach_indirect_root(inode, path.indirection_depth(), address)
            }
        };
        self.read_indirect(root);
        let mut leaf = root;
        if let BlockPath::DoubleIndirect { outer, .. } = path {
            leaf = match self.file_system.indirect_child(root, outer) {
                Some(child) => child,
                None => {
                    let address = self.allocate_indirect(inode, lbn, &mut preference)?;
                    self.file_system.attach_indirect_child(root, outer, address)
                }
            };
            self.read_indirect(leaf);
        }
        let index = path.index_in_leaf();
        if let Some(address) = self.file_system.indirect_pointer(leaf, index) {
            return Ok(address);
        }
        if preference.is_none() {
            let array = PointerArray::IndirectPointers(leaf);
            preference = self.file_system.block_preference(inode, lbn, array, index);
        }
        let per_block = self.file_system.superblock().fragments_per_block();
        let address = self.allocate_fragments(inode, preference, per_block)?;
        self.file_system.set_indirect_pointer(leaf, index, address);
        Ok(address)
    }

    fn read_indirect(&mut self, id: IndirectBlockId) {
        let address = self.file_system.indirect_address(id);
        self.metadata_accesses
            .push(MetadataAccess::ReadIndirect(address));
    }

    /// Allocates all blocks for a write and moves the end of the file.
    pub fn write_range(
        &mut self,
        inode: InodeNumber,
        mut offset: u64,
        mut bytes: u64,
    ) -> Result<(), NoSpaceLeft> {
        let block_bytes = u64::from(self.file_system.superblock().block_bytes());
        while bytes > 0 {
            let in_block = offset % block_bytes;
            let part = bytes.min(block_bytes - in_block);
            let lbn = self.file_system.superblock().block_index_at(offset);
            self.map_block_for_write(inode, lbn, (in_block + part) as u32)?;
            if self.file_system.inode_kind(inode) == InodeKind::RegularFile {
                let size = self.file_system.size_bytes(inode).max(offset + part);
                self.file_system.set_size_bytes(inode, size);
            }
            offset += part;
            bytes -= part;
        }
        Ok(())
    }

    /// Sets the length of a file, shorter or longer (`ftruncate`).
    pub fn truncate_file(&mut self, inode: InodeNumber, size: u64) -> Result<(), NoSpaceLeft> {
        if size > self.file_system.size_bytes(inode) {
            if let Some(growth) = self.file_system.tail_growth(inode, size) {
                self.grow_tail(inode, growth)?;
            }
            self.file_system.set_size_bytes(inode, size);
            return Ok(());
        }
        self.release_blocks(inode, size);
        Ok(())
    }

    fn release_blocks(&mut self, inode: InodeNumber, size: u64) {
        let mut steps = std::mem::take(&mut self.pending_release_steps);
        steps.clear();
        self.file_system.release_blocks(inode, size, &mut steps);
        for &step in &steps {
            match step {
                ReleaseStep::WriteInode => self.write_inode(inode),
                ReleaseStep::ReleaseIndirectBlock { address, .. } => {
                    self.metadata_accesses
                        .push(MetadataAccess::ReadIndirect(address));
                    self.metadata_accesses
                        .push(MetadataAccess::WriteIndirect(address));
                }
                ReleaseStep::FreeFragments { address, fragments } => {
                    self.free_fragments(address, fragments)
                }
            }
        }
        self.pending_release_steps = steps;
    }

    fn write_inode(&mut self, inode: InodeNumber) {
        let address = self.file_system.superblock().inode_block_address(inode);
        self.metadata_accesses
            .push(MetadataAccess::WriteInode(address));
    }

    /// Allocates a new inode: a file's near its parent, a directory's in a cylinder group with few
    /// directories (`maknode`).
    fn make_inode(
        &mut self,
        parent: InodeNumber,
        kind: InodeKind,
    ) -> Result<InodeNumber, NoSpaceLeft> {
        let preference = self.file_system.inode_preference(parent, kind);
        for GroupCandidate {
            group,
            is_preferred,
        } in self.file_system.inode_search(preference)
        {
            if !self.file_system.group_may_hold_inode(group) {
                continue;
            }
            self.metadata_accesses
                .push(MetadataAccess::ReadGroupMap(group));
            let preference = is_preferred.then_some(preference);
            if let Some(inode) = self.file_system.allocate_inode(group, preference, kind) {
                return Ok(inode);
            }
        }
        Err(NoSpaceLeft)
    }

    /// Adds a name to a directory, and extends the directory if it has no room (`direnter`).
    fn enter_name(
        &mut self,
        directory: InodeNumber,
        name: &str,
        inode: InodeNumber,
    ) -> Result<(), NoSpaceLeft> {
        let slot = self
            .file_system
            .find_entry_slot(directory, name)
            .expect("a valid name");
        if slot.grows_directory {
            let chunk = u64::from(DIRECTORY_CHUNK_BYTES);
            self.write_range(directory, slot.offset_bytes, chunk)?;
        }
        let place = self.file_system.add_entry(directory, name, inode);
        let lbn = self
            .file_system
            .superblock()
            .block_index_at(place.offset_bytes);
        let block = self
            .file_system
            .block_address(directory, lbn)
            .expect("an entry's block");
        self.metadata_accesses
            .push(MetadataAccess::WriteDirectory(block));
        Ok(())
    }

    /// Creates an empty file in a directory and returns its inode.
    pub fn create_file(
        &mut self,
        directory: InodeNumber,
        name: &str,
    ) -> Result<InodeNumber, NoSpaceLeft> {
        let inode = self.make_inode(directory, InodeKind::RegularFile)?;
        self.file_system.set_link_count(inode, 1);
        self.write_inode(inode);
        if let Err(error) = self.enter_name(directory, name, inode) {
            self.file_system.set_link_count(inode, 0);
            self.file_system.free_inode(inode);
            return Err(error);
        }
        Ok(inode)
    }

    /// Creates an empty directory and returns its inode.
    pub fn make_directory(
        &mut self,
        parent: InodeNumber,
        name: &str,
    ) -> Result<InodeNumber, NoSpaceLeft> {
        let inode = self.make_inode(parent, InodeKind::Directory)?;
        self.file_system.set_link_count(inode, 2);
        self.write_inode(inode);
        let entered = self
            .write_range(inode, 0, u64::from(DIRECTORY_CHUNK_BYTES))
            .map(|()| self.file_system.init_directory(inode, parent))
            .and_then(|()| self.enter_name(parent, name, inode));
        if let Err(error) = entered {
            self.file_system.set_link_count(inode, 0);
            self.release_blocks(inode, 0);
            self.file_system.free_inode(inode);
            return Err(error);
        }
        self.file_system
            .set_link_count(parent, self.file_system.link_count(parent) + 1);
        Ok(inode)
    }

    /// Removes a file's name, and frees the file if it was the last name. No process has the file
    /// open.
    pub fn unlink_name(&mut self, directory: InodeNumber, name: &str) {
        let place = self
            .file_system
            .remove_entry(directory, name)
            .expect("a name");
        self.drop_link(place.inode);
    }

    fn drop_link(&mut self, inode: InodeNumber) {
        let links = self.file_system.link_count(inode) - 1;
        self.file_system.set_link_count(inode, links);
        if links == 0 {
            self.release_blocks(inode, 0);
            self.file_system.free_inode(inode);
        }
    }

    /// Removes an empty directory. Panics if the directory has entries.
    pub fn remove_directory(&mut self, parent: InodeNumber, name: &str) {
        let place = self.file_system.remove_entry(parent, name).expect("a name");
        assert!(self.file_system.directory_is_empty(place.inode));
        self.file_system
            .set_link_count(parent, self.file_system.link_count(parent) - 1);
        self.file_system.set_link_count(place.inode, 0);
        self.release_blocks(place.inode, 0);
        self.file_system.free_inode(place.inode);
    }

    /// Adds another name to a file.
    pub fn add_link(
        &mut self,
        directory: InodeNumber,
        name: &str,
        inode: InodeNumber,
    ) -> Result<(), NoSpaceLeft> {
        self.file_system
            .set_link_count(inode, self.file_system.link_count(inode) + 1);
        let entered = self.enter_name(directory, name, inode);
        if entered.is_err() {
            self.file_system
                .set_link_count(inode, self.file_system.link_count(inode) - 1);
        }
        entered
    }

    /// Renames a file or directory. The new name may exist if it is a file's.
    pub fn rename_entry(
        &mut self,
        from: (InodeNumber, &str),
        to: (InodeNumber, &str),
    ) -> Result<(), NoSpaceLeft> {
        let inode = self
            .file_system
            .lookup_entry(from.0, from.1)
            .expect("a name")
            .inode;
        match self.file_system.lookup_entry(to.0, to.1) {
            Some(old) if old.inode == inode => return Ok(()),
            Some(old) => {
                self.file_system.replace_entry(to.0, to.1, inode);
                self.drop_link(old.inode);
            }
            None => self.enter_name(to.0, to.1, inode)?,
        }
        self.file_system.remove_entry(from.0, from.1);
        if self.file_system.inode_kind(inode) == InodeKind::Directory && from.0 != to.0 {
            self.file_system.replace_entry(inode, "..", to.0);
            self.file_system
                .set_link_count(from.0, self.file_system.link_count(from.0) - 1);
            self.file_system
                .set_link_count(to.0, self.file_system.link_count(to.0) + 1);
        }
        Ok(())
    }
}
