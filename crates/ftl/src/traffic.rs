//! Counts of programmed mapping units by cause.

/// Cause for which a mapping unit was programmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The host wrote the programmed mapping unit.
    Host,
    /// Garbage collection moved the programmed mapping unit.
    Collection,
    /// Static wear levelling moved the programmed mapping unit.
    WearLevelling,
    /// The mapping unit was folded out of the SLC cache.
    Folding,
    /// The mapping unit was refreshed: rewritten because of its age or its number of reads.
    Refresh,
    /// The mapping unit belongs to the layer's own map or journal.
    Map,
    /// The unit pads a program unit that had to be programmed.
    Padding,
}

/// Counts of programmed mapping units by cause, and of erased superblocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Number of mapping units that the host wrote.
    pub host: u64,
    /// Number of host units that bypassed the SLC cache because it was full.
    pub past_cache: u64,
    /// Number of mapping units that garbage collection moved.
    pub collection: u64,
    /// Number of mapping units that static wear levelling moved.
    pub wear_levelling: u64,
    /// Number of mapping units folded out of the SLC cache.
    pub folding: u64,
    /// Number of mapping units that were refreshed.
    pub refresh: u64,
    /// Number of mapping units of the layer's own map and journal.
    pub map: u64,
    /// Number of units that padded a program unit.
    pub padding: u64,
    /// Number of parity units.
    pub parity: u64,
    /// Number of superblocks that were erased.
    pub erases: u64,
}

impl Traffic {
    pub(crate) fn add(&mut self, cause: Cause) {
        match cause {
            Cause::Host => self.host += 1,
            Cause::Collection => self.collection += 1,
            Cause::WearLevelling => self.wear_levelling += 1,
            Cause::Folding => self.folding += 1,
            Cause::Refresh => self.refresh += 1,
            Cause::Map => self.map += 1,
            Cause::Padding => self.padding += 1,
        }
    }

    /// Returns the number of all programmed mapping units.
    pub fn programmed(&self) -> u64 {
        let moved = self.collection + self.wear_levelling + self.folding + self.refresh;
        self.host + moved + self.map + self.padding + self.parity
    }

    /// Returns the write amplification: mapping units programmed per unit that the host wrote. NaN
    /// if the host wrote none.
    pub fn amplification(&self) -> f64 {
        self.programmed() as f64 / self.host as f64
    }

    /// Returns the counts since an earlier state.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            host: self.host - earlier.host,
            past_cache: self.past_cache - earlier.past_cache,
            collection: self.collection - earlier.collection,
            wear_levelling: self.wear_levelling - earlier.wear_levelling,
            folding: self.folding - earlier.folding,
            refresh: self.refresh - earlier.refresh,
            map: self.map - earlier.map,
            padding: self.padding - earlier.padding,
            parity: self.parity - earlier.parity,
            erases: self.erases - earlier.erases,
        }
    }
}
