//! Reading and writing of inodes and directories of a 4.2BSD file system through the buffer cache.

use super::buffers::BlockKey;
use super::ffs::{GroupCandidate, InodeKind, InodeNumber, ReleaseStep};
use super::process::{ExecutionContext, Process};
use super::{FfsView, Vnode};
use crate::errno::{Errno, Result};
use diskperf_timeline::Stage;
use std::collections::btree_map::Entry;
use std::rc::Rc;

/// Choice between a write that the process waits for and a delayed write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteTiming {
    Synchronous,
    Delayed,
}

impl FfsView<'_> {
    /// Writes an inode into its block (`iupdat`): reads the block if necessary, then writes it now
    /// or marks it as a delayed write.
    pub(crate) async fn write_inode_block(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        when: WriteTiming,
    ) {
        self.with_core_inode(node, |core| core.is_modified = false);
        let id = self.read_inode_block(process, node).await;
        match when {
            WriteTiming::Synchronous => self.bwrite(process, id).await,
            WriteTiming::Delayed => self.bdwrite(process, id).await,
        }
    }

    async fn read_inode_block(
        &self,
        process: &Rc<Process>,
        node: Vnode,
    ) -> super::buffers::BufferId {
        let (address, bytes) = self.with_file_system(node.volume, |fs| {
            let superblock = fs.superblock();
            (
                superblock.inode_block_address(node.inode),
                superblock.block_bytes(),
            )
        });
        self.bread(process, self.block_key(node, address), bytes)
            .await
    }

    /// Adds a user to an in-core inode (`iget`). Reads the inode's block if the inode had no user
    /// and no pending change.
    pub(crate) async fn take_inode(&self, process: &Rc<Process>, node: Vnode) {
        let first = self.with_core_inode(node, |core| {
            core.user_count += 1;
            core.user_count == 1 && !core.is_modified
        });
        if first {
            let id = self.read_inode_block(process, node).await;
            self.brelse(process, id).await;
        }
    }

    /// Keeps a looked-up inode from being freed while the process sleeps. Takes no processor time.
    pub(super) fn pin_inode(&self, node: Vnode) {
        self.with_core_inode(node, |core| core.user_count += 1);
    }

    /// Releases an inode that [`FfsView::pin_inode`] has kept. Frees the inode if it was the last user and
    /// the inode has no name left.
    pub(super) async fn unpin_inode(&self, process: &Rc<Process>, node: Vnode) {
        let last = self.with_core_inode(node, |core| core.user_count == 1);
        if last && self.with_file_system(node.volume, |fs| fs.link_count(node.inode)) == 0 {
            self.drop_inode(process, node).await;
        } else {
            self.release_pin(node);
        }
    }

    /// Removes one user of an in-core inode. Removes the inode from the table if nothing about it
    /// remains to be known, so that the table does not grow with every file that was ever looked
    /// up.
    fn release_pin(&self, node: Vnode) {
        let inodes = &mut self.mounts.borrow_mut()[node.volume as usize].inodes;
        let Entry::Occupied(mut core) = inodes.entry(node.inode) else {
            panic!("an inode is unpinned only as often as it was pinned");
        };
        core.get_mut().user_count -= 1;
        if core.get().has_no_state() {
            core.remove();
        }
    }

    /// Removes one user of an in-core inode (`iput`). The last user frees an inode without a name,
    /// or schedules the write of a changed one.
    pub(crate) async fn drop_inode(&self, process: &Rc<Process>, node: Vnode) {
        loop {
            let (last, modified) = self.with_core_inode(node, |core| {
                assert!(
                    core.user_count > 0,
                    "an inode is released only as often as it was taken"
                );
                let last = core.user_count == 1;
                core.user_count -= u32::from(!last);
                (last, core.is_modified)
            });
            if !last {
                return;
            }
            // It stays taken while this process sleeps: somebody may come
            // upon it, as long as it has a name.
            if self.with_file_system(node.volume, |fs| fs.link_count(node.inode)) == 0 {
                self.truncate_inode(process, node, 0).await;
                self.free_inode(process, node).await;
            } else if modified {
                self.write_inode_block(process, node, WriteTiming::Delayed)
                    .await;
                continue;
            }
            self.mounts.borrow_mut()[node.volume as usize]
                .inodes
                .remove(&node.inode);
            return;
        }
    }

    async fn free_inode(&self, process: &Rc<Process>, node: Vnode) {
        let group =
            self.with_file_system(node.volume, |fs| fs.superblock().group_of_inode(node.inode));
        let map = self.read_group_map(process, node.volume, group).await;
        self.with_file_system_mut(node.volume, |fs| fs.free_inode(node.inode));
        self.bdwrite(process, map).await;
    }

    /// Allocates and writes a new inode with a link count of one, before its name exists (`ialloc`,
    /// `maknode`). Fails with `NoSpace` if no cylinder group has a free inode.
    pub(crate) async fn make_inode(
        &self,
        process: &Rc<Process>,
        parent: Vnode,
        kind: InodeKind,
    ) -> Result<Vnode> {
        let preference =
            self.with_file_system(parent.volume, |fs| fs.inode_preference(parent.inode, kind));
        let search = self.with_file_system(parent.volume, |fs| fs.inode_search(preference));
        for GroupCandidate {
            group,
            is_preferred,
        } in search
        {
            if !self.with_file_system(parent.volume, |fs| fs.group_may_hold_inode(group)) {
                continue;
            }
            let map = self.read_group_map(process, parent.volume, group).await;
            self.spend_processor_time(
                ExecutionContext::InProcess(process),
                Stage::Allocate,
                self.costs.allocation_time,
            )
            .await;
            let preference = Some(preference).filter(|_| is_preferred);
            let made = self.with_file_system_mut(parent.volume, |fs| {
                fs.allocate_inode(group, preference, kind)
            });
            let Some(inode) = made else {
                self.brelse(process, map).await;
                continue;
            };
            self.bdwrite(process, map).await;
            let node = Vnode {
                volume: parent.volume,
                inode,
            };
            self.with_file_system_mut(node.volume, |fs| fs.set_link_count(inode, 1));
            self.take_inode(process, node).await;
            // A name must not point at an inode that is not there yet.
            self.write_inode_block(process, node, WriteTiming::Synchronous)
                .await;
            return Ok(node);
        }
        Err(Errno::NoSpace)
    }

    /// Truncates a file to a length in bytes and frees the blocks behind it (`itrunc`).
    pub(crate) async fn truncate_inode(&self, process: &Rc<Process>, node: Vnode, bytes: u64) {
        let old = self.with_file_system(node.volume, |fs| fs.size_bytes(node.inode));
        let mut steps = Vec::new();
        self.with_file_system_mut(node.volume, |fs| {
            fs.release_blocks(node.inode, bytes, &mut steps);
        });
        if bytes > 0 && bytes < old {
            self.clear_tail(process, node, bytes).await;
        }
        for step in steps {
            match step {
                ReleaseStep::WriteInode => {
                    self.write_inode_block(process, node, WriteTiming::Synchronous)
                        .await;
                }
                ReleaseStep::ReleaseIndirectBlock { address, .. } => {
                    let block_bytes =
                        self.with_file_system(node.volume, |fs| fs.superblock().block_bytes());
                    let key = self.block_key(node, address);
                    let id = self.bread(process, key, block_bytes).await;
                    self.bwrite(process, id).await;
                }
                ReleaseStep::FreeFragments { address, fragments } => {
                    self.invalidate_buffer(self.block_key(node, address));
                    self.free_fragments(process, node.volume, (address, fragments))
                        .await;
                }
            }
        }
    }

    /// Zeroes the rest of the last block of a truncated file, so that the old data does not
    /// reappear when the file grows.
    async fn clear_tail(&self, process: &Rc<Process>, node: Vnode, bytes: u64) {
        let (lbn, start, length) = self.with_file_system(node.volume, |fs| {
            let superblock = fs.superblock();
            let lbn = superblock.block_index_at(bytes);
            let start = (bytes % u64::from(superblock.block_bytes())) as usize;
            let length = fs.fragment_count_of_block(node.inode, lbn) * superblock.fragment_bytes();
            (lbn, start, length)
        });
        if start == 0 {
            return;
        }
        let Some(address) = self.block_address(node, lbn) else {
            return;
        };
        let id = self
            .bread(process, self.block_key(node, address), length)
            .await;
        {
            let mut buffers = self.buffers.borrow_mut();
            let buffer = buffers.buffer_mut(id);
            let page = buffer
                .page
                .as_ref()
                .expect("a buffer that was read has contents");
            let mut contents = page[..length as usize].to_vec();
            contents[start..].fill(0);
            buffer.page = Some(contents.into());
        }
        self.bdwrite(process, id).await;
    }

    /// Reads the blocks of a directory from its start to an offset, as a name look-up does.
    pub(crate) async fn scan_directory(&self, process: &Rc<Process>, node: Vnode, to: u64) {
        let (size, block_bytes) = self.with_file_system(node.volume, |fs| {
            (fs.size_bytes(node.inode), fs.superblock().block_bytes())
        });
        let end = (to + 1).min(size.max(1));
        for lbn in 0..end.div_ceil(u64::from(block_bytes)) as u32 {
            let Some(address) = self.block_address(node, lbn) else {
                continue;
            };
            let bytes = self.directory_bytes(node, lbn);
            let id = self
                .bread(process, self.block_key(node, address), bytes)
                .await;
            self.brelse(process, id).await;
        }
    }

    fn directory_bytes(&self, node: Vnode, lbn: u32) -> u32 {
        self.with_file_system(node.volume, |fs| {
            fs.fragment_count_of_block(node.inode, lbn) * fs.superblock().fragment_bytes()
        })
    }

    /// Writes the directory block at an offset, and waits for the write.
    pub(crate) async fn write_directory(&self, process: &Rc<Process>, node: Vnode, offset: u64) {
        let lbn = self.with_file_system(node.volume, |fs| fs.superblock().block_index_at(offset));
        let address = self
            .block_address(node, lbn)
            .expect("a directory has no holes");
        let key: BlockKey = self.block_key(node, address);
        let bytes = self.directory_bytes(node, lbn);
        let id = self.bread(process, key, bytes).await;
        self.bwrite(process, id).await;
    }

    /// Adds a name to a directory and writes the directory block (`direnter`). Extends the
    /// directory if it has no room.
    pub(crate) async fn enter_name(
        &self,
        process: &Rc<Process>,
        (parent, name): (Vnode, &str),
        inode: InodeNumber,
    ) -> Result<()> {
        let slot = self
            .with_file_system(parent.volume, |fs| fs.find_entry_slot(parent.inode, name))
            .map_err(super::names::errno_of_name_error)?;
        if slot.grows_directory {
            let chunk = u64::from(super::ffs::DIRECTORY_CHUNK_BYTES);
            let (lbn, end) = self.with_file_system(parent.volume, |fs| {
                let block_bytes = u64::from(fs.superblock().block_bytes());
                (
                    fs.superblock().block_index_at(slot.offset_bytes),
                    (slot.offset_bytes % block_bytes + chunk) as u32,
                )
            });
            self.map_for_writing(process, parent, (lbn, end)).await?;
        }
        let place =
            self.with_file_system_mut(parent.volume, |fs| fs.add_entry(parent.inode, name, inode));
        self.with_core_inode(parent, |core| core.is_modified = true);
        self.write_directory(process, parent, place.offset_bytes)
            .await;
        Ok(())
    }

    /// Removes a name from a directory and writes the directory block (`dirremove`). Panics if the
    /// directory does not hold the name.
    pub(crate) async fn remove_name(&self, process: &Rc<Process>, (parent, name): (Vnode, &str)) {
        let place =
            self.with_file_system_mut(parent.volume, |fs| fs.remove_entry(parent.inode, name));
        let place = place.expect("the name was looked up");
        self.with_core_inode(parent, |core| core.is_modified = true);
        self.write_directory(process, parent, place.offset_bytes)
            .await;
    }
}
