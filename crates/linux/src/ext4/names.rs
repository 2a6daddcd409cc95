//! Names: creation, removal, renaming, and the freeing of files without names.

use super::directory::{EntryBlocks, Insertion, hash_name};
use super::{BlockRun, Ext4};
use crate::block::{FileId, MetadataKind};
use crate::effect::CallContext;
use crate::file_system::{FileKind, FileName, FileSystemError};

impl Ext4 {
    /// Whether changes of directories are committed at once.
    pub(super) fn is_directory_sync(&self) -> bool {
        self.options.mount.is_sync || self.options.mount.is_directory_sync
    }

    pub(super) fn create_file(
        &mut self,
        context: &mut CallContext<'_>,
        entry: &FileName,
        file: FileId,
        kind: FileKind,
    ) -> Result<(), FileSystemError> {
        let parent = self.inode(entry.directory).number;
        let recent = std::mem::take(&mut self.recently_freed);
        let hash = u64::from(hash_name(&entry.name));
        let taken = self
            .allocator
            .groups
            .take_inode(&self.geometry, parent, kind, hash, |inode| {
                recent.contains(&inode)
            });
        self.recently_freed = recent;
        let number = taken.ok_or_else(|| self.no_space())?;
        self.recently_freed.remove(&number);
        self.dirty_new_inode_group(context, number);
        let mut inode = self.new_inode(number, kind);
        let tick = self.host.tick_ns(context.now_ns);
        inode.modified_ns = Some(tick);
        inode.changed_ns = Some(tick);
        inode.accessed_ns = Some(tick);
        self.inodes.insert(file, inode);
        self.note_data_change(context, file);
        self.dirty_inode(context, file);
        if kind == FileKind::Directory {
            self.add_directory_block(context, file)?;
        }
        self.add_entry(context, entry)?;
        if kind == FileKind::Directory {
            self.inode_mut(entry.directory).links += 1;
            self.dirty_inode(context, entry.directory);
        }
        self.dirty_inode(context, file);
        self.end_handle(context, self.is_directory_sync())
    }

    fn dirty_new_inode_group(&mut self, context: &CallContext<'_>, number: u64) {
        let group = self.geometry.group_of_inode(number);
        let bitmap = self.geometry.inode_bitmap(group);
        self.dirty_block(context, bitmap);
        let state = &mut self.allocator.groups.groups[group as usize];
        // The first inode of a group has its block bitmap written.
        let is_computed = std::mem::replace(&mut state.is_bitmap_computed, false);
        self.dirty_group(context, group, is_computed);
    }

    /// Allocates the first block of a new directory.
    fn add_directory_block(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
    ) -> Result<(), FileSystemError> {
        let block = self.grow_directory(context, file, 0)?;
        let entries = EntryBlocks::new(self.geometry.block_bytes as u32, block);
        self.inode_mut(file).entries = Some(entries);
        Ok(())
    }

    /// Adds a block to a directory; its content is `index` blocks into it.
    fn grow_directory(
        &mut self,
        context: &mut CallContext<'_>,
        directory: FileId,
        index: u64,
    ) -> Result<u64, FileSystemError> {
        let number = self.inode(directory).number;
        let flex = super::geometry::FLEX_GROUPS;
        let group = self.geometry.group_of_inode(number) / flex * flex;
        let goal = self.geometry.group_first(group);
        let run = self
            .allocator
            .allocate_metadata(goal)
            .ok_or_else(|| self.no_space())?;
        let group = self.geometry.group_of_block(run.physical);
        self.dirty_group(context, group, true);
        self.kinds.insert(run.physical, MetadataKind::Directory);
        self.dirty_block(context, run.physical);
        let block_bytes = self.geometry.block_bytes;
        let inode = self.inode_mut(directory);
        inode.size = (index + 1) * block_bytes;
        inode.disk_size = inode.size;
        self.dirty_inode(context, directory);
        Ok(run.physical)
    }

    fn entries_mut(&mut self, directory: FileId) -> &mut EntryBlocks {
        self.inode_mut(directory)
            .entries
            .as_mut()
            .expect("a directory has entries")
    }

    /// Adds a name to a directory, which grows if its block is full.
    fn add_entry(
        &mut self,
        context: &mut CallContext<'_>,
        entry: &FileName,
    ) -> Result<(), FileSystemError> {
        let directory = entry.directory;
        match self.entries_mut(directory).insert(&entry.name) {
            Insertion::Done(block) => self.dirty_block(context, block),
            Insertion::NeedsBlocks(count) => {
                let mut new = Vec::new();
                for _ in 0..count {
                    let index = (self.entries_mut(directory).count() + new.len()) as u64;
                    new.push(self.grow_directory(context, directory, index)?);
                }
                let changed = self.entries_mut(directory).split(&entry.name, &new);
                let changed = changed.ok_or_else(|| FileSystemError::Unsupported {
                    file_system: "ext4",
                    call: "an index of a directory of more than one level".to_owned(),
                    remedy: "spread the files over several directories",
                })?;
                for block in changed {
                    self.dirty_block(context, block);
                }
                return self.add_entry(context, entry);
            }
        }
        self.change_directory(context, directory);
        Ok(())
    }

