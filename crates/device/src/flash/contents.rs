//! Data versions at each physical unit of a flash drive, to compare the state after a power cut
//! with what was written.

/// Version of unreliable data: a program or erase of the mapping unit was interrupted, or the unit
/// is erased.
const UNREADABLE_VERSION: u64 = u64::MAX;

/// Data versions on the medium, by physical unit.
#[derive(Clone, Debug)]
pub(super) struct FlashContents {
    /// Number of the write that wrote each physical unit; 0 for data from before the first write.
    version_by_unit: Vec<u64>,
    /// Whether the program of each physical unit has ended.
    is_programmed: Vec<bool>,
    write_count: u64,
}

impl FlashContents {
    /// Creates the table of a preconditioned drive, with version 0 everywhere.
    pub(super) fn new(units: u32) -> Self {
        Self {
            version_by_unit: vec![0; units as usize],
            is_programmed: vec![true; units as usize],
            write_count: 0,
        }
    }

    pub(super) fn next_version(&mut self) -> u64 {
        self.write_count += 1;
        self.write_count
    }

    /// Assigns a version to a physical unit whose program is about to begin.
    pub(super) fn set_version(&mut self, physical: u32, version: u64) {
        self.version_by_unit[physical as usize] = version;
        self.is_programmed[physical as usize] = false;
    }

    /// Assigns the version of one physical unit to another, as for a copy of garbage collection.
    pub(super) fn copy_version(&mut self, from: u32, to: u32) {
        self.set_version(to, self.version_by_unit[from as usize]);
    }

    pub(super) fn mark_programmed(&mut self, first: u32, units: u32) {
        self.is_programmed[first as usize..(first + units) as usize].fill(true);
    }

    pub(super) fn erase_unit(&mut self, physical: u32) {
        self.version_by_unit[physical as usize] = UNREADABLE_VERSION;
        self.is_programmed[physical as usize] = true;
    }

    /// Applies a power cut: mapping units being programmed are lost, unless the drive is
    /// `protected`.
    pub(super) fn lose_power(&mut self, protected: bool) {
        for (version, programmed) in self.version_by_unit.iter_mut().zip(&mut self.is_programmed) {
            if !*programmed && !protected {
                *version = UNREADABLE_VERSION;
            }
            *programmed = true;
        }
    }

    pub(super) fn version_of(&self, physical: u32) -> u64 {
        self.version_by_unit[physical as usize]
    }
}
