//! Calculation of an interleave factor as tables, JSON and CSV.

use super::csv::{CsvField, format_number, format_records};
use super::document::{Column, ColumnGroup, DocumentBlock, Grid};
use super::json::render_pretty;
use crate::interleave::{FactorResult, InterleaveReport, InterruptionFigures, LimitingCost};

/// Share of missed sectors above which the best factor is no recommendation.
const MISSED_SHARE_MAX: f64 = 0.999;

/// Formats the calculation as a report. `asked` is a factor that the report compares with the best.
pub(super) fn build_blocks(
    interleave: &InterleaveReport,
    asked: Option<u32>,
) -> Vec<DocumentBlock> {
    let mut blocks = vec![
        DocumentBlock::Heading(format_heading(interleave)),
        DocumentBlock::Text(format_interleave_order(interleave)),
    ];
    if interleave.service_ms > 0.0 {
        blocks.push(DocumentBlock::Grid(build_part_grid(interleave)));
    }
    if !interleave.interruptions.is_empty() {
        let lines = interleave.interruptions.iter().map(describe_interruption);
        blocks.push(DocumentBlock::List(lines.collect()));
    }
    blocks.push(DocumentBlock::Grid(build_factor_grid(interleave)));
    let mut remarks = vec![
        describe_recommendation(interleave),
        describe_reason(interleave),
    ];
    remarks.extend(asked.and_then(|factor| describe_factor(interleave, factor)));
    remarks.extend(describe_model_check(interleave));
    remarks.extend(describe_hidden_cost(interleave));
    if interleave.inputs.has_read_ahead {
        let said = "read-ahead averages two consecutive service times: rare interrupts disturb half as much, constant work as much as before";
        remarks.push(said.to_owned());
    }
    blocks.push(DocumentBlock::List(remarks));
    blocks
}

fn format_heading(interleave: &InterleaveReport) -> String {
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

fn build_part_grid(interleave: &InterleaveReport) -> Grid {
    let given = || {
        interleave
            .service_parts
            .iter()
            .filter(|part| part.duration_ms > 0.0)
    };
    let mut names: Vec<String> = given().map(|part| part.name.to_owned()).collect();
    let mut times: Vec<String> = given().map(|part| format_ms(part.duration_ms)).collect();
    names.push("interlace time".to_owned());
    times.push(format_ms(interleave.service_ms));
    Grid {
        key_column: Column::left_aligned("service", names),
        groups: vec![ColumnGroup::new(
            "",
            vec![Column::right_aligned("ms", times)],
        )],
    }
}

fn format_interleave_order(interleave: &InterleaveReport) -> String {
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
            format_ms(interleave.mean_service_ms)
        )
    };
    format!(
        "interlace time {} ms{speed} = {:.2} sectors: factor {} without interruptions{beyond}\
         {interrupted}",
        format_ms(interleave.service_ms),
        interleave.service_sectors,
        interleave.uninterrupted_factor
    )
}

fn describe_interruption(interruption: &InterruptionFigures) -> String {
    let sources = match interruption.source_count {
        1 => String::new(),
        sources => format!("{sources} times "),
    };
    format!(
        "{}: {sources}{} ms every {} ms, {} of the processor",
        interruption.kind.label(),
        format_ms(interruption.cost_ms),
        format_ms(interruption.period_ms),
        format_percent(interruption.processor_share)
    )
}

fn build_factor_grid(interleave: &InterleaveReport) -> Grid {
    let rows = &interleave.factor_results;
    let column =
        |of: &dyn Fn(&FactorResult) -> String| -> Vec<String> { rows.iter().map(of).collect() };
    let mark = |row: &FactorResult| {
        let best = row.factor == interleave.recommended_factor.factor;
        if best { "best" } else { "" }.to_owned()
    };
    Grid {
        key_column: Column::right_aligned("factor", column(&|row| row.factor.to_string())),
        groups: vec![ColumnGroup::new(
            "",
            vec![
                Column::right_aligned("missed", column(&|row| format_percent(row.missed_share))),
                Column::right_aligned(
                    "revolutions lost",
                    column(&|row| format!("{:.4}", row.lost_revolutions)),
                ),
                Column::right_aligned("KB/s", column(&|row| format_rate(row.kb_per_s))),
            ]
            .into_iter()
            .chain(build_modelled_column(rows))
            .chain([Column::left_aligned("", column(&mark))])
            .collect(),
        )],
    }
}

/// Returns the column with the modelled machine's rates, where the case was run on it.
fn build_modelled_column(rows: &[FactorResult]) -> Option<Column> {
    let rates: Option<Vec<String>> = rows
        .iter()
        .map(|row| row.modelled_kb_per_s.map(format_rate))
        .collect();
    rates.map(|rates| Column::right_aligned("modelled", rates))
}

