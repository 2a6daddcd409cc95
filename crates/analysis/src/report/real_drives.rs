//! Results of real drives as a table, JSON and CSV.

use super::csv::{CsvField, format_number, format_records};
use super::document::{Column, ColumnGroup, DocumentBlock, Grid};
use super::json::render_pretty;
use crate::real_drives::{
    DriveOutcome, RealDrive, RealDrives, RemainingError, ReplayResult, ReplayScore, SpindlePhase,
    ThinkTimeReference,
};

const HEADING: &str = "Real drives: modelled against measured, request by request";

pub(super) fn render_json(real_drives: &RealDrives) -> String {
    render_pretty(real_drives)
}

fn name_and_replay(drive: &RealDrive) -> Option<(&str, &ReplayResult)> {
    match &drive.outcome {
        DriveOutcome::Replayed(replayed) => Some((drive.name.as_str(), replayed)),
        DriveOutcome::Refused { .. } => None,
    }
}

pub(super) fn build_blocks(real_drives: &RealDrives) -> Vec<DocumentBlock> {
    let mut blocks = vec![DocumentBlock::Heading(HEADING.to_owned())];
    let drives: Vec<(&str, &ReplayResult)> = real_drives
        .drives
        .iter()
        .filter_map(name_and_replay)
        .collect();
    if !drives.is_empty() {
        blocks.push(DocumentBlock::Text(
            "Fitted to the first half of each trace; every figure is of its second half, replayed in a closed loop. Unfitted: the same model with the values of the drive's files; only the pauses and the revolution period are fitted.".to_owned(),
        ));
        blocks.push(build_error_grid(&drives));
        blocks.push(DocumentBlock::Section("Service times, ms".to_owned()));
        blocks.push(build_time_grid(&drives));
        blocks.push(DocumentBlock::Section(
            "Spindle, and reads from the buffer".to_owned(),
        ));
        blocks.push(build_spindle_grid(&drives));
        blocks.push(DocumentBlock::Section(
            "Errors of more than 0.5 ms".to_owned(),
        ));
        blocks.push(DocumentBlock::List(
            drives.iter().map(describe_revolutions).collect(),
        ));
        blocks.push(build_cause_grid(&drives));
    }
    let refused = real_drives
        .drives
        .iter()
        .filter_map(|drive| match &drive.outcome {
            DriveOutcome::Refused { error } => Some(format!("{}: {error}", drive.name)),
            DriveOutcome::Replayed(_) => None,
        });
    let refused: Vec<String> = refused.collect();
    if !refused.is_empty() {
        blocks.push(DocumentBlock::Section("Not replayed".to_owned()));
        blocks.push(DocumentBlock::List(refused));
    }
    blocks
}

type ReplayedDrives<'d> = [(&'d str, &'d ReplayResult)];

fn build_name_column(drives: &ReplayedDrives<'_>) -> Column {
    Column::left_aligned(
        "drive",
        drives.iter().map(|drive| drive.0.to_owned()).collect(),
    )
}

fn build_figure_column(
    drives: &ReplayedDrives<'_>,
    heading: &str,
    figure_of: impl Fn(&ReplayResult) -> String,
) -> Column {
    Column::right_aligned(
        heading,
        drives.iter().map(|drive| figure_of(drive.1)).collect(),
    )
}

fn build_error_grid(drives: &ReplayedDrives<'_>) -> DocumentBlock {
    let group = |title: &str, of: &dyn Fn(&ReplayResult) -> ReplayScore| {
        let column = |heading: &str, figure: &dyn Fn(ReplayScore) -> String| {
            build_figure_column(drives, heading, |replayed| figure(of(replayed)))
        };
        ColumnGroup::new(
            title,
            vec![
                column("RMS ms", &|score| {
                    format!("{:.2}", score.rms_per_request_ms)
                }),
                column("in 0.5 ms", &|score| {
                    format!("{:.1} %", score.within_half_ms_percent)
                }),
                column("demerit ms", &|score| format!("{:.3}", score.demerit_ms)),
                column("of mean", &|score| {
                    format!("{:.1} %", score.demerit_percent)
                }),
                column("bias ms", &|score| format!("{:+.3}", score.bias_ms)),
            ],
        )
    };
    DocumentBlock::Grid(Grid {
        key_column: build_name_column(drives),
        groups: vec![
            group("fitted", &|replayed| replayed.replay_score),
            group("unfitted", &|replayed| replayed.unfitted_score),
        ],
    })
}

