//! The log: items of the open checkpoint, and the records that a force writes.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::block::{Bio, BioContent, BioFlags, BioOperation, SECTOR_BYTES};
use crate::effect::{Effect, Effects, Task, Waits};
use crate::xfs::XfsOptions;
use crate::xfs::geometry::{BLOCK_BYTES, MetadataBuffer, XfsGeometry};
use crate::xfs::log_items::{
    CHUNK_BYTES, ChangedBuffer, ChangedInode, INODE_CORE_BYTES, INODE_CREATE_BYTES,
    INODE_FORMAT_BYTES, InodeNumber, LogItem, buffer_regions,
};

/// Bytes of the header that precedes each region in a record.
const REGION_HEADER_BYTES: u64 = 12;
/// Bytes of a transaction's header.
const TRANSACTION_BYTES: u64 = 16;
/// Bytes of the superblock that are logged.
pub(super) const SUPERBLOCK_BYTES: u64 = 264;
/// Bytes of an unmount record's region.
const UNMOUNT_BYTES: u64 = 8;
/// Part of a log buffer that one header block covers.
const HEADER_SPAN_BYTES: u64 = 32 * 1024;
/// Bytes of a log buffer unless the log's stripe unit is larger.
const LOG_BUFFER_BYTES: u64 = 32 * 1024;

/// State of the covering of an idle log by records of the superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CoverState {
    Idle,
    Need,
    Done,
    NeedSecond,
    DoneSecond,
}

/// Log of a mounted file system.
#[derive(Clone, Debug)]
pub(super) struct Log {
    start_sector: u64,
    sectors: u64,
    head: u64,
    buffer_bytes: u64,
    /// Multiple of bytes at which a record ends.
    unit_bytes: u64,
    checkpoint: u64,
    items: BTreeMap<LogItem, Vec<u64>>,
    /// Sectors that were written since the mount.
    written: u64,
    /// Lower bound of the place in the log of the oldest change that is not in place.
    oldest_at_least: u64,
    /// Buffers that changed since they were last written in place.
    buffers: BTreeMap<MetadataBuffer, ChangedBuffer>,
    /// Inodes that changed since they were last written in place.
    inodes: BTreeMap<InodeNumber, ChangedInode>,
    logs_superblock_first: bool,
    superblock: MetadataBuffer,
    cover: CoverState,
}

impl Log {
    /// Returns the log of a file system that was just mounted. With `logs_superblock_first` the
    /// first transaction logs the superblock, too.
    pub(super) fn new(
        geometry: &XfsGeometry,
        options: &XfsOptions,
        logs_superblock_first: bool,
    ) -> Self {
        let stripe = options.make.log_stripe_bytes.map_or(0, u64::from);
        let unit_bytes = stripe.max(geometry.sector_bytes).max(SECTOR_BYTES);
        let mut log = Self {
            start_sector: geometry.log_sector(),
            sectors: geometry.log_blocks * (BLOCK_BYTES / SECTOR_BYTES),
            head: 0,
            buffer_bytes: options
                .mount
                .log_buffer_bytes
                .map_or(LOG_BUFFER_BYTES, u64::from)
                .max(stripe),
            unit_bytes,
            checkpoint: 1,
            items: BTreeMap::new(),
            written: 0,
            oldest_at_least: 0,
            buffers: BTreeMap::new(),
            inodes: BTreeMap::new(),
            logs_superblock_first,
            superblock: geometry.superblock(),
            cover: CoverState::Idle,
        };
        log.head = log.unmount_record_bytes() / SECTOR_BYTES;
        log
    }

    /// Number of the checkpoint that collects changes now.
    pub(super) fn checkpoint(&self) -> u64 {
        self.checkpoint
    }

    /// Adds a change of `bytes` of a buffer.
    pub(super) fn add_buffer(&mut self, buffer: MetadataBuffer, bytes: Range<u64>) {
        self.add_superblock_first();
        let changed = self.buffers.entry(buffer).or_default();
        for chunk in bytes.start / CHUNK_BYTES..bytes.end.div_ceil(CHUNK_BYTES) {
            changed.chunks |= 1 << chunk;
        }
        let regions = buffer_regions(buffer.sectors * SECTOR_BYTES, changed.chunks);
        self.items.insert(LogItem::Buffer(buffer), regions);
    }

