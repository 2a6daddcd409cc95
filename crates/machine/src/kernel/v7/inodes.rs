//! In-core inodes of a seventh edition file system (`iget`, `iput`, `iupdat`, `itrunc`).

use super::super::Vnode;
use super::super::ffs::InodeKind;
use super::super::process::Process;
use super::V7View;
use super::layout::{
    DIRECT_ADDRESS_COUNT, INODE_ADDRESS_COUNT, INODE_BYTES, POINTERS_PER_BLOCK, V7Inode,
    V7Superblock, read_u32,
};
use diskperf_timeline::Stage;
use std::rc::Rc;

impl V7View<'_> {
    /// Brings an inode into core, in use until it is put back. Reads it if no process used it
    /// (`iget`).
    pub(crate) async fn take_inode(&self, process: &Rc<Process>, node: Vnode) {
        let known = self.with_volume(node.volume, |volume| {
            let found = volume.inodes.get_mut(&node.inode);
            found
                .map(|found| found.in_core_state.user_count += 1)
                .is_some()
        });
        if known {
            return self.wait_until_read(process, node).await;
        }
        self.add_in_core(node);
        let (block, at) = V7Superblock::inode_position(node.inode.0);
        let id = self.read_block(process, node.volume, block).await;
        let inode = self.with_block(id, |bytes| {
            V7Inode::decode_inode(&bytes[at..at + INODE_BYTES])
        });
        let readers = self.with_volume(node.volume, |volume| {
            let found = volume.inodes.get_mut(&node.inode);
            let found = found.expect("a process that reads an inode uses it");
            found.inode = Some(inode);
            std::mem::take(&mut found.readers)
        });
        for reader in &readers {
            self.wake_process(reader);
        }
        self.brelse(process, id).await;
    }

    async fn wait_until_read(&self, process: &Rc<Process>, node: Vnode) {
        loop {
            let read = self.with_volume(node.volume, |volume| {
                let found = volume.inodes.get_mut(&node.inode);
                let found = found.expect("an inode in use is in core");
                if found.inode.is_none() {
                    found.readers.push(Rc::clone(process));
                }
                found.inode.is_some()
            });
            if read {
                return;
            }
            let from = self.simulation.now();
            self.wait_for_wake_up(process, "an inode that another process reads")
                .await;
            process.book_wait(Stage::BufferWait, from);
        }
    }

    /// Removes one user of an in-core inode (`iput`). The last user frees an inode without names,
    /// or writes a changed one into its block.
    pub(crate) async fn put_inode(&self, process: &Rc<Process>, node: Vnode) {
        loop {
            let (last, modified) = self.with_core_inode(node, |core| {
                let last = core.user_count == 1;
                core.user_count -= u32::from(!last);
                (last, core.is_modified)
            });
            if !last {
                return;
            }
            // It stays in use while this process sleeps: somebody may come
            // upon it.
            let nameless =
                self.with_inode(node, |inode| inode.link_count == 0 && inode.kind.is_some());
            if nameless {
                self.truncate_inode(process, node).await;
                self.with_inode_mut(node, |inode| inode.kind = None);
                self.write_inode(process, node).await;
                self.free_inode(node);
            } else if modified {
                self.write_inode(process, node).await;
            } else {
                self.with_volume(node.volume, |volume| volume.inodes.remove(&node.inode));
                return;
            }
        }
    }

    /// Copies a changed inode into its block, as a delayed write (`iupdat`).
    pub(super) async fn write_inode(&self, process: &Rc<Process>, node: Vnode) {
        let (block, at) = V7Superblock::inode_position(node.inode.0);
        let id = self.read_block(process, node.volume, block).await;
        let inode = self.with_volume(node.volume, |volume| {
            let found = volume.inodes.get_mut(&node.inode)?;
            found.in_core_state.is_modified = false;
            found.inode.clone()
        });
        match inode {
            Some(inode) => {
                self.edit_buffer(id, |bytes| {
                    inode.encode_inode(&mut bytes[at..at + INODE_BYTES])
                });
                self.bdwrite(process, id).await;
            }
            // Whoever was done with it has written it.
            None => self.brelse(process, id).await,
        }
    }

    /// Frees all blocks of a file, the last one first, and sets its length to 0 (`itrunc`).
    pub(crate) async fn truncate_inode(&self, process: &Rc<Process>, node: Vnode) {
        for place in (0..INODE_ADDRESS_COUNT).rev() {
            let block = self.with_inode(node, |inode| inode.addresses[place]);
            if block == 0 {
                continue;
            }
            self.with_inode_mut(node, |inode| inode.addresses[place] = 0);
            let depth = (place as u32 + 1).saturating_sub(DIRECT_ADDRESS_COUNT);
            self.free_indirect_tree(process, node.volume, (block, depth))
                .await;
        }
        self.with_inode_mut(node, |inode| inode.size_bytes = 0);
    }

    /// Frees a block and all blocks below it. `top` is the block and its level of indirection, 0
    /// for a data block (`tloop`).
    async fn free_indirect_tree(&self, process: &Rc<Process>, volume: u32, top: (u32, u32)) {
        // Blocks to be freed; of one with a level, first those that it names.
        let mut left = vec![top];
        while let Some((block, depth)) = left.pop() {
            if depth == 0 {
                self.free_block(process, volume, block).await;
                continue;
            }
            let id = self.read_block(process, volume, block).await;
            left.push((block, 0));
            self.with_block(id, |bytes| {
                let named =
                    (0..POINTERS_PER_BLOCK as usize).map(|place| read_u32(bytes, 4 * place));
                left.extend(
                    named
                        .filter(|block| *block != 0)
                        .map(|block| (block, depth - 1)),
                );
            });
            self.brelse(process, id).await;
        }
    }

    pub(crate) fn inode_kind(&self, node: Vnode) -> Option<InodeKind> {
        self.with_inode(node, |inode| inode.kind)
    }
}