fn build_time_grid(drives: &ReplayedDrives<'_>) -> DocumentBlock {
    let pairs = |heading: &str, of: &dyn Fn(&ReplayResult) -> (f64, f64)| {
        build_figure_column(drives, heading, |replayed| {
            let (measured, modelled) = of(replayed);
            format!("{measured:.2} {modelled:.2}")
        })
    };
    DocumentBlock::Grid(Grid {
        key_column: build_name_column(drives),
        groups: vec![ColumnGroup::new(
            "measured, modelled",
            vec![
                build_figure_column(drives, "requests", |replayed| {
                    replayed.scored_request_count.to_string()
                }),
                pairs("mean", &|one| {
                    (
                        one.replay_score.mean_ms,
                        one.replay_score.mean_ms + one.replay_score.bias_ms,
                    )
                }),
                pairs("p50", &|one| {
                    (
                        one.measured_quantiles.p50_ms,
                        one.replay_score.modelled_quantiles.p50_ms,
                    )
                }),
                pairs("p90", &|one| {
                    (
                        one.measured_quantiles.p90_ms,
                        one.replay_score.modelled_quantiles.p90_ms,
                    )
                }),
                pairs("p99", &|one| {
                    (
                        one.measured_quantiles.p99_ms,
                        one.replay_score.modelled_quantiles.p99_ms,
                    )
                }),
            ],
        )],
    })
}

fn describe_think(phase: &SpindlePhase) -> &'static str {
    match phase.think_time_reference {
        ThinkTimeReference::BeforeSubmission => "before",
        ThinkTimeReference::AfterCompletion => "after",
        ThinkTimeReference::Undetermined => "no phase",
    }
}

fn build_spindle_grid(drives: &ReplayedDrives<'_>) -> DocumentBlock {
    DocumentBlock::Grid(Grid {
        key_column: build_name_column(drives),
        groups: vec![
            ColumnGroup::new(
                "spindle",
                vec![
                    build_figure_column(drives, "R", |one| {
                        format!("{:.3}", one.spindle_phase.resultant_length)
                    }),
                    build_figure_column(drives, "period µs", |one| {
                        format!("{:.3}", one.spindle_phase.period_us)
                    }),
                    build_figure_column(drives, "ppm", |one| {
                        format!("{:+.0}", one.spindle_phase.period_uncertainty_ppm)
                    }),
                    build_figure_column(drives, "pauses", |one| {
                        describe_think(&one.spindle_phase).to_owned()
                    }),
                    build_figure_column(drives, "steps", |one| {
                        one.spindle_phase.phase_steps.len().to_string()
                    }),
                ],
            ),
            ColumnGroup::new(
                "buffer reads",
                vec![
                    build_figure_column(drives, "measured", |one| {
                        one.buffer_reads.measured_count.to_string()
                    }),
                    build_figure_column(drives, "modelled", |one| {
                        one.buffer_reads.modelled_count.to_string()
                    }),
                ],
            ),
            ColumnGroup::new(
                "",
                vec![build_figure_column(drives, "numbers fitted", |one| {
                    one.fitted_parameters.len().to_string()
                })],
            ),
        ],
    })
}

