//! Where a block of a file is (bmap), and making it be somewhere (alloc).

use super::buffers::{BlockKey, BufferId};
use super::errno::{Errno, Result};
use super::ffs::{BlockNeed, Candidate, Fragment, IndirectId, Path, PointerArray, TailGrowth};
use super::process::{Context, Process};
use super::{Kernel, Vnode};
use diskperf_timeline::Stage;
use std::rc::Rc;

/// Where a block is, and where the next one of the file is, if that is known
/// without reading anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapped {
    pub(crate) block: Option<Fragment>,
    pub(crate) next: Option<Fragment>,
}

impl Kernel {
    pub(crate) fn key(&self, node: Vnode, fragment: Fragment) -> BlockKey {
        BlockKey {
            drive: node.drive,
            fragment: fragment.0,
        }
    }

    /// A block for reading.
    pub(crate) async fn map_for_reading(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        lbn: u32,
    ) -> Result<Mapped> {
        self.spend(
            Context::Process(process),
            Stage::SystemCall,
            self.costs.block_map,
        )
        .await;
        let path = self.fs(node.drive, |fs| fs.locate(lbn));
        let path = path.ok_or(Errno::FileTooLarge)?;
        let nothing = Mapped {
            block: None,
            next: None,
        };
        let (array, index) = match path {
            Path::Direct { index } => {
                return Ok(self.fs(node.drive, |fs| Mapped {
                    block: fs.direct_pointer(node.inode, index),
                    next: (index + 1 < super::ffs::DIRECT_POINTERS)
                        .then(|| fs.direct_pointer(node.inode, index + 1))
                        .flatten(),
                }));
            }
            Path::Single { index } => {
                let root = self.fs(node.drive, |fs| fs.indirect_root(node.inode, 1));
                (root, index)
            }
            Path::Double { outer, inner } => {
                let root = self.fs(node.drive, |fs| fs.indirect_root(node.inode, 2));
                let Some(root) = root else {
                    return Ok(nothing);
                };
                let id = self.read_indirect(process, node, root).await;
                self.brelse(process, id).await;
                let child = self.fs(node.drive, |fs| fs.indirect_child(root, outer));
                (child, inner)
            }
        };
        let Some(array) = array else {
            return Ok(nothing);
        };
        let id = self.read_indirect(process, node, array).await;
        self.brelse(process, id).await;
        Ok(self.fs(node.drive, |fs| {
            let last = fs.superblock().pointers_per_block();
            Mapped {
                block: fs.indirect_pointer(array, index),
                next: (index + 1 < last)
                    .then(|| fs.indirect_pointer(array, index + 1))
                    .flatten(),
            }
        }))
    }

    async fn read_indirect(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        block: IndirectId,
    ) -> BufferId {
        let (address, bytes) = self.fs(node.drive, |fs| {
            (fs.indirect_address(block), fs.superblock().block_bytes())
        });
        self.bread(process, self.key(node, address), bytes).await
    }

    /// A block for writing up to `end` bytes into it: allocated, if it was
    /// not, and cleared.
    pub(crate) async fn map_for_writing(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        (lbn, end): (u32, u32),
    ) -> Result<Fragment> {
        self.spend(
            Context::Process(process),
            Stage::SystemCall,
            self.costs.block_map,
        )
        .await;
        self.grow_tail(process, node, lbn).await?;
        let path = self.fs(node.drive, |fs| fs.locate(lbn));
        let path = path.ok_or(Errno::FileTooLarge)?;
        let (array, index, fresh) = match path {
            Path::Direct { index } => {
                return self.map_direct(process, node, (index, end)).await;
            }
            Path::Single { index } => {
                let (root, fresh) = self.indirect_root(process, node, (lbn, 1)).await?;
                (root, index, fresh)
            }
            Path::Double { outer, inner } => {
                let (root, fresh) = self.indirect_root(process, node, (lbn, 2)).await?;
                let (child, fresh) = self
                    .indirect_child(process, node, (root, outer), (lbn, fresh))
                    .await?;
                (child, inner, fresh)
            }
        };
        self.map_indirect(process, node, (array, index), (lbn, fresh))
            .await
    }

