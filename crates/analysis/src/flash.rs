//! Flash calculations without timing: write amplification, busy dies, filling buffers and
//! endurance. Formulas stand beside the results of a model.

use serde::Serialize;

/// Parameters of the flash drive whose behaviour is calculated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FlashDrive {
    /// Number of dies that work in parallel.
    #[serde(rename = "dies")]
    pub die_count: u32,
    /// Bytes that one die programs in one operation.
    pub program_bytes: u64,
    /// Time of a program operation in microseconds.
    pub program_us: f64,
    /// Bytes that one die senses in one operation.
    pub sensed_bytes: u64,
    /// Time of a sense operation in microseconds.
    pub read_us: f64,
    /// Time for which 4 KiB occupy the channel, in microseconds.
    pub transfer_us: f64,
    /// Capacity that the host can address, in bytes.
    pub capacity_bytes: u64,
    /// Size of the write buffer in bytes.
    pub buffer_bytes: u64,
    /// Rate of the host's writes in MB/s.
    pub arrival_mb_per_s: f64,
    /// Size of the SLC cache in bytes; 0 for none.
    pub cache_bytes: u64,
    /// Write rate of the SLC cache in MB/s.
    pub cache_mb_per_s: f64,
    /// Program/erase cycles that a block endures.
    #[serde(rename = "cycles")]
    pub erase_cycles: f64,
    /// Warranty period of the drive in years.
    #[serde(rename = "years")]
    pub warranty_years: f64,
}

/// Calculated write amplification, die use and endurance of a flash drive.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlashReport {
    /// Parameters of the calculated drive.
    pub drive: FlashDrive,
    /// Mapping units of 4 KiB in a superblock, in formula and model.
    pub superblock_units: u32,
    /// Description of the distribution of writes over the address space.
    #[serde(rename = "writes")]
    pub write_pattern: String,
    /// Share of the address space (0 to 1) that is trimmed.
    #[serde(rename = "trimmed")]
    pub trimmed_share: f64,
    /// Seed of the random numbers in the model.
    pub seed: u64,
    /// Write amplification at each share of spare capacity.
    #[serde(rename = "spares")]
    pub spare_figures: Vec<SpareFigures>,
    /// Busy shares of the dies, for each queue depth.
    #[serde(rename = "depths")]
    pub die_utilisation: Vec<DieUtilisation>,
    /// Buffers and caches of the drive that fill up, with the time until then.
    #[serde(rename = "cliffs")]
    pub write_cliffs: Vec<WriteCliff>,
}

/// Write amplification and endurance at one share of spare capacity.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SpareFigures {
    /// Spare capacity: the share of the closed superblocks that holds no mapped unit.
    #[serde(rename = "spare")]
    pub spare_share: f64,
    /// Over-provisioning: spare capacity as a share of the mapped units, as data sheets state it.
    pub over_provisioning: f64,
    /// Write amplification of hot and cold data in separate pools with the best split of the spare
    /// capacity; `None` for uniform writes.
    #[serde(rename = "pools")]
    pub pool_amplification: Option<f64>,
    /// Results of each garbage collection policy, the same ones at each share of spare capacity.
    #[serde(rename = "policies")]
    pub policy_amplification: Vec<PolicyAmplification>,
}

/// Write amplification of one policy at one share of spare capacity.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PolicyAmplification {
    /// Name of the garbage collection policy.
    pub policy: String,
    /// Write amplification by formula; `None` where no formula exists.
    #[serde(rename = "formula")]
    pub formula_amplification: Option<f64>,
    /// Write amplification that the simulated model shows.
    #[serde(rename = "model")]
    pub modelled_amplification: f64,
    /// Steady-state random writes of 4 KiB per second, at the model's write amplification.
    pub random_write_iops: f64,
    /// Terabytes (10^12 bytes) that the host can write over the drive's life.
    pub terabytes_written: f64,
    /// Drive writes per day (DWPD) over the warranty period.
    pub drive_writes_per_day: f64,
}

impl PolicyAmplification {
    /// Returns the model's write amplification divided by the formula's, less 1; `None` without a
    /// formula.
    pub fn relative_error(&self) -> Option<f64> {
        self.formula_amplification
            .map(|formula| self.modelled_amplification / formula - 1.0)
    }
}

/// Use of the dies by random reads of 4 KiB at one queue depth.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DieUtilisation {
    /// Random reads in flight.
    #[serde(rename = "depth")]
    pub queue_depth: u32,
    /// Busy share of a die (0 to 1), by mean value analysis.
    #[serde(rename = "formula")]
    pub busy_dies_formula: f64,
    /// Busy share of a die in the limit of very many dies, with as many reads for each.
    #[serde(rename = "many_dies")]
    pub busy_share_many_dies: f64,
    /// Upper bound: the share of dies that this many reads hit, if none waits for another.
    #[serde(rename = "bound")]
    pub busy_dies_bound: f64,
    /// Busy share of a die in a model of the queues.
    #[serde(rename = "model")]
    pub busy_dies_modelled: f64,
    /// Reads per second at the model's busy share.
    pub iops: f64,
}

/// Buffer or cache that fills up, with the rates before and after.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WriteCliff {
    /// Name of the buffer, and of the writes that fill it.
    pub name: String,
    /// Size of the buffer or cache in bytes.
    #[serde(rename = "bytes")]
    pub cache_bytes: u64,
    /// Rate at which the buffer fills, in MB/s.
    #[serde(rename = "in_mb_per_s")]
    pub fill_mb_per_s: f64,
    /// Rate at which the buffer drains meanwhile, in MB/s.
    #[serde(rename = "out_mb_per_s")]
    pub drain_mb_per_s: f64,
    /// Time until the buffer is full in seconds; `None` if it never is.
    pub full_after_s: Option<f64>,
    /// Bytes that the drive accepted until the buffer was full.
    pub accepted_bytes: Option<f64>,
    /// Write rate after the buffer is full, in MB/s.
    #[serde(rename = "then_mb_per_s")]
    pub after_mb_per_s: f64,
}
