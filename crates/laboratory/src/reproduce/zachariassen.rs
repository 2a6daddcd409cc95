//! Zachariassen 1987: dd between partitions and files on a Sun 3/180 with two controllers, and on
//! an Eagle for comparison.

mod statements;

pub(super) use statements::check_statements;

use super::CellDescription;
use super::asking::{CellValues, ModelQueries};
use super::jobs::{ModelFigures, ModelJob};
use diskperf_analysis::accuracy::CellQuantity;
use diskperf_battery::Program;
use diskperf_catalogue::{PrintedCallSize, PublishedCell, Setting};
use diskperf_models::LaboratoryError;
use diskperf_models::formatting::estimate_formatting;
use diskperf_models::rig::ONE_REPETITION;
use std::collections::btree_map::{BTreeMap, Entry};

pub(super) const DOCUMENT_ID: &str = "zachariassen-1987";

/// Size of the file to copy: twelve times /vmunix, as Zachariassen 1987 says, about 8.5 MB.
const BIGFILE_BYTES: u64 = 8704 << 10;
/// Call sizes of the columns in the tables of Zachariassen 1987: 8k, 1 track, 1 cylinder.
const SECTOR_BYTES: u64 = 512;
const TRACK_SECTORS: u64 = 67;
const HEAD_COUNT: u64 = 27;
const CYLINDER_SECTORS: u64 = HEAD_COUNT * TRACK_SECTORS;
const PARTITION_A: (u64, u64) = (0, 18_090);
const PARTITION_B: (u64, u64) = (10, 36_180);
const PARTITION_D: (u64, u64) = (30, 280_395);
const PARTITION_F: (u64, u64) = (185, 280_395);
const PARTITION_H: (u64, u64) = (340, 506_520);
/// Number of cylinders of the Eagle in the baseline system, and their sectors.
const EAGLE_CYLINDER_COUNT: u64 = 842;
const EAGLE_CYLINDER_SECTORS: u64 = 20 * 46;

/// One row of the dd table in Zachariassen 1987: source and destination of the bytes.
struct TableRow {
    command: &'static str,
    destination: &'static str,
    /// Partitions of the first drive, as (first cylinder, sectors); empty to use those of the
    /// system.
    partitions: &'static [(u64, u64)],
    is_raw: bool,
    /// Whether the command copies data. The text counts copied bytes twice.
    is_copy: bool,
}

const READ_FILE_COMMAND: &str = "dd if=/u2/bigfile of=/dev/null";

const TABLE_ROWS: [TableRow; 7] = [
    TableRow {
        command: "dd if=/dev/rXX0a of=/dev/null",
        destination: "null",
        partitions: &[PARTITION_A],
        is_raw: true,
        is_copy: false,
    },
    TableRow {
        command: "dd if=/dev/rXX0f of=/dev/null",
        destination: "null",
        partitions: &[PARTITION_F],
        is_raw: true,
        is_copy: false,
    },
    TableRow {
        command: "dd if=/u2/bigfile of=/u3/bigfile",
        destination: "other",
        partitions: &[],
        is_raw: false,
        is_copy: true,
    },
    TableRow {
        command: "dd if=/u2/bigfile of=/u2/bigfile.new",
        destination: "same",
        partitions: &[],
        is_raw: false,
        is_copy: true,
    },
    TableRow {
        command: READ_FILE_COMMAND,
        destination: "null",
        partitions: &[],
        is_raw: false,
        is_copy: false,
    },
    TableRow {
        command: "dd if=/u2/bigfile of=/tmp/bigfile",
        destination: "other",
        partitions: &[PARTITION_F],
        is_raw: false,
        is_copy: true,
    },
    TableRow {
        command: "dd if=/dev/rXX0a of=/dev/rXX0b",
        destination: "other",
        partitions: &[PARTITION_A, PARTITION_B],
        is_raw: true,
        is_copy: true,
    },
];

const BASELINE_SYSTEM: &str = "sun3-xy451-eagle";
/// Suffixes of a cell's id for its seconds in user mode and in the kernel.
const USER_SUFFIX: &str = "#user";
const SYSTEM_SUFFIX: &str = "#system";
const FORMAT_PASSES: u32 = 5;