    /// A tail of fragments must be a whole block before the file goes on
    /// behind it.
    pub(crate) async fn grow_tail(&self, process: &Rc<Process>, node: Vnode, lbn: u32) -> Result<()> {
        let growth = self.fs(node.drive, |fs| {
            let start = u64::from(lbn) * u64::from(fs.superblock().block_bytes());
            fs.tail_growth(node.inode, start)
        });
        let Some(growth) = growth else { return Ok(()) };
        let (_, id) = self.grow(process, node, growth).await?;
        self.bawrite(process, id).await;
        let end = self.fs(node.drive, |fs| {
            u64::from(growth.lbn + 1) * u64::from(fs.superblock().block_bytes())
        });
        self.change(node.drive, |fs| {
            let size = fs.size_bytes(node.inode).max(end);
            fs.set_size(node.inode, size);
        });
        Ok(())
    }

    async fn map_direct(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        (index, end): (u32, u32),
    ) -> Result<Fragment> {
        let need = self.fs(node.drive, |fs| fs.direct_need(node.inode, index, end));
        match need {
            BlockNeed::Present(address) => Ok(address),
            BlockNeed::Grow(growth) => {
                let (address, id) = self.grow(process, node, growth).await?;
                self.bdwrite(process, id).await;
                Ok(address)
            }
            BlockNeed::Allocate { fragments } => {
                let preference = self.change(node.drive, |fs| {
                    fs.block_preference(node.inode, index, PointerArray::Direct, index)
                });
                let (address, id) = self
                    .allocate(process, node, (preference, fragments))
                    .await?;
                self.bdwrite(process, id).await;
                self.change(node.drive, |fs| {
                    fs.set_direct_pointer(node.inode, index, address);
                });
                self.in_core(node, |core| core.modified = true);
                Ok(address)
            }
        }
    }

    /// The top indirect block, and if it was only made now, the preference
    /// that it was made with.
    async fn indirect_root(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        (lbn, depth): (u32, u32),
    ) -> Result<(IndirectId, Fresh)> {
        if let Some(root) = self.fs(node.drive, |fs| fs.indirect_root(node.inode, depth)) {
            return Ok((root, None));
        }
        let (address, preference) = self.allocate_indirect(process, node, (lbn, None)).await?;
        let root = self.change(node.drive, |fs| {
            fs.attach_indirect_root(node.inode, depth, address)
        });
        self.in_core(node, |core| core.modified = true);
        Ok((root, Some(preference)))
    }

    async fn indirect_child(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        (root, outer): (IndirectId, u32),
        (lbn, fresh): (u32, Fresh),
    ) -> Result<(IndirectId, Fresh)> {
        let above = self.read_indirect(process, node, root).await;
        if let Some(child) = self.fs(node.drive, |fs| fs.indirect_child(root, outer)) {
            self.brelse(process, above).await;
            return Ok((child, None));
        }
        let made = self.allocate_indirect(process, node, (lbn, fresh)).await;
        let (address, preference) = match made {
            Ok(made) => made,
            Err(errno) => {
                self.brelse(process, above).await;
                return Err(errno);
            }
        };
        let child = self.change(node.drive, |fs| {
            fs.attach_indirect_child(root, outer, address)
        });
        self.bdwrite(process, above).await;
        Ok((child, Some(preference)))
    }

    /// A zeroed indirect block, on the drive before anything points at it.
    async fn allocate_indirect(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        (lbn, fresh): (u32, Fresh),
    ) -> Result<(Fragment, Option<Fragment>)> {
        let (preference, fragments) = self.change(node.drive, |fs| {
            let preference = match fresh {
                Some(preference) => preference,
                None => fs.block_preference(node.inode, lbn, PointerArray::Fresh, 0),
            };
            (preference, fs.superblock().fragments_per_block())
        });
        let (address, id) = self
            .allocate(process, node, (preference, fragments))
            .await?;
        self.bwrite(process, id).await;
        Ok((address, preference))
    }