    /// Notes that a buffer's blocks are freed, so that recovery does not write it.
    pub(super) fn cancel_buffer(&mut self, buffer: MetadataBuffer) {
        self.buffers.remove(&buffer);
        let regions = buffer_regions(buffer.sectors * SECTOR_BYTES, 0);
        self.items.insert(LogItem::Buffer(buffer), regions);
    }

    /// Adds a change of the superblock.
    pub(super) fn add_superblock(&mut self) {
        self.logs_superblock_first = false;
        self.add_buffer(self.superblock, 0..SUPERBLOCK_BYTES);
    }

    /// Adds a change of an inode whose fork takes `fork_bytes` in the log.
    pub(super) fn add_inode(
        &mut self,
        inode: InodeNumber,
        cluster: MetadataBuffer,
        fork_bytes: u64,
    ) {
        self.add_superblock_first();
        let changed = ChangedInode {
            cluster,
            logged_at: None,
        };
        self.inodes.entry(inode).or_insert(changed);
        let mut regions = vec![INODE_FORMAT_BYTES, INODE_CORE_BYTES];
        if fork_bytes > 0 {
            regions.push(fork_bytes.next_multiple_of(4));
        }
        self.items.insert(LogItem::Inode(inode), regions);
    }

    /// Adds a new chunk of inodes, whose clusters are written in place like those of inodes.
    pub(super) fn add_inode_chunk(&mut self, first: InodeNumber, clusters: &[MetadataBuffer]) {
        self.add_superblock_first();
        for cluster in clusters {
            self.buffers.entry(*cluster).or_default();
        }
        self.items
            .insert(LogItem::InodeCreate(first), vec![INODE_CREATE_BYTES]);
    }

    fn add_superblock_first(&mut self) {
        if self.logs_superblock_first {
            self.add_superblock();
        }
    }

    /// Writes the open checkpoint and waits for it. Returns whether there was anything to write,
    /// in which case the write flushed the device's cache.
    pub(super) fn force(&mut self, effects: &mut Effects) -> bool {
        if self.items.is_empty() {
            return false;
        }
        let is_covering =
            self.items.len() == 1 && self.items.contains_key(&LogItem::Buffer(self.superblock));
        let items = std::mem::take(&mut self.items);
        self.note_logged(&items);
        let regions: Vec<u64> = items.into_values().flatten().collect();
        self.checkpoint += 1;
        let caller = effects.switch(Task::Worker);
        self.write_checkpoint(effects, &regions);
        effects.switch(caller);
        effects.push(Effect::Wait(Waits::Task(Task::Worker)));
        self.cover = cover_state_after_write(self.cover, is_covering);
        true
    }

    /// Notes where a checkpoint logs the latest changes of its items.
    fn note_logged(&mut self, items: &BTreeMap<LogItem, Vec<u64>>) {
        let place = Some(self.written);
        for item in items.keys() {
            match item {
                LogItem::Buffer(buffer) => {
                    self.buffers
                        .entry(*buffer)
                        .and_modify(|changed| changed.logged_at = place);
                }
                LogItem::Inode(inode) => {
                    self.inodes
                        .entry(*inode)
                        .and_modify(|changed| changed.logged_at = place);
                }
                LogItem::InodeCreate(_) => {}
            }
        }
        // New clusters have no item of their own.
        for changed in self
            .buffers
            .values_mut()
            .filter(|changed| changed.logged_at.is_none())
        {
            changed.logged_at = place;
        }
    }

    fn write_checkpoint(&mut self, effects: &mut Effects, regions: &[u64]) {
        let records = self.split_records(regions);
        let last = records.len() - 1;
        for (index, bytes) in records.into_iter().enumerate() {
            let is_edge = index == 0 || index == last;
            if index == last && last > 0 {
                effects.wait();
            }
            self.write_record(effects, bytes, is_edge, index == last);
        }
    }

