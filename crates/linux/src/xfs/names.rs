//! Names: creation, removal and renaming, and the freeing of inodes without names.

use crate::block::{FileId, MetadataKind};
use crate::effect::CallContext;
use crate::file_system::{FileKind, FileName, FileSystemError};
use crate::operation::ByteRange;
use crate::xfs::directory::{ChangedBytes, DirectoryChange, LeafFull};
use crate::xfs::geometry::MetadataBuffer;
use crate::xfs::inode::{InodeChange, XfsInode};
use crate::xfs::log_items::InodeNumber;
use crate::xfs::{AllocationGroup, InactiveFile, Xfs};

impl Xfs {
    /// Makes an inode and its name. Directories go to the groups in turn, files to the group of
    /// their directory.
    pub(super) fn create_file(
        &mut self,
        context: &mut CallContext<'_>,
        entry: &FileName,
        file: FileId,
        kind: FileKind,
    ) -> Result<(), FileSystemError> {
        let parent = self.inode(entry.directory).number;
        let number = self.allocate_inode(parent, kind)?;
        let now = context.host.tick_ns(context.now_ns);
        let inode = XfsInode::new(number, kind, self.new_cache(), now);
        self.files.insert(file, inode);
        let change = match kind {
            FileKind::Regular => InodeChange::Core,
            FileKind::Directory => InodeChange::Fork,
        };
        self.log_inode(file, change)?;
        self.insert_name(context, entry)?;
        self.end_change(context);
        Ok(())
    }

    fn allocate_inode(
        &mut self,
        parent: InodeNumber,
        kind: FileKind,
    ) -> Result<InodeNumber, FileSystemError> {
        let count = self.groups.len() as u64;
        let start = match kind {
            FileKind::Regular => parent.group,
            FileKind::Directory => {
                let start = self.directory_group;
                self.directory_group = (start + 1) % count;
                start
            }
        };
        let geometry = self.geometry;
        for group in (0..count).map(|step| (start + step) % count) {
            let AllocationGroup { space, inodes } = &mut self.groups[group as usize];
            let near = (group == parent.group).then_some(parent.index);
            let makes_chunk = !inodes.has_free();
            let found = inodes.allocate(&geometry, &mut self.log, space, near)?;
            if let Some(number) = found {
                self.note_inode_reads(number, makes_chunk);
                return Ok(number);
            }
        }
        Err(self.no_space())
    }

    /// Notes what the allocation of an inode reads: the trees of inodes, and for a new chunk what
    /// the allocation of its blocks reads.
    fn note_inode_reads(&mut self, number: InodeNumber, makes_chunk: bool) {
        let InodeNumber { group, index } = number;
        let geometry = self.geometry;
        if makes_chunk {
            self.metadata_reads.need_space(&geometry, group);
            self.metadata_reads.need(geometry.inode_root(group));
            for cluster in geometry.chunk_clusters(group, index) {
                self.metadata_reads.note_made(cluster);
            }
        }
        self.metadata_reads.need(geometry.free_inode_root(group));
        self.metadata_reads.need(geometry.inode_root(group));
    }

    fn insert_name(
        &mut self,
        context: &CallContext<'_>,
        entry: &FileName,
    ) -> Result<(), FileSystemError> {
        let change = self.inode_mut(entry.directory).names.insert(&entry.name);
        let change = change.map_err(|LeafFull| {
            let call = format!("more names in the directory of {}", entry.name);
            Self::unsupported(call, "spread the files over several directories")
        })?;
        self.log_directory(context, entry.directory, &change)
    }

    fn delete_name(
        &mut self,
        context: &CallContext<'_>,
        entry: &FileName,
    ) -> Result<(), FileSystemError> {
        let change = self.inode_mut(entry.directory).names.remove(&entry.name);
        self.log_directory(context, entry.directory, &change)
    }

    /// Carries out and logs a change of names.
    fn log_directory(
        &mut self,
        context: &CallContext<'_>,
        directory: FileId,
        change: &DirectoryChange,
    ) -> Result<(), FileSystemError> {
        for block in &change.allocated {
            self.allocate_extent(directory, *block..block + 1, false)?;
            self.inode_mut(directory)
                .extents
                .mark_written(&(*block..block + 1));
        }
        for ChangedBytes { block, bytes } in &change.logged {
            let buffer = self.directory_buffer(directory, *block);
            self.log.add_buffer(buffer, bytes.clone());
        }
        for block in &change.freed {
            let buffer = self.directory_buffer(directory, *block);
            self.log.cancel_buffer(buffer);
            self.remove_blocks(directory, &(*block..block + 1), true)?;
        }
        let inode = self.inode_mut(directory);
        inode.times.changed_ns = context.host.tick_ns(context.now_ns);
        let is_inline = inode.names.inline_bytes() > 0;
        self.log_inode(
            directory,
            if is_inline {
                InodeChange::Fork
            } else {
                InodeChange::Core
            },
        )
    }

