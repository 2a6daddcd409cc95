//! Results of real drives as a table, JSON and CSV.

use super::csv::{Field, format_records, number};
use super::document::{Block, Column, Grid, Group};
use super::json::pretty;
use crate::real_drives::{
    Outcome, Phase, RealDrive, RealDrives, Remaining, Replayed, Score, Think,
};

const HEADING: &str = "Real drives: modelled against measured, request by request";

pub(super) fn json(real_drives: &RealDrives) -> String {
    pretty(real_drives)
}

fn replayed_drive(drive: &RealDrive) -> Option<(&str, &Replayed)> {
    match &drive.outcome {
        Outcome::Replayed(replayed) => Some((drive.name.as_str(), replayed)),
        Outcome::Refused { .. } => None,
    }
}

pub(super) fn blocks(real_drives: &RealDrives) -> Vec<Block> {
    let mut blocks = vec![Block::Heading(HEADING.to_owned())];
    let drives: Vec<(&str, &Replayed)> = real_drives
        .drives
        .iter()
        .filter_map(replayed_drive)
        .collect();
    if !drives.is_empty() {
        blocks.push(Block::Text(
            "Fitted to the first half of each trace; every figure is of its second half, replayed in a closed loop. Unfitted: the same model with the values of the drive's files; only the pauses and the revolution period are fitted.".to_owned(),
        ));
        blocks.push(error_grid(&drives));
        blocks.push(Block::Section("Service times, ms".to_owned()));
        blocks.push(time_grid(&drives));
        blocks.push(Block::Section(
            "Spindle, and reads from the buffer".to_owned(),
        ));
        blocks.push(spindle_grid(&drives));
        blocks.push(Block::Section("Errors of more than 0.5 ms".to_owned()));
        blocks.push(Block::List(drives.iter().map(revolutions).collect()));
        blocks.push(cause_grid(&drives));
    }
    let refused = real_drives
        .drives
        .iter()
        .filter_map(|drive| match &drive.outcome {
            Outcome::Refused { error } => Some(format!("{}: {error}", drive.name)),
            Outcome::Replayed(_) => None,
        });
    let refused: Vec<String> = refused.collect();
    if !refused.is_empty() {
        blocks.push(Block::Section("Not replayed".to_owned()));
        blocks.push(Block::List(refused));
    }
    blocks
}

type ReplayedDrives<'d> = [(&'d str, &'d Replayed)];

fn names(drives: &ReplayedDrives<'_>) -> Column {
    Column::words(
        "drive",
        drives.iter().map(|drive| drive.0.to_owned()).collect(),
    )
}

fn figures(
    drives: &ReplayedDrives<'_>,
    heading: &str,
    figure_of: impl Fn(&Replayed) -> String,
) -> Column {
    Column::figures(
        heading,
        drives.iter().map(|drive| figure_of(drive.1)).collect(),
    )
}