    /// Bytes of the records that hold a checkpoint. A region that does not fit into what is left
    /// of a log buffer continues in the next one, behind a header of its own.
    fn split_records(&self, regions: &[u64]) -> Vec<u64> {
        let header = self.header_bytes();
        let capacity = self.buffer_bytes - header;
        let start_and_commit = [0, TRANSACTION_BYTES];
        let all = start_and_commit.iter().chain(regions).chain(&[0]);
        let mut records = Vec::new();
        let mut used = 0;
        for region in all {
            let mut rest = region + REGION_HEADER_BYTES;
            if capacity - used <= REGION_HEADER_BYTES && rest > capacity - used {
                records.push(self.buffer_bytes);
                used = 0;
            }
            while used + rest > capacity {
                rest -= capacity - used;
                records.push(self.buffer_bytes);
                used = 0;
                rest += REGION_HEADER_BYTES;
            }
            used += rest;
        }
        let last = header + used.next_multiple_of(SECTOR_BYTES);
        records.push(last.next_multiple_of(self.unit_bytes));
        records
    }

    fn header_bytes(&self) -> u64 {
        self.buffer_bytes.div_ceil(HEADER_SPAN_BYTES) * SECTOR_BYTES
    }

    fn unmount_record_bytes(&self) -> u64 {
        let region = (REGION_HEADER_BYTES + UNMOUNT_BYTES).next_multiple_of(SECTOR_BYTES);
        (self.header_bytes() + region).next_multiple_of(self.unit_bytes)
    }

    /// Writes the record that says that the log is clean.
    pub(super) fn write_unmount_record(&mut self, effects: &mut Effects) {
        self.write_record(effects, self.unmount_record_bytes(), true, true);
        effects.wait();
    }

    fn write_record(&mut self, effects: &mut Effects, bytes: u64, preflush: bool, fua: bool) {
        let mut left = bytes / SECTOR_BYTES;
        let mut preflush = preflush;
        while left > 0 {
            let sectors = left.min(self.sectors - self.head);
            effects.submit(Bio {
                operation: BioOperation::Write,
                content: BioContent::Journal,
                sector: self.start_sector + self.head,
                sectors,
                segments: sectors.div_ceil(BLOCK_BYTES / SECTOR_BYTES) as u32,
                flags: BioFlags {
                    preflush,
                    fua,
                    sync: true,
                    metadata: true,
                    read_ahead: false,
                },
            });
            self.head = (self.head + sectors) % self.sectors;
            self.written += sectors;
            left -= sectors;
            preflush = false;
        }
    }

    /// Place in the log up to which changes must be written in place now, if more than three
    /// quarters of the log hold changes that are not: a quarter behind the oldest.
    pub(super) fn push_target(&mut self) -> Option<u64> {
        let limit = self.sectors / 4 * 3;
        if self.written - self.oldest_at_least <= limit {
            return None;
        }
        let buffers = self
            .buffers
            .values()
            .filter_map(|changed| changed.logged_at);
        let inodes = self.inodes.values().filter_map(|changed| changed.logged_at);
        let places: Vec<u64> = buffers.chain(inodes).collect();
        let (oldest, newest) = (*places.iter().min()?, *places.iter().max()?);
        self.oldest_at_least = oldest;
        (newest - oldest > limit).then_some(oldest + self.sectors / 4)
    }

    /// Returns the buffers and clusters with changes that were logged at or before `place`,
    /// ascending on the device, and takes them as written in place.
    pub(super) fn take_metadata(&mut self, place: u64) -> Vec<MetadataBuffer> {
        let is_due = |logged_at: Option<u64>| logged_at.is_some_and(|logged| logged <= place);
        let clusters: BTreeSet<MetadataBuffer> = self
            .inodes
            .values()
            .filter(|changed| is_due(changed.logged_at))
            .map(|changed| changed.cluster)
            .collect();
        let buffers = self
            .buffers
            .iter()
            .filter(|(_, changed)| is_due(changed.logged_at));
        let mut due: BTreeSet<MetadataBuffer> = buffers.map(|(buffer, _)| *buffer).collect();
        due.extend(clusters);
        self.buffers.retain(|buffer, _| !due.contains(buffer));
        self.inodes
            .retain(|_, changed| !due.contains(&changed.cluster));
        due.into_iter().collect()
    }

    /// Whether metadata waits to be written in place.
    pub(super) fn has_metadata(&self) -> bool {
        !self.buffers.is_empty() || !self.inodes.is_empty()
    }