    async fn map_indirect(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        (array, index): (IndirectId, u32),
        (lbn, fresh): (u32, Fresh),
    ) -> Result<Fragment> {
        let above = self.read_indirect(process, node, array).await;
        if let Some(address) = self.fs(node.drive, |fs| fs.indirect_pointer(array, index)) {
            self.brelse(process, above).await;
            return Ok(address);
        }
        let (preference, fragments) = self.change(node.drive, |fs| {
            let preference = match fresh {
                Some(preference) => preference,
                None => {
                    fs.block_preference(node.inode, lbn, PointerArray::Indirect(array), index)
                }
            };
            (preference, fs.superblock().fragments_per_block())
        });
        match self.allocate(process, node, (preference, fragments)).await {
            Ok((address, id)) => {
                self.bdwrite(process, id).await;
                self.change(node.drive, |fs| {
                    fs.set_indirect_pointer(array, index, address);
                });
                self.bdwrite(process, above).await;
                self.in_core(node, |core| core.modified = true);
                Ok(address)
            }
            Err(errno) => {
                self.brelse(process, above).await;
                Err(errno)
            }
        }
    }
}

/// Of an indirect block that was only made now: the preference that it was
/// made with, which its first block uses again.
type Fresh = Option<Option<Fragment>>;

/// Allocation.
impl Kernel {
    /// A block or a part of one, cleared, in a buffer of its own.
    async fn allocate(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        (preference, fragments): (Option<Fragment>, u32),
    ) -> Result<(Fragment, BufferId)> {
        self.fs(node.drive, |fs| fs.admit(fragments, false))
            .map_err(|_| Errno::NoSpace)?;
        let search = self.fs(node.drive, |fs| {
            fs.allocation_search(node.inode, preference)
        });
        let address = self
            .search_groups(process, node, search, (preference, fragments))
            .await?;
        let bytes = self.fs(node.drive, |fs| {
            fragments * fs.superblock().fragment_bytes()
        });
        let id = self.getblk(process, self.key(node, address), bytes).await;
        self.clear(process, id, bytes).await;
        Ok((address, id))
    }

    async fn search_groups(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        search: impl Iterator<Item = Candidate>,
        (preference, fragments): (Option<Fragment>, u32),
    ) -> Result<Fragment> {
        for Candidate {
            group,
            is_preferred,
        } in search
        {
            if !self.fs(node.drive, |fs| fs.group_may_hold(group, fragments)) {
                continue;
            }
            let map = self.read_group_map(process, node.drive, group).await;
            self.spend(
                Context::Process(process),
                Stage::Allocate,
                self.costs.allocate,
            )
            .await;
            let preference = preference.filter(|_| is_preferred);
            let found = self.change(node.drive, |fs| {
                fs.allocate_in_group(group, preference, fragments)
            });
            match found {
                Some(address) => {
                    self.bdwrite(process, map).await;
                    return Ok(address);
                }
                None => self.brelse(process, map).await,
            }
        }
        Err(Errno::NoSpace)
    }

    pub(crate) async fn read_group_map(
        &self,
        process: &Rc<Process>,
        drive: u32,
        group: super::ffs::Group,
    ) -> BufferId {
        let (address, bytes) = self.fs(drive, |fs| {
            let superblock = fs.superblock();
            (superblock.group_map_address(group), superblock.group_map_bytes())
        });
        let key = BlockKey {
            drive,
            fragment: address.0,
        };
        self.bread(process, key, bytes).await
    }

    /// Zeroes a buffer.
    async fn clear(&self, process: &Rc<Process>, id: BufferId, bytes: u32) {
        let cost = self.costs.clear(bytes as usize);
        self.spend(Context::Process(process), Stage::Clear, cost)
            .await;
        let page = self.zeroes(bytes);
        let mut buffers = self.buffers.borrow_mut();
        let buffer = buffers.get(id);
        buffer.page = Some(page);
        buffer.done = true;
    }

