//! Reports as one self-contained HTML file: text and tables of the other output formats, charts by
//! Vega-Lite with its libraries in the page, and pictures of platters and dies.
//!
//! A static picture ([`still`]) stands in for a chart until the script has drawn it, or where no
//! script runs.
//!
//! The specifications of the charts are independent of the page ([`charts`]): any renderer of
//! Vega-Lite can draw them.

mod blocks;
mod call_sizes;
mod chart;
mod course;
mod dies;
mod escape;
mod family;
mod heat_map;
mod latency;
mod libraries;
mod log_axis;
mod page;
mod picture;
mod platter;
mod repeat;
mod repetitions;
mod scatter;
mod still;
mod throughput;
mod trace;
mod waterfall;

pub use chart::{Chart, ROWS_DATASET};
pub use heat_map::TuningSurface;
pub use picture::Picture;

use super::comparison_table;
use super::details;
use super::document::DocumentBlock;
use super::run_table;
use super::view::{ResultRow, RunView};
use crate::accuracy::AccuracyCard;
use crate::comparison::compare;
use crate::real_drives::RealDrives;
use crate::trace::TraceReport;
use crate::tuning::TuningResult;
use chart::{render_figures, slugify};
use diskperf_timeline::{MeasuredWorld, ProgramResult, Run, Stage};
use page::HtmlPage;

/// Run to be reported, with related facts that it does not contain itself.
#[derive(Clone, Debug)]
pub struct ReportedRun {
    /// Run that the report covers.
    pub run: Run,
    /// Published figures of the same programs on the same system.
    pub printed_figures: Vec<PrintedFigure>,
    /// Pictures of the drives' activity, each with the index of its result in the run.
    pub pictures_by_result: Vec<(usize, Picture)>,
    /// Reason for the lack of pictures, where there might be some.
    pub no_pictures_reason: Option<String>,
}

/// Published figure of a program, to stand beside the measured one.
#[derive(Clone, Debug, PartialEq)]
pub struct PrintedFigure {
    /// Document and table that print the figure.
    pub document: String,
    /// Name of the program with the published figure.
    pub program: String,
    /// Name of the file system, as a run gives it.
    pub filesystem: String,
    /// Drives that ran the program concurrently.
    pub drives: u32,
    /// Rate in KB/s, summed over all drives.
    pub kb_per_s: f64,
    /// CPU share in percent, if the document prints one.
    pub cpu_percent: Option<f64>,
}

impl PrintedFigure {
    fn is_result_of(&self, result: &ProgramResult) -> bool {
        self.program == result.program
            && self.filesystem == result.filesystem_type
            && self.drives == result.drive_count
    }
}

/// Builds all charts of a report on these runs.
pub fn build_charts(reported: &[ReportedRun]) -> Vec<Chart> {
    let runs: Vec<Run> = reported.iter().map(|one| one.run.clone()).collect();
    let views = RunView::from_runs(&runs);
    let mut charts = throughput::build_charts(&views, reported);
    charts.extend(views.iter().flat_map(build_run_charts));
    charts.extend(repetitions::build_pair_charts(&compare(&runs)));
    charts
}

/// Builds all charts of an accuracy card.
pub fn build_card_charts(card: &AccuracyCard) -> Vec<Chart> {
    scatter::build_charts(card)
}

fn build_run_charts(view: &RunView<'_>) -> Vec<Chart> {
    let curves = call_sizes::build_chart(view).into_iter();
    let charts = curves.chain(repetitions::build_run_charts(view));
    let charts = charts.chain(waterfall::build_charts(view));
    let charts = charts.chain(course::build_charts(view));
    charts.chain(latency::build_chart(view)).collect()
}

/// Returns the title of a program, with the file system and the drives where its run has several.
fn format_chart_title(view: &RunView<'_>, row: &ResultRow<'_>) -> String {
    let mut title = row.title.clone();
    let others = || view.rows.iter().map(|other| other.result);
    if others().any(|other| other.filesystem_type != row.result.filesystem_type) {
        title += &format!(" {}", row.result.filesystem_type);
    }
    match row.result.drive_count {
        1 => title,
        drives => format!("{title}, {drives} drives"),
    }
}

/// Formats the report on runs as an HTML page.
pub fn render_page(reported: &[ReportedRun]) -> String {
    let runs: Vec<Run> = reported.iter().map(|one| one.run.clone()).collect();
    let views = RunView::from_runs(&runs);
    let title = match views.as_slice() {
        [view] => format_heading(view),
        _ => format!("{} runs", views.len()),
    };
    let mut page = HtmlPage::new(&title);
    if views.len() > 1 {
        page.add_contents(
            views
                .iter()
                .map(|view| (anchor_of_run(view), format_heading(view))),
        );
        page.add_section("results", "Results");
    } else {
        views.iter().for_each(|view| page.add_facts(view));
    }
    page.add_blocks(&run_table::build_tables(&views));
    page.add_remarks(&run_table::build_remarks(&views));
    page.add_html(&render_figures(&throughput::build_charts(&views, reported)));
    add_comparison(&mut page, &runs);
    for (view, one) in views.iter().zip(reported) {
        add_run(&mut page, view, one, views.len() > 1);
    }
    page.finish()
}