/// Returns the modelled values of the cells of Zachariassen 1987.
pub(super) fn model_values(
    asking: &ModelQueries<'_>,
    cells: &[&PublishedCell],
) -> Result<CellValues, LaboratoryError> {
    let mut values = model_format_times(asking, cells)?;
    let mut timed = Vec::new();
    let mut jobs = Vec::new();
    for cell in cells {
        let Some(id) = &cell.id else { continue };
        let target = cell.full_target().unwrap_or_default();
        if let Some(command) = TimedCommand::from_cell(cell) {
            jobs.push(command.build_job(asking, cell)?);
            timed.push((id, TimedFigure::Seconds));
        } else if let Some((row, call_bytes)) = row_of_cell(cell).zip(call_bytes_of_cell(cell)) {
            jobs.push(row.build_job(asking, &target, call_bytes)?);
            timed.push((id, TimedFigure::Rate(row)));
            if cell.ratio_to.is_some() {
                jobs.push(row.build_job(asking, BASELINE_SYSTEM, call_bytes)?);
                timed.push((id, TimedFigure::Baseline(row)));
            }
        }
    }
    for ((id, timed), figure) in timed.into_iter().zip(asking.run_figures(&jobs)?) {
        let value = match timed {
            TimedFigure::Seconds => {
                values.extend([
                    (format!("{id}{USER_SUFFIX}"), figure.user_s),
                    (format!("{id}{SYSTEM_SUFFIX}"), figure.system_s),
                ]);
                figure.elapsed_s
            }
            TimedFigure::Rate(row) => row.figure_of(&figure),
            TimedFigure::Baseline(row) => {
                let rate = values
                    .value_of_id(id)
                    .expect("the cell's own rate stands before it");
                rate / row.figure_of(&figure)
            }
        };
        values.extend([(id.clone(), value)]);
    }
    Ok(values)
}

enum TimedFigure {
    Seconds,
    Rate(&'static TableRow),
    /// The figure is the rate of the baseline system, by which the cell's own rate is divided.
    Baseline(&'static TableRow),
}

fn row_of_cell(cell: &PublishedCell) -> Option<&'static TableRow> {
    let test = cell.test.as_deref()?;
    match cell.kind.as_str() {
        "dd_throughput" => TABLE_ROWS.iter().find(|row| row.command == test),
        // A binary of some size is read as any file is.
        "ratio" if test.contains("gnuemacs") => TABLE_ROWS
            .iter()
            .find(|row| row.command == READ_FILE_COMMAND),
        _ => None,
    }
}

fn model_format_times(
    asking: &ModelQueries<'_>,
    cells: &[&PublishedCell],
) -> Result<CellValues, LaboratoryError> {
    let mut values = CellValues::default();
    let mut known = BTreeMap::new();
    for cell in cells.iter().filter(|cell| cell.kind == "format_time") {
        let (Some(id), Some(target)) = (&cell.id, cell.full_target()) else {
            continue;
        };
        let times = match known.entry(target) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let system = (new.key().as_str(), asking.settings);
                let times = estimate_formatting(asking.catalogue, system, 1, FORMAT_PASSES)?;
                new.insert(times)
            }
        };
        let span = match cell.test.as_deref() {
            Some("format") => times.format_time,
            Some("verify_5_passes") => times.verify_time(),
            _ => times.total_time(),
        };
        values.extend([(id.clone(), span.0 as f64 / 60e9)]);
    }
    Ok(values)
}

fn call_bytes_of_cell(cell: &PublishedCell) -> Option<u64> {
    match cell.call_size.as_ref()? {
        PrintedCallSize::Bytes(bytes) => Some(*bytes),
        PrintedCallSize::Words(words) => match words.as_str() {
            "8k" => Some(8192),
            "1 track" => Some(TRACK_SECTORS * SECTOR_BYTES),
            "1 cylinder" => Some(CYLINDER_SECTORS * SECTOR_BYTES),
            _ => None,
        },
    }
}

/// Describes a cell of Zachariassen 1987 for the accuracy card: its quantity, its printed value and
/// its test.
pub(super) fn describe_cell(cell: &PublishedCell) -> CellDescription {
    let of = |quantity, value: Option<f64>| value.map(|value| (quantity, Some(value)));
    let (quantity, printed_value) = of(CellQuantity::Minutes, cell.minutes)
        .or_else(|| of(CellQuantity::Seconds, cell.real_s))
        .or_else(|| of(CellQuantity::Ratio, cell.ratio))
        .unwrap_or((CellQuantity::KbPerS, cell.kb_per_s));
    let size = cell.call_size.iter().map(|size| format!(", {size}"));
    let bits = cell.cache_bits.iter().map(|bits| format!(", {bits}"));
    let ahead = cell.readahead_sectors.map(|sectors| format!(" {sectors}"));
    let more = size.chain(bits).chain(ahead);
    let test = cell.test.as_ref();
    let test = test.map(|test| more.fold(test.clone(), |text, more| text + &more));
    CellDescription {
        quantity,
        printed_value,
        test,
    }
}