    /// Makes fragments more, in place or elsewhere; the buffer holds what was
    /// in them, and zeroes behind that.
    pub(crate) async fn grow(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        growth: TailGrowth,
    ) -> Result<(Fragment, BufferId)> {
        let TailGrowth {
            address,
            old_fragments,
            new_fragments,
            ..
        } = growth;
        self.fs(node.drive, |fs| fs.admit_growth(false))
            .map_err(|_| Errno::NoSpace)?;
        let fragment_bytes = self.fs(node.drive, |fs| fs.superblock().fragment_bytes());
        let (old_bytes, new_bytes) = (
            old_fragments * fragment_bytes,
            new_fragments * fragment_bytes,
        );
        let in_place = self
            .extend_in_place(process, node, (address, old_fragments, new_fragments))
            .await;
        let new_address = if in_place {
            address
        } else {
            self.fs(node.drive, |fs| fs.admit(new_fragments, false))
                .map_err(|_| Errno::NoSpace)?;
            let preference = self.change(node.drive, |fs| {
                fs.block_preference(node.inode, growth.lbn, PointerArray::Direct, growth.lbn)
            });
            let search = self.fs(node.drive, |fs| fs.relocation_search(address));
            self.search_groups(process, node, search, (preference, new_fragments))
                .await?
        };
        let old = self.bread(process, self.key(node, address), old_bytes).await;
        let contents = self.buffers.borrow().all[old.0 as usize].page.clone();
        let id = if in_place {
            self.brelse(process, old).await;
            self.getblk(process, self.key(node, address), new_bytes).await
        } else {
            self.brelse(process, old).await;
            self.invalidate(self.key(node, address));
            self.free_fragments(process, node.drive, (address, old_fragments)).await;
            let id = self.getblk(process, self.key(node, new_address), new_bytes).await;
            let cost = self.costs.copy(old_bytes as usize);
            self.spend(Context::Process(process), Stage::Copy, cost).await;
            id
        };
        let cost = self.costs.clear((new_bytes - old_bytes) as usize);
        self.spend(Context::Process(process), Stage::Clear, cost).await;
        {
            let mut grown = contents.expect("a block that was read is there").to_vec();
            grown.resize(new_bytes as usize, 0);
            let mut buffers = self.buffers.borrow_mut();
            let buffer = buffers.get(id);
            buffer.page = Some(grown.into());
            buffer.done = true;
        }
        self.change(node.drive, |fs| {
            fs.set_direct_pointer(node.inode, growth.lbn, new_address);
        });
        self.in_core(node, |core| core.modified = true);
        Ok((new_address, id))
    }

    async fn extend_in_place(
        &self,
        process: &Rc<Process>,
        node: Vnode,
        (address, old_fragments, new_fragments): (Fragment, u32, u32),
    ) -> bool {
        let may = self.fs(node.drive, |fs| {
            fs.may_extend(address, old_fragments, new_fragments)
        });
        if !may {
            return false;
        }
        let group = self.fs(node.drive, |fs| fs.superblock().group_of(address));
        let map = self.read_group_map(process, node.drive, group).await;
        self.spend(
            Context::Process(process),
            Stage::Allocate,
            self.costs.allocate,
        )
        .await;
        let extended = self.change(node.drive, |fs| {
            fs.extend_fragments(address, old_fragments, new_fragments)
        });
        if extended {
            self.bdwrite(process, map).await;
        } else {
            self.brelse(process, map).await;
        }
        extended
    }

    /// Gives fragments back.
    pub(crate) async fn free_fragments(
        &self,
        process: &Rc<Process>,
        drive: u32,
        (address, fragments): (Fragment, u32),
    ) {
        let group = self.fs(drive, |fs| fs.superblock().group_of(address));
        let map = self.read_group_map(process, drive, group).await;
        self.spend(
            Context::Process(process),
            Stage::Allocate,
            self.costs.allocate,
        )
        .await;
        self.change(drive, |fs| fs.free(address, fragments));
        self.bdwrite(process, map).await;
    }
}