/// Describes the result of the modelled machine beside the recommendation.
fn describe_model_check(interleave: &InterleaveReport) -> Option<String> {
    let best = interleave.best_modelled_factor()?;
    let own = interleave.recommended_factor.factor;
    if best == own {
        return Some(format!(
            "modelled: the same case on the modelled machine is also best at factor {best}"
        ));
    }
    let cause = match interleave.limiting_cost {
        LimitingCost::Service => "the service time itself, which ends where a sector begins",
        LimitingCost::Interrupts(term) => term.label(),
        LimitingCost::ServiceWithInterrupts => "all interruptions together",
    };
    let rate_of = |factor| {
        interleave
            .find_factor(factor)
            .and_then(|row| row.modelled_kb_per_s)
    };
    let worse = rate_of(own)
        .zip(rate_of(best))
        .map_or(0.0, |(own, best)| 1.0 - own / best);
    Some(format!(
        "modelled: the same case on the modelled machine is best at factor {best}; with {own} it is \
         {} slower. What decides is {cause}",
        format_percent(worse)
    ))
}

fn describe_recommendation(interleave: &InterleaveReport) -> String {
    let best = &interleave.recommended_factor;
    format!(
        "recommended: factor {}, {} KB/s{}",
        best.factor,
        format_rate(best.kb_per_s),
        if best.missed_share > MISSED_SHARE_MAX {
            "; no factor of this track gives the processor enough time; this one loses the least"
        } else {
            ""
        }
    )
}

fn describe_reason(interleave: &InterleaveReport) -> String {
    let what = match interleave.limiting_cost {
        LimitingCost::Service => return "responsible: the service time itself".to_owned(),
        LimitingCost::Interrupts(term) => term.label(),
        LimitingCost::ServiceWithInterrupts => "all interruptions together",
    };
    match interleave.factor_without_cost {
        Some(factor) => format!("responsible: {what}; without, factor {factor} would be best"),
        None => format!("responsible: {what}"),
    }
}

/// Describes the rate of a factor as a share of the best.
fn describe_factor(interleave: &InterleaveReport, factor: u32) -> Option<String> {
    let row = interleave.find_factor(factor)?;
    Some(format!(
        "factor {factor}: {} KB/s, {} of the best",
        format_rate(row.kb_per_s),
        format_percent(row.kb_per_s / interleave.recommended_factor.kb_per_s)
    ))
}

/// Describes the effect of several outstanding requests.
fn describe_hidden_cost(interleave: &InterleaveReport) -> Option<String> {
    let outstanding = interleave.inputs.outstanding_reads;
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
        format_ms(limit_ms),
        format_ms(interleave.sector_ms)
    ))
}

fn format_ms(value: f64) -> String {
    format!("{value:.3}")
}

/// Formats a share in percent with one decimal; small shares get more, so as not to look like 0.
fn format_percent(share: f64) -> String {
    let percent = 100.0 * share;
    if percent > 0.0 && percent < 0.1 {
        return format!("{percent:.3}%");
    }
    format!("{percent:.1}%")
}

fn format_rate(kb_per_s: f64) -> String {
    let digits = if kb_per_s < 100.0 { 1 } else { 0 };
    format!("{kb_per_s:.digits$}")
}

/// Formats the calculation as JSON by the `calculate interleave` contract.
pub(super) fn render_json(interleave: &InterleaveReport) -> String {
    render_pretty(interleave)
}

/// Formats the calculation as CSV, one line for each factor.
pub(super) fn render_csv(interleave: &InterleaveReport) -> String {
    let records: Vec<Vec<CsvField>> = interleave
        .factor_results
        .iter()
        .map(|row| build_factor_record(interleave, row))
        .collect();
    format_records(&records)
}

fn build_factor_record(interleave: &InterleaveReport, row: &FactorResult) -> Vec<CsvField> {
    vec![
        ("factor", row.factor.to_string()),
        ("missed_share", format_number(row.missed_share)),
        ("lost_revolutions", format_number(row.lost_revolutions)),
        ("kb_per_s", format_number(row.kb_per_s)),
        (
            "modelled_kb_per_s",
            row.modelled_kb_per_s.map(format_number).unwrap_or_default(),
        ),
        (
            "recommended",
            (row.factor == interleave.recommended_factor.factor).to_string(),
        ),
        ("responsible", interleave.limiting_cost.name().to_owned()),
        ("service_ms", format_number(interleave.service_ms)),
        ("service_sectors", format_number(interleave.service_sectors)),
        (
            "uninterrupted_factor",
            interleave.uninterrupted_factor.to_string(),
        ),
    ]
}
