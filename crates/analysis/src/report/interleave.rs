//! Calculation of an interleave factor as tables, JSON and CSV.

use super::csv::{Field, format_records, number};
use super::document::{Block, Column, Grid, Group};
use super::json::pretty;
use crate::interleave::{FactorResult, Interleave, Interruption, Responsible};

/// Share of missed sectors above which the best factor is no recommendation.
const MISSED_SHARE_MAX: f64 = 0.999;

/// Formats the calculation as a report. `asked` is a factor that the report compares with the best.
pub(super) fn blocks(interleave: &Interleave, asked: Option<u32>) -> Vec<Block> {
    let mut blocks = vec![
        Block::Heading(heading(interleave)),
        Block::Text(interleave_order(interleave)),
    ];
    if interleave.service_ms > 0.0 {
        blocks.push(Block::Grid(parts(interleave)));
    }
    if !interleave.interruptions.is_empty() {
        let lines = interleave.interruptions.iter().map(describe_interruption);
        blocks.push(Block::List(lines.collect()));
    }
    blocks.push(Block::Grid(factors(interleave)));
    let mut remarks = vec![recommendation(interleave), describe_reason(interleave)];
    remarks.extend(asked.and_then(|factor| describe_factor(interleave, factor)));
    remarks.extend(check_against_model(interleave));
    remarks.extend(describe_hidden_cost(interleave));
    if interleave.inputs.read_ahead {
        let said = "read-ahead averages two consecutive service times: rare interrupts disturb half as much, constant work as much as before";
        remarks.push(said.to_owned());
    }
    blocks.push(Block::List(remarks));
    blocks
}

fn heading(interleave: &Interleave) -> String {
    let track = &interleave.inputs.track;
    let spare = match track.spare_sectors_per_track {
        0 => String::new(),
        spare => format!(" and {spare} spare"),
    };
    format!(
        "Interleave: {} sectors of {} bytes{spare}, {} rpm: {:.3} ms a revolution, {:.3} ms a \
         sector",
        track.sectors_per_track,
        track.sector_bytes,
        track.rpm,
        interleave.revolution_ms,
        interleave.sector_ms
    )
}

fn parts(interleave: &Interleave) -> Grid {
    let given = || interleave.parts.iter().filter(|part| part.ms > 0.0);
    let mut names: Vec<String> = given().map(|part| part.name.to_owned()).collect();
    let mut times: Vec<String> = given().map(|part| ms(part.ms)).collect();
    names.push("interlace time".to_owned());
    times.push(ms(interleave.service_ms));
    Grid {
        key: Column::words("service", names),
        groups: vec![Group::of("", vec![Column::figures("ms", times)])],
    }
}

fn interleave_order(interleave: &Interleave) -> String {
    let speed = match interleave.inputs.cpu_speed {
        1.0 => String::new(),
        speed => format!(" (processor times divided by {speed})"),
    };
    let beyond = match interleave.uninterrupted_factor {
        factor if factor > u64::from(interleave.inputs.track.sectors_per_track) => {
            ", which is beyond the track"
        }
        _ => "",
    };
    let interrupted = if interleave.interruptions.is_empty() {
        String::new()
    } else {
        format!(
            "; with interruptions {} ms on average",
            ms(interleave.mean_service_ms)
        )
    };
    format!(
        "interlace time {} ms{speed} = {:.2} sectors: factor {} without interruptions{beyond}\
         {interrupted}",
        ms(interleave.service_ms),
        interleave.service_sectors,
        interleave.uninterrupted_factor
    )
}

fn describe_interruption(interruption: &Interruption) -> String {
    let sources = match interruption.sources {
        1 => String::new(),
        sources => format!("{sources} times "),
    };
    format!(
        "{}: {sources}{} ms every {} ms, {} of the processor",
        interruption.interrupt.words(),
        ms(interruption.cost_ms),
        ms(interruption.period_ms),
        percent(interruption.processor_share)
    )
}

fn factors(interleave: &Interleave) -> Grid {
    let rows = &interleave.factors;
    let column =
        |of: &dyn Fn(&FactorResult) -> String| -> Vec<String> { rows.iter().map(of).collect() };
    let mark = |row: &FactorResult| {
        let best = row.factor == interleave.recommended.factor;
        if best { "best" } else { "" }.to_owned()
    };
    Grid {
        key: Column::figures("factor", column(&|row| row.factor.to_string())),
        groups: vec![Group::of(
            "",
            vec![
                Column::figures("missed", column(&|row| percent(row.missed_share))),
                Column::figures(
                    "revolutions lost",
                    column(&|row| format!("{:.4}", row.lost_revolutions)),
                ),
                Column::figures("KB/s", column(&|row| rate(row.kb_per_s))),
            ]
            .into_iter()
            .chain(modelled_column(rows))
            .chain([Column::words("", column(&mark))])
            .collect(),
        )],
    }
}

