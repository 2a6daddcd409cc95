//! Statements in the text of Zachariassen 1987 about the order of the controllers in various
//! workloads.

use super::{
    BASELINE_SYSTEM, CYLINDER_SECTORS, DOCUMENT_ID, FORMAT_PASSES, HEAD_COUNT, PARTITION_H,
    READ_FILE_COMMAND, SECTOR_BYTES, SYSTEM_SUFFIX, TABLE_ROWS, TRACK_SECTORS, TableRow,
    USER_SUFFIX,
};
use crate::reproduce::asking::{CellValues, ModelQueries, parse_settings};
use diskperf_analysis::accuracy::{Finding, PublishedStatement};
use diskperf_catalogue::{PublishedCell, Setting};
use diskperf_models::LaboratoryError;
use diskperf_models::formatting::estimate_formatting;
use diskperf_timeline::ControllerCache;

const CHEETAH_SYSTEM: &str = "sun3-cheetah-2344";
const RIMFIRE_SYSTEM: &str = "sun3-rimfire-2344";
const COPY_WITHIN_COMMAND: &str = "dd if=/u2/bigfile of=/u2/bigfile.new";
const COPY_OVER_COMMAND: &str = "dd if=/u2/bigfile of=/u3/bigfile";
const COPY_RAW_COMMAND: &str = "dd if=/dev/rXX0a of=/dev/rXX0b";

/// Cache hit rate that Zachariassen 1987 gives, in percent, and the accepted deviation.
const PRINTED_HIT_PERCENT: f64 = 99.97;
const HIT_PERCENT_TOLERANCE: f64 = 0.05;

/// Share by which two rates may differ and still count as "about" the same.
const ABOUT_TOLERANCE_SHARE: f64 = 0.25;
/// Rows that only read and rows that read and write one drive, each with the name of its cells.
const FLAT_READ_CELLS: [(&str, &str); 3] = [
    ("dd if=/dev/rXX0a of=/dev/null", "rxx0a-to-null"),
    ("dd if=/dev/rXX0f of=/dev/null", "rxx0f-to-null"),
    (READ_FILE_COMMAND, "u2-bigfile-to-null"),
];
const MIXED_CELLS: [(&str, &str); 3] = [
    (COPY_OVER_COMMAND, "u2-bigfile-to-u3-bigfile"),
    (COPY_WITHIN_COMMAND, "u2-bigfile-to-u2-bigfile-new"),
    (COPY_RAW_COMMAND, "rxx0a-to-rxx0b"),
];
/// Columns of the dd table: name in the id of a cell, and call size in bytes.
const CALL_SIZES: [(&str, u64); 3] = [
    ("8k", 8192),
    ("1-track", TRACK_SECTORS * SECTOR_BYTES),
    ("1-cylinder", CYLINDER_SECTORS * SECTOR_BYTES),
];

/// Rates of the three controllers in one cell of the dd table, in KB/s as the text counts them.
struct ThreeControllers {
    description: String,
    cheetah: f64,
    rimfire: f64,
    baseline: f64,
}

impl ThreeControllers {
    fn is_raw(&self) -> bool {
        self.description.starts_with("dd if=/dev/")
    }
}

/// Tests the statements in the text about the order of the controllers. Statements about cells use
/// the modelled values of those cells.
pub(in crate::reproduce) fn check_statements(
    asking: &ModelQueries<'_>,
    cells: &[&PublishedCell],
    values: &CellValues,
) -> Result<Vec<PublishedStatement>, LaboratoryError> {
    let flat = values_of_three(asking, values, &FLAT_READ_CELLS)?;
    let mixed = values_of_three(asking, values, &MIXED_CELLS)?;
    Ok([
        check_flat_reads(&flat),
        check_degraded(&mixed),
        check_announced(asking)?,
        check_across_the_board(&flat, &mixed),
        check_activity(cells, values),
        check_hit_rate(asking)?,
        check_forwarded_blocks(asking)?,
        check_six_hours(asking)?,
        check_processor_seconds(cells, values),
    ]
    .into_iter()
    .chain(check_bits(values))
    .collect())
}

