//! Consistency check of a Minix file system in the manner of fsck. It compares the inodes and zones
//! that can be reached from the root with the maps.

use super::MinixKernel;
use super::cache::DriveBlockKey;
use super::layout::{
    BLOCK_BYTES, BlockPointer, DIRECTORY_ENTRY_BYTES, INODE_BYTES, MinixInode, MinixInodeKind,
    MinixVolume, ROOT_INODE, locate_pointer, read_u16,
};
use std::collections::{BTreeMap, BTreeSet};

/// Function that returns the contents of a block.
pub(super) type BlockReader<'a> = dyn FnMut(u32) -> Vec<u8> + 'a;

/// Counts of files, directories and zones in a consistent Minix file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MinixCheckSummary {
    /// Number of files that can be reached from the root.
    pub file_count: u32,
    /// Number of directories, including the root.
    pub directory_count: u32,
    /// Number of files without a name that a process has open.
    pub open_unlinked_count: u32,
    /// Number of zones in use.
    pub used_zone_count: u32,
}

struct MinixChecker<'a> {
    read_block: &'a mut BlockReader<'a>,
    /// Inodes that the file server has in core. They supersede the inodes on the drive.
    in_core: &'a BTreeMap<u32, MinixInode>,
    volume: &'a MinixVolume,
    name_counts: BTreeMap<u32, u32>,
    claimed_zones: BTreeSet<u16>,
    summary: MinixCheckSummary,
    problems: Vec<String>,
}

impl MinixKernel {
    /// Checks the Minix file system of a drive, with the cached blocks in place of those on the
    /// drive. Returns all inconsistencies as an error.
    pub(crate) fn check_volume(&self, drive: u32) -> Result<MinixCheckSummary, Vec<String>> {
        let server = self.file_server_state.borrow();
        let mut read = |block: u32| {
            let key = DriveBlockKey {
                drive: Some(drive),
                block,
            };
            if let Some(memory) = server.cache.cached_data(key) {
                return memory.borrow().clone();
            }
            let mut bytes = vec![0; BLOCK_BYTES];
            let at = u64::from(block) * BLOCK_BYTES as u64;
            self.volumes
                .with_contents(drive, |medium| medium.read_bytes(at, &mut bytes));
            bytes
        };
        let in_core = server.inodes.inodes_of_drive(drive);
        let mut check = MinixChecker {
            read_block: &mut read,
            in_core: &in_core,
            volume: &server.volumes[drive as usize],
            name_counts: BTreeMap::new(),
            claimed_zones: BTreeSet::new(),
            summary: MinixCheckSummary::default(),
            problems: Vec::new(),
        };
        check.check_all();
        if check.problems.is_empty() {
            Ok(check.summary)
        } else {
            Err(check.problems)
        }
    }
}

