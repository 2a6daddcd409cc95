//! Account of the time of programs, as tables, JSON and CSV.

mod devices;
mod response;
mod tails;

use super::csv::{Field, format_records, number, optional};
use super::document::{Block, Column, Grid, Group};
use super::json::pretty;
use super::unwritten;
use crate::explanation::words::{deadline, milliseconds, percent, stage};
use crate::explanation::{
    Account, Buffered, Counterfactual, DeviceAccount, DriveComponent, Explanation, Missed,
    ProgramExplanation, Utilisation, is_processor_stage,
};
use diskperf_timeline::ledger::LedgerEntry;
use diskperf_timeline::trace::CountedBusy;
use diskperf_timeline::{Ledger, Nanoseconds, Stage};
use serde::Serialize;

/// Maximum number of counterfactuals in the table: those with the largest gain.
const COUNTERFACTUALS_MAX: usize = 12;
/// Maximum number of pairs of changes in the table, among those that gain more than the sum of
/// their parts.
const PAIRS_MAX: usize = 3;

pub(super) fn blocks(explanation: &Explanation) -> Vec<Block> {
    let mut blocks = vec![Block::Heading(format!("Explained: {}", explanation.what))];
    for program in &explanation.programs {
        blocks.extend(describe_program(program));
    }
    let shares = explanation.programs.iter().map(|one| one.unwritten_share);
    let notes = unwritten::legend(shares).into_iter();
    let notes: Vec<String> = notes.chain(explanation.notes.iter().cloned()).collect();
    if !notes.is_empty() {
        blocks.push(Block::List(notes));
    }
    blocks
}

fn describe_program(program: &ProgramExplanation) -> Vec<Block> {
    let account = &program.account;
    let drives = match program.drives {
        1 => String::new(),
        drives => format!(" on {drives} drives at once"),
    };
    let mut blocks = vec![
        Block::Section(format!(
            "{}, {}{drives}: {}{}",
            program.program,
            program.filesystem,
            milliseconds(account.elapsed.0 as f64),
            unwritten::mark(program.unwritten_share)
        )),
        Block::Text(program.verdict.join(" ")),
        Block::Grid(ledger_grid(account)),
    ];
    blocks.extend(
        account
            .response
            .as_ref()
            .map(response::grid)
            .map(Block::Grid),
    );
    blocks.push(Block::Grid(utilisation_grid(account)));
    if !account.missed.is_empty() {
        blocks.push(Block::Grid(missed_grid(&account.missed)));
    }
    if account.devices.iter().any(|one| !one.operations.is_empty()) {
        blocks.push(Block::Grid(devices::requests(&account.devices)));
    }
    blocks.extend(tails::blocks(&program.tails));
    let shown = &program.counterfactuals;
    let gaining = |one: &&Counterfactual| one.gain(account.elapsed) > 0.0;
    let alone = shown.iter().filter(|one| !one.beats_sum).filter(gaining);
    let pairs = shown.iter().filter(|one| one.beats_sum).filter(gaining);
    let mut best: Vec<&Counterfactual> = alone
        .take(COUNTERFACTUALS_MAX)
        .chain(pairs.take(PAIRS_MAX))
        .collect();
    best.sort_by_key(|one| one.elapsed);
    if !best.is_empty() {
        blocks.push(Block::Grid(counterfactual_grid(&best, account.elapsed)));
    }
    blocks
}

