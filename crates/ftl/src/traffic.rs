//! Counts of programmed mapping units by cause.

/// Cause for which a mapping unit was programmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramCause {
    /// The host wrote the programmed mapping unit.
    Host,
    /// Garbage collection moved the programmed mapping unit.
    GarbageCollection,
    /// Static wear levelling moved the programmed mapping unit.
    WearLevelling,
    /// The mapping unit was folded out of the SLC cache.
    Folding,
    /// The mapping unit was refreshed: rewritten because of its age or its number of reads.
    Refresh,
    /// The mapping unit belongs to the layer's own map or journal.
    MapUpdate,
    /// The unit pads a program unit that had to be programmed.
    Padding,
}

/// Counts of programmed mapping units by cause, and of erased superblocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProgrammedUnits {
    /// Number of mapping units that the host wrote.
    pub host_units: u64,
    /// Number of host units that bypassed the SLC cache because it was full.
    pub past_cache_units: u64,
    /// Number of mapping units that garbage collection moved.
    pub collection_units: u64,
    /// Number of mapping units that static wear levelling moved.
    pub wear_levelling_units: u64,
    /// Number of mapping units folded out of the SLC cache.
    pub folding_units: u64,
    /// Number of mapping units that were refreshed.
    pub refresh_units: u64,
    /// Number of mapping units of the layer's own map and journal.
    pub map_units: u64,
    /// Number of units that padded a program unit.
    pub padding_units: u64,
    /// Number of parity units.
    pub parity_units: u64,
    /// Number of superblocks that were erased.
    pub erase_count: u64,
}

impl ProgrammedUnits {
    pub(crate) fn count_unit(&mut self, cause: ProgramCause) {
        match cause {
            ProgramCause::Host => self.host_units += 1,
            ProgramCause::GarbageCollection => self.collection_units += 1,
            ProgramCause::WearLevelling => self.wear_levelling_units += 1,
            ProgramCause::Folding => self.folding_units += 1,
            ProgramCause::Refresh => self.refresh_units += 1,
            ProgramCause::MapUpdate => self.map_units += 1,
            ProgramCause::Padding => self.padding_units += 1,
        }
    }

    /// Returns the number of all programmed mapping units.
    pub fn programmed_units(&self) -> u64 {
        let moved = self.collection_units
            + self.wear_levelling_units
            + self.folding_units
            + self.refresh_units;
        self.host_units + moved + self.map_units + self.padding_units + self.parity_units
    }

    /// Returns the write amplification: mapping units programmed per unit that the host wrote. NaN
    /// if the host wrote none.
    pub fn write_amplification(&self) -> f64 {
        self.programmed_units() as f64 / self.host_units as f64
    }

    /// Returns the counts since an earlier state.
    pub fn traffic_since(&self, earlier: &Self) -> Self {
        Self {
            host_units: self.host_units - earlier.host_units,
            past_cache_units: self.past_cache_units - earlier.past_cache_units,
            collection_units: self.collection_units - earlier.collection_units,
            wear_levelling_units: self.wear_levelling_units - earlier.wear_levelling_units,
            folding_units: self.folding_units - earlier.folding_units,
            refresh_units: self.refresh_units - earlier.refresh_units,
            map_units: self.map_units - earlier.map_units,
            padding_units: self.padding_units - earlier.padding_units,
            parity_units: self.parity_units - earlier.parity_units,
            erase_count: self.erase_count - earlier.erase_count,
        }
    }
}
