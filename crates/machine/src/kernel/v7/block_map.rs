//! Translation of a file's block number to a disk block in a seventh edition file system, for
//! reading and for writing (`bmap`).

use super::super::Vnode;
use super::super::block_map::BlockMapping;
use super::super::ffs::FragmentAddress;
use super::super::process::{ExecutionContext, Process};
use super::V7View;
use super::layout::{DIRECT_ADDRESS_COUNT, POINTERS_PER_BLOCK, pointer_path, read_u32, write_u32};
use crate::errno::{Errno, Result};
use diskperf_timeline::Stage;
use std::rc::Rc;

impl V7View<'_> {
    async fn spend_map(&self, process: &Rc<Process>) {
        let context = ExecutionContext::InProcess(process);
        self.spend_processor_time(context, Stage::SystemCall, self.costs.block_map_time)
            .await;
    }

    /// Translates a block number of a file to a disk block for reading. Also returns the next block
    /// of the file, if the same inode or indirect block holds its number.
    pub(super) async fn map_for_reading(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        lbn: u32,
    ) -> Result<BlockMapping> {
        self.spend_map(process).await;
        let path = pointer_path(lbn).ok_or(Errno::FileTooLarge)?;
        let known = |block: u32| (block != 0).then_some(FragmentAddress(block));
        let (first, below) = (path[0], &path[1..]);
        let (mut block, mut next) = self.with_inode(node, |inode| {
            let next =
                (first + 1 < DIRECT_ADDRESS_COUNT as usize).then(|| inode.addresses[first + 1]);
            (inode.addresses[first], next.unwrap_or(0))
        });
        for place in below {
            if block == 0 {
                next = 0;
                break;
            }
            let id = self.read_block(process, node.volume, block).await;
            (block, next) = self.with_block(id, |bytes| {
                let next = (place + 1 < POINTERS_PER_BLOCK as usize)
                    .then(|| read_u32(bytes, 4 * (place + 1)));
                (read_u32(bytes, 4 * place), next.unwrap_or(0))
            });
            self.brelse(process, id).await;
        }
        Ok(BlockMapping {
            block: known(block),
            next_block: known(next),
        })
    }

    /// Translates a block number of a file to a disk block for writing. Allocates the block and the
    /// indirect blocks that point to it, if necessary.
    pub(super) async fn map_for_writing(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        lbn: u32,
    ) -> Result<u32> {
        self.spend_map(process).await;
        let path = pointer_path(lbn).ok_or(Errno::FileTooLarge)?;
        let mut block = self.with_inode(node, |inode| inode.addresses[path[0]]);
        if block == 0 {
            let (made, id) = self.allocate_block(process, node.volume).await?;
            self.bdwrite(process, id).await;
            self.with_inode_mut(node, |inode| inode.addresses[path[0]] = made);
            block = made;
        }
        for place in &path[1..] {
            let above = self.read_block(process, node.volume, block).await;
            block = self.with_block(above, |bytes| read_u32(bytes, 4 * place));
            if block != 0 {
                self.brelse(process, above).await;
                continue;
            }
            let made = match self.allocate_block(process, node.volume).await {
                Ok((made, id)) => {
                    self.bdwrite(process, id).await;
                    made
                }
                Err(errno) => {
                    self.brelse(process, above).await;
                    return Err(errno);
                }
            };
            self.edit_buffer(above, |bytes| write_u32(bytes, 4 * place, made));
            self.bdwrite(process, above).await;
            block = made;
        }
        Ok(block)
    }
}
