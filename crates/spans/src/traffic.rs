//! Amount of data that a flash drive programmed, by cause.

/// Mapping units that a modelled flash drive programmed during a repetition, by cause, including
/// the part before the timed phase. A mapping unit is an entry of the drive's mapping table, of 4
/// KiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FlashTraffic {
    /// Number of the drive, counted from 0.
    #[cfg_attr(feature = "serde", serde(rename = "drive"))]
    pub drive_index: u32,
    /// Mapping units that the host wrote.
    pub host_units: u64,
    /// Host-written mapping units that bypassed the SLC cache because it was full.
    #[cfg_attr(feature = "serde", serde(default))]
    pub past_cache_units: u64,
    /// Mapping units that the host read and that had never been written. The drive returns zeroes
    /// without access to its dies.
    #[cfg_attr(feature = "serde", serde(default))]
    pub unwritten_read_units: u64,
    /// Mapping units that garbage collection moved.
    pub collection_units: u64,
    /// Mapping units that were folded out of the SLC cache.
    pub folding_units: u64,
    /// Mapping units that wear levelling and refresh moved.
    #[cfg_attr(feature = "serde", serde(rename = "levelling_units"))]
    pub wear_levelling_units: u64,
    /// Mapping units of the drive's own mapping table and journal.
    pub map_units: u64,
    /// Mapping units of padding, in programs that could not wait for more data.
    pub padding_units: u64,
    /// Number of superblocks erased. A superblock is a block of every plane of every die.
    #[cfg_attr(feature = "serde", serde(rename = "erases"))]
    pub erase_count: u64,
    /// Number of programs and erases that were suspended for a read.
    #[cfg_attr(feature = "serde", serde(rename = "suspensions"))]
    pub suspension_count: u64,
}

impl FlashTraffic {
    /// Returns the total number of mapping units programmed.
    pub fn programmed_units(&self) -> u64 {
        let all = [
            self.host_units,
            self.collection_units,
            self.folding_units,
            self.wear_levelling_units,
            self.map_units,
            self.padding_units,
        ];
        // A document may hold any numbers.
        all.into_iter().fold(0, u64::saturating_add)
    }

    /// Returns the write amplification: mapping units programmed per unit that the host wrote. None
    /// if the host wrote nothing.
    pub fn write_amplification(&self) -> Option<f64> {
        let programmed = self.programmed_units() as f64;
        (self.host_units > 0).then(|| programmed / self.host_units as f64)
    }

    /// Returns the traffic since an earlier record of the same drive.
    pub fn traffic_since(&self, earlier: &Self) -> Self {
        Self {
            drive_index: self.drive_index,
            host_units: self.host_units - earlier.host_units,
            past_cache_units: self.past_cache_units - earlier.past_cache_units,
            unwritten_read_units: self.unwritten_read_units - earlier.unwritten_read_units,
            collection_units: self.collection_units - earlier.collection_units,
            folding_units: self.folding_units - earlier.folding_units,
            wear_levelling_units: self.wear_levelling_units - earlier.wear_levelling_units,
            map_units: self.map_units - earlier.map_units,
            padding_units: self.padding_units - earlier.padding_units,
            erase_count: self.erase_count - earlier.erase_count,
            suspension_count: self.suspension_count - earlier.suspension_count,
        }
    }

    /// Adds up the records of each drive, and returns one sum per drive.
    pub fn sum<'a>(all: impl IntoIterator<Item = &'a Self>) -> Vec<Self> {
        let mut sums: Vec<Self> = Vec::new();
        for one in all {
            match sums
                .iter_mut()
                .find(|sum| sum.drive_index == one.drive_index)
            {
                None => sums.push(*one),
                // A document may hold any numbers.
                Some(sum) => {
                    let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
                    add(&mut sum.host_units, one.host_units);
                    add(&mut sum.past_cache_units, one.past_cache_units);
                    add(&mut sum.unwritten_read_units, one.unwritten_read_units);
                    add(&mut sum.collection_units, one.collection_units);
                    add(&mut sum.folding_units, one.folding_units);
                    add(&mut sum.wear_levelling_units, one.wear_levelling_units);
                    add(&mut sum.map_units, one.map_units);
                    add(&mut sum.padding_units, one.padding_units);
                    add(&mut sum.erase_count, one.erase_count);
                    add(&mut sum.suspension_count, one.suspension_count);
                }
            }
        }
        sums
    }
}
