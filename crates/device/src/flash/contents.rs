//! Which write's data each place on the medium has: what a power cut leaves can be held
//! against what was written.

/// Data that nobody can rely on: a program or an erase of theirs was interrupted, or they
/// were erased.
const GARBAGE: u64 = u64::MAX;

/// Versions of the data on the medium.
#[derive(Clone, Debug)]
pub(super) struct Contents {
    /// Of each physical unit: which write's they are, or 0 from before the first.
    versions: Vec<u64>,
    /// Whether its program is over.
    programmed: Vec<bool>,
    writes: u64,
}

impl Contents {
    /// Of a drive that was written before.
    pub(super) fn new(units: u32) -> Self {
        Self {
            versions: vec![0; units as usize],
            programmed: vec![true; units as usize],
            writes: 0,
        }
    }

    /// Of the data that come next.
    pub(super) fn next_version(&mut self) -> u64 {
        self.writes += 1;
        self.writes
    }

    /// Data have a place.
    pub(super) fn place(&mut self, physical: u32, version: u64) {
        self.versions[physical as usize] = version;
        self.programmed[physical as usize] = false;
    }

    /// The data of a place are to be those of another one.
    pub(super) fn copy(&mut self, from: u32, to: u32) {
        self.place(to, self.versions[from as usize]);
    }

    /// A program of so many units is over.
    pub(super) fn programmed(&mut self, first: u32, units: u32) {
        self.programmed[first as usize..(first + units) as usize].fill(true);
    }

    /// A place is being erased.
    pub(super) fn erase(&mut self, physical: u32) {
        self.versions[physical as usize] = GARBAGE;
        self.programmed[physical as usize] = true;
    }

    /// The power fails: what is being programmed is lost, unless the drive is `protected`.
    pub(super) fn lose_power(&mut self, protected: bool) {
        for (version, programmed) in self.versions.iter_mut().zip(&mut self.programmed) {
            if !*programmed && !protected {
                *version = GARBAGE;
            }
            *programmed = true;
        }
    }

    /// Of the data of a place.
    pub(super) fn version(&self, physical: u32) -> u64 {
        self.versions[physical as usize]
    }
}
