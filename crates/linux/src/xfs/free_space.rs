//! Free space of an allocation group, with its trees by block and by length.

use std::collections::BTreeMap;

use crate::xfs::geometry::{FreeExtent, XfsGeometry};
use crate::xfs::log::Log;
use crate::xfs::short_tree::log_changed_records;

/// Records of a leaf of the free-space trees. More free extents in a group are not modelled.
const RECORDS_MAX: usize = 505;
/// Bytes of a record of the free-space trees.
const RECORD_BYTES: u64 = 8;

/// Request for blocks of a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpaceRequest {
    /// Block of the group near which the blocks are wanted.
    pub(super) target: u64,
    /// Shortest extent that is of use.
    pub(super) length_min: u64,
    /// Longest extent that is of use.
    pub(super) length_max: u64,
    /// Multiple at which the extent starts.
    pub(super) alignment: u64,
    /// Whether the blocks take data of a file, which grows upwards.
    pub(super) is_user_data: bool,
}

/// Extent freed by a transaction that is not in the log yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct BusyExtent {
    /// Blocks of the extent.
    pub(super) extent: FreeExtent,
    /// Whether `discard` tells the device. Blocks behind the end of a file never held data.
    pub(super) held_data: bool,
}

/// Free space of one allocation group.
#[derive(Clone, Debug)]
pub(super) struct FreeSpace {
    group: u64,
    extents: BTreeMap<u64, u64>,
    free_blocks: u64,
    /// Extents freed by transactions that are not in the log yet. Data must not reuse them.
    busy: Vec<BusyExtent>,
}

/// Reason why a tree cannot take another extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TreeFull;

impl FreeSpace {
    /// Returns the free space of a new group.
    pub(super) fn new(geometry: &XfsGeometry, group: u64) -> Self {
        let extents = geometry.free_extents(group);
        let free_blocks = extents.iter().map(|extent| extent.length).sum();
        let extents = extents
            .iter()
            .map(|extent| (extent.first, extent.length))
            .collect();
        Self {
            group,
            extents,
            free_blocks,
            busy: Vec::new(),
        }
    }

    /// Takes an extent that mkfs.xfs allocated.
    pub(super) fn reserve(&mut self, extent: FreeExtent) {
        self.remove(extent);
    }

    /// Free blocks of the group.
    pub(super) fn blocks(&self) -> u64 {
        self.free_blocks
    }

    /// Length of the longest free extent.
    pub(super) fn longest(&self) -> u64 {
        self.extents.values().copied().max().unwrap_or(0)
    }

    /// Free extents in the order of the tree by block.
    fn by_block(&self) -> Vec<FreeExtent> {
        let extents = self.extents.iter();
        let extents = extents.map(|(first, length)| FreeExtent {
            first: *first,
            length: *length,
        });
        extents.collect()
    }

    /// Free extents in the order of the tree by length.
    pub(super) fn by_length(&self) -> Vec<FreeExtent> {
        let mut extents = self.by_block();
        extents.sort_by_key(|extent| (extent.length, extent.first));
        extents
    }

    /// Chooses the extent for `request`: the longest up to its limit, and of those the nearest.
    /// All records lie in one leaf of each tree, which the kernel then searches whole.
    pub(super) fn find_near(&self, request: SpaceRequest) -> Option<FreeExtent> {
        let mut best: Option<FreeExtent> = None;
        let mut best_distance = u64::MAX;
        let longest = self.longest();
        let shortest = request.length_max.min(longest).max(request.length_min);
        let search = |shortest: u64, best: &mut Option<FreeExtent>, best_distance: &mut u64| {
            for record in self.by_length() {
                if record.length < shortest {
                    continue;
                }
                let Some(usable) = self.usable_part(record, request) else {
                    continue;
                };
                let length = usable.length.min(request.length_max);
                if length < request.length_min || best.is_some_and(|best| length < best.length) {
                    continue;
                }
                let first = place_in_extent(usable, length, request);
                let distance = first.abs_diff(request.target);
                let is_longer = best.is_some_and(|best| length > best.length);
                if distance > *best_distance && !is_longer {
                    continue;
                }
                *best = Some(FreeExtent {
                    first,
                    length: length.min(usable.end() - first),
                });
                *best_distance = distance;
            }
        };
        search(shortest, &mut best, &mut best_distance);
        if best.is_none() {
            search(request.length_min, &mut best, &mut best_distance);
        }
        best
    }

    /// Part of a free extent that is aligned and not busy.
    fn usable_part(&self, extent: FreeExtent, request: SpaceRequest) -> Option<FreeExtent> {
        let mut parts = vec![extent];
        if request.is_user_data {
            for busy in &self.busy {
                parts = parts
                    .iter()
                    .flat_map(|part| subtract(*part, busy.extent))
                    .collect();
            }
        }
        let parts = parts.iter().filter_map(|part| {
            let first = part.first.next_multiple_of(request.alignment);
            (first < part.end()).then(|| FreeExtent {
                first,
                length: part.end() - first,
            })
        });
        let parts: Vec<FreeExtent> = parts.collect();
        let first_fit = parts.iter().find(|part| part.length >= request.length_max);
        first_fit
            .or_else(|| parts.iter().max_by_key(|part| part.length))
            .copied()
    }

