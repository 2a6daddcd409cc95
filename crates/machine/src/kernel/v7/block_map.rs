//! Translation of a file's block number to a disk block in a seventh edition file system, for
//! reading and for writing (`bmap`).

use super::super::Vnode;
use super::super::block_map::BlockMapping;
use super::super::ffs::Fragment;
use super::super::process::{Context, Process};
use super::OnV7;
use super::layout::{DIRECT, POINTERS, long, path, put_long};
use crate::errno::{Errno, Result};
use diskperf_timeline::Stage;
use std::rc::Rc;

impl OnV7<'_> {
    async fn spend_map(&self, process: &Rc<Process>) {
        let context = Context::Process(process);
        self.spend(context, Stage::SystemCall, self.costs.block_map)
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
        let path = path(lbn).ok_or(Errno::FileTooLarge)?;
        let known = |block: u32| (block != 0).then_some(Fragment(block));
        let (first, below) = (path[0], &path[1..]);
        let (mut block, mut next) = self.inode(node, |inode| {
            let next = (first + 1 < DIRECT as usize).then(|| inode.addresses[first + 1]);
            (inode.addresses[first], next.unwrap_or(0))
        });
        for place in below {
            if block == 0 {
                next = 0;
                break;
            }
            let id = self.read_block(process, node.volume, block).await;
            (block, next) = self.look_at(id, |bytes| {
                let next = (place + 1 < POINTERS as usize).then(|| long(bytes, 4 * (place + 1)));
                (long(bytes, 4 * place), next.unwrap_or(0))
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
        let path = path(lbn).ok_or(Errno::FileTooLarge)?;
        let mut block = self.inode(node, |inode| inode.addresses[path[0]]);
        if block == 0 {
            let (made, id) = self.alloc(process, node.volume).await?;
            self.bdwrite(process, id).await;
            self.change(node, |inode| inode.addresses[path[0]] = made);
            block = made;
        }
        for place in &path[1..] {
            let above = self.read_block(process, node.volume, block).await;
            block = self.look_at(above, |bytes| long(bytes, 4 * place));
            if block != 0 {
                self.brelse(process, above).await;
                continue;
            }
            let made = match self.alloc(process, node.volume).await {
                Ok((made, id)) => {
                    self.bdwrite(process, id).await;
                    made
                }
                Err(errno) => {
                    self.brelse(process, above).await;
                    return Err(errno);
                }
            };
            self.edit_buffer(above, |bytes| put_long(bytes, 4 * place, made));
            self.bdwrite(process, above).await;
            block = made;
        }
        Ok(block)
    }
}
