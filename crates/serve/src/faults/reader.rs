//! Files that describe faults.

use crate::ServeError;
use diskperf_catalogue::{Errors, TableReader};
use diskperf_device::faults::{
    FAULTS_MAX, FaultKind, FaultLength, FaultSpecification, FaultStart, OperationKind, SectorRuns,
};
use diskperf_diagnostics::{Problem, Text, input};
use diskperf_sim::Time;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Longest file that is read: far more than the largest number of faults needs.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Longest time of a fault, in seconds: thirty years.
const SECONDS_MAX: f64 = 1e9;

/// Longest additional time of a request, in milliseconds: a quarter of an hour.
const DELAY_MS_MAX: f64 = 1e6;

/// Additional time of a write that reassigns sectors, in milliseconds: two or three revolutions
/// of a disk, for the write to the spare sectors and that of the list of defects.
const REASSIGN_MS: f64 = 20.0;

const NAME_CHARACTERS_MAX: usize = 64;

const PER_THOUSAND: std::ops::RangeInclusive<f64> = 0.0..=1000.0;

/// Names of the kinds of faults in files, each with the reader of its parameters.
const KINDS: [(&str, ReadKind); 11] = [
    ("unreadable_sectors", read_unreadable_sectors),
    ("slow_sectors", read_slow_sectors),
    ("slow_drive", read_slow_drive),
    ("hang", read_hang),
    ("error", |of| {
        let meaning = "failures per thousand requests: `per_thousand = 1000` fails all";
        let probability = required(of, "per_thousand", PER_THOUSAND, meaning) / 1e3;
        FaultKind::Error { probability }
    }),
    ("lost_write", |of| FaultKind::LostWrite {
        probability: read_probability(of),
    }),
    ("torn_write", |of| FaultKind::TornWrite {
        probability: read_probability(of),
    }),
    ("misdirected_write", |of| FaultKind::MisdirectedWrite {
        probability: read_probability(of),
    }),
    ("bit_rot", |of| FaultKind::BitRot {
        share: read_probability(of),
    }),
    ("death", |_| FaultKind::Death),
    ("lying_flush", |of| FaultKind::LyingFlush {
        probability: read_probability(of),
    }),
];

type ReadKind = fn(&mut TableReader) -> FaultKind;

/// Reads files of faults for a drive with a number of sectors. `seed` is that of files and faults
/// that have none.
///
/// # Errors
///
/// A file that cannot be read, or all that is wrong in the first file in which something is, with
/// line and column.
pub fn read_faults(
    paths: &[PathBuf],
    seed: u64,
    sectors: u64,
) -> Result<Vec<FaultSpecification>, ServeError> {
    let mut faults = Vec::new();
    for path in paths {
        let text = read_text(path)?;
        let text = Arc::new(Text::new(path.display().to_string(), text));
        read_file(&text, seed, sectors, &mut faults)
            .map_err(|errors| ServeError::Catalogue(Box::new(errors)))?;
    }
    if faults.len() > FAULTS_MAX {
        return Err(ServeError::Request(format!(
            "--fault: the files have {} faults, and a drive has at most {FAULTS_MAX}: name fewer",
            faults.len()
        )));
    }
    Ok(faults)
}

fn read_text(path: &Path) -> Result<String, ServeError> {
    let refused = |reason: String| {
        let path = path.display();
        ServeError::Request(format!("--fault {path}: {reason}"))
    };
    let file = input::open(path).map_err(|error| refused(error.to_string()))?;
    let bytes = input::read_short(file, FILE_BYTES_MAX);
    let bytes = bytes.map_err(|error| refused(format!("cannot be read: {error}")))?;
    let bytes = bytes.ok_or_else(|| {
        refused(format!(
            "has more than {FILE_BYTES_MAX} bytes: name a file of faults"
        ))
    })?;
    String::from_utf8(bytes)
        .map_err(|_| refused("is not text in UTF-8: name a file of faults".to_owned()))
}

fn read_file(
    text: &Arc<Text>,
    seed: u64,
    sectors: u64,
    faults: &mut Vec<FaultSpecification>,
) -> Result<(), Errors> {
    let mut file = TableReader::parse(text, "a file of faults")?;
    let seed = file.integer("seed", 0..=u64::MAX).unwrap_or(seed);
    let tables = file.tables("fault", "a fault");
    if tables.is_empty() {
        file.lack("fault", "begin each fault with `[[fault]]`");
    }
    let mut names: BTreeSet<_> = faults.iter().map(|fault| fault.name.clone()).collect();
    for table in tables {
        let (fault, problems) = read_fault(table, seed, sectors, &mut names);
        file.add(problems);
        faults.extend(fault);
    }
    Errors::fail_if_any(file.finish())
}

/// Reads one fault. There is none without a known kind, on which its keys depend.
fn read_fault(
    mut table: TableReader,
    seed: u64,
    sectors: u64,
    names: &mut BTreeSet<String>,
) -> (Option<FaultSpecification>, Vec<Problem>) {
    let kinds = KINDS.map(|(name, _)| name);
    let Some(kind) = table.choice("kind", &kinds) else {
        table.lack("kind", &format!("one of {}", kinds.join(", ")));
        // Without a problem the key is misspelt, and shown as unknown.
        let problems = match table.has_problems() {
            true => table.finish_values(),
            false => table.finish(),
        };
        return (None, problems);
    };
    let (kind_name, read_kind) = KINDS[kind];
    let name = read_name(&mut table, kind_name, names);
    let kind = read_kind(&mut table);
    let first = table.integer("first_sector", 0..=sectors - 1).unwrap_or(0);
    let count = table.integer("sectors", 1..=sectors - first);
    let operations = read_operations(&mut table, &kind);
    let fault = FaultSpecification {
        name,
        kind,
        is_on: table.flag("on").unwrap_or(true),
        seed: table.integer("seed", 0..=u64::MAX).unwrap_or(seed),
        sectors: first..count.map_or(sectors, |count| first + count),
        operations,
        start: read_start(&mut table),
        length: read_length(&mut table),
    };
    (Some(fault), table.finish())
}