/// Writes the comparison of several runs, the first as the base. A run without any program of the
/// base is left out.
fn add_comparison(page: &mut HtmlPage, runs: &[Run]) {
    let pairs = compare(runs).result_pairs;
    let is_related =
        |number: usize| number == 0 || pairs.iter().any(|pair| pair.run_index == number);
    let related = runs.iter().enumerate();
    let related = related.filter(|(number, _)| is_related(*number));
    let related: Vec<Run> = related.map(|(_, run)| run.clone()).collect();
    if related.len() > 1 {
        let comparison = compare(&related);
        page.add_section("comparison", "Comparison");
        match comparison_table::build_blocks(&comparison).as_slice() {
            [DocumentBlock::Heading(base), rest @ ..] => {
                page.add_paragraph(base);
                page.add_blocks(rest);
            }
            all => page.add_blocks(all),
        }
        page.add_html(&render_figures(&repetitions::build_pair_charts(
            &comparison,
        )));
    }
}

fn anchor_of_run(view: &RunView<'_>) -> String {
    format!("run-{}", slugify(&view.run.run_id))
}

fn format_heading(view: &RunView<'_>) -> String {
    let run = view.run;
    let label = run.user_label.iter().map(|label| format!("{label}: "));
    format!(
        "{}{} on {}",
        label.collect::<String>(),
        run.suite_name,
        run.measured_description()
    )
}

fn add_run(page: &mut HtmlPage, view: &RunView<'_>, reported: &ReportedRun, among_others: bool) {
    if among_others {
        page.add_section(&anchor_of_run(view), &format_heading(view));
        page.add_facts(view);
    }
    add_pictures(page, view, reported);
    let curves: Vec<Chart> = call_sizes::build_chart(view)
        .map(Chart::with_full_width)
        .into_iter()
        .collect();
    page.add_html(&render_figures(&curves));
    let shaped = repetitions::build_run_charts(view);
    if !shaped.is_empty() {
        page.add_part_heading("Repetitions with more than one level");
        page.add_html(&render_figures(&shaped));
    }
    let ledgers = waterfall::build_charts(view);
    if !ledgers.is_empty() {
        page.add_part_heading("Where the time went");
        page.add_html(&render_figures(&ledgers));
    }
    let courses = course::build_charts(view);
    if !courses.is_empty() {
        page.add_part_heading("Over time");
        page.add_html(&render_figures(&courses));
    }
    let latency: Vec<Chart> = latency::build_chart(view)
        .map(Chart::with_full_width)
        .into_iter()
        .collect();
    if !latency.is_empty() {
        page.add_part_heading("Latency of calls");
        page.add_html(&render_figures(&latency));
        let mut same = details::build_latency_blocks(view);
        same.extend(details::build_load_blocks(view));
        page.add_folded_blocks("The same in figures", &same);
    }
    let caches = details::build_controller_cache_blocks(view);
    page.add_blocks(&caches);
    page.add_blocks(&details::build_media_cache_blocks(view));
    page.add_blocks(&details::build_flash_blocks(view));
    page.add_folded_blocks("Every repetition", &details::build_repetition_blocks(view));
    page.add_part_heading(match view.run.world {
        MeasuredWorld::Host => "Measured machine",
        MeasuredWorld::Model => "Modelled machine",
    });
    page.add_list(&repeat::list_environment_differences(view.run));
    page.add_part_heading("How to repeat it");
    page.add_html(&repeat::build_repeat_command(view.run));
}

/// Selects the results of a modelled run that get a picture, as indices in ascending order.
///
/// On platters these are all results, or, of more than [`PLATTER_PICTURE_COUNT_MAX`], those that lose the most
/// to missed revolutions. Pictures of flash drives are large; they are drawn for a few results that
/// lose time at the dies, or for the first one where none does.
pub fn choose_pictured_results(run: &Run) -> Vec<usize> {
    let is_lost = |stage| {
        let at_dies = matches!(
            stage,
            Stage::DieWait(_) | Stage::BufferFull | Stage::Collection
        );
        at_dies || matches!(stage, Stage::MissedRevolution(_))
    };
    let share = |result: &ProgramResult| {
        let workers = result.kept_repetitions().flat_map(|one| &one.workers);
        let entries = workers.flat_map(|worker| worker.ledger.entries());
        let (mut lost, mut all) = (0, 0);
        for entry in entries {
            all += entry.duration.0;
            if is_lost(entry.stage) {
                lost += entry.duration.0;
            }
        }
        lost as f64 / f64::max(all as f64, 1.0)
    };
    let mut shares: Vec<(usize, f64)> = run.results.iter().map(share).enumerate().collect();
    shares.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    if runs_on_flash(run) {
        shares.retain(|(_, share)| *share >= SHOWN_WIDTH_SHARE_MIN);
        shares.truncate(DIE_PICTURE_COUNT_MAX);
    }
    shares.truncate(PLATTER_PICTURE_COUNT_MAX);
    let mut shown: Vec<usize> = shares.into_iter().map(|(number, _)| number).collect();
    if shown.is_empty() && !run.results.is_empty() {
        shown.push(0);
    }
    shown.sort_unstable();
    shown
}

