//! Account of the time of programs, as tables, JSON and CSV.

mod devices;
mod operations;
mod response;
mod tails;

use super::csv::{CsvField, format_number, format_optional, format_records};
use super::document::{Column, ColumnGroup, DocumentBlock, Grid};
use super::json::render_pretty;
use super::unwritten;
use crate::explanation::words::{deadline_label, format_percent, format_time_ms, stage_label};
use crate::explanation::{
    BufferHits, Counterfactual, DeviceAccount, DriveComponent, Explanation, MissedDeadline,
    ProgramExplanation, TimeAccount, Utilisation, is_processor_stage,
};
use diskperf_timeline::ledger::LedgerEntry;
use diskperf_timeline::trace::CountedBusy;
use diskperf_timeline::{Ledger, Nanoseconds, Stage};
use serde::Serialize;

/// Maximum number of counterfactuals in the table: those with the largest gain.
const COUNTERFACTUAL_COUNT_MAX: usize = 12;
/// Maximum number of pairs of changes in the table, among those that gain more than the sum of
/// their parts.
const PAIR_COUNT_MAX: usize = 3;

pub(super) fn build_blocks(explanation: &Explanation) -> Vec<DocumentBlock> {
    let mut blocks = vec![DocumentBlock::Heading(format!(
        "Explained: {}",
        explanation.subject
    ))];
    for program in &explanation.programs {
        blocks.extend(describe_program(program));
    }
    let shares = explanation.programs.iter().map(|one| one.unwritten_share);
    let notes = unwritten::format_legend(shares).into_iter();
    let notes: Vec<String> = notes.chain(explanation.notes.iter().cloned()).collect();
    if !notes.is_empty() {
        blocks.push(DocumentBlock::List(notes));
    }
    blocks
}

fn describe_program(program: &ProgramExplanation) -> Vec<DocumentBlock> {
    let account = &program.time_account;
    let drives = match program.drive_count {
        1 => String::new(),
        drives => format!(" on {drives} drives at once"),
    };
    let mut blocks = vec![
        DocumentBlock::Section(format!(
            "{}, {}{drives}: {}{}",
            program.program,
            program.filesystem,
            format_time_ms(account.elapsed.0 as f64),
            unwritten::mark_of_share(program.unwritten_share)
        )),
        DocumentBlock::Text(program.verdict_sentences.join(" ")),
    ];
    blocks.extend(operations::build_blocks(&program.breakdowns));
    blocks.push(DocumentBlock::Grid(build_ledger_grid(account)));
    blocks.extend(
        account
            .response_account
            .as_ref()
            .map(response::build_grid)
            .map(DocumentBlock::Grid),
    );
    blocks.push(DocumentBlock::Grid(build_utilisation_grid(account)));
    if !account.missed_deadlines.is_empty() {
        blocks.push(DocumentBlock::Grid(build_missed_grid(
            &account.missed_deadlines,
        )));
    }
    if account
        .device_accounts
        .iter()
        .any(|one| !one.operation_accounts.is_empty())
    {
        blocks.push(DocumentBlock::Grid(devices::build_request_grid(
            &account.device_accounts,
        )));
    }
    blocks.extend(tails::build_blocks(&program.tails));
    let shown = &program.counterfactuals;
    let gaining = |one: &&Counterfactual| one.relative_gain(account.elapsed) > 0.0;
    let alone = shown
        .iter()
        .filter(|one| !one.exceeds_sum_of_parts)
        .filter(gaining);
    let pairs = shown
        .iter()
        .filter(|one| one.exceeds_sum_of_parts)
        .filter(gaining);
    let mut best: Vec<&Counterfactual> = alone
        .take(COUNTERFACTUAL_COUNT_MAX)
        .chain(pairs.take(PAIR_COUNT_MAX))
        .collect();
    best.sort_by_key(|one| one.elapsed_time);
    if !best.is_empty() {
        blocks.push(DocumentBlock::Grid(build_counterfactual_grid(
            &best,
            account.elapsed,
        )));
    }
    blocks
}