    /// Whether `extent` is free.
    pub(super) fn is_free(&self, extent: FreeExtent) -> bool {
        let before = self.extents.range(..=extent.first).next_back();
        before.is_some_and(|(first, length)| first + length >= extent.end())
    }

    /// Takes a free extent out of both trees and logs what changes.
    pub(super) fn allocate(
        &mut self,
        geometry: &XfsGeometry,
        log: &mut Log,
        extent: FreeExtent,
    ) -> Result<(), TreeFull> {
        let before = self.clone_records();
        self.remove(extent);
        self.log_changes(geometry, log, &before)
    }

    fn remove(&mut self, extent: FreeExtent) {
        let before = self.extents.range(..=extent.first).next_back();
        let (first, length) = before
            .map(|(first, length)| (*first, *length))
            .expect("it is free");
        assert!(extent.end() <= first + length, "blocks are allocated once");
        self.extents.remove(&first);
        self.free_blocks -= extent.length;
        if extent.first > first {
            self.extents.insert(first, extent.first - first);
        }
        if extent.end() < first + length {
            self.extents
                .insert(extent.end(), first + length - extent.end());
        }
    }

    /// Gives an extent back to both trees and logs what changes.
    pub(super) fn free(
        &mut self,
        geometry: &XfsGeometry,
        log: &mut Log,
        busy: BusyExtent,
    ) -> Result<(), TreeFull> {
        let before = self.clone_records();
        let extent = busy.extent;
        let mut joined = extent;
        let left = self.extents.range(..extent.first).next_back();
        if let Some((first, length)) = left.map(|(first, length)| (*first, *length))
            && first + length == extent.first
        {
            self.extents.remove(&first);
            joined = FreeExtent {
                first,
                length: length + joined.length,
            };
        }
        if let Some(length) = self.extents.remove(&extent.end()) {
            joined.length += length;
        }
        self.extents.insert(joined.first, joined.length);
        self.free_blocks += extent.length;
        self.busy.push(busy);
        self.log_changes(geometry, log, &before)
    }

    /// Makes freed extents usable again, and returns them: the log holds their transactions.
    pub(super) fn settle_busy(&mut self) -> Vec<BusyExtent> {
        std::mem::take(&mut self.busy)
    }

    fn clone_records(&self) -> Records {
        Records {
            by_block: self.by_block(),
            by_length: self.by_length(),
        }
    }

    fn log_changes(
        &mut self,
        geometry: &XfsGeometry,
        log: &mut Log,
        before: &Records,
    ) -> Result<(), TreeFull> {
        if self.extents.len() > RECORDS_MAX {
            return Err(TreeFull);
        }
        let after = self.clone_records();
        log.add_buffer(geometry.free_space_header(self.group), 0..8);
        let by_block = geometry.by_block_root(self.group);
        log_changed_records(
            log,
            (by_block, RECORD_BYTES),
            &before.by_block,
            &after.by_block,
        );
        let by_length = geometry.by_count_root(self.group);
        log_changed_records(
            log,
            (by_length, RECORD_BYTES),
            &before.by_length,
            &after.by_length,
        );
        Ok(())
    }
}

/// Records of both trees, in their orders.
struct Records {
    by_block: Vec<FreeExtent>,
    by_length: Vec<FreeExtent>,
}

/// First block for `length` blocks in a usable extent.
fn place_in_extent(usable: FreeExtent, length: u64, request: SpaceRequest) -> u64 {
    let wanted_end = request.target + length;
    if usable.first >= request.target || (request.is_user_data && usable.end() < wanted_end) {
        return usable.first;
    }
    if usable.end() >= wanted_end {
        let above = request.target.next_multiple_of(request.alignment);
        if above + length <= usable.end() {
            return above;
        }
        return above.saturating_sub(request.alignment).max(usable.first);
    }
    let first = (usable.end() - length) / request.alignment * request.alignment;
    first.max(usable.first)
}

/// Parts of `extent` outside `hole`.
fn subtract(extent: FreeExtent, hole: FreeExtent) -> Vec<FreeExtent> {
    let mut parts = Vec::new();
    if hole.end() <= extent.first || extent.end() <= hole.first {
        return vec![extent];
    }
    if hole.first > extent.first {
        parts.push(FreeExtent {
            first: extent.first,
            length: hole.first - extent.first,
        });
    }
    if hole.end() < extent.end() {
        parts.push(FreeExtent {
            first: hole.end(),
            length: extent.end() - hole.end(),
        });
    }
    parts
}
