//! What seed 001 says in words: which controller is ahead of which, at what.

use super::{
    BASELINE, CYLINDER_SECTORS, DOCUMENT, READ_FILE, ROWS, Row, SECTOR_BYTES, TRACK_SECTORS,
    Zachariassen,
};
use crate::error::LaboratoryError;
use crate::reproduce::jobs::{Figure, Workshop};
use diskperf_analysis::accuracy::{Finding, Statement};
use diskperf_machine::catalogue::{Catalogue, Setting};
use diskperf_timeline::ControllerCache;

const CHEETAH: &str = "sun3-cheetah-2344";
const RIMFIRE: &str = "sun3-rimfire-2344";
const READ_RAW: &str = "dd if=/dev/rXX0f of=/dev/null";
const COPY_FILE: &str = "dd if=/u2/bigfile of=/u2/bigfile.new";

/// The sizes of the table's columns, in bytes.
const CALLS: [(&str, u64); 3] = [
    ("8k", 8192),
    ("1 track", TRACK_SECTORS * SECTOR_BYTES),
    ("1 cylinder", CYLINDER_SECTORS * SECTOR_BYTES),
];

/// The hit rate that the text gives, in percent, and how near counts as that.
const HIT_PERCENT: f64 = 99.97;
const NEAR_PERCENT: f64 = 0.05;

/// "About" the same: within this share.
const ABOUT: f64 = 0.25;

impl Zachariassen {
    /// The text's orderings, on the models.
    pub(in crate::reproduce) fn statements(
        &self,
        catalogue: &Catalogue,
        settings: &[Setting],
        seed: u64,
        workshop: &Workshop<'_>,
    ) -> Result<Vec<Statement>, LaboratoryError> {
        let targets = [CHEETAH, RIMFIRE, BASELINE];
        let firmware = format!("{CHEETAH}:announced-firmware");
        let mut jobs = Vec::new();
        for row in [row(READ_FILE), row(COPY_FILE)] {
            for target in targets {
                jobs.push(row.job(catalogue, settings, (target, 8192), seed)?);
            }
        }
        jobs.push(row(COPY_FILE).job(catalogue, settings, (&firmware, 8192), seed)?);
        for (_, call_bytes) in CALLS {
            jobs.push(row(READ_RAW).job(catalogue, settings, (RIMFIRE, call_bytes), seed)?);
        }
        let done = workshop.carry_out(&jobs)?;
        let rate = |place: usize| -> f64 {
            let figure: &Figure = &done[place][0];
            figure.kb_per_s
        };
        let reads = [rate(0), rate(1), rate(2)];
        let copies = [rate(3), rate(4), rate(5)];
        Ok([
            Some(flat_reads(reads)),
            Some(mixed(copies)),
            Some(firmware_flush(copies[0], rate(6))),
            Some(across_the_board(reads, copies)),
            self.bits(),
            Some(hit_rate([7, 8, 9].map(|place| &done[place][0]))),
        ]
        .into_iter()
        .flatten()
        .collect())
    }

    /// The order of the settings of the cache on fsck.
    fn bits(&self) -> Option<Statement> {
        let id = |rest: &str| format!("{DOCUMENT}/misc/rimfire/fsck-dev-rxx0f{rest}");
        let trial = |rest: &str| self.values.get(&id(rest)).copied();
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
        Some(Statement {
            published: DOCUMENT.to_owned(),
            statement: "five settings of the cache on fsck: 29.1, 37.0, 37.0, 48.4 and 79.5 s"
                .to_owned(),
            findings: settings
                .iter()
                .map(|(what, seconds)| finding(what, *seconds, "s"))
                .collect(),
            holds: Some(tie && ordered),
            conclusion: "the models follow the table; the text names SEA|XHD|XCY with 10 sectors as the best for fsck, which the table does not show".to_owned(),
        })
    }
}

fn row(command: &str) -> &'static Row {
    let row = ROWS.iter().find(|row| row.command == command);
    row.expect("the table has the row")
}

fn finding(what: &str, value: f64, unit: &str) -> Finding {
    Finding {
        what: what.to_owned(),
        value,
        unit: unit.to_owned(),
    }
}

fn of_three(rates: [f64; 3]) -> Vec<Finding> {
    let names = [
        "the Cheetah",
        "the Rimfire",
        "the Xylogics 451 with an Eagle",
    ];
    names
        .into_iter()
        .zip(rates)
        .map(|(name, rate)| finding(name, rate, "KB/s"))
        .collect()
}

fn flat_reads(reads: [f64; 3]) -> Statement {
    Statement {
        published: DOCUMENT.to_owned(),
        statement: "the Cheetah is very fast on flat out reads".to_owned(),
        findings: of_three(reads),
        holds: Some(reads[0] > reads[1] && reads[1] > reads[2]),
        conclusion: "a file read with calls of 8 KB".to_owned(),
    }
}

fn mixed([cheetah, rimfire, baseline]: [f64; 3]) -> Statement {
    Statement {
        published: DOCUMENT.to_owned(),
        statement: "asked to do input and output interleaved, the Cheetah degrades to about the level of the 451".to_owned(),
        findings: of_three([cheetah, rimfire, baseline]),
        holds: Some(cheetah < rimfire && (cheetah / baseline - 1.0).abs() <= ABOUT),
        conclusion: "a file copied within its file system with calls of 8 KB, counted once".to_owned(),
    }
}

/// What the cache counts on a long raw read.
fn hit_rate(figures: [&Figure; 3]) -> Statement {
    let percents = figures.map(|figure| {
        let mut classes = figure.controller_caches.iter();
        classes.next().map_or(0.0, ControllerCache::hit_percent)
    });
    let best = percents.into_iter().fold(0.0, f64::max);
    Statement {
        published: DOCUMENT.to_owned(),
        statement: format!(
            "the Rimfire's best hit rate was {HIT_PERCENT} %, on a long raw disk read"
        ),
        findings: CALLS
            .iter()
            .zip(percents)
            .map(|((name, _), percent)| finding(&format!("calls of {name}"), percent, "%"))
            .collect(),
        holds: Some((best - HIT_PERCENT).abs() <= NEAR_PERCENT),
        conclusion: "all of partition f; a hit is a read for which the arm had nothing to begin: all was in the cache, or was passing under the heads".to_owned(),
    }
}

fn firmware_flush(tested: f64, announced: f64) -> Statement {
    Statement {
        published: DOCUMENT.to_owned(),
        statement:
            "new firmware that keeps the cache over writes would \"improve performance 30%\""
                .to_owned(),
        findings: vec![
            finding("as tested", tested, "KB/s"),
            finding("as announced", announced, "KB/s"),
            finding("more", 100.0 * (announced / tested - 1.0), "%"),
        ],
        holds: None,
        conclusion: "a prediction: the author got no board with it that worked".to_owned(),
    }
}

fn across_the_board(reads: [f64; 3], copies: [f64; 3]) -> Statement {
    let of_reads = reads[1] / reads[2];
    let of_copies = copies[1] / copies[2];
    let near = |ratio: f64| (1.8..=2.1).contains(&ratio);
    Statement {
        published: DOCUMENT.to_owned(),
        statement: "the Rimfire is about 1.9 to 2.0 times a 451 on most things, across the board"
            .to_owned(),
        findings: vec![
            finding("reading a file", of_reads, "times"),
            finding("copying a file", of_copies, "times"),
        ],
        holds: Some(near(of_reads) && near(of_copies)),
        conclusion: "within a tenth of what is said counts as about".to_owned(),
    }
}