/// Returns the rates of some rows in all sizes. The values of the two boards come from cells that
/// are already modelled.
fn values_of_three(
    asking: &ModelQueries<'_>,
    values: &CellValues,
    rows: &[(&str, &str)],
) -> Result<Vec<ThreeControllers>, LaboratoryError> {
    let mut found = Vec::new();
    let mut jobs = Vec::new();
    for (command, name) in rows {
        for (size, call_bytes) in CALL_SIZES {
            let cell = |board: &str| {
                let id = format!("{DOCUMENT_ID}/dd/{board}/{name}/{size}");
                values
                    .value_of_id(&id)
                    .expect("every cell of the table is modelled")
            };
            jobs.push(row_of_command(command).build_job(asking, BASELINE_SYSTEM, call_bytes)?);
            found.push(ThreeControllers {
                description: format!("{command}, {size}"),
                cheetah: cell("cheetah"),
                rimfire: cell("rimfire"),
                baseline: 0.0,
            });
        }
    }
    let figures = asking.run_figures(&jobs)?;
    for (number, (three, figure)) in found.iter_mut().zip(&figures).enumerate() {
        three.baseline = row_of_command(rows[number / CALL_SIZES.len()].0).figure_of(figure);
    }
    Ok(found)
}

fn geometric_mean(ratios: impl Iterator<Item = f64> + Clone) -> f64 {
    let count = ratios.clone().count() as f64;
    (ratios.map(f64::ln).sum::<f64>() / count).exp()
}

/// Tests the printed hit rate of the controller's cache on a long raw read.
fn check_hit_rate(asking: &ModelQueries<'_>) -> Result<PublishedStatement, LaboratoryError> {
    let read = row_of_command("dd if=/dev/rXX0f of=/dev/null");
    let mut jobs = Vec::new();
    for (_, call_bytes) in CALL_SIZES {
        jobs.push(read.build_job(asking, RIMFIRE_SYSTEM, call_bytes)?);
    }
    let mut findings = Vec::new();
    let mut best: f64 = 0.0;
    for ((size, _), figure) in CALL_SIZES.iter().zip(asking.run_figures(&jobs)?) {
        let raw = figure.controller_caches.first();
        let percent = raw.map_or(0.0, ControllerCache::hit_percent);
        best = best.max(percent);
        findings.push(Finding::new(&format!("calls of {size}"), percent, "%"));
    }
    Ok(PublishedStatement {
        document: DOCUMENT_ID.to_owned(),
        statement: format!(
            "the Rimfire's best hit rate was {PRINTED_HIT_PERCENT} %, on a long raw disk read"
        ),
        findings,
        is_confirmed: Some((best - PRINTED_HIT_PERCENT).abs() <= HIT_PERCENT_TOLERANCE),
        conclusion: "all of partition f; a hit is a read for which the arm had nothing to begin: all was in the cache, or was passing under the heads".to_owned(),
    })
}

/// Tests two bad tracks, "one around cylinder 8 and one somewhere in the middle of the h
/// partition", whose data lies in tracks of partition b.
fn check_forwarded_blocks(
    asking: &ModelQueries<'_>,
) -> Result<PublishedStatement, LaboratoryError> {
    const REPLACEMENT_CYLINDER: u64 = 29;
    let track = |cylinder: u64, head: u64| cylinder * HEAD_COUNT + head;
    let bad = [track(8, 13), track(PARTITION_H.0 + 140, 13)];
    let stand_in = |number: usize| track(REPLACEMENT_CYLINDER, number as u64);
    let pairs: Vec<String> = bad
        .iter()
        .enumerate()
        .map(|(number, bad)| format!("[{bad}, {}]", stand_in(number)))
        .collect();
    let moved = Setting::new(
        "drive.1.revectored_tracks",
        &format!("[{}]", pairs.join(", ")),
    );
    let settings = asking.own_settings_first([moved]);
    let with_bad = ModelQueries {
        settings: &settings,
        ..*asking
    };
    // Partition a has cylinder 8, and u3 is h.
    let cases = [
        (
            "partition a read, 1 cylinder",
            row_of_command("dd if=/dev/rXX0a of=/dev/null"),
            CYLINDER_SECTORS * SECTOR_BYTES,
        ),
        (
            "a file copied to u3, 8k",
            row_of_command(COPY_OVER_COMMAND),
            8192,
        ),
    ];
    let mut jobs = Vec::new();
    for (_, row, size) in cases {
        jobs.push(row.build_job(asking, CHEETAH_SYSTEM, size)?);
        jobs.push(row.build_job(&with_bad, CHEETAH_SYSTEM, size)?);
    }
    let mut findings = Vec::new();
    let mut most: f64 = 0.0;
    for ((what, ..), pair) in cases.iter().zip(asking.run_rates(&jobs)?.chunks(2)) {
        let change = 100.0 * (pair[1] / pair[0] - 1.0);
        most = most.max(change.abs());
        findings.push(Finding::new(what, change, "%"));
    }
    Ok(PublishedStatement {
        document: DOCUMENT_ID.to_owned(),
        statement: "two tracks are forwarded; they didn't measurably affect the benchmarks"
            .to_owned(),
        findings,
        is_confirmed: Some(most < 2.0),
        conclusion: "what the Cheetah loses when a track of cylinder 8 and one in the middle of h are elsewhere".to_owned(),
    })
}