fn ledger_grid(account: &Account) -> Grid {
    let stages: Vec<Stage> = Stage::ALL
        .into_iter()
        .filter(|one| {
            let mut all = account.programs.iter().map(|program| &program.ledger);
            account.ledger.stage_duration(*one).0 > 0
                || all.any(|ledger| ledger.stage_duration(*one).0 > 0)
        })
        .collect();
    let mut names: Vec<String> = stages.iter().map(|one| stage(*one)).collect();
    names.push("elapsed".to_owned());
    let columns = |ledger: &Ledger, elapsed: Nanoseconds| {
        let ns: Vec<u64> = stages
            .iter()
            .map(|one| ledger.stage_duration(*one).0)
            .chain([elapsed.0])
            .collect();
        let all = elapsed.0.max(1) as f64;
        vec![
            Column::figures("ms", ns.iter().map(|ns| format_milliseconds(*ns)).collect()),
            Column::figures(
                "share",
                ns.iter().map(|ns| percent(*ns as f64 / all)).collect(),
            ),
        ]
    };
    let whole = columns(&account.ledger, account.elapsed);
    let mut groups = vec![Group::new(
        match account.programs.is_empty() {
            true => "",
            false => "last to end",
        },
        whole,
    )];
    for (number, program) in account.programs.iter().enumerate() {
        let title = format!("program {}", number + 1);
        groups.push(Group::new(title, columns(&program.ledger, program.elapsed)));
    }
    Grid {
        key: Column::words("the program's time", names),
        groups,
    }
}

fn format_milliseconds(ns: u64) -> String {
    match ns {
        0 => String::new(),
        ns => format!("{:.1}", ns as f64 / 1e6),
    }
}

fn utilisation_grid(account: &Account) -> Grid {
    let used = &account.utilisation;
    let of = |name: &str, share: Option<f64>| Some((name.to_owned(), share?));
    let drive = match account.devices.is_empty() {
        true => "processor and a drive at once",
        false => "processor and a device at once",
    };
    let known = [
        of("processor", used.processor),
        of("of that, in handlers of interrupts", used.handlers),
        of(drive, used.processor_and_drive),
        // Drives with links of their own are on no bus of the computer, unless it moves data.
        of(
            "bus",
            used.bus
                .filter(|share| used.links.is_empty() || *share > 0.0),
        ),
    ];
    let mut rows: Vec<(String, f64)> = known.into_iter().flatten().collect();
    for (number, one) in used.controllers.iter().enumerate() {
        let what = match one.what {
            CountedBusy::Channel => "channel",
            CountedBusy::Processor => "controller's processor",
        };
        let name = match used.controllers.len() {
            1 => what.to_owned(),
            _ => format!("{what} {}", number + 1),
        };
        rows.push((name, one.share));
    }
    for (number, share) in used
        .links
        .iter()
        .enumerate()
        .filter(|(_, share)| **share > 0.0)
    {
        rows.push((format!("link of drive {}", number + 1), *share));
    }
    for one in &used.parts {
        let part = match one.part {
            DriveComponent::Controller => "controller",
            DriveComponent::Channels => "channels (mean)",
            DriveComponent::Dies => "dies (mean)",
        };
        rows.push((format!("{part} of drive {}", one.drive + 1), one.share));
    }
    let has_dies = |number: usize| {
        let mut parts = used.parts.iter();
        parts.any(|one| one.part == DriveComponent::Dies && one.drive as usize == number)
    };
    let asked = used.drives.iter().enumerate();
    let asked = asked.filter(|(number, _)| !has_dies(*number));
    for (number, share) in asked.filter(|(_, share)| **share > 0.0) {
        let device = account.devices.get(number);
        let name = device.map_or_else(
            || format!("drive {}", number + 1),
            |device| device.device.clone(),
        );
        rows.push((name, *share));
    }
    Grid {
        key: Column::words(
            "busy, of the elapsed time",
            rows.iter().map(|(name, _)| name.clone()).collect(),
        ),
        groups: vec![Group::new(
            "",
            vec![Column::figures(
                "share",
                rows.iter().map(|(_, share)| percent(*share)).collect(),
            )],
        )],
    }
}

fn missed_grid(all: &[Missed]) -> Grid {
    let column = |of: &dyn Fn(&Missed) -> String| all.iter().map(of).collect();
    let late =
        |ns: Option<u64>| ns.map_or_else(String::new, |ns| format!("{:.2}", ns as f64 / 1e6));
    Grid {
        key: Column::words(
            "missed revolutions of all requests",
            column(&|one| deadline(one.deadline).to_owned()),
        ),
        groups: vec![Group::new(
            "",
            vec![
                Column::figures("times", column(&|one| one.count.to_string())),
                Column::figures("cost ms", column(&|one| format_milliseconds(one.ns))),
                Column::figures("late by ms", column(&|one| late(one.late_median_ns))),
                Column::figures("at most ms", column(&|one| late(one.late_max_ns))),
            ],
        )],
    }
}

