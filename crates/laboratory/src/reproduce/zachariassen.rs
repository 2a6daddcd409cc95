//! Seed 001: dd between partitions and files on a Sun 3/180 with two
//! controllers, and on an Eagle beside them.

mod statements;

use super::jobs::{Figure, Job, Workshop};
use crate::error::LaboratoryError;
use crate::formatting::formatting;
use crate::model::computer::Computer;
use diskperf_battery::Program;
use diskperf_machine::catalogue::{BlockSize, Catalogue, Cell, Setting};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) const DOCUMENT: &str = "zachariassen-1987";

/// Twelve times /vmunix, as the text says: about 8.5 MB.
const BIGFILE_BYTES: u64 = 8704 << 10;
/// The sizes of its tables' columns: 8k, 1 track, 1 cylinder.
const SECTOR_BYTES: u64 = 512;
const TRACK_SECTORS: u64 = 67;
const CYLINDER_SECTORS: u64 = 27 * TRACK_SECTORS;
/// Its partitions.
const A: (u64, u64) = (0, 18_090);
const B: (u64, u64) = (10, 36_180);
const D: (u64, u64) = (30, 280_395);
const F: (u64, u64) = (185, 280_395);

/// One row of the table: where the bytes come from and go.
struct Row {
    command: &'static str,
    destination: &'static str,
    /// Partitions of the first drive, as (first cylinder, sectors); the
    /// system's own if empty.
    partitions: &'static [(u64, u64)],
    raw: bool,
    /// Whether something is copied, which the text counts twice.
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

/// The system that the text's ratios are to.
const BASELINE: &str = "sun3-xy451-eagle";
/// Verify passes after each format.
const PASSES: u32 = 5;

/// What the models give for the cells, by their ids.
pub(super) struct Zachariassen {
    values: BTreeMap<String, f64>,
}

impl Zachariassen {
    /// Runs the cells that are dd's.
    pub(super) fn run(
        catalogue: &Catalogue,
        settings: &[Setting],
        (cells, seed): (&[&Cell], u64),
        workshop: &Workshop<'_>,
    ) -> Result<Self, LaboratoryError> {
        let mut values = formats(catalogue, settings, cells)?;
        let mut asked = Vec::new();
        let mut jobs = Vec::new();
        for cell in cells {
            let (Some(id), Some(row)) = (&cell.id, row(cell)) else {
                continue;
            };
            let Some(call_bytes) = cell.blocksize.as_ref().and_then(call_bytes) else {
                continue;
            };
            let target = cell.full_target().unwrap_or_default();
            jobs.push(row.job(catalogue, settings, (&target, call_bytes), seed)?);
            if cell.ratio_to.is_some() {
                jobs.push(row.job(catalogue, settings, (BASELINE, call_bytes), seed)?);
            }
            asked.push((id.clone(), row, cell.ratio_to.is_some()));
        }
        let mut timed = Vec::new();
        for cell in cells {
            let (Some(id), Some(command)) = (&cell.id, Command::of(cell)) else {
                continue;
            };
            jobs.push(command.job(catalogue, settings, cell, seed)?);
            timed.push(id.clone());
        }
        let mut done = workshop.carry_out(&jobs)?.into_iter();
        let mut next = |row: &Row| done.next().map(|figures| row.printed(&figures[0]));
        for (id, row, ratio) in asked {
            let mut value = next(row);
            if ratio {
                value = value.zip(next(row)).map(|(rate, baseline)| rate / baseline);
            }
            values.extend(value.map(|value| (id, value)));
        }
        for (id, figures) in timed.into_iter().zip(done) {
            values.insert(id, figures[0].elapsed_s);
        }
        Ok(Self { values })
    }