/// Tests the duration of the 451's format and verify passes, as far as a program like the Cheetah's
/// explains it.
fn check_six_hours(asking: &ModelQueries<'_>) -> Result<PublishedStatement, LaboratoryError> {
    let way = parse_settings(&[
        ("controller.maintenance_track_ms", "1.7"),
        ("controller.format_check", "true"),
        ("controller.verify_pass", "pattern"),
        // A Super Eagle: as an Eagle, with 67 sectors on a track.
        ("drive.spindle_rpm", "3600"),
        ("drive.sectors_per_track", "67"),
        ("drive.partition_sectors", "1128280"),
    ]);
    let all = asking.own_settings_last(&way);
    let times = estimate_formatting(asking.catalogue, (BASELINE_SYSTEM, &all), 1, FORMAT_PASSES)?;
    let minutes = times.total_time().0 as f64 / 60e9;
    let revolutions = 6.0 * 3600e9 / (times.track_count as f64 * times.revolution_time.0 as f64);
    Ok(PublishedStatement {
        document: DOCUMENT_ID.to_owned(),
        statement: "format and five verify passes take 6 hours for an xy451 and a SuperEagle"
            .to_owned(),
        findings: vec![
            Finding::new("in the way of the Cheetah's program", minutes, "min"),
            Finding::new("six hours are, for each track", revolutions, "revolutions"),
        ],
        is_confirmed: None,
        conclusion: "three revolutions to format a track and two and a half for each pass come to little more than an hour; what the 451's program does with the others is not said".to_owned(),
    })
}

fn check_processor_seconds(cells: &[&PublishedCell], values: &CellValues) -> PublishedStatement {
    let mut findings = Vec::new();
    for cell in cells {
        let (Some(id), Some(test)) = (&cell.id, &cell.test) else {
            continue;
        };
        let of_board = cell.controller.as_deref().unwrap_or_default();
        let board = of_board.split_whitespace().last().unwrap_or_default();
        let bits = cell.cache_bits.as_deref().unwrap_or_default();
        for (mode, printed, suffix) in [
            ("user", cell.user_s, USER_SUFFIX),
            ("system", cell.sys_s, SYSTEM_SUFFIX),
        ] {
            if let Some((printed, value)) =
                printed.zip(values.value_of_id(&format!("{id}{suffix}")))
            {
                let what = format!("{board} {bits}, {test}, {mode}, printed {printed}");
                findings.push(Finding::new(&what.replace(" ,", ","), value, "s"));
            }
        }
    }
    PublishedStatement {
        document: DOCUMENT_ID.to_owned(),
        statement: "fsck, dump and restore: the seconds of the processor that `time` printed"
            .to_owned(),
        findings,
        is_confirmed: None,
        conclusion: "shown, not scored: what the programs compute was chosen by the user seconds"
            .to_owned(),
    }
}