fn build_ledger_grid(account: &TimeAccount) -> Grid {
    let stages: Vec<Stage> = Stage::ALL
        .into_iter()
        .filter(|one| {
            let mut all = account
                .program_ledgers
                .iter()
                .map(|program| &program.ledger);
            account.ledger.stage_duration(*one).0 > 0
                || all.any(|ledger| ledger.stage_duration(*one).0 > 0)
        })
        .collect();
    let mut names: Vec<String> = stages.iter().map(|one| stage_label(*one)).collect();
    names.push("elapsed".to_owned());
    let columns = |ledger: &Ledger, elapsed: Nanoseconds| {
        let ns: Vec<u64> = stages
            .iter()
            .map(|one| ledger.stage_duration(*one).0)
            .chain([elapsed.0])
            .collect();
        let all = elapsed.0.max(1) as f64;
        vec![
            Column::right_aligned("ms", ns.iter().map(|ns| format_milliseconds(*ns)).collect()),
            Column::right_aligned(
                "share",
                ns.iter()
                    .map(|ns| format_percent(*ns as f64 / all))
                    .collect(),
            ),
        ]
    };
    let whole = columns(&account.ledger, account.elapsed);
    let mut groups = vec![ColumnGroup::new(
        match account.program_ledgers.is_empty() {
            true => "",
            false => "last to end",
        },
        whole,
    )];
    for (number, program) in account.program_ledgers.iter().enumerate() {
        let title = format!("program {}", number + 1);
        groups.push(ColumnGroup::new(
            title,
            columns(&program.ledger, program.elapsed),
        ));
    }
    Grid {
        key_column: Column::left_aligned("the program's time", names),
        groups,
    }
}

fn format_milliseconds(ns: u64) -> String {
    match ns {
        0 => String::new(),
        ns => format!("{:.1}", ns as f64 / 1e6),
    }
}

fn build_utilisation_grid(account: &TimeAccount) -> Grid {
    let used = &account.utilisation;
    let of = |name: &str, share: Option<f64>| Some((name.to_owned(), share?));
    let drive = match account.device_accounts.is_empty() {
        true => "processor and a drive at once",
        false => "processor and a device at once",
    };
    let known = [
        of("processor", used.processor_share),
        of("of that, in handlers of interrupts", used.handler_share),
        of(drive, used.processor_and_drive_share),
        // Drives with links of their own are on no bus of the computer, unless it moves data.
        of(
            "bus",
            used.bus_share
                .filter(|share| used.link_shares.is_empty() || *share > 0.0),
        ),
    ];
    let mut rows: Vec<(String, f64)> = known.into_iter().flatten().collect();
    for (number, one) in used.controller_shares.iter().enumerate() {
        let what = match one.resource {
            CountedBusy::Channel => "channel",
            CountedBusy::Processor => "controller's processor",
        };
        let name = match used.controller_shares.len() {
            1 => what.to_owned(),
            _ => format!("{what} {}", number + 1),
        };
        rows.push((name, one.busy_share));
    }
    for (number, share) in used
        .link_shares
        .iter()
        .enumerate()
        .filter(|(_, share)| **share > 0.0)
    {
        rows.push((format!("link of drive {}", number + 1), *share));
    }
    for one in &used.component_shares {
        let part = match one.component {
            DriveComponent::Controller => "controller",
            DriveComponent::Channels => "channels (mean)",
            DriveComponent::Dies => "dies (mean)",
        };
        rows.push((
            format!("{part} of drive {}", one.drive_index + 1),
            one.busy_share,
        ));
    }
    let has_dies = |number: usize| {
        let mut parts = used.component_shares.iter();
        parts.any(|one| one.component == DriveComponent::Dies && one.drive_index as usize == number)
    };
    let asked = used.drive_shares.iter().enumerate();
    let asked = asked.filter(|(number, _)| !has_dies(*number));
    for (number, share) in asked.filter(|(_, share)| **share > 0.0) {
        let device = account.device_accounts.get(number);
        let name = device.map_or_else(
            || format!("drive {}", number + 1),
            |device| device.device_name.clone(),
        );
        rows.push((name, *share));
    }
    Grid {
        key_column: Column::left_aligned(
            "busy, of the elapsed time",
            rows.iter().map(|(name, _)| name.clone()).collect(),
        ),
        groups: vec![ColumnGroup::new(
            "",
            vec![Column::right_aligned(
                "share",
                rows.iter()
                    .map(|(_, share)| format_percent(*share))
                    .collect(),
            )],
        )],
    }
}

