//! Consistency check of a Minix file system in the manner of fsck. It compares the inodes and zones
//! that can be reached from the root with the maps.

use super::Minix;
use super::cache::BlockKey;
use super::layout::{
    BLOCK_BYTES, ENTRY_BYTES, INODE_BYTES, Inode, Kind, Pointer, ROOT, Volume, pointer, word,
};
use std::collections::{BTreeMap, BTreeSet};

/// Function that returns the contents of a block.
pub(super) type BlockReader<'a> = dyn FnMut(u32) -> Vec<u8> + 'a;

/// Counts of files, directories and zones in a consistent Minix file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MinixCheck {
    /// Number of files that can be reached from the root.
    pub files: u32,
    /// Number of directories, including the root.
    pub directories: u32,
    /// Number of files without a name that a process has open.
    pub open_unlinked: u32,
    /// Number of zones in use.
    pub zones: u32,
}

struct Check<'a> {
    read: &'a mut BlockReader<'a>,
    /// Inodes that the file server has in core. They supersede the inodes on the drive.
    in_core: &'a BTreeMap<u32, Inode>,
    volume: &'a Volume,
    links: BTreeMap<u32, u32>,
    zones: BTreeSet<u16>,
    found: MinixCheck,
    problems: Vec<String>,
}

impl Minix {
    /// Checks the Minix file system of a drive, with the cached blocks in place of those on the
    /// drive. Returns all inconsistencies as an error.
    pub(crate) fn check_volume(&self, drive: u32) -> Result<MinixCheck, Vec<String>> {
        let server = self.server.borrow();
        let mut read = |block: u32| {
            let key = BlockKey {
                drive: Some(drive),
                block,
            };
            if let Some(memory) = server.cache.look(key) {
                return memory.borrow().clone();
            }
            let mut bytes = vec![0; BLOCK_BYTES];
            let at = u64::from(block) * BLOCK_BYTES as u64;
            self.volumes
                .medium(drive, |medium| medium.read_bytes(at, &mut bytes));
            bytes
        };
        let in_core = server.inodes.of_drive(drive);
        let mut check = Check {
            read: &mut read,
            in_core: &in_core,
            volume: &server.volumes[drive as usize],
            links: BTreeMap::new(),
            zones: BTreeSet::new(),
            found: MinixCheck::default(),
            problems: Vec::new(),
        };
        check.all();
        if check.problems.is_empty() {
            Ok(check.found)
        } else {
            Err(check.problems)
        }
    }
}

impl Check<'_> {
    fn all(&mut self) {
        self.directory(ROOT, ROOT);
        let unlinked: Vec<u32> = self
            .in_core
            .iter()
            .filter(|(number, inode)| inode.links == 0 && !self.links.contains_key(number))
            .map(|(number, _)| *number)
            .collect();
        for number in unlinked {
            self.found.open_unlinked += 1;
            self.links.insert(number, 0);
            if let Some(inode) = self.inode(number) {
                self.claim(number, &inode);
            }
        }
        let links = std::mem::take(&mut self.links);
        for (number, named) in &links {
            let said = self.inode(*number).map(|inode| u32::from(inode.links));
            if said != Some(*named) {
                self.problem(format!(
                    "inode {number} has {named} names and says {said:?}"
                ));
            }
        }
        for number in 1..self.volume.inode_map.bits() {
            let taken = self.volume.inode_map.is_taken(number);
            if taken != links.contains_key(&number) {
                self.problem(format!(
                    "inode {number} is taken: {taken}, used: {}",
                    !taken
                ));
            }
        }
        for bit in 1..self.volume.zone_map.bits() {
            let used = self
                .zones
                .iter()
                .any(|zone| self.volume.bit_of(*zone) == Some(bit));
            if self.volume.zone_map.is_taken(bit) != used {
                self.problem(format!(
                    "the zone of bit {bit} is used: {used}, taken: {}",
                    !used
                ));
            }
        }
        self.found.zones = self.zones.len() as u32;
    }

    fn problem(&mut self, problem: String) {
        self.problems.push(problem);
    }

    fn inode(&mut self, number: u32) -> Option<Inode> {
        if let Some(inode) = self.in_core.get(&number) {
            return Some(inode.clone());
        }
        let block = (self.read)(self.volume.inode_block(number));
        let at = Volume::inode_offset(number);
        Inode::decode(&block[at..at + INODE_BYTES])
    }

    fn directory(&mut self, number: u32, parent: u32) {
        let Some(inode) = self.inode(number) else {
            return self.problem(format!("directory {number} has no inode"));
        };
        self.found.directories += 1;
        self.claim(number, &inode);
        let mut entries = Vec::new();
        for block in 0..inode.blocks() {
            let zone = self.zone(&inode, block);
            let bytes = (self.read)(u32::from(zone));
            let end = (inode.size - u64::from(block) * BLOCK_BYTES as u64).min(BLOCK_BYTES as u64);
            for entry in bytes[..end as usize].chunks(ENTRY_BYTES) {
                let name = entry[2..].split(|byte| *byte == 0).next().unwrap_or(&[]);
                entries.push((u32::from(word(entry, 0)), name.to_vec()));
            }
        }
        for (place, own) in [(0, number), (1, parent)] {
            if entries.get(place).map(|entry| entry.0) != Some(own) {
                self.problem(format!("directory {number}: entry {place} is not {own}"));
            }
        }
        for (inode, name) in entries {
            if inode != 0 {
                self.entry(number, inode, &name);
            }
        }
    }

    fn entry(&mut self, directory: u32, number: u32, name: &[u8]) {
        let first = !self.links.contains_key(&number);
        *self.links.entry(number).or_default() += 1;
        if name == b"." || name == b".." {
            return;
        }
        match self.inode(number) {
            None => self.problem(format!(
                "directory {directory} names {number}, which is free"
            )),
            Some(inode) if inode.kind == Kind::Directory => self.directory(number, directory),
            Some(inode) if first => {
                self.found.files += 1;
                self.claim(number, &inode);
            }
            Some(_) => {}
        }
    }

    fn zone(&mut self, inode: &Inode, block: u32) -> u16 {
        let mut follow = |zone: u16, place: usize| match zone {
            0 => 0,
            zone => word(&(self.read)(u32::from(zone)), 2 * place),
        };
        match pointer(block) {
            Pointer::Direct(place) => inode.zones[place],
            Pointer::Indirect(place) => follow(inode.zones[7], place),
            Pointer::Double(first, place) => {
                let second = follow(inode.zones[8], first);
                follow(second, place)
            }
        }
    }

    /// Claims all zones of an inode, and reports a problem for a zone that another inode has
    /// claimed.
    fn claim(&mut self, number: u32, inode: &Inode) {
        let mut levels: Vec<(u16, u32)> = Vec::new();
        levels.extend(inode.zones[..7].iter().map(|zone| (*zone, 0)));
        levels.push((inode.zones[7], 1));
        levels.push((inode.zones[8], 2));
        while let Some((zone, below)) = levels.pop() {
            if zone == 0 {
                continue;
            }
            if self.volume.bit_of(zone).is_none() || !self.zones.insert(zone) {
                self.problem(format!(
                    "inode {number} has zone {zone}, which is not its own"
                ));
                continue;
            }
            if below > 0 {
                let bytes = (self.read)(u32::from(zone));
                levels.extend(bytes.chunks(2).map(|bytes| (word(bytes, 0), below - 1)));
            }
        }
    }
}