fn check_bits(values: &CellValues) -> Option<PublishedStatement> {
    let id = |rest: &str| format!("{DOCUMENT_ID}/misc/rimfire/fsck-dev-rxx0f{rest}");
    let trial = |rest: &str| values.value_of_id(&id(rest));
    let settings = [
        ("SEA|CRD, 10", trial("/sea-crd-ra10")?),
        ("SEA|CRD, 60", trial("-cache-option-trial/sea-crd-ra60")?),
        (
            "SEA|CRD|RAP|SRD, 60",
            trial("-cache-option-trial/sea-crd-rap-srd-ra60")?,
        ),
        ("0, 60", trial("-cache-option-trial/0-ra60")?),
        (
            "SEA|XHD, 60",
            trial("-cache-option-trial/sea-xhd-xcy-ra60")?,
        ),
    ];
    let seconds: Vec<f64> = settings.iter().map(|(_, seconds)| *seconds).collect();
    let tie = (seconds[1] / seconds[2] - 1.0).abs() <= 0.03;
    let ordered = seconds[0] < seconds[1] && seconds[2] < seconds[3] && seconds[3] < seconds[4];
    Some(PublishedStatement {
        document: DOCUMENT_ID.to_owned(),
        statement: "five settings of the cache on fsck: 29.1, 37.0, 37.0, 48.4 and 79.5 s"
            .to_owned(),
        findings: settings
            .iter()
            .map(|(what, seconds)| Finding::new(what, *seconds, "s"))
            .collect(),
        is_confirmed: Some(tie && ordered),
        conclusion: "the models follow the table; the text names SEA|XHD|XCY with 10 sectors as the best for fsck, which the table does not show".to_owned(),
    })
}

fn row_of_command(command: &str) -> &'static TableRow {
    let row = TABLE_ROWS.iter().find(|row| row.command == command);
    row.expect("the table has the row")
}

fn check_flat_reads(flat: &[ThreeControllers]) -> PublishedStatement {
    let first = flat
        .iter()
        .all(|one| one.cheetah > one.rimfire && one.rimfire > one.baseline);
    let mut findings = Vec::new();
    for one in flat
        .iter()
        .filter(|one| !one.description.ends_with("1-track"))
    {
        findings.extend([
            Finding::new(
                &format!("{}, Cheetah", one.description),
                one.cheetah,
                "KB/s",
            ),
            Finding::new(
                &format!("{}, Rimfire", one.description),
                one.rimfire,
                "KB/s",
            ),
            Finding::new(
                &format!("{}, 451 with an Eagle", one.description),
                one.baseline,
                "KB/s",
            ),
        ]);
    }
    PublishedStatement {
        document: DOCUMENT_ID.to_owned(),
        statement: "the Cheetah is very fast on flat out reads".to_owned(),
        findings,
        is_confirmed: Some(first),
        conclusion: "first in every row that only reads, with every size of call".to_owned(),
    }
}

/// Returns, for each cell, the ratio of a controller's rate to that of the 451.
fn list_ratios(cells: &[ThreeControllers], of: fn(&ThreeControllers) -> f64) -> Vec<Finding> {
    cells
        .iter()
        .map(|one| Finding::new(&one.description, of(one), "times the 451"))
        .collect()
}

fn check_degraded(mixed: &[ThreeControllers]) -> PublishedStatement {
    let cheetah = geometric_mean(mixed.iter().map(|one| one.cheetah / one.baseline));
    let rimfire = geometric_mean(mixed.iter().map(|one| one.rimfire / one.baseline));
    PublishedStatement {
        document: DOCUMENT_ID.to_owned(),
        statement: "the Cheetah degrades to 1.0 to 1.1 times a 451 on heavy mixes of reads and writes, and falls behind the Rimfire".to_owned(),
        findings: list_ratios(mixed, |one| one.cheetah / one.baseline),
        is_confirmed: Some(cheetah < rimfire && (cheetah - 1.0).abs() <= ABOUT_TOLERANCE_SHARE),
        conclusion: format!(
            "the Cheetah's share of the 451 in the rows that read and write one drive; their geometric mean is {cheetah:.2}, and the Rimfire's {rimfire:.2}"
        ),
    }
}

fn check_announced(asking: &ModelQueries<'_>) -> Result<PublishedStatement, LaboratoryError> {
    let firmware = format!("{CHEETAH_SYSTEM}:announced-firmware");
    let copy = row_of_command(COPY_WITHIN_COMMAND);
    let jobs = [
        copy.build_job(asking, CHEETAH_SYSTEM, 8192)?,
        copy.build_job(asking, &firmware, 8192)?,
    ];
    let rates = asking.run_rates(&jobs)?;
    Ok(PublishedStatement {
        document: DOCUMENT_ID.to_owned(),
        statement:
            "new firmware that keeps the cache over writes would \"improve performance 30%\""
                .to_owned(),
        findings: vec![
            Finding::new("as tested", rates[0], "KB/s"),
            Finding::new("as announced", rates[1], "KB/s"),
            Finding::new("more", 100.0 * (rates[1] / rates[0] - 1.0), "%"),
        ],
        is_confirmed: None,
        conclusion: "a file copied within its file system with calls of 8 KB, counted once; a prediction: the author got no board with it that worked".to_owned(),
    })
}