fn build_missed_grid(all: &[MissedDeadline]) -> Grid {
    let column = |of: &dyn Fn(&MissedDeadline) -> String| all.iter().map(of).collect();
    let late =
        |ns: Option<u64>| ns.map_or_else(String::new, |ns| format!("{:.2}", ns as f64 / 1e6));
    Grid {
        key_column: Column::left_aligned(
            "missed revolutions of all requests",
            column(&|one| deadline_label(one.deadline).to_owned()),
        ),
        groups: vec![ColumnGroup::new(
            "",
            vec![
                Column::right_aligned("times", column(&|one| one.missed_count.to_string())),
                Column::right_aligned("cost ms", column(&|one| format_milliseconds(one.lost_ns))),
                Column::right_aligned("late by ms", column(&|one| late(one.late_median_ns))),
                Column::right_aligned("at most ms", column(&|one| late(one.late_max_ns))),
            ],
        )],
    }
}

fn build_counterfactual_grid(all: &[&Counterfactual], as_is: Nanoseconds) -> Grid {
    let mark = |one: &&Counterfactual| match one.exceeds_sum_of_parts {
        true => format!("{} *", one.change),
        false => one.change.clone(),
    };
    Grid {
        key_column: Column::left_aligned("with this changed", all.iter().map(mark).collect()),
        groups: vec![ColumnGroup::new(
            "",
            vec![
                Column::right_aligned(
                    "ms",
                    all.iter()
                        .map(|one| format_milliseconds(one.elapsed_time.0))
                        .collect(),
                ),
                Column::right_aligned(
                    "gain",
                    all.iter()
                        .map(|one| format_percent(one.relative_gain(as_is)))
                        .collect(),
                ),
            ],
        )],
    }
}

/// Returns the name of a stage in the JSON contract, with the deadline of a missed revolution.
pub(super) fn split_stage_label(stage: Stage) -> (String, Option<String>) {
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
        Stage::RateLimit(limit) => {
            let cause = serde_json::to_value(limit).expect("a name");
            ("rate_limit".to_owned(), Some(text(cause)))
        }
        stage => (text(serde_json::to_value(stage).expect("a name")), None),
    }
}

#[derive(Serialize)]
struct LedgerLineJson {
    stage: String,
    cause: Option<String>,
    ns: u64,
}

fn ledger_json(entries: &[LedgerEntry]) -> Vec<LedgerLineJson> {
    let line = |entry: &LedgerEntry| {
        let (stage, cause) = split_stage_label(entry.stage);
        LedgerLineJson {
            stage,
            cause,
            ns: entry.duration.0,
        }
    };
    entries.iter().map(line).collect()
}

/// Formats the explanation as JSON by the `explain` contract.
pub(super) fn render_json(explanation: &Explanation) -> String {
    #[derive(Serialize)]
    struct ExplanationJson<'e> {
        what: &'e str,
        programs: Vec<ProgramExplanationJson<'e>>,
        notes: &'e [String],
    }
    let document = ExplanationJson {
        what: &explanation.subject,
        programs: explanation
            .programs
            .iter()
            .map(ProgramExplanationJson::from_explanation)
            .collect(),
        notes: &explanation.notes,
    };
    render_pretty(&document)
}

#[derive(Serialize)]
struct ProgramExplanationJson<'e> {
    program: &'e str,
    filesystem: &'e str,
    drives: u32,
    elapsed_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    accounted_cpu_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unwritten_share: Option<f64>,
    ledger: Vec<LedgerLineJson>,
    ledgers: Vec<ProgramLedgerJson>,
    /// Response times by stage, where several requests were in flight at a drive.
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<response::ResponseJson>,
    /// Reads served from buffers, where a disk with a buffer was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    buffered: Option<BufferHits>,
    missed: &'e [MissedDeadline],
    utilisation: &'e Utilisation,
    requests: Vec<DriveAccountJson>,
    #[serde(skip_serializing_if = "<[DeviceAccount]>::is_empty")]
    devices: &'e [DeviceAccount],
    verdict: String,
    counterfactuals: Vec<CounterfactualJson<'e>>,
    /// Slowest requests and their causes; only for flash drives.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tails: Vec<tails::TailJson>,
    /// Operations by kind, where the kernel's events were recorded by programs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    operations: Vec<operations::OperationsJson<'e>>,
}

#[derive(Serialize)]
struct ProgramLedgerJson {
    elapsed_ns: u64,
    ledger: Vec<LedgerLineJson>,
}