    fn directory_buffer(&self, directory: FileId, block: u64) -> MetadataBuffer {
        let extent = self
            .inode(directory)
            .extents
            .at(block)
            .expect("names lie in blocks");
        let start = extent
            .block()
            .expect("blocks of directories are allocated at once");
        self.geometry
            .block(start + block - extent.first, MetadataKind::Directory)
    }

    /// Removes a name; the inode stays on a list until a worker frees it.
    pub(super) fn remove_name(
        &mut self,
        context: &mut CallContext<'_>,
        entry: &FileName,
        file: FileId,
    ) -> Result<(), FileSystemError> {
        self.delete_name(context, entry)?;
        self.drop_link(context, file)?;
        self.end_change(context);
        Ok(())
    }

    fn drop_link(
        &mut self,
        context: &CallContext<'_>,
        file: FileId,
    ) -> Result<(), FileSystemError> {
        let geometry = self.geometry;
        let inode = self.inode_mut(file);
        inode.is_linked = false;
        inode.times.changed_ns = context.host.tick_ns(context.now_ns);
        let number = inode.number;
        self.log_inode(file, InodeChange::Core)?;
        let inodes = &mut self.groups[number.group as usize].inodes;
        inodes.add_unlinked(&geometry, &mut self.log, number.index);
        Ok(())
    }

    /// Moves a name, and removes the file that had the new name.
    pub(super) fn move_name(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        from: &FileName,
        to: &FileName,
        replaced: Option<FileId>,
    ) -> Result<(), FileSystemError> {
        self.insert_name(context, to)?;
        self.delete_name(context, from)?;
        self.inode_mut(file).times.changed_ns = context.host.tick_ns(context.now_ns);
        self.log_inode(file, InodeChange::Core)?;
        if let Some(replaced) = replaced {
            self.drop_link(context, replaced)?;
        }
        self.end_change(context);
        Ok(())
    }

    /// Gives a file without users to the worker that frees it, a tick from now.
    pub(super) fn queue_inactive(&mut self, context: &CallContext<'_>, file: FileId) {
        let inode = self.inode_mut(file);
        inode.cache.truncate(ByteRange::ALL);
        self.dirty_files.retain(|dirty| dirty.file != file);
        let tick_ns = 1_000_000_000 / u64::from(context.host.ticks_per_second);
        let due_ns = context.now_ns + tick_ns;
        self.inactive
            .iter_mut()
            .for_each(|waiting| waiting.due_ns = due_ns);
        self.inactive.push(InactiveFile { file, due_ns });
    }

    /// Frees what the worker has been given, newest first.
    pub(super) fn run_inactive(&mut self) -> Result<(), FileSystemError> {
        for InactiveFile { file, .. } in std::mem::take(&mut self.inactive).into_iter().rev() {
            self.inactivate(file)?;
        }
        Ok(())
    }

    /// Frees the blocks behind the end of a file, or all of a file without names.
    pub(super) fn inactivate(&mut self, file: FileId) -> Result<(), FileSystemError> {
        if self.inode(file).is_linked {
            if self.has_blocks_behind_end(file) {
                self.free_blocks_behind_end(file)?;
            }
            return Ok(());
        }
        let inode = self.inode_mut(file);
        let has_data =
            inode.size > 0 || inode.disk_size > 0 || !inode.extents.as_slice().is_empty();
        inode.disk_size = 0;
        inode.size = 0;
        if has_data {
            self.remove_blocks(file, &(0..u64::MAX), true)?;
        }
        self.log_inode(file, InodeChange::Core)?;
        let geometry = self.geometry;
        let number = self.inode(file).number;
        let inodes = &mut self.groups[number.group as usize].inodes;
        inodes.remove_unlinked(&geometry, &mut self.log, number.index);
        inodes.free(&geometry, &mut self.log, number.index);
        self.files.remove(&file);
        Ok(())
    }
}