/// Returns the column with the modelled machine's rates, where the case was run on it.
fn modelled_column(rows: &[FactorResult]) -> Option<Column> {
    let rates: Option<Vec<String>> = rows
        .iter()
        .map(|row| row.modelled_kb_per_s.map(rate))
        .collect();
    rates.map(|rates| Column::figures("modelled", rates))
}

/// Describes the result of the modelled machine beside the recommendation.
fn check_against_model(interleave: &Interleave) -> Option<String> {
    let best = interleave.modelled_best()?;
    let own = interleave.recommended.factor;
    if best == own {
        return Some(format!(
            "modelled: the same case on the modelled machine is also best at factor {best}"
        ));
    }
    let cause = match interleave.responsible {
        Responsible::Service => "the service time itself, which ends where a sector begins",
        Responsible::Term(term) => term.words(),
        Responsible::Together => "all interruptions together",
    };
    let rate_of = |factor| {
        interleave
            .factor(factor)
            .and_then(|row| row.modelled_kb_per_s)
    };
    let worse = rate_of(own)
        .zip(rate_of(best))
        .map_or(0.0, |(own, best)| 1.0 - own / best);
    Some(format!(
        "modelled: the same case on the modelled machine is best at factor {best}; with {own} it is \
         {} slower. What decides is {cause}",
        percent(worse)
    ))
}

fn recommendation(interleave: &Interleave) -> String {
    let best = &interleave.recommended;
    format!(
        "recommended: factor {}, {} KB/s{}",
        best.factor,
        rate(best.kb_per_s),
        if best.missed_share > MISSED_SHARE_MAX {
            "; no factor of this track gives the processor enough time; this one loses the least"
        } else {
            ""
        }
    )
}

fn describe_reason(interleave: &Interleave) -> String {
    let what = match interleave.responsible {
        Responsible::Service => return "responsible: the service time itself".to_owned(),
        Responsible::Term(term) => term.words(),
        Responsible::Together => "all interruptions together",
    };
    match interleave.factor_without {
        Some(factor) => format!("responsible: {what}; without, factor {factor} would be best"),
        None => format!("responsible: {what}"),
    }
}

/// Describes the rate of a factor as a share of the best.
fn describe_factor(interleave: &Interleave, factor: u32) -> Option<String> {
    let row = interleave.factor(factor)?;
    Some(format!(
        "factor {factor}: {} KB/s, {} of the best",
        rate(row.kb_per_s),
        percent(row.kb_per_s / interleave.recommended.kb_per_s)
    ))
}

/// Describes the effect of several outstanding requests.
fn describe_hidden_cost(interleave: &Interleave) -> Option<String> {
    let outstanding = interleave.inputs.outstanding;
    if outstanding < 2 {
        return None;
    }
    let others = match outstanding - 1 {
        1 => "1 sector".to_owned(),
        others => format!("{others} sectors"),
    };
    let limit_ms = f64::from(outstanding - 1) * interleave.sector_ms;
    Some(format!(
        "with {outstanding} requests outstanding the service is hidden behind the transfers: factor \
         1 works while a single service takes no more than {} ms ({others}) and services on \
         average no more than {} ms (1 sector), since one processor serves all",
        ms(limit_ms),
        ms(interleave.sector_ms)
    ))
}

fn ms(value: f64) -> String {
    format!("{value:.3}")
}

/// Formats a share in percent with one decimal; small shares get more, so as not to look like 0.
fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    if percent > 0.0 && percent < 0.1 {
        return format!("{percent:.3}%");
    }
    format!("{percent:.1}%")
}

fn rate(kb_per_s: f64) -> String {
    let digits = if kb_per_s < 100.0 { 1 } else { 0 };
    format!("{kb_per_s:.digits$}")
}

/// Formats the calculation as JSON by the `calculate interleave` contract.
pub(super) fn json(interleave: &Interleave) -> String {
    pretty(interleave)
}

/// Formats the calculation as CSV, one line for each factor.
pub(super) fn csv(interleave: &Interleave) -> String {
    let records: Vec<Vec<Field>> = interleave
        .factors
        .iter()
        .map(|row| factor_record(interleave, row))
        .collect();
    format_records(&records)
}

fn factor_record(interleave: &Interleave, row: &FactorResult) -> Vec<Field> {
    vec![
        ("factor", row.factor.to_string()),
        ("missed_share", number(row.missed_share)),
        ("lost_revolutions", number(row.lost_revolutions)),
        ("kb_per_s", number(row.kb_per_s)),
        (
            "modelled_kb_per_s",
            row.modelled_kb_per_s.map(number).unwrap_or_default(),
        ),
        (
            "recommended",
            (row.factor == interleave.recommended.factor).to_string(),
        ),
        ("responsible", interleave.responsible.name().to_owned()),
        ("service_ms", number(interleave.service_ms)),
        ("service_sectors", number(interleave.service_sectors)),
        (
            "uninterrupted_factor",
            interleave.uninterrupted_factor.to_string(),
        ),
    ]
}