fn counterfactual_grid(all: &[&Counterfactual], as_is: Nanoseconds) -> Grid {
    let mark = |one: &&Counterfactual| match one.beats_sum {
        true => format!("{} *", one.change),
        false => one.change.clone(),
    };
    Grid {
        key: Column::words("with this changed", all.iter().map(mark).collect()),
        groups: vec![Group::new(
            "",
            vec![
                Column::figures(
                    "ms",
                    all.iter()
                        .map(|one| format_milliseconds(one.elapsed.0))
                        .collect(),
                ),
                Column::figures(
                    "gain",
                    all.iter().map(|one| percent(one.gain(as_is))).collect(),
                ),
            ],
        )],
    }
}

/// Returns the name of a stage in the JSON contract, with the deadline of a missed revolution.
pub(super) fn name_stage(stage: Stage) -> (String, Option<String>) {
    let text = |value: serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    match stage {
        Stage::MissedRevolution(deadline) => {
            let cause = serde_json::to_value(deadline).expect("a name");
            ("missed_revolution".to_owned(), Some(text(cause)))
        }
        Stage::DieWait(busy) => {
            let cause = serde_json::to_value(busy).expect("a name");
            ("die_wait".to_owned(), Some(text(cause)))
        }
        stage => (text(serde_json::to_value(stage).expect("a name")), None),
    }
}

#[derive(Serialize)]
struct Line {
    stage: String,
    cause: Option<String>,
    ns: u64,
}

fn ledger_lines(entries: &[LedgerEntry]) -> Vec<Line> {
    let line = |entry: &LedgerEntry| {
        let (stage, cause) = name_stage(entry.stage);
        Line {
            stage,
            cause,
            ns: entry.duration.0,
        }
    };
    entries.iter().map(line).collect()
}

/// Formats the explanation as JSON by the `explain` contract.
pub(super) fn json(explanation: &Explanation) -> String {
    #[derive(Serialize)]
    struct Document<'e> {
        what: &'e str,
        programs: Vec<Program<'e>>,
        notes: &'e [String],
    }
    let document = Document {
        what: &explanation.what,
        programs: explanation
            .programs
            .iter()
            .map(Program::from_explanation)
            .collect(),
        notes: &explanation.notes,
    };
    pretty(&document)
}

#[derive(Serialize)]
struct Program<'e> {
    program: &'e str,
    filesystem: &'e str,
    drives: u32,
    elapsed_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    accounted_cpu_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unwritten_share: Option<f64>,
    ledger: Vec<Line>,
    ledgers: Vec<OwnLedger>,
    /// Response times by stage, where several requests were in flight at a drive.
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<response::ResponseLine>,
    /// Reads served from buffers, where a disk with a buffer was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    buffered: Option<Buffered>,
    missed: &'e [Missed],
    utilisation: &'e Utilisation,
    requests: Vec<DriveLine>,
    #[serde(skip_serializing_if = "<[DeviceAccount]>::is_empty")]
    devices: &'e [DeviceAccount],
    verdict: String,
    counterfactuals: Vec<CounterfactualLine<'e>>,
    /// Slowest requests and their causes; only for flash drives.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tails: Vec<tails::TailLine>,
}

#[derive(Serialize)]
struct OwnLedger {
    elapsed_ns: u64,
    ledger: Vec<Line>,
}

#[derive(Serialize)]
struct DriveLine {
    drive: u32,
    requests: u64,
    usual_bytes: u64,
    usual_requests: u64,
    /// Duration of a revolution in nanoseconds; `None` for a device without platters.
    revolution_ns: Option<f64>,
    stages: Vec<Line>,
    idle_ns: u64,
}

