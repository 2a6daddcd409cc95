//! Data versions at each physical unit of a flash drive, to compare the state after a power cut
//! with what was written.

/// Version of unreliable data: a program or erase of the mapping unit was interrupted, or the unit
/// is erased.
const GARBAGE: u64 = u64::MAX;

/// Data versions on the medium, by physical unit.
#[derive(Clone, Debug)]
pub(super) struct Contents {
    /// Number of the write that wrote each physical unit; 0 for data from before the first write.
    versions: Vec<u64>,
    /// Whether the program of each physical unit has ended.
    programmed: Vec<bool>,
    writes: u64,
}

impl Contents {
    /// Creates the table of a preconditioned drive, with version 0 everywhere.
    pub(super) fn new(units: u32) -> Self {
        Self {
            versions: vec![0; units as usize],
            programmed: vec![true; units as usize],
            writes: 0,
        }
    }

    /// Returns the version number of the next write.
    pub(super) fn next_version(&mut self) -> u64 {
        self.writes += 1;
        self.writes
    }

    /// Assigns a version to a physical unit whose program is about to begin.
    pub(super) fn place(&mut self, physical: u32, version: u64) {
        self.versions[physical as usize] = version;
        self.programmed[physical as usize] = false;
    }

    /// Assigns the version of one physical unit to another, as for a copy of garbage collection.
    pub(super) fn copy(&mut self, from: u32, to: u32) {
        self.place(to, self.versions[from as usize]);
    }

    /// Marks the physical units of a program as programmed.
    pub(super) fn programmed(&mut self, first: u32, units: u32) {
        self.programmed[first as usize..(first + units) as usize].fill(true);
    }

    /// Marks a physical unit as erased.
    pub(super) fn erase(&mut self, physical: u32) {
        self.versions[physical as usize] = GARBAGE;
        self.programmed[physical as usize] = true;
    }

    /// Applies a power cut: mapping units being programmed are lost, unless the drive is
    /// `protected`.
    pub(super) fn lose_power(&mut self, protected: bool) {
        for (version, programmed) in self.versions.iter_mut().zip(&mut self.programmed) {
            if !*programmed && !protected {
                *version = GARBAGE;
            }
            *programmed = true;
        }
    }

    /// Returns the data version of a physical unit.
    pub(super) fn version(&self, physical: u32) -> u64 {
        self.versions[physical as usize]
    }
}
