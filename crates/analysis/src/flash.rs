//! What can be said of a flash drive without its time: write amplification, dies at work,
//! buffers that fill, endurance. Formulas, beside what a model comes to.

use serde::Serialize;

/// A drive's own numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FlashDrive {
    /// Dies that work side by side.
    pub dies: u32,
    /// Bytes that one die programs at once.
    pub program_bytes: u64,
    /// The time that it takes.
    pub program_us: f64,
    /// Bytes that one die senses at once.
    pub sensed_bytes: u64,
    /// The time that it takes.
    pub read_us: f64,
    /// The time that a unit of 4 KiB takes on the channel.
    pub transfer_us: f64,
    /// Bytes of the host.
    pub capacity_bytes: u64,
    /// Bytes of the write buffer.
    pub buffer_bytes: u64,
    /// What the host sends, in MB/s.
    pub arrival_mb_per_s: f64,
    /// Bytes of the cache of one bit a cell; 0: none.
    pub cache_bytes: u64,
    /// The rate of this cache, in MB/s.
    pub cache_mb_per_s: f64,
    /// Erases that a block endures.
    pub cycles: f64,
    /// Years of the warranty.
    pub years: f64,
}

/// What was calculated.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Flash {
    /// The drive.
    pub drive: FlashDrive,
    /// Units of 4 KiB of a superblock, of formula and model.
    pub superblock_units: u32,
    /// How writes are spread over the space, in words.
    pub writes: String,
    /// The share of the space that is trimmed.
    pub trimmed: f64,
    /// Of what the model drew.
    pub seed: u64,
    /// One row for each spare.
    pub spares: Vec<Spare>,
    /// One row for each depth of the queue.
    pub depths: Vec<DieUse>,
    /// What fills up, and when.
    pub cliffs: Vec<Cliff>,
}

/// A spare.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spare {
    /// The share of the closed superblocks that holds no mapped unit.
    pub spare: f64,
    /// The same as a share of the mapped units, as data sheets have it.
    pub over_provisioning: f64,
    /// What hot and cold data come to in pools of their own with the best split of the
    /// spare; none if writes are uniform.
    pub pools: Option<f64>,
    /// One for each policy, the same ones at each spare.
    pub policies: Vec<Amplification>,
}

/// A policy at a spare.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Amplification {
    /// Its name.
    pub policy: String,
    /// Write amplification by formula; none where there is none.
    pub formula: Option<f64>,
    /// What the model comes to.
    pub model: f64,
    /// Random writes of 4 KiB a second in the steady state, at the model's amplification.
    pub random_write_iops: f64,
    /// Terabytes (10^12) that the host can write.
    pub terabytes_written: f64,
    /// Times a day that the host can write the whole drive.
    pub drive_writes_per_day: f64,
}

impl Amplification {
    /// The model's figure over the formula's, less 1.
    pub fn error(&self) -> Option<f64> {
        self.formula.map(|formula| self.model / formula - 1.0)
    }
}

/// Random reads of 4 KiB at a depth of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DieUse {
    /// Reads under way.
    pub depth: u32,
    /// The share of the time that a die is busy, by mean value analysis.
    pub formula: f64,
    /// The same for very many dies with as many reads for each.
    pub many_dies: f64,
    /// The share of dies that so many reads hit, if none waits for another.
    pub bound: f64,
    /// What a model of the queues comes to.
    pub model: f64,
    /// Reads a second at the model's.
    pub iops: f64,
}

/// Something that fills up.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cliff {
    /// What, and by what.
    pub name: String,
    /// Its bytes.
    pub bytes: u64,
    /// What comes in, in MB/s.
    pub in_mb_per_s: f64,
    /// What goes out meanwhile, in MB/s.
    pub out_mb_per_s: f64,
    /// When it is full, in s; none if it never is.
    pub full_after_s: Option<f64>,
    /// Bytes that were taken until then.
    pub accepted_bytes: Option<f64>,
    /// The rate from then on, in MB/s.
    pub then_mb_per_s: f64,
}
