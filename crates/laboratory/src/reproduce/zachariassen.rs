//! Zachariassen 1987: dd between partitions and files on a Sun 3/180 with two controllers, and on
//! an Eagle for comparison.

mod statements;

pub(super) use statements::statements;

use super::asking::{Asking, Values};
use super::jobs::{Figure, Job};
use diskperf_analysis::accuracy::Quantity;
use diskperf_battery::Program;
use diskperf_catalogue::{BlockSize, Cell, Setting};
use diskperf_models::LaboratoryError;
use diskperf_models::formatting::formatting;
use diskperf_models::rig::ONCE;
use std::collections::btree_map::{BTreeMap, Entry};

pub(super) const DOCUMENT: &str = "zachariassen-1987";

/// Size of the file to copy: twelve times /vmunix, as Zachariassen 1987 says, about 8.5 MB.
const BIGFILE_BYTES: u64 = 8704 << 10;
/// Call sizes of the columns in the tables of Zachariassen 1987: 8k, 1 track, 1 cylinder.
const SECTOR_BYTES: u64 = 512;
const TRACK_SECTORS: u64 = 67;
const HEADS: u64 = 27;
const CYLINDER_SECTORS: u64 = HEADS * TRACK_SECTORS;
const A: (u64, u64) = (0, 18_090);
const B: (u64, u64) = (10, 36_180);
const D: (u64, u64) = (30, 280_395);
const F: (u64, u64) = (185, 280_395);
const H: (u64, u64) = (340, 506_520);
/// Number of cylinders of the Eagle in the baseline system, and their sectors.
const EAGLE_CYLINDERS: u64 = 842;
const EAGLE_CYLINDER_SECTORS: u64 = 20 * 46;

/// One row of the dd table in Zachariassen 1987: source and destination of the bytes.
struct Row {
    command: &'static str,
    destination: &'static str,
    /// Partitions of the first drive, as (first cylinder, sectors); empty to use those of the
    /// system.
    partitions: &'static [(u64, u64)],
    raw: bool,
    /// Whether the command copies data. The text counts copied bytes twice.
    copies: bool,
}

const READ_FILE: &str = "dd if=/u2/bigfile of=/dev/null";

const ROWS: [Row; 7] = [
    Row {
        command: "dd if=/dev/rXX0a of=/dev/null",
        destination: "null",
        partitions: &[A],
        raw: true,
        copies: false,
    },
    Row {
        command: "dd if=/dev/rXX0f of=/dev/null",
        destination: "null",
        partitions: &[F],
        raw: true,
        copies: false,
    },
    Row {
        command: "dd if=/u2/bigfile of=/u3/bigfile",
        destination: "other",
        partitions: &[],
        raw: false,
        copies: true,
    },
    Row {
        command: "dd if=/u2/bigfile of=/u2/bigfile.new",
        destination: "same",
        partitions: &[],
        raw: false,
        copies: true,
    },
    Row {
        command: READ_FILE,
        destination: "null",
        partitions: &[],
        raw: false,
        copies: false,
    },
    Row {
        command: "dd if=/u2/bigfile of=/tmp/bigfile",
        destination: "other",
        partitions: &[F],
        raw: false,
        copies: true,
    },
    Row {
        command: "dd if=/dev/rXX0a of=/dev/rXX0b",
        destination: "other",
        partitions: &[A, B],
        raw: true,
        copies: true,
    },
];

const BASELINE: &str = "sun3-xy451-eagle";
/// Suffixes of a cell's id for its seconds in user mode and in the kernel.
const USER: &str = "#user";
const SYSTEM: &str = "#system";
const PASSES: u32 = 5;

/// Returns the modelled values of the cells of Zachariassen 1987.
pub(super) fn values(asking: &Asking<'_>, cells: &[&Cell]) -> Result<Values, LaboratoryError> {
    let mut values = formats(asking, cells)?;
    let mut timed = Vec::new();
    let mut jobs = Vec::new();
    for cell in cells {
        let Some(id) = &cell.id else { continue };
        let target = cell.full_target().unwrap_or_default();
        if let Some(command) = Command::of(cell) {
            jobs.push(command.job(asking, cell)?);
            timed.push((id, Timed::Seconds));
        } else if let Some((row, call_bytes)) = row(cell).zip(call_bytes(cell)) {
            jobs.push(row.job(asking, &target, call_bytes)?);
            timed.push((id, Timed::Rate(row)));
            if cell.ratio_to.is_some() {
                jobs.push(row.job(asking, BASELINE, call_bytes)?);
                timed.push((id, Timed::Baseline(row)));
            }
        }
    }
    for ((id, timed), figure) in timed.into_iter().zip(asking.figures(&jobs)?) {
        let value = match timed {
            Timed::Seconds => {
                values.extend([
                    (format!("{id}{USER}"), figure.user_s),
                    (format!("{id}{SYSTEM}"), figure.system_s),
                ]);
                figure.elapsed_s
            }
            Timed::Rate(row) => row.printed(&figure),
            Timed::Baseline(row) => {
                let rate = values
                    .by_id(id)
                    .expect("the cell's own rate stands before it");
                rate / row.printed(&figure)
            }
        };
        values.extend([(id.clone(), value)]);
    }
    Ok(values)
}