/// Describes the share of a model's error that consists of whole revolutions.
fn describe_revolutions((name, replayed): &(&str, &ReplayResult)) -> String {
    let off = replayed.worst_requests.len();
    let whole = || {
        replayed
            .remaining_errors
            .iter()
            .filter(|one| one.is_revolution)
    };
    let requests: usize = whole().map(|one| one.request_count).sum();
    let percent: f64 = whole().map(|one| one.squared_error_percent).sum();
    let by_revolutions = match requests {
        0 => "none of them by whole revolutions".to_owned(),
        some => format!(
            "{some} of them by whole revolutions, which are {percent:.0} % of the squared error"
        ),
    };
    format!(
        "{name}: {off} of {} requests, {by_revolutions}",
        replayed.scored_request_count
    )
}

fn build_cause_grid(drives: &ReplayedDrives<'_>) -> DocumentBlock {
    let rows: Vec<(&str, &RemainingError)> = drives
        .iter()
        .flat_map(|(name, replayed)| replayed.remaining_errors.iter().map(|one| (*name, one)))
        .collect();
    // A drive is named once, at its first cause.
    let named = |row: usize| match row
        .checked_sub(1)
        .is_some_and(|up| rows[up].0 == rows[row].0)
    {
        true => String::new(),
        false => rows[row].0.to_owned(),
    };
    let column = |heading: &str, of: &dyn Fn(&RemainingError) -> String| {
        Column::right_aligned(heading, rows.iter().map(|row| of(row.1)).collect())
    };
    let off_ms = |off_ms: Option<f64>| off_ms.map_or(String::new(), |ms| format!("{ms:.2}"));
    let cause = rows.iter().map(|row| row.1.cause.clone()).collect();
    DocumentBlock::Grid(Grid {
        key_column: Column::left_aligned("drive", (0..rows.len()).map(named).collect()),
        groups: vec![ColumnGroup::new(
            "",
            vec![
                Column::left_aligned("cause", cause),
                column("requests", &|one| one.request_count.to_string()),
                column("drive slower", &|one| one.drive_slower_count.to_string()),
                column("of squared error", &|one| {
                    format!("{:.1} %", one.squared_error_percent)
                }),
                column("arrival off, ms: p50", &|one| {
                    off_ms(one.arrival_error_p50_ms)
                }),
                column("p90", &|one| off_ms(one.arrival_error_p90_ms)),
            ],
        )],
    })
}

/// Formats the results as CSV: one line for each drive and set of figures, one for each cause of
/// errors, and one for each fitted parameter.
pub(super) fn render_csv(real_drives: &RealDrives) -> String {
    let mut records: Vec<Vec<CsvField>> = Vec::new();
    for drive in &real_drives.drives {
        let record = |set: &str, figure: &str, value: String| -> Vec<CsvField> {
            vec![
                ("drive", drive.name.clone()),
                ("set", set.to_owned()),
                ("figure", figure.to_owned()),
                ("value", value),
            ]
        };
        let one = match &drive.outcome {
            DriveOutcome::Refused { error } => {
                records.push(record("error", "error", error.clone()));
                continue;
            }
            DriveOutcome::Replayed(one) => one,
        };
        for (set, score) in [
            ("fitted", one.replay_score),
            ("unfitted", one.unfitted_score),
        ] {
            let figures = [
                ("rms_per_request_ms", score.rms_per_request_ms),
                ("within_half_ms_percent", score.within_half_ms_percent),
                ("demerit_ms", score.demerit_ms),
                ("demerit_percent", score.demerit_percent),
                ("bias_ms", score.bias_ms),
            ];
            records
                .extend(figures.map(|(figure, value)| record(set, figure, format_number(value))));
        }
        let remaining = one.remaining_errors.iter();
        records.extend(
            remaining.map(|off| record("off_requests", &off.cause, off.request_count.to_string())),
        );
        let fitted = one.fitted_parameters.iter();
        records.extend(
            fitted.map(|number_| record("parameter", &number_.name, format_number(number_.value))),
        );
    }
    format_records(&records)
}