fn error_grid(drives: &ReplayedDrives<'_>) -> Block {
    let group = |title: &str, of: &dyn Fn(&Replayed) -> Score| {
        let column = |heading: &str, figure: &dyn Fn(Score) -> String| {
            figures(drives, heading, |replayed| figure(of(replayed)))
        };
        Group::of(
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
    Block::Grid(Grid {
        key: names(drives),
        groups: vec![
            group("fitted", &|replayed| replayed.score),
            group("unfitted", &|replayed| replayed.unfitted),
        ],
    })
}

fn time_grid(drives: &ReplayedDrives<'_>) -> Block {
    let pairs = |heading: &str, of: &dyn Fn(&Replayed) -> (f64, f64)| {
        figures(drives, heading, |replayed| {
            let (measured, modelled) = of(replayed);
            format!("{measured:.2} {modelled:.2}")
        })
    };
    Block::Grid(Grid {
        key: names(drives),
        groups: vec![Group::of(
            "measured, modelled",
            vec![
                figures(drives, "requests", |replayed| {
                    replayed.scored_requests.to_string()
                }),
                pairs("mean", &|one| {
                    (one.score.mean_ms, one.score.mean_ms + one.score.bias_ms)
                }),
                pairs("p50", &|one| {
                    (one.measured.p50_ms, one.score.modelled.p50_ms)
                }),
                pairs("p90", &|one| {
                    (one.measured.p90_ms, one.score.modelled.p90_ms)
                }),
                pairs("p99", &|one| {
                    (one.measured.p99_ms, one.score.modelled.p99_ms)
                }),
            ],
        )],
    })
}

fn describe_think(phase: &Phase) -> &'static str {
    match phase.think {
        Think::Before => "before",
        Think::After => "after",
        Think::Unknown => "no phase",
    }
}

fn spindle_grid(drives: &ReplayedDrives<'_>) -> Block {
    Block::Grid(Grid {
        key: names(drives),
        groups: vec![
            Group::of(
                "spindle",
                vec![
                    figures(drives, "R", |one| format!("{:.3}", one.phase.r)),
                    figures(drives, "period µs", |one| {
                        format!("{:.3}", one.phase.period_us)
                    }),
                    figures(drives, "ppm", |one| format!("{:+.0}", one.phase.ppm)),
                    figures(drives, "pauses", |one| {
                        describe_think(&one.phase).to_owned()
                    }),
                    figures(drives, "steps", |one| one.phase.steps.len().to_string()),
                ],
            ),
            Group::of(
                "buffer reads",
                vec![
                    figures(drives, "measured", |one| {
                        one.buffer_reads.measured.to_string()
                    }),
                    figures(drives, "modelled", |one| {
                        one.buffer_reads.modelled.to_string()
                    }),
                ],
            ),
            Group::of(
                "",
                vec![figures(drives, "numbers fitted", |one| {
                    one.fitted.len().to_string()
                })],
            ),
        ],
    })
}

/// Describes the share of a model's error that consists of whole revolutions.
fn revolutions((name, replayed): &(&str, &Replayed)) -> String {
    let off = replayed.off.len();
    let whole = || replayed.remaining.iter().filter(|one| one.revolution);
    let requests: usize = whole().map(|one| one.requests).sum();
    let percent: f64 = whole().map(|one| one.squared_error_percent).sum();
    let by_revolutions = match requests {
        0 => "none of them by whole revolutions".to_owned(),
        some => format!(
            "{some} of them by whole revolutions, which are {percent:.0} % of the squared error"
        ),
    };
    format!(
        "{name}: {off} of {} requests, {by_revolutions}",
        replayed.scored_requests
    )
}

/// Tabulates the causes of modelling errors, one row for each drive and cause.
fn cause_grid(drives: &ReplayedDrives<'_>) -> Block {
    let rows: Vec<(&str, &Remaining)> = drives
        .iter()
        .flat_map(|(name, replayed)| replayed.remaining.iter().map(|one| (*name, one)))
        .collect();
    // A drive is named once, at its first cause.
    let named = |row: usize| match row
        .checked_sub(1)
        .is_some_and(|up| rows[up].0 == rows[row].0)
    {
        true => String::new(),
        false => rows[row].0.to_owned(),
    };
    let column = |heading: &str, of: &dyn Fn(&Remaining) -> String| {
        Column::figures(heading, rows.iter().map(|row| of(row.1)).collect())
    };
    let off_ms = |off_ms: Option<f64>| off_ms.map_or(String::new(), |ms| format!("{ms:.2}"));
    let cause = rows.iter().map(|row| row.1.cause.clone()).collect();
    Block::Grid(Grid {
        key: Column::words("drive", (0..rows.len()).map(named).collect()),
        groups: vec![Group::of(
            "",
            vec![
                Column::words("cause", cause),
                column("requests", &|one| one.requests.to_string()),
                column("drive slower", &|one| one.drive_slower.to_string()),
                column("of squared error", &|one| {
                    format!("{:.1} %", one.squared_error_percent)
                }),
                column("arrival off, ms: p50", &|one| {
                    off_ms(one.arrival_off_p50_ms)
                }),
                column("p90", &|one| off_ms(one.arrival_off_p90_ms)),
            ],
        )],
    })
}

/// Formats the results as CSV: one line for each drive and set of figures, one for each cause of
/// errors, and one for each fitted parameter.
pub(super) fn csv(real_drives: &RealDrives) -> String {
    let mut records: Vec<Vec<Field>> = Vec::new();
    for drive in &real_drives.drives {
        let record = |set: &str, figure: &str, value: String| -> Vec<Field> {
            vec![
                ("drive", drive.name.clone()),
                ("set", set.to_owned()),
                ("figure", figure.to_owned()),
                ("value", value),
            ]
        };
        let one = match &drive.outcome {
            Outcome::Refused { error } => {
                records.push(record("error", "error", error.clone()));
                continue;
            }
            Outcome::Replayed(one) => one,
        };
        for (set, score) in [("fitted", one.score), ("unfitted", one.unfitted)] {
            let figures = [
                ("rms_per_request_ms", score.rms_per_request_ms),
                ("within_half_ms_percent", score.within_half_ms_percent),
                ("demerit_ms", score.demerit_ms),
                ("demerit_percent", score.demerit_percent),
                ("bias_ms", score.bias_ms),
            ];
            records.extend(figures.map(|(figure, value)| record(set, figure, number(value))));
        }
        let remaining = one.remaining.iter();
        records.extend(
            remaining.map(|off| record("off_requests", &off.cause, off.requests.to_string())),
        );
        let fitted = one.fitted.iter();
        records.extend(
            fitted.map(|number_| record("parameter", &number_.parameter, number(number_.value))),
        );
    }
    format_records(&records)
}