enum Timed {
    Seconds,
    Rate(&'static Row),
    /// The figure is the rate of the baseline system, by which the cell's own rate is divided.
    Baseline(&'static Row),
}

fn row(cell: &Cell) -> Option<&'static Row> {
    let test = cell.test.as_deref()?;
    match cell.kind.as_str() {
        "dd_throughput" => ROWS.iter().find(|row| row.command == test),
        // A binary of some size is read as any file is.
        "ratio" if test.contains("gnuemacs") => ROWS.iter().find(|row| row.command == READ_FILE),
        _ => None,
    }
}

fn formats(asking: &Asking<'_>, cells: &[&Cell]) -> Result<Values, LaboratoryError> {
    let mut values = Values::default();
    let mut known = BTreeMap::new();
    for cell in cells.iter().filter(|cell| cell.kind == "format_time") {
        let (Some(id), Some(target)) = (&cell.id, cell.full_target()) else {
            continue;
        };
        let times = match known.entry(target) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let system = (new.key().as_str(), asking.settings);
                let times = formatting(asking.catalogue, system, (1, PASSES))?;
                new.insert(times)
            }
        };
        let span = match cell.test.as_deref() {
            Some("format") => times.format,
            Some("verify_5_passes") => times.verify(),
            _ => times.total(),
        };
        values.extend([(id.clone(), span.0 as f64 / 60e9)]);
    }
    Ok(values)
}

fn call_bytes(cell: &Cell) -> Option<u64> {
    match cell.blocksize.as_ref()? {
        BlockSize::Bytes(bytes) => Some(*bytes),
        BlockSize::Words(words) => match words.as_str() {
            "8k" => Some(8192),
            "1 track" => Some(TRACK_SECTORS * SECTOR_BYTES),
            "1 cylinder" => Some(CYLINDER_SECTORS * SECTOR_BYTES),
            _ => None,
        },
    }
}

/// Describes a cell of Zachariassen 1987 for the accuracy card: its quantity, its printed value and
/// its test.
pub(super) fn described(cell: &Cell) -> (Quantity, Option<f64>, Option<String>) {
    let of = |quantity, value: Option<f64>| value.map(|value| (quantity, Some(value)));
    let (quantity, printed) = of(Quantity::Minutes, cell.minutes)
        .or_else(|| of(Quantity::Seconds, cell.real_s))
        .or_else(|| of(Quantity::Ratio, cell.ratio))
        .unwrap_or((Quantity::KbPerS, cell.kb_per_s));
    let size = cell.blocksize.iter().map(|size| format!(", {size}"));
    let bits = cell.cache_bits.iter().map(|bits| format!(", {bits}"));
    let ahead = cell.readahead_sectors.map(|sectors| format!(" {sectors}"));
    let more = size.chain(bits).chain(ahead);
    let test = cell.test.as_ref();
    let test = test.map(|test| more.fold(test.clone(), |text, more| text + &more));
    (quantity, printed, test)
}

impl Row {
    fn job(
        &self,
        asking: &Asking<'_>,
        target: &str,
        call_bytes: u64,
    ) -> Result<Job, LaboratoryError> {
        let mut own = Vec::new();
        if self.raw {
            own.push(Setting::new("filesystem", "none"));
        }
        // The file systems f and h are where a system has its first two; the
        // baseline's one drive is divided only where a copy needs it.
        let divided = match (target == BASELINE, self.destination) {
            (true, "other") if self.partitions.is_empty() => &[F, H],
            _ => self.partitions,
        };
        if !divided.is_empty() {
            let of_target = |partition: &(u64, u64)| match target == BASELINE {
                true => on_the_eagle(*partition),
                false => *partition,
            };
            own.push(partitions_setting(
                &divided.iter().map(of_target).collect::<Vec<_>>(),
            ));
        }
        // The raw device is read to its end.
        let size_bytes = match self.raw {
            true => self.partitions[0].1 * SECTOR_BYTES,
            false => BIGFILE_BYTES,
        };
        let mut program = Program::from_name("copy").expect("the battery copies");
        program.set_parameter("destination", self.destination)?;
        program.set_parameter("call_bytes", &call_bytes.to_string())?;
        Ok(Job {
            other: self.destination == "other",
            ..asking.job(target, &own, program, size_bytes)?
        })
    }