impl TableRow {
    fn build_job(
        &self,
        asking: &ModelQueries<'_>,
        target: &str,
        call_bytes: u64,
    ) -> Result<ModelJob, LaboratoryError> {
        let mut own = Vec::new();
        if self.is_raw {
            own.push(Setting::new("filesystem", "none"));
        }
        // The file systems f and h are where a system has its first two; the
        // baseline's one drive is divided only where a copy needs it.
        let divided = match (target == BASELINE_SYSTEM, self.destination) {
            (true, "other") if self.partitions.is_empty() => &[PARTITION_F, PARTITION_H],
            _ => self.partitions,
        };
        if !divided.is_empty() {
            let of_target = |partition: &(u64, u64)| match target == BASELINE_SYSTEM {
                true => convert_to_eagle(*partition),
                false => *partition,
            };
            own.push(build_partitions_setting(
                &divided.iter().map(of_target).collect::<Vec<_>>(),
            ));
        }
        // The raw device is read to its end.
        let size_bytes = match self.is_raw {
            true => self.partitions[0].1 * SECTOR_BYTES,
            false => BIGFILE_BYTES,
        };
        let mut program = Program::from_name("copy").expect("the battery copies");
        program.set_parameter("destination", self.destination)?;
        program.set_parameter("call_bytes", &call_bytes.to_string())?;
        Ok(ModelJob {
            has_other_volume: self.destination == "other",
            ..asking.build_job(target, &own, program, size_bytes)?
        })
    }

    /// Returns the rate in KB/s as Zachariassen 1987 counts it: copied bytes count twice.
    fn figure_of(&self, figure: &ModelFigures) -> f64 {
        match self.is_copy {
            true => 2.0 * figure.kb_per_s,
            false => figure.kb_per_s,
        }
    }
}

#[derive(Clone, Copy)]
enum TimedCommand {
    /// Several fscks, started five seconds apart, on the given number of partitions.
    Fsck {
        checkers: u32,
        partitions: usize,
    },
    DumpRestore {
        from_eagle: bool,
    },
}

/// Cache bits and read-ahead sectors of the Rimfire that the author settled on for fsck.
const FSCK_BEST_POLICY: (&str, u64) = ("SEA|CRD", 10);
/// Kilobytes of file content in the two file systems. With the metadata of the files, 95010 and
/// 90838 are in use.
const CHEETAH_CONTENT_KB: u64 = 91_500;
const RIMFIRE_CONTENT_KB: u64 = 87_500;

impl TimedCommand {
    fn from_cell(cell: &PublishedCell) -> Option<Self> {
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

    fn build_job(
        self,
        asking: &ModelQueries<'_>,
        cell: &PublishedCell,
    ) -> Result<ModelJob, LaboratoryError> {
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
                own.push(build_partitions_setting(
                    &[PARTITION_F, PARTITION_D][..partitions],
                ));
                if target.contains("rimfire") {
                    own.extend(fsck_cache_settings(cell));
                }
                let mut program = Program::from_name("fsck").expect("the battery has fsck");
                program.set_parameter("checkers", &checkers.to_string())?;
                (program, partitions)
            }
            Self::DumpRestore { from_eagle } => {
                // Counted from the Eagle on, what is copied from there is the first.
                if from_eagle {
                    target = target.replacen("sun3", BASELINE_SYSTEM, 1);
                } else {
                    own.push(build_partitions_setting(&[PARTITION_F, PARTITION_D]));
                }
                let program = Program::from_name("dump_restore");
                let mut program = program.expect("the battery has dump_restore");
                program.set_parameter("destination", "other")?;
                (program, 1)
            }
        };
        Ok(ModelJob {
            drive_count: drives,
            has_other_volume: matches!(self, Self::DumpRestore { .. }),
            protocol: ONE_REPETITION,
            ..asking.build_job(&target, &own, program, content_kb << 10)?
        })
    }
}

/// Returns the Rimfire's cache settings for a cell; those that the author settled on if the cell
/// prints none.
fn fsck_cache_settings(cell: &PublishedCell) -> [Setting; 2] {
    let (bits, ahead) = match (&cell.cache_bits, cell.readahead_sectors) {
        (Some(bits), Some(ahead)) => (bits.as_str(), ahead),
        _ => FSCK_BEST_POLICY,
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
fn convert_to_eagle((cylinder, sectors): (u64, u64)) -> (u64, u64) {
    let first = (cylinder * CYLINDER_SECTORS).div_ceil(EAGLE_CYLINDER_SECTORS);
    let left = (EAGLE_CYLINDER_COUNT - first) * EAGLE_CYLINDER_SECTORS;
    (first, sectors.min(left))
}

fn build_partitions_setting(partitions: &[(u64, u64)]) -> Setting {
    let pairs: Vec<String> = partitions
        .iter()
        .map(|(cylinder, sectors)| format!("[{cylinder}, {sectors}]"))
        .collect();
    Setting::new("drive.1.partitions", &format!("[{}]", pairs.join(", ")))
}
