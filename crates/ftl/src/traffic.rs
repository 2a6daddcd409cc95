//! What was programmed, by its cause.

/// Why a unit was programmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The host wrote it.
    Host,
    /// Garbage collection moved it.
    Collection,
    /// Static wear levelling moved it.
    WearLevelling,
    /// It was folded out of the cache of one bit a cell.
    Folding,
    /// It was read so often, or is so old, that it was written anew.
    Refresh,
    /// It is of the layer's own map or journal.
    Map,
    /// It fills a program unit that had to be programmed.
    Padding,
}

/// Units programmed by cause, and superblocks erased.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Units that the host wrote.
    pub host: u64,
    /// Units among these that went past the cache of one bit a cell because it was full.
    pub past_cache: u64,
    /// Units that garbage collection moved.
    pub collection: u64,
    /// Units that static wear levelling moved.
    pub wear_levelling: u64,
    /// Units that were folded out of the cache of one bit a cell.
    pub folding: u64,
    /// Units that were refreshed.
    pub refresh: u64,
    /// Units of the layer's own map and journal.
    pub map: u64,
    /// Units that padded a program unit.
    pub padding: u64,
    /// Units of parity across dies.
    pub parity: u64,
    /// Superblocks erased.
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

    /// All units programmed.
    pub fn programmed(&self) -> u64 {
        let moved = self.collection + self.wear_levelling + self.folding + self.refresh;
        self.host + moved + self.map + self.padding + self.parity
    }

    /// Units programmed per unit that the host wrote; NaN if it wrote none.
    pub fn amplification(&self) -> f64 {
        self.programmed() as f64 / self.host as f64
    }

    /// What was programmed and erased since `earlier`.
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