fn check_across_the_board(
    flat: &[ThreeControllers],
    mixed: &[ThreeControllers],
) -> PublishedStatement {
    let ratio = |one: &ThreeControllers| one.rimfire / one.baseline;
    let findings: Vec<Finding> = list_ratios(flat, ratio)
        .into_iter()
        .chain(list_ratios(mixed, ratio))
        .collect();
    let mean = geometric_mean(findings.iter().map(|one| one.value));
    let of = |cells: &[ThreeControllers], is_raw: bool| {
        let some = cells.iter().filter(|one| one.is_raw() == is_raw);
        geometric_mean(some.map(ratio))
    };
    PublishedStatement {
        document: DOCUMENT_ID.to_owned(),
        statement: "the Rimfire is about 1.9 to 2.0 times a 451 on most things, across the board"
            .to_owned(),
        findings,
        is_confirmed: Some((1.8..=2.1).contains(&mean)),
        conclusion: format!(
            "the geometric mean is {mean:.2}: {:.2} of raw reads, {:.2} of files read, {:.2} of files copied, and {:.2} of copies between raw partitions, which seek most of their time; within a tenth of what is said counts as about",
            of(flat, true),
            of(flat, false),
            of(mixed, false),
            of(mixed, true)
        ),
    }
}

/// Tests several simultaneous fscks against a single one: the activity on several parts of the disk
/// that the table includes.
fn check_activity(cells: &[&PublishedCell], values: &CellValues) -> PublishedStatement {
    const ONE_CHECKER: [(&str, &str); 2] = [
        ("rimfire", "fsck-dev-rxx0f/sea-crd-ra10"),
        ("cheetah", "fsck-dev-rxx0f"),
    ];
    const SEVERAL_CHECKERS: [(f64, &str, &str); 2] = [
        (4.0, "one", "4-parallel-fsck-of-ip0f-offset-5-s-each"),
        (2.0, "two", "2-parallel-fsck-of-ip0f-and-ip0d"),
    ];
    let mut findings = Vec::new();
    // Of each board, of one partition and of two: the time for each fsck of several,
    // in that of one alone.
    let each = ONE_CHECKER.map(|(board, one)| {
        let id = |name: &str| format!("{DOCUMENT_ID}/misc/{board}/{name}");
        SEVERAL_CHECKERS.map(|(count, partitions, several)| {
            let ratio = |of: &dyn Fn(&str) -> Option<f64>| {
                of(&id(several))
                    .zip(of(&id(one)))
                    .map(|(all, one)| all / one)
            };
            let printed = |id: &str| {
                let with_id = |cell: &&&PublishedCell| cell.id.as_deref() == Some(id);
                cells.iter().find(with_id).and_then(|cell| cell.real_s)
            };
            let modelled = ratio(&|id| values.value_of_id(id)).expect("all of them are modelled");
            let what = format!(
                "{board}, {count} fscks on {partitions} of its file systems, printed {:.2}",
                ratio(&printed).expect("all of them are printed"),
            );
            findings.push(Finding::new(&what, modelled, "times one alone"));
            modelled / count
        })
    });
    let [rimfire, cheetah] = each;
    let linear = geometric_mean(rimfire.into_iter());
    PublishedStatement {
        document: DOCUMENT_ID.to_owned(),
        statement: "the Rimfire degrades linearly when kept busy on different parts of the disk, the Cheetah excessively with activity on two file systems".to_owned(),
        findings,
        is_confirmed: Some((0.9..=1.1).contains(&linear) && cheetah[1] > 1.1 * rimfire[1]),
        conclusion: format!(
            "each of several takes {linear:.2} times as long as linearly on the Rimfire, by the geometric mean; on two file systems, {:.2} times on the Cheetah and {:.2} on the Rimfire",
            cheetah[1], rimfire[1]
        ),
    }
}