    /// Whether an idle log needs a record of the superblock to cover its last changes.
    pub(super) fn needs_cover(&mut self) -> bool {
        if !self.items.is_empty() || self.has_metadata() {
            return false;
        }
        self.cover = match self.cover {
            CoverState::Need => CoverState::Done,
            CoverState::NeedSecond => CoverState::DoneSecond,
            CoverState::Idle | CoverState::Done | CoverState::DoneSecond => return false,
        };
        true
    }
}

/// State after a record was written; `is_covering` if it held the superblock alone.
fn cover_state_after_write(state: CoverState, is_covering: bool) -> CoverState {
    match (state, is_covering) {
        (CoverState::Idle | CoverState::DoneSecond, true) => CoverState::Idle,
        (CoverState::Done, true) => CoverState::NeedSecond,
        _ => CoverState::Need,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xfs::XfsOptions;

    fn log(options: &XfsOptions) -> Log {
        Log::new(&XfsGeometry::new(512 << 20, &options.make), options, false)
    }

    fn force_bytes(log: &mut Log) -> Vec<u64> {
        let mut effects = Effects::default();
        log.force(&mut effects);
        effects.bios().map(Bio::bytes).collect()
    }

    #[test]
    fn a_record_of_one_inode_takes_two_sectors() {
        let options = XfsOptions::default();
        let geometry = XfsGeometry::new(512 << 20, &options.make);
        let mut log = log(&options);
        log.add_inode(
            InodeNumber {
                group: 0,
                index: 131,
            },
            geometry.inode_cluster(0, 131),
            16,
        );
        assert_eq!(force_bytes(&mut log), [1024]);
    }

    #[test]
    fn an_item_that_changes_twice_is_logged_once() {
        let options = XfsOptions::default();
        let geometry = XfsGeometry::new(512 << 20, &options.make);
        let mut log = log(&options);
        for _ in 0..100 {
            log.add_buffer(geometry.inode_header(0), 0..8);
        }
        assert_eq!(force_bytes(&mut log), [1024]);
        assert!(force_bytes(&mut log).is_empty());
    }

    #[test]
    fn a_checkpoint_longer_than_a_log_buffer_flushes_at_its_ends_alone() {
        let options = XfsOptions::default();
        let geometry = XfsGeometry::new(512 << 20, &options.make);
        let mut log = log(&options);
        for index in 0..400 {
            log.add_inode(
                InodeNumber { group: 0, index },
                geometry.inode_cluster(0, index),
                0,
            );
        }
        let mut effects = Effects::default();
        assert!(log.force(&mut effects));
        let flags: Vec<_> = effects
            .bios()
            .map(|bio| (bio.bytes(), bio.flags.preflush, bio.flags.fua))
            .collect();
        let middle = (32768, false, false);
        let payload: u64 = 3 * 12 + 16 + 400 * (24 + 56 + 176) + 3 * 12;
        let last = 512 + (payload - 3 * (32768 - 512)).next_multiple_of(512);
        assert_eq!(
            flags,
            [(32768, true, false), middle, middle, (last, true, true)]
        );
    }

    #[test]
    fn records_end_at_sectors_and_stripe_units() {
        for (sector_bytes, stripe, expected) in [
            (4096, None, 4096),
            (512, Some(4096), 4096),
            (512, Some(262_144), 262_144),
        ] {
            let mut options = XfsOptions::default();
            options.make.sector_bytes = sector_bytes;
            options.make.log_stripe_bytes = stripe;
            let mut log = log(&options);
            log.add_superblock();
            assert_eq!(force_bytes(&mut log), [expected]);
        }
    }

    #[test]
    fn an_idle_log_is_covered_twice() {
        let mut log = log(&XfsOptions::default());
        let geometry = XfsGeometry::new(512 << 20, &XfsOptions::default().make);
        log.add_buffer(geometry.inode_header(0), 0..8);
        let mut covers = 0;
        loop {
            log.force(&mut Effects::default());
            log.take_metadata(u64::MAX);
            if !log.needs_cover() {
                break;
            }
            covers += 1;
            log.add_superblock();
        }
        assert_eq!(covers, 2);
    }
}