fn runs_on_flash(run: &Run) -> bool {
    let mut devices = run.environment.places.iter().flat_map(|one| &one.devices);
    devices.any(|device| device.is_rotational == Some(false))
}

fn add_pictures(page: &mut HtmlPage, view: &RunView<'_>, reported: &ReportedRun) {
    if !reported.pictures_by_result.is_empty() || reported.no_pictures_reason.is_some() {
        let is_of_dies = |(_, picture): &(usize, Picture)| matches!(picture, Picture::Dies(_));
        page.add_part_heading(match reported.pictures_by_result.iter().any(is_of_dies) {
            true => "Activity of the dies",
            false => "Activity on the platter",
        });
    }
    if let Some(reason) = &reported.no_pictures_reason {
        page.add_paragraph(reason);
    }
    let results = view.run.results.len();
    let drawn = reported.pictures_by_result.len();
    if drawn > 0 && results > drawn {
        page.add_paragraph(&format!(
            "Of {results} programs {drawn} are drawn: {}.",
            match runs_on_flash(view.run) {
                true => "the programs that lose the most time at the dies, or the first ones",
                false if results <= PLATTER_PICTURE_COUNT_MAX =>
                    "concurrent programs share a picture, and programs without disk requests have none",
                false =>
                    "the programs that lose the most to missed revolutions; of concurrent programs the first, with the requests of all",
            }
        ));
    }
    for (number, picture) in &reported.pictures_by_result {
        let result = view.run.results.get(*number);
        let row = view
            .rows
            .iter()
            .find(|row| result.is_some_and(|one| std::ptr::eq(one, row.result)));
        let title = row.map_or_else(String::new, |row| format_chart_title(view, row));
        let name = format!(
            "{}-{}-{number}",
            picture.kind_name(),
            slugify(&view.run.run_id)
        );
        page.add_html(&picture.render_figures(&name, &title));
    }
}

/// Maximum number of platter pictures of one run, each of some 40 KB.
const PLATTER_PICTURE_COUNT_MAX: usize = 8;
/// Maximum number of results of one run whose dies are drawn, with two pictures of up to 100 KB
/// each.
const DIE_PICTURE_COUNT_MAX: usize = 3;
/// Minimum share of its time that a result on flash must lose at the dies to get a picture.
const SHOWN_WIDTH_SHARE_MIN: f64 = 0.01;

/// Formats the accuracy card as an HTML page.
pub fn render_card(card: &AccuracyCard) -> String {
    let mut page = HtmlPage::new(&format!("Accuracy: {}", card.documents.join(", ")));
    let (summary, rest) = super::card::split_page(card);
    page.add_blocks(skip_title(&summary));
    page.add_html(&render_figures(&build_card_charts(card)));
    page.add_blocks(&rest);
    page.finish()
}

/// Formats the result of a tuning search as an HTML page.
pub fn render_tuning(tuned: &TuningResult) -> String {
    let mut page = HtmlPage::new(&super::tuning::format_heading(tuned));
    let surface = TuningSurface::from_tuned(tuned).and_then(|surface| surface.build_chart());
    page.add_html(&render_figures(&surface.into_iter().collect::<Vec<_>>()));
    page.add_blocks(skip_title(&super::tuning::build_blocks(tuned)));
    page.finish()
}

/// Formats the contents of a block trace as an HTML page.
pub fn render_trace(trace: &TraceReport) -> String {
    let mut page = HtmlPage::new(&format!("Trace: {}", trace.files.join(", ")));
    page.add_html(&render_figures(&trace::build_charts(trace)));
    page.add_blocks(skip_title(&super::trace::build_blocks(trace)));
    page.finish()
}

/// Formats real drives and their replays as an HTML page.
pub fn render_real_drives(real_drives: &RealDrives) -> String {
    let mut page = HtmlPage::new("Real drives: modelled against measured");
    page.add_blocks(skip_title(&super::real_drives::build_blocks(real_drives)));
    page.finish()
}

/// Returns blocks without their first heading, since the page has one of its own.
fn skip_title(blocks: &[DocumentBlock]) -> &[DocumentBlock] {
    match blocks {
        [DocumentBlock::Heading(_), rest @ ..] => rest,
        all => all,
    }
}

#[cfg(test)]
mod tests;
