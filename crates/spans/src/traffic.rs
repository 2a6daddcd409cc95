//! What a flash drive programmed.

/// What a modelled flash drive programmed during a repetition, by cause, what comes before
/// its timed part included. A unit is an entry of the drive's map, of 4 KiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FlashTraffic {
    /// The drive, counted from 0.
    pub drive: u32,
    /// Units that the host wrote.
    pub host_units: u64,
    /// Units among these that went past the cache of one bit a cell because it was full.
    #[cfg_attr(feature = "serde", serde(default))]
    pub past_cache_units: u64,
    /// Units that the host read and nobody had ever written: zeroes, which the drive answers
    /// without its dies.
    #[cfg_attr(feature = "serde", serde(default))]
    pub unwritten_read_units: u64,
    /// Units that garbage collection moved.
    pub collection_units: u64,
    /// Units that were folded out of the cache of one bit a cell.
    pub folding_units: u64,
    /// Units that wear levelling and refreshing moved.
    pub levelling_units: u64,
    /// Units of the drive's own map and journal.
    pub map_units: u64,
    /// Units that filled programs which had to be made.
    pub padding_units: u64,
    /// Superblocks erased: a block of every plane of every die.
    pub erases: u64,
    /// How often a program or an erase stopped for a read.
    pub suspensions: u64,
}

impl FlashTraffic {
    /// All units programmed.
    pub fn programmed_units(&self) -> u64 {
        let all = [
            self.host_units,
            self.collection_units,
            self.folding_units,
            self.levelling_units,
            self.map_units,
            self.padding_units,
        ];
        // A document may hold any numbers.
        all.into_iter().fold(0, u64::saturating_add)
    }

    /// Units programmed for each that the host wrote; none if it wrote none.
    pub fn write_amplification(&self) -> Option<f64> {
        let programmed = self.programmed_units() as f64;
        (self.host_units > 0).then(|| programmed / self.host_units as f64)
    }

    /// What was programmed since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            drive: self.drive,
            host_units: self.host_units - earlier.host_units,
            past_cache_units: self.past_cache_units - earlier.past_cache_units,
            unwritten_read_units: self.unwritten_read_units - earlier.unwritten_read_units,
            collection_units: self.collection_units - earlier.collection_units,
            folding_units: self.folding_units - earlier.folding_units,
            levelling_units: self.levelling_units - earlier.levelling_units,
            map_units: self.map_units - earlier.map_units,
            padding_units: self.padding_units - earlier.padding_units,
            erases: self.erases - earlier.erases,
            suspensions: self.suspensions - earlier.suspensions,
        }
    }

    /// Adds up what is of one drive.
    pub fn sum<'a>(all: impl IntoIterator<Item = &'a Self>) -> Vec<Self> {
        let mut sums: Vec<Self> = Vec::new();
        for one in all {
            match sums.iter_mut().find(|sum| sum.drive == one.drive) {
                None => sums.push(*one),
                // A document may hold any numbers.
                Some(sum) => {
                    let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
                    add(&mut sum.host_units, one.host_units);
                    add(&mut sum.past_cache_units, one.past_cache_units);
                    add(&mut sum.unwritten_read_units, one.unwritten_read_units);
                    add(&mut sum.collection_units, one.collection_units);
                    add(&mut sum.folding_units, one.folding_units);
                    add(&mut sum.levelling_units, one.levelling_units);
                    add(&mut sum.map_units, one.map_units);
                    add(&mut sum.padding_units, one.padding_units);
                    add(&mut sum.erases, one.erases);
                    add(&mut sum.suspensions, one.suspensions);
                }
            }
        }
        sums
    }
}