    /// Returns the rate in KB/s as Zachariassen 1987 counts it: copied bytes count twice.
    fn printed(&self, figure: &Figure) -> f64 {
        match self.copies {
            true => 2.0 * figure.kb_per_s,
            false => figure.kb_per_s,
        }
    }
}

#[derive(Clone, Copy)]
enum Command {
    /// Several fscks, started five seconds apart, on the given number of partitions.
    Fsck { checkers: u32, partitions: usize },
    /// dump and restore, from the Eagle or between two partitions.
    DumpRestore { from_eagle: bool },
}

/// Cache bits and read-ahead sectors of the Rimfire that the author settled on for fsck.
const BEST_FOR_FSCK: (&str, u64) = ("SEA|CRD", 10);
/// Kilobytes of file content in the two file systems. With the metadata of the files, 95010 and
/// 90838 are in use.
const CHEETAH_CONTENT_KB: u64 = 91_500;
const RIMFIRE_CONTENT_KB: u64 = 87_500;

impl Command {
    fn of(cell: &Cell) -> Option<Self> {
        let test = cell.test.as_deref()?;
        if cell.kind != "elapsed_time" {
            return None;
        }
        let one = Self::Fsck {
            checkers: 1,
            partitions: 1,
        };
        match test {
            "4 parallel fsck of ip0f, offset 5 s each" => Some(Self::Fsck {
                checkers: 4,
                partitions: 1,
            }),
            "2 parallel fsck of ip0f and ip0d" => Some(Self::Fsck {
                checkers: 1,
                partitions: 2,
            }),
            "dump 0f - /local | restore rf - (in /u2)" => {
                Some(Self::DumpRestore { from_eagle: true })
            }
            "dump 0f - /u2 | restore rf - (in /u1)" => {
                Some(Self::DumpRestore { from_eagle: false })
            }
            _ => test.starts_with("fsck ").then_some(one),
        }
    }

    fn job(self, asking: &Asking<'_>, cell: &Cell) -> Result<Job, LaboratoryError> {
        let mut target = cell.full_target().unwrap_or_default();
        let content_kb = match target.contains("rimfire") {
            true => RIMFIRE_CONTENT_KB,
            false => CHEETAH_CONTENT_KB,
        };
        let mut own = Vec::new();
        let (program, drives) = match self {
            Self::Fsck {
                checkers,
                partitions,
            } => {
                own.push(partitions_setting(&[F, D][..partitions]));
                if target.contains("rimfire") {
                    own.extend(fsck_cache(cell));
                }
                let mut program = Program::from_name("fsck").expect("the battery has fsck");
                program.set_parameter("checkers", &checkers.to_string())?;
                (program, partitions)
            }
            Self::DumpRestore { from_eagle } => {
                // Counted from the Eagle on, what is copied from there is the first.
                if from_eagle {
                    target = target.replacen("sun3", BASELINE, 1);
                } else {
                    own.push(partitions_setting(&[F, D]));
                }
                let program = Program::from_name("dump_restore");
                let mut program = program.expect("the battery has dump_restore");
                program.set_parameter("destination", "other")?;
                (program, 1)
            }
        };
        Ok(Job {
            drives,
            other: matches!(self, Self::DumpRestore { .. }),
            protocol: ONCE,
            ..asking.job(&target, &own, program, content_kb << 10)?
        })
    }
}

/// Returns the Rimfire's cache settings for a cell; those that the author settled on if the cell
/// prints none.
fn fsck_cache(cell: &Cell) -> [Setting; 2] {
    let (bits, ahead) = match (&cell.cache_bits, cell.readahead_sectors) {
        (Some(bits), Some(ahead)) => (bits.as_str(), ahead),
        _ => BEST_FOR_FSCK,
    };
    // What is printed in brackets makes no difference, as it says.
    let bits = bits.replace("(|XCY)", "");
    [
        Setting::new("controller.raw_cache_bits", &bits),
        Setting::new("controller.raw_read_ahead_sectors", &ahead.to_string()),
    ]
}

/// Returns the cylinders of the Eagle where the sectors of a partition would lie, as far as the
/// Eagle reaches.
fn on_the_eagle((cylinder, sectors): (u64, u64)) -> (u64, u64) {
    let first = (cylinder * CYLINDER_SECTORS).div_ceil(EAGLE_CYLINDER_SECTORS);
    let left = (EAGLE_CYLINDERS - first) * EAGLE_CYLINDER_SECTORS;
    (first, sectors.min(left))
}

fn partitions_setting(partitions: &[(u64, u64)]) -> Setting {
    let pairs: Vec<String> = partitions
        .iter()
        .map(|(cylinder, sectors)| format!("[{cylinder}, {sectors}]"))
        .collect();
    Setting::new("drive.1.partitions", &format!("[{}]", pairs.join(", ")))
}