    /// The modelled value of a cell.
    pub(super) fn value(&self, cell: &Cell) -> Option<f64> {
        self.values.get(cell.id.as_deref()?).copied()
    }
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

/// Minutes of the cells that are of formatting.
fn formats(
    catalogue: &Catalogue,
    settings: &[Setting],
    cells: &[&Cell],
) -> Result<BTreeMap<String, f64>, LaboratoryError> {
    let mut values = BTreeMap::new();
    for cell in cells.iter().filter(|cell| cell.kind == "format_time") {
        let (Some(id), Some(target)) = (&cell.id, cell.full_target()) else {
            continue;
        };
        let times = formatting(catalogue, (&target, settings), (1, PASSES))?;
        let span = match cell.test.as_deref() {
            Some("format") => times.format,
            Some("verify_5_passes") => times.verify(),
            _ => times.total(),
        };
        values.insert(id.clone(), span.0 as f64 / 60e9);
    }
    Ok(values)
}

fn call_bytes(blocksize: &BlockSize) -> Option<u64> {
    let words = match blocksize {
        BlockSize::Bytes(bytes) => return Some(*bytes),
        BlockSize::Words(words) => words,
    };
    match words.as_str() {
        "8k" => Some(8192),
        "1 track" => Some(TRACK_SECTORS * SECTOR_BYTES),
        "1 cylinder" => Some(CYLINDER_SECTORS * SECTOR_BYTES),
        _ => None,
    }
}

impl Row {
    fn job(
        &self,
        catalogue: &Catalogue,
        settings: &[Setting],
        (target, call_bytes): (&str, u64),
        seed: u64,
    ) -> Result<Job, LaboratoryError> {
        let mut own = Vec::new();
        if self.raw {
            own.push(setting("filesystem", "none"));
        }
        if !self.partitions.is_empty() {
            own.push(partitions_setting(self.partitions));
        }
        let all: Vec<Setting> = own.into_iter().chain(settings.to_vec()).collect();
        let computer = Computer::read(catalogue, target, &all)?;
        // The raw device is read to its end.
        let size_bytes = match self.raw {
            true => self.partitions[0].1 * SECTOR_BYTES,
            false => BIGFILE_BYTES,
        };
        let mut program = Program::named("copy").expect("the battery copies");
        program.set("destination", self.destination)?;
        program.set("call_bytes", &call_bytes.to_string())?;
        Ok(Job {
            computer: Arc::new(computer),
            drives: 1,
            other: self.destination == "other",
            phase: 0,
            speed_difference: 0.0,
            programs: vec![program],
            size_bytes,
            repetitions: (3, 1),
            seed,
        })
    }

    /// As the text counts it.
    fn printed(&self, figure: &Figure) -> f64 {
        match self.copies {
            true => 2.0 * figure.kb_per_s,
            false => figure.kb_per_s,
        }
    }
}

/// A command that the text timed as a whole.
#[derive(Clone, Copy)]
enum Command {
    /// So many fscks, five seconds apart, on so many partitions.
    Fsck { checkers: u32, partitions: usize },
    /// dump and restore, from the Eagle or between two partitions.
    DumpRestore { from_eagle: bool },
}

/// Bits and sectors that its author ended up with for fsck.
const BEST_FOR_FSCK: (&str, u64) = ("SEA|CRD", 10);
/// Kilobytes that the contents of its two file systems have, of the 95010 and
/// 90838 that are in use with what belongs to the files besides.
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

    fn job(
        self,
        catalogue: &Catalogue,
        settings: &[Setting],
        cell: &Cell,
        seed: u64,
    ) -> Result<Job, LaboratoryError> {
        let mut target = cell.full_target().unwrap_or_default();
        let rimfire = target.contains("rimfire");
        let mut own = Vec::new();
        // Counted from the Eagle on, what is copied from there is the first.
        let (name, drives, other) = match self {
            Self::Fsck { partitions, .. } => {
                // The partitions f and d.
                own.push(partitions_setting(&[F, D][..partitions]));
                ("fsck", partitions, false)
            }
            Self::DumpRestore { from_eagle } => {
                if from_eagle {
                    target = target.replacen("sun3", BASELINE, 1);
                } else {
                    own.push(partitions_setting(&[F, D]));
                }
                ("dump_restore", 1, true)
            }
        };
        if rimfire && name == "fsck" {
            let (bits, ahead) = match (&cell.cache_bits, cell.readahead_sectors) {
                (Some(bits), Some(ahead)) => (bits.as_str(), ahead),
                _ => BEST_FOR_FSCK,
            };
            // What is printed in brackets makes no difference, as it says.
            let bits = bits.replace("(|XCY)", "");
            own.push(setting("controller.raw_cache_bits", &bits));
            own.push(setting(
                "controller.raw_read_ahead_sectors",
                &ahead.to_string(),
            ));
        }
        let all: Vec<Setting> = own.into_iter().chain(settings.to_vec()).collect();
        let mut program = Program::named(name).expect("the battery has it");
        if let Self::Fsck { checkers, .. } = self {
            program.set("checkers", &checkers.to_string())?;
        } else {
            program.set("destination", "other")?;
        }
        Ok(Job {
            computer: Arc::new(Computer::read(catalogue, &target, &all)?),
            drives,
            other,
            phase: 0,
            speed_difference: 0.0,
            programs: vec![program],
            size_bytes: 1024
                * if rimfire {
                    RIMFIRE_CONTENT_KB
                } else {
                    CHEETAH_CONTENT_KB
                },
            repetitions: (1, 0),
            seed,
        })
    }
}

fn partitions_setting(partitions: &[(u64, u64)]) -> Setting {
    let pairs: Vec<String> = partitions
        .iter()
        .map(|(cylinder, sectors)| format!("[{cylinder}, {sectors}]"))
        .collect();
    setting("drive.1.partitions", &format!("[{}]", pairs.join(", ")))
}

fn setting(path: &str, text: &str) -> Setting {
    Setting {
        path: path.to_owned(),
        text: text.to_owned(),
    }
}
