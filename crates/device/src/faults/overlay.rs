//! Sectors that a silent fault left with other data than were written.

use std::collections::BTreeMap;
use std::ops::Range;

/// Data of sectors as faults show them, beside the true data that the caller keeps. A fault that
/// is switched off shows the true data again.
#[derive(Clone, Debug)]
pub struct FaultOverlay {
    sector_bytes: u64,
    /// Versions of each sector that has one, by fault.
    sectors: BTreeMap<u64, Vec<Version>>,
}

#[derive(Clone, Debug)]
struct Version {
    fault: usize,
    bytes: Box<[u8]>,
}

impl FaultOverlay {
    /// Creates an overlay in which no sector differs.
    pub fn new(sector_bytes: u32) -> Self {
        Self {
            sector_bytes: sector_bytes.into(),
            sectors: BTreeMap::new(),
        }
    }

    /// Returns the number of sectors that differ from the true data, by any fault.
    pub fn sectors(&self) -> usize {
        self.sectors.len()
    }

    /// Changes true data from an offset to those that a read returns while a set of faults is on.
    /// Bit `n` of the set stands for fault `n`.
    pub fn show(&self, faults_on: u64, offset: u64, bytes: &mut [u8]) {
        for (sector, versions) in self.sectors.range(self.touched(offset, bytes.len())) {
            for version in versions {
                if faults_on & (1 << version.fault) == 0 {
                    continue;
                }
                let start = sector * self.sector_bytes;
                copy_overlap(start, &version.bytes, offset, bytes);
            }
        }
    }

    /// Takes a write that reached its sectors. It replaces whole sectors of every fault, and
    /// changes a part of the others.
    pub fn overwrite(&mut self, offset: u64, bytes: &[u8]) {
        self.replace(offset, bytes.len() as u64, |start, version| {
            copy_overlap(offset, bytes, start, version);
        });
    }

    /// Takes zeroes that reached their sectors.
    pub fn zero(&mut self, offset: u64, length: u64) {
        self.replace(offset, length, |start, version| {
            let from = offset.max(start) - start;
            let to = (offset + length).min(start + version.len() as u64) - start;
            version[from as usize..to as usize].fill(0);
        });
    }

    /// Keeps data of whole sectors, from an offset that is a multiple of the sector size, as those
    /// that a fault shows.
    ///
    /// # Panics
    ///
    /// When the offset or the length is no multiple of the sector size.
    pub fn keep(&mut self, fault: usize, offset: u64, bytes: &[u8]) {
        assert!(offset.is_multiple_of(self.sector_bytes), "offset {offset}");
        let sectors = bytes.chunks_exact(self.sector_bytes as usize);
        assert!(sectors.remainder().is_empty(), "{} bytes", bytes.len());
        for (sector, bytes) in (offset / self.sector_bytes..).zip(sectors) {
            let versions = self.sectors.entry(sector).or_default();
            versions.retain(|version| version.fault != fault);
            let bytes = bytes.into();
            versions.push(Version { fault, bytes });
        }
    }

    fn replace(&mut self, offset: u64, length: u64, change: impl Fn(u64, &mut [u8])) {
        if self.sectors.is_empty() || length == 0 {
            return;
        }
        let whole = offset.div_ceil(self.sector_bytes)..(offset + length) / self.sector_bytes;
        let touched: Vec<_> = self
            .sectors
            .range(self.touched(offset, length as usize))
            .map(|(sector, _)| *sector)
            .collect();
        for sector in touched {
            if whole.contains(&sector) {
                self.sectors.remove(&sector);
            } else if let Some(versions) = self.sectors.get_mut(&sector) {
                for version in versions {
                    change(sector * self.sector_bytes, &mut version.bytes);
                }
            }
        }
    }

    fn touched(&self, offset: u64, length: usize) -> Range<u64> {
        let end = offset + length as u64;
        let first = offset / self.sector_bytes;
        first..end.div_ceil(self.sector_bytes).max(first)
    }
}

/// Copies bytes that lie from one address to where others lie, as far as both overlap.
fn copy_overlap(from: u64, source: &[u8], to: u64, target: &mut [u8]) {
    let start = from.max(to);
    let end = (from + source.len() as u64).min(to + target.len() as u64);
    if start >= end {
        return;
    }
    let length = (end - start) as usize;
    let (read, written) = ((start - from) as usize, (start - to) as usize);
    target[written..written + length].copy_from_slice(&source[read..read + length]);
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECTOR: usize = 16;

    fn shown(overlay: &FaultOverlay, faults_on: u64) -> Vec<u8> {
        let mut bytes = vec![0; 4 * SECTOR];
        overlay.show(faults_on, 0, &mut bytes);
        bytes
    }

    #[test]
    fn a_fault_shows_its_sectors_while_it_is_on() {
        let mut overlay = FaultOverlay::new(SECTOR as u32);
        overlay.keep(1, SECTOR as u64, &[7; 2 * SECTOR]);
        assert_eq!(shown(&overlay, 0b01), [0; 4 * SECTOR]);
        let mut expected = [0; 4 * SECTOR];
        expected[SECTOR..3 * SECTOR].fill(7);
        assert_eq!(shown(&overlay, 0b10), expected);
        let mut part = [0; 4];
        overlay.show(0b10, SECTOR as u64 - 2, &mut part);
        assert_eq!(part, [0, 0, 7, 7]);
    }

    #[test]
    fn writes_replace_whole_sectors_and_change_parts() {
        let mut overlay = FaultOverlay::new(SECTOR as u32);
        overlay.keep(0, 0, &[7; 3 * SECTOR]);
        overlay.overwrite(8, &[5; SECTOR + 8]);
        assert_eq!(overlay.sectors(), 2);
        let mut expected = [0; 4 * SECTOR];
        expected[..8].fill(7);
        expected[8..16].fill(5);
        expected[2 * SECTOR..3 * SECTOR].fill(7);
        assert_eq!(shown(&overlay, 1), expected);
        overlay.zero(0, 4);
        expected[..4].fill(0);
        assert_eq!(shown(&overlay, 1), expected);
        overlay.zero(0, 4 * SECTOR as u64);
        assert_eq!(overlay.sectors(), 0);
    }
}