#[derive(Serialize)]
struct CounterfactualLine<'e> {
    change: &'e str,
    elapsed_ns: u64,
    gain: f64,
    beats_sum: bool,
}

impl<'e> Program<'e> {
    fn from_explanation(program: &'e ProgramExplanation) -> Self {
        let account = &program.account;
        let own = account.programs.iter().map(|one| OwnLedger {
            elapsed_ns: one.elapsed.0,
            ledger: ledger_lines(one.ledger.entries()),
        });
        let drives = account.drives.iter().map(|drive| DriveLine {
            drive: drive.drive + 1,
            requests: drive.requests,
            usual_bytes: drive.usual_bytes,
            usual_requests: drive.usual_requests,
            revolution_ns: (drive.revolution_ns > 0.0).then_some(drive.revolution_ns),
            stages: ledger_lines(&drive.stages),
            idle_ns: drive.idle.0,
        });
        let changed = program
            .counterfactuals
            .iter()
            .map(|one| CounterfactualLine {
                change: &one.change,
                elapsed_ns: one.elapsed.0,
                gain: one.gain(account.elapsed),
                beats_sum: one.beats_sum,
            });
        Self {
            program: &program.program,
            filesystem: &program.filesystem,
            drives: program.drives,
            elapsed_ns: account.elapsed.0,
            accounted_cpu_ns: program.accounted.map(|time| time.0),
            unwritten_share: program.unwritten_share,
            ledger: ledger_lines(account.ledger.entries()),
            ledgers: own.collect(),
            response: account
                .response
                .as_ref()
                .map(response::ResponseLine::from_response),
            buffered: account.buffered,
            missed: &account.missed,
            utilisation: &account.utilisation,
            requests: drives.collect(),
            devices: &account.devices,
            verdict: program.verdict.join(" "),
            counterfactuals: changed.collect(),
            tails: program
                .tails
                .iter()
                .map(tails::TailLine::from_tail)
                .collect(),
        }
    }
}

/// Formats the explanation as CSV: one line for each stage, some for the requests of each device,
/// and one for each counterfactual.
pub(super) fn csv(explanation: &Explanation) -> String {
    let mut records: Vec<Vec<Field>> = Vec::new();
    for program in &explanation.programs {
        let account = &program.account;
        let elapsed = account.elapsed.0.max(1) as f64;
        let record = |kind: &str, name: String, cause: String, ns: u64, gain: Option<f64>| {
            vec![
                ("program", program.program.clone()),
                ("filesystem", program.filesystem.clone()),
                ("drives", program.drives.to_string()),
                ("kind", kind.to_owned()),
                ("name", name),
                ("cause", cause),
                ("ns", ns.to_string()),
                ("share", number(ns as f64 / elapsed)),
                ("gain", optional(gain)),
            ]
        };
        for entry in account.ledger.entries() {
            let (name, cause) = name_stage(entry.stage);
            let kind = match is_processor_stage(entry.stage) {
                true => "processor",
                false => "waiting",
            };
            records.push(record(
                kind,
                name,
                cause.unwrap_or_default(),
                entry.duration.0,
                None,
            ));
        }
        if let Some(of) = &account.response {
            for entry in of.ledger.entries() {
                let (name, cause) = name_stage(entry.stage);
                let each = of.each(entry.duration).round() as u64;
                let mut line = record("response", name, cause.unwrap_or_default(), each, None);
                // Of the mean response, and not of what the program took.
                for field in line.iter_mut().filter(|(column, _)| *column == "share") {
                    field.1 = number(of.share(entry.duration));
                }
                records.push(line);
            }
        }
        for (name, which, ns) in devices::lines(&account.devices) {
            records.push(record("request", name, which.to_owned(), ns, None));
        }
        for one in &program.counterfactuals {
            let gain = Some(one.gain(account.elapsed));
            let change = one.change.clone();
            records.push(record(
                "counterfactual",
                change,
                String::new(),
                one.elapsed.0,
                gain,
            ));
        }
    }
    format_records(&records)
}
