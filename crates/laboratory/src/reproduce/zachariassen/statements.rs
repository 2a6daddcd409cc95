//! What seed 001 says in words: which controller is ahead of which, at what.

use super::{BASELINE, DOCUMENT, READ_FILE, ROWS, Row};
use crate::error::LaboratoryError;
use crate::reproduce::asking::{Asking, Values};
use diskperf_analysis::accuracy::{Finding, Statement};

const CHEETAH: &str = "sun3-cheetah-2344";
const RIMFIRE: &str = "sun3-rimfire-2344";
const COPY_FILE: &str = "dd if=/u2/bigfile of=/u2/bigfile.new";

/// "About" the same: within this share.
const ABOUT: f64 = 0.25;

/// The text's orderings, on the models; those of its cells from their values.
pub(in crate::reproduce) fn statements(
    asking: &Asking<'_>,
    values: &Values,
) -> Result<Vec<Statement>, LaboratoryError> {
    let firmware = format!("{CHEETAH}:announced-firmware");
    let mut jobs = Vec::new();
    for row in [row(READ_FILE), row(COPY_FILE)] {
        for target in [CHEETAH, RIMFIRE, BASELINE] {
            jobs.push(row.job(asking, target, 8192)?);
        }
    }
    jobs.push(row(COPY_FILE).job(asking, &firmware, 8192)?);
    let rates = asking.rates(&jobs)?;
    let reads = [rates[0], rates[1], rates[2]];
    let copies = [rates[3], rates[4], rates[5]];
    Ok([
        Some(flat_reads(reads)),
        Some(mixed(copies)),
        Some(firmware_flush(copies[0], rates[6])),
        Some(across_the_board(reads, copies)),
        bits(values),
    ]
    .into_iter()
    .flatten()
    .collect())
}

/// The order of the settings of the cache on fsck.
fn bits(values: &Values) -> Option<Statement> {
    let id = |rest: &str| format!("{DOCUMENT}/misc/rimfire/fsck-dev-rxx0f{rest}");
    let trial = |rest: &str| values.by_id(&id(rest));
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
            .map(|(what, seconds)| Finding::new(what, *seconds, "s"))
            .collect(),
        holds: Some(tie && ordered),
        conclusion: "the models follow the table; the text names SEA|XHD|XCY with 10 sectors as the best for fsck, which the table does not show".to_owned(),
    })
}

fn row(command: &str) -> &'static Row {
    let row = ROWS.iter().find(|row| row.command == command);
    row.expect("the table has the row")
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
        .map(|(name, rate)| Finding::new(name, rate, "KB/s"))
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

fn firmware_flush(tested: f64, announced: f64) -> Statement {
    Statement {
        published: DOCUMENT.to_owned(),
        statement:
            "new firmware that keeps the cache over writes would \"improve performance 30%\""
                .to_owned(),
        findings: vec![
            Finding::new("as tested", tested, "KB/s"),
            Finding::new("as announced", announced, "KB/s"),
            Finding::new("more", 100.0 * (announced / tested - 1.0), "%"),
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
            Finding::new("reading a file", of_reads, "times"),
            Finding::new("copying a file", of_copies, "times"),
        ],
        holds: Some(near(of_reads) && near(of_copies)),
        conclusion: "within a tenth of what is said counts as about".to_owned(),
    }
}