    /// A directory's time stamps and its inode change.
    fn change_directory(&mut self, context: &mut CallContext<'_>, directory: FileId) {
        let tick = self.host.tick_ns(context.now_ns);
        let inode = self.inode_mut(directory);
        inode.modified_ns = Some(tick);
        inode.changed_ns = Some(tick);
        self.dirty_inode(context, directory);
    }

    fn remove_entry(&mut self, context: &mut CallContext<'_>, entry: &FileName) {
        let block = self.entries_mut(entry.directory).remove(&entry.name);
        let block = block.expect("the name is in the directory");
        self.dirty_block(context, block);
        self.change_directory(context, entry.directory);
    }

    /// A file loses a link. Without any it is an orphan until it is freed.
    fn drop_link(&mut self, context: &mut CallContext<'_>, file: FileId) {
        let tick = self.host.tick_ns(context.now_ns);
        let inode = self.inode_mut(file);
        inode.links -= 1;
        inode.changed_ns = Some(tick);
        let is_last = inode.links == 0;
        self.dirty_inode(context, file);
        if is_last {
            self.add_orphan(context, file);
        }
    }

    pub(super) fn unlink_file(
        &mut self,
        context: &mut CallContext<'_>,
        entry: &FileName,
        file: FileId,
    ) -> Result<(), FileSystemError> {
        self.remove_entry(context, entry);
        self.drop_link(context, file);
        self.end_handle(context, self.is_directory_sync())
    }

    pub(super) fn rename_file(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        from: &FileName,
        to: &FileName,
        replaced: Option<FileId>,
    ) -> Result<(), FileSystemError> {
        if replaced.is_some() {
            self.flush_delayed(context, file)?;
            let block = self.entries_mut(to.directory).block_with(&to.name);
            let block = block.expect("the replaced name is in the directory");
            self.dirty_block(context, block);
            self.change_directory(context, to.directory);
        } else {
            self.add_entry(context, to)?;
        }
        let tick = self.host.tick_ns(context.now_ns);
        self.inode_mut(file).changed_ns = Some(tick);
        self.dirty_inode(context, file);
        self.remove_entry(context, from);
        if let Some(replaced) = replaced {
            self.drop_link(context, replaced);
        }
        self.end_handle(context, self.is_directory_sync())
    }

    /// Frees a file without names.
    pub(super) fn evict_file(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
    ) -> Result<(), FileSystemError> {
        let mut reserves = std::mem::take(&mut self.inode_mut(file).reserves);
        self.allocator.discard_preallocations(&mut reserves);
        let inode = self.inode_mut(file);
        inode.size = 0;
        inode.disk_size = 0;
        self.dirty_inode(context, file);
        self.remove_blocks(context, file, 0, u64::from(u32::MAX))?;
        self.remove_orphan(context, file);
        self.dirty_inode(context, file);
        let (number, kind) = (self.inode(file).number, self.inode(file).kind);
        let group = self.geometry.group_of_inode(number);
        let bitmap = self.geometry.inode_bitmap(group);
        self.dirty_block(context, bitmap);
        self.dirty_group(context, group, false);
        self.allocator
            .groups
            .free_inode(&self.geometry, number, kind);
        let blocks: Vec<u64> = self
            .inode(file)
            .entries
            .iter()
            .flat_map(|entries| entries.all())
            .collect();
        for block in blocks {
            self.free_metadata(context, block);
        }
        if self.journal.is_none() {
            self.recently_freed.insert(number);
        }
        self.inodes.remove(&file);
        self.conversions
            .retain(|conversion| conversion.file != file);
        self.end_handle(context, self.options.mount.is_sync)
    }

    /// Free blocks of all groups go back to the device.
    pub(super) fn trim_groups(&mut self, context: &mut CallContext<'_>) {
        for group in 0..self.geometry.groups {
            let state = &mut self.allocator.groups.groups[group as usize];
            if std::mem::replace(&mut state.is_trimmed, true) {
                continue;
            }
            let first = self.geometry.group_first(group);
            let runs: Vec<BlockRun> = state
                .blocks
                .runs()
                .map(|run| BlockRun {
                    physical: first + run.start,
                    length: run.length,
                })
                .collect();
            for run in runs {
                self.discard(context, run);
            }
        }
    }
}