#[derive(Serialize)]
struct DriveAccountJson {
    drive: u32,
    requests: u64,
    usual_bytes: u64,
    usual_requests: u64,
    /// Duration of a revolution in nanoseconds; `None` for a device without platters.
    revolution_ns: Option<f64>,
    stages: Vec<LedgerLineJson>,
    idle_ns: u64,
}

#[derive(Serialize)]
struct CounterfactualJson<'e> {
    change: &'e str,
    elapsed_ns: u64,
    gain: f64,
    beats_sum: bool,
}

impl<'e> ProgramExplanationJson<'e> {
    fn from_explanation(program: &'e ProgramExplanation) -> Self {
        let account = &program.time_account;
        let own = account.program_ledgers.iter().map(|one| ProgramLedgerJson {
            elapsed_ns: one.elapsed.0,
            ledger: ledger_json(one.ledger.entries()),
        });
        let drives = account.drive_accounts.iter().map(|drive| DriveAccountJson {
            drive: drive.drive_index + 1,
            requests: drive.request_count,
            usual_bytes: drive.usual_request_bytes,
            usual_requests: drive.usual_request_count,
            revolution_ns: (drive.revolution_ns > 0.0).then_some(drive.revolution_ns),
            stages: ledger_json(&drive.stage_entries),
            idle_ns: drive.idle_time.0,
        });
        let changed = program
            .counterfactuals
            .iter()
            .map(|one| CounterfactualJson {
                change: &one.change,
                elapsed_ns: one.elapsed_time.0,
                gain: one.relative_gain(account.elapsed),
                beats_sum: one.exceeds_sum_of_parts,
            });
        Self {
            program: &program.program,
            filesystem: &program.filesystem,
            drives: program.drive_count,
            elapsed_ns: account.elapsed.0,
            accounted_cpu_ns: program.accounted_cpu.map(|time| time.0),
            unwritten_share: program.unwritten_share,
            ledger: ledger_json(account.ledger.entries()),
            ledgers: own.collect(),
            response: account
                .response_account
                .as_ref()
                .map(response::ResponseJson::from_response),
            buffered: account.buffer_hits,
            missed: &account.missed_deadlines,
            utilisation: &account.utilisation,
            requests: drives.collect(),
            devices: &account.device_accounts,
            verdict: program.verdict_sentences.join(" "),
            counterfactuals: changed.collect(),
            tails: program
                .tails
                .iter()
                .map(tails::TailJson::from_tail)
                .collect(),
            operations: program
                .breakdowns
                .iter()
                .map(operations::OperationsJson::from_breakdown)
                .collect(),
        }
    }
}

/// Formats the explanation as CSV: one line for each stage, some for the requests of each device,
/// and one for each counterfactual.
pub(super) fn render_csv(explanation: &Explanation) -> String {
    let mut records: Vec<Vec<CsvField>> = Vec::new();
    for program in &explanation.programs {
        let account = &program.time_account;
        let elapsed = account.elapsed.0.max(1) as f64;
        let record = |kind: &str, name: String, cause: String, ns: u64, gain: Option<f64>| {
            vec![
                ("program", program.program.clone()),
                ("filesystem", program.filesystem.clone()),
                ("drives", program.drive_count.to_string()),
                ("kind", kind.to_owned()),
                ("name", name),
                ("cause", cause),
                ("ns", ns.to_string()),
                ("share", format_number(ns as f64 / elapsed)),
                ("gain", format_optional(gain)),
            ]
        };
        for entry in account.ledger.entries() {
            let (name, cause) = split_stage_label(entry.stage);
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
        if let Some(of) = &account.response_account {
            for entry in of.ledger.entries() {
                let (name, cause) = split_stage_label(entry.stage);
                let each = of.mean_of_total(entry.duration).round() as u64;
                let mut line = record("response", name, cause.unwrap_or_default(), each, None);
                // Of the mean response, and not of what the program took.
                for field in line.iter_mut().filter(|(column, _)| *column == "share") {
                    field.1 = format_number(of.share_of_response(entry.duration));
                }
                records.push(line);
            }
        }
        for line in devices::list_csv_lines(&account.device_accounts) {
            let statistic = line.statistic.to_owned();
            records.push(record("request", line.name, statistic, line.ns, None));
        }
        for one in &program.counterfactuals {
            let gain = Some(one.relative_gain(account.elapsed));
            let change = one.change.clone();
            records.push(record(
                "counterfactual",
                change,
                String::new(),
                one.elapsed_time.0,
                gain,
            ));
        }
    }
    format_records(&records)
}