impl MinixChecker<'_> {
    fn check_all(&mut self) {
        self.check_directory(ROOT_INODE, ROOT_INODE);
        let unlinked: Vec<u32> = self
            .in_core
            .iter()
            .filter(|(number, inode)| {
                inode.link_count == 0 && !self.name_counts.contains_key(number)
            })
            .map(|(number, _)| *number)
            .collect();
        for number in unlinked {
            self.summary.open_unlinked_count += 1;
            self.name_counts.insert(number, 0);
            if let Some(inode) = self.read_inode(number) {
                self.claim_zones(number, &inode);
            }
        }
        let links = std::mem::take(&mut self.name_counts);
        for (number, named) in &links {
            let said = self
                .read_inode(*number)
                .map(|inode| u32::from(inode.link_count));
            if said != Some(*named) {
                self.add_problem(format!(
                    "inode {number}: link count {said:?}, {named} names"
                ));
            }
        }
        for number in 1..self.volume.inode_map.bit_count() {
            let taken = self.volume.inode_map.is_bit_taken(number);
            if taken != links.contains_key(&number) {
                self.add_problem(format!(
                    "inode {number}: allocated in the map: {taken}, reachable: {}",
                    !taken
                ));
            }
        }
        for bit in 1..self.volume.zone_map.bit_count() {
            let used = self
                .claimed_zones
                .iter()
                .any(|zone| self.volume.zone_bit(*zone) == Some(bit));
            if self.volume.zone_map.is_bit_taken(bit) != used {
                self.add_problem(format!(
                    "zone of bit {bit}: used by a file: {used}, allocated in the map: {}",
                    !used
                ));
            }
        }
        self.summary.used_zone_count = self.claimed_zones.len() as u32;
    }

    fn add_problem(&mut self, problem: String) {
        self.problems.push(problem);
    }

    fn read_inode(&mut self, number: u32) -> Option<MinixInode> {
        if let Some(inode) = self.in_core.get(&number) {
            return Some(inode.clone());
        }
        let block = (self.read_block)(self.volume.inode_block(number));
        let at = MinixVolume::inode_offset(number);
        MinixInode::decode_inode(&block[at..at + INODE_BYTES])
    }

    fn check_directory(&mut self, number: u32, parent: u32) {
        let Some(inode) = self.read_inode(number) else {
            return self.add_problem(format!("directory {number} has no inode"));
        };
        self.summary.directory_count += 1;
        self.claim_zones(number, &inode);
        let mut entries = Vec::new();
        for block in 0..inode.block_count() {
            let zone = self.zone_of_block(&inode, block);
            let bytes = (self.read_block)(u32::from(zone));
            let end =
                (inode.size_bytes - u64::from(block) * BLOCK_BYTES as u64).min(BLOCK_BYTES as u64);
            for entry in bytes[..end as usize].chunks(DIRECTORY_ENTRY_BYTES) {
                let name = entry[2..].split(|byte| *byte == 0).next().unwrap_or(&[]);
                entries.push((u32::from(read_u16(entry, 0)), name.to_vec()));
            }
        }
        for (place, own) in [(0, number), (1, parent)] {
            if entries.get(place).map(|entry| entry.0) != Some(own) {
                self.add_problem(format!("directory {number}: entry {place} is not {own}"));
            }
        }
        for (inode, name) in entries {
            if inode != 0 {
                self.check_entry(number, inode, &name);
            }
        }
    }

    fn check_entry(&mut self, directory: u32, number: u32, name: &[u8]) {
        let first = !self.name_counts.contains_key(&number);
        *self.name_counts.entry(number).or_default() += 1;
        if name == b"." || name == b".." {
            return;
        }
        match self.read_inode(number) {
            None => self.add_problem(format!(
                "directory {directory} names inode {number}, which is free"
            )),
            Some(inode) if inode.kind == MinixInodeKind::Directory => {
                self.check_directory(number, directory)
            }
            Some(inode) if first => {
                self.summary.file_count += 1;
                self.claim_zones(number, &inode);
            }
            Some(_) => {}
        }
    }

    fn zone_of_block(&mut self, inode: &MinixInode, block: u32) -> u16 {
        let mut follow = |zone: u16, place: usize| match zone {
            0 => 0,
            zone => read_u16(&(self.read_block)(u32::from(zone)), 2 * place),
        };
        match locate_pointer(block) {
            BlockPointer::Direct(place) => inode.zones[place],
            BlockPointer::Indirect(place) => follow(inode.zones[7], place),
            BlockPointer::DoubleIndirect(first, place) => {
                let second = follow(inode.zones[8], first);
                follow(second, place)
            }
        }
    }

    /// Claims all zones of an inode, and reports a problem for a zone that another inode has
    /// claimed.
    fn claim_zones(&mut self, number: u32, inode: &MinixInode) {
        let mut levels: Vec<(u16, u32)> = Vec::new();
        levels.extend(inode.zones[..7].iter().map(|zone| (*zone, 0)));
        levels.push((inode.zones[7], 1));
        levels.push((inode.zones[8], 2));
        while let Some((zone, below)) = levels.pop() {
            if zone == 0 {
                continue;
            }
            if self.volume.zone_bit(zone).is_none() || !self.claimed_zones.insert(zone) {
                self.add_problem(format!(
                    "inode {number} claims zone {zone}, which is no data zone or belongs to another inode"
                ));
                continue;
            }
            if below > 0 {
                let bytes = (self.read_block)(u32::from(zone));
                levels.extend(bytes.chunks(2).map(|bytes| (read_u16(bytes, 0), below - 1)));
            }
        }
    }
}