fn read_name(table: &mut TableReader, kind: &str, names: &mut BTreeSet<String>) -> String {
    let name = table.text("name").unwrap_or_else(|| kind.to_owned());
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&c);
    let length = name.chars().count();
    if !(1..=NAME_CHARACTERS_MAX).contains(&length) || !name.chars().all(is_plain) {
        let label = format!("must be 1 to {NAME_CHARACTERS_MAX} of A-Z, a-z, 0-9, `-`, `_`, `.`");
        table.fail("name", "`name` cannot be this", &label);
    } else if !names.insert(name.clone()) {
        let title = format!("two faults have the name `{name}`");
        table.fail("name", &title, "give each fault a `name` of its own");
    }
    name
}

fn read_operations(table: &mut TableReader, kind: &FaultKind) -> Vec<OperationKind> {
    let default = vec![OperationKind::Read, OperationKind::Write];
    let has_choice = matches!(
        kind,
        FaultKind::Error { .. } | FaultKind::SlowDrive { .. } | FaultKind::SlowSectors { .. }
    );
    if !has_choice {
        return default;
    }
    let names = OperationKind::ALL.map(OperationKind::name);
    let chosen = table.choices("operations", &names);
    chosen.map_or(default, |chosen| {
        let chosen = chosen.into_iter().map(|index| OperationKind::ALL[index]);
        chosen.collect()
    })
}

fn read_start(table: &mut TableReader) -> FaultStart {
    let time = table.number("start_s", 0.0..=SECONDS_MAX);
    let request = table.integer("start_request", 1..=u64::MAX);
    if time.is_some() && request.is_some() {
        let title = "a fault has one start";
        table.fail("start_request", title, "remove this, or `start_s`");
    }
    match (request, time) {
        (Some(request), _) => FaultStart::Request(request),
        (None, time) => FaultStart::Time(seconds(time.unwrap_or(0.0))),
    }
}

fn read_length(table: &mut TableReader) -> FaultLength {
    let time = table.number("duration_s", 0.0..=SECONDS_MAX);
    let requests = table.integer("requests", 1..=u64::MAX);
    if time.is_some() && requests.is_some() {
        let title = "a fault has one length";
        table.fail("requests", title, "remove this, or `duration_s`");
    }
    match (requests, time) {
        (Some(requests), _) => FaultLength::Requests(requests),
        (None, Some(time)) => FaultLength::Time(seconds(time)),
        (None, None) => FaultLength::Unlimited,
    }
}

fn seconds(seconds: f64) -> Time {
    Time((seconds * 1e9).round() as u64)
}

fn milliseconds(milliseconds: f64) -> Time {
    Time((milliseconds * 1e6).round() as u64)
}

/// Reads a number that a fault must have. Returns the start of the range without it.
fn required(
    table: &mut TableReader,
    key: &str,
    range: std::ops::RangeInclusive<f64>,
    meaning: &str,
) -> f64 {
    let start = *range.start();
    table.number(key, range).unwrap_or_else(|| {
        table.lack(key, meaning);
        start
    })
}

fn read_probability(table: &mut TableReader) -> f64 {
    table.number("per_thousand", PER_THOUSAND).unwrap_or(1000.0) / 1e3
}

fn read_runs(table: &mut TableReader) -> Option<SectorRuns> {
    let count = table.integer("runs", 1..=1_000_000);
    let sectors = table.integer("run_sectors", 1..=1 << 32);
    if let (Some(_), None) = (sectors, count) {
        let title = "`run_sectors` stands without `runs`";
        table.fail(
            "run_sectors",
            title,
            "give the number of runs, as `runs = 3`",
        );
    }
    count.map(|count| SectorRuns {
        count,
        sectors: sectors.unwrap_or(1),
    })
}

fn read_unreadable_sectors(table: &mut TableReader) -> FaultKind {
    let delay = 0.0..=DELAY_MS_MAX;
    let reassignment = table.number("reassign_ms", delay.clone());
    FaultKind::UnreadableSectors {
        runs: read_runs(table),
        retry: milliseconds(table.number("retry_ms", delay).unwrap_or(0.0)),
        reassignment: milliseconds(reassignment.unwrap_or(REASSIGN_MS)),
    }
}

fn read_slow_sectors(table: &mut TableReader) -> FaultKind {
    let meaning = "additional time of a request: `delay_ms = 50`";
    FaultKind::SlowSectors {
        runs: read_runs(table),
        delay: milliseconds(required(table, "delay_ms", 0.0..=DELAY_MS_MAX, meaning)),
    }
}

fn read_slow_drive(table: &mut TableReader) -> FaultKind {
    let meaning = "multiple of the service time: `factor = 3`";
    let factor = required(table, "factor", 1.0..=1000.0, meaning);
    FaultKind::SlowDrive { factor }
}

fn read_hang(table: &mut TableReader) -> FaultKind {
    let meaning = "duration without an answer: `hang_s = 40`";
    let length = required(table, "hang_s", 1e-6..=SECONDS_MAX, meaning);
    let interval = table.number("interval_s", 1e-6..=SECONDS_MAX);
    if interval.is_some_and(|interval| interval <= length) {
        let title = "a hang ends before the next one starts";
        table.fail("interval_s", title, &format!("must be above {length} s"));
    }
    FaultKind::Hang {
        length: seconds(length),
        interval: interval.map(seconds),
    }
}

#[cfg(test)]
mod tests;
