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

pub use chart::{Chart, ROWS};
pub use heat_map::Surface;
pub use picture::Picture;

use super::comparison_table;
use super::details;
use super::document::Block;
use super::run_table;
use super::view::{Row, View};
use crate::accuracy::Card;
use crate::comparison::compare;
use crate::real_drives::RealDrives;
use crate::trace::Trace;
use crate::tuning::Tuned;
use chart::{figures, slug};
use diskperf_timeline::{MeasuredWorld, ProgramResult, Run, Stage};
use page::Page;

/// Run to be reported, with related facts that it does not contain itself.
#[derive(Clone, Debug)]
pub struct Reported {
    /// Run that the report covers.
    pub run: Run,
    /// Published figures of the same programs on the same system.
    pub printed: Vec<Printed>,
    /// Pictures of the drives' activity, each with the index of its result in the run.
    pub pictures: Vec<(usize, Picture)>,
    /// Reason for the lack of pictures, where there might be some.
    pub no_pictures: Option<String>,
}

/// Published figure of a program, to stand beside the measured one.
#[derive(Clone, Debug, PartialEq)]
pub struct Printed {
    /// Document and table that print the figure.
    pub published: String,
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

impl Printed {
    fn is_result_of(&self, result: &ProgramResult) -> bool {
        self.program == result.program
            && self.filesystem == result.filesystem_type
            && self.drives == result.drive_count
    }
}

/// Builds all charts of a report on these runs.
pub fn charts(reported: &[Reported]) -> Vec<Chart> {
    let runs: Vec<Run> = reported.iter().map(|one| one.run.clone()).collect();
    let views = View::from_runs(&runs);
    let mut charts = throughput::charts(&views, reported);
    charts.extend(views.iter().flat_map(run_charts));
    charts.extend(repetitions::pair_charts(&compare(&runs)));
    charts
}

/// Builds all charts of an accuracy card.
pub fn card_charts(card: &Card) -> Vec<Chart> {
    scatter::charts(card)
}

fn run_charts(view: &View<'_>) -> Vec<Chart> {
    let curves = call_sizes::chart(view).into_iter();
    let charts = curves.chain(repetitions::run_charts(view));
    let charts = charts.chain(waterfall::charts(view));
    let charts = charts.chain(course::charts(view));
    charts.chain(latency::chart(view)).collect()
}

/// Returns the title of a program, with the file system and the drives where its run has several.
fn chart_title(view: &View<'_>, row: &Row<'_>) -> String {
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
pub fn page(reported: &[Reported]) -> String {
    let runs: Vec<Run> = reported.iter().map(|one| one.run.clone()).collect();
    let views = View::from_runs(&runs);
    let title = match views.as_slice() {
        [view] => heading(view),
        _ => format!("{} runs", views.len()),
    };
    let mut page = Page::new(&title);
    if views.len() > 1 {
        page.contents(views.iter().map(|view| (anchor(view), heading(view))));
        page.section("results", "Results");
    } else {
        views.iter().for_each(|view| page.facts(view));
    }
    page.blocks(&run_table::tables(&views));
    page.remarks(&run_table::remarks(&views));
    page.html(&figures(&throughput::charts(&views, reported)));
    add_comparison(&mut page, &runs);
    for (view, one) in views.iter().zip(reported) {
        add_run(&mut page, view, one, views.len() > 1);
    }
    page.finish()
}

/// Writes the comparison of several runs, the first as the base. A run without any program of the
/// base is left out.
fn add_comparison(page: &mut Page, runs: &[Run]) {
    let pairs = compare(runs).pairs;
    let is_related = |number: usize| number == 0 || pairs.iter().any(|pair| pair.run == number);
    let related = runs.iter().enumerate();
    let related = related.filter(|(number, _)| is_related(*number));
    let related: Vec<Run> = related.map(|(_, run)| run.clone()).collect();
    if related.len() > 1 {
        let comparison = compare(&related);
        page.section("comparison", "Comparison");
        match comparison_table::blocks(&comparison).as_slice() {
            [Block::Heading(base), rest @ ..] => {
                page.paragraph(base);
                page.blocks(rest);
            }
            all => page.blocks(all),
        }
        page.html(&figures(&repetitions::pair_charts(&comparison)));
    }
}

fn anchor(view: &View<'_>) -> String {
    format!("run-{}", slug(&view.run.run_id))
}

fn heading(view: &View<'_>) -> String {
    let run = view.run;
    let label = run.user_label.iter().map(|label| format!("{label}: "));
    format!(
        "{}{} on {}",
        label.collect::<String>(),
        run.suite_name,
        run.measured_description()
    )
}

fn add_run(page: &mut Page, view: &View<'_>, reported: &Reported, among_others: bool) {
    if among_others {
        page.section(&anchor(view), &heading(view));
        page.facts(view);
    }
    pictures(page, view, reported);
    let curves: Vec<Chart> = call_sizes::chart(view)
        .map(Chart::wide)
        .into_iter()
        .collect();
    page.html(&figures(&curves));
    let shaped = repetitions::run_charts(view);
    if !shaped.is_empty() {
        page.part("Repetitions with more than one level");
        page.html(&figures(&shaped));
    }
    let ledgers = waterfall::charts(view);
    if !ledgers.is_empty() {
        page.part("Where the time went");
        page.html(&figures(&ledgers));
    }
    let courses = course::charts(view);
    if !courses.is_empty() {
        page.part("Over time");
        page.html(&figures(&courses));
    }
    let latency: Vec<Chart> = latency::chart(view).map(Chart::wide).into_iter().collect();
    if !latency.is_empty() {
        page.part("Latency of calls");
        page.html(&figures(&latency));
        let mut same = details::latencies(view);
        same.extend(details::loads(view));
        page.folded("The same in figures", &same);
    }
    let caches = details::controller_caches(view);
    page.blocks(&caches);
    page.blocks(&details::media_caches(view));
    page.blocks(&details::flash(view));
    page.folded("Every repetition", &details::repetitions(view));
    page.part(match view.run.world {
        MeasuredWorld::Host => "Measured machine",
        MeasuredWorld::Model => "Modelled machine",
    });
    page.list(&repeat::environment(view.run));
    page.part("How to repeat it");
    page.html(&repeat::repeat(view.run));
}

/// Selects the results of a modelled run that get a picture, as indices in ascending order.
///
/// On platters these are all results, or, of more than [`PLATTER_PICTURES_MAX`], those that lose the most
/// to missed revolutions. Pictures of flash drives are large; they are drawn for a few results that
/// lose time at the dies, or for the first one where none does.
pub fn worth_a_picture(run: &Run) -> Vec<usize> {
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
        shares.retain(|(_, share)| *share >= SHOWN_SHARE);
        shares.truncate(DIE_PICTURES_MAX);
    }
    shares.truncate(PLATTER_PICTURES_MAX);
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

fn pictures(page: &mut Page, view: &View<'_>, reported: &Reported) {
    if !reported.pictures.is_empty() || reported.no_pictures.is_some() {
        let is_of_dies = |(_, picture): &(usize, Picture)| matches!(picture, Picture::Dies(_));
        page.part(match reported.pictures.iter().any(is_of_dies) {
            true => "Activity of the dies",
            false => "Activity on the platter",
        });
    }
    if let Some(reason) = &reported.no_pictures {
        page.paragraph(reason);
    }
    let results = view.run.results.len();
    let drawn = reported.pictures.len();
    if drawn > 0 && results > drawn {
        page.paragraph(&format!(
            "Of {results} programs {drawn} are drawn: {}.",
            match runs_on_flash(view.run) {
                true => "the programs that lose the most time at the dies, or the first ones",
                false if results <= PLATTER_PICTURES_MAX =>
                    "concurrent programs share a picture, and programs without disk requests have none",
                false =>
                    "the programs that lose the most to missed revolutions; of concurrent programs the first, with the requests of all",
            }
        ));
    }
    for (number, picture) in &reported.pictures {
        let result = view.run.results.get(*number);
        let row = view
            .rows
            .iter()
            .find(|row| result.is_some_and(|one| std::ptr::eq(one, row.result)));
        let title = row.map_or_else(String::new, |row| chart_title(view, row));
        let name = format!("{}-{}-{number}", picture.kind(), slug(&view.run.run_id));
        page.html(&picture.figures(&name, &title));
    }
}

/// Maximum number of platter pictures of one run, each of some 40 KB.
const PLATTER_PICTURES_MAX: usize = 8;
/// Maximum number of results of one run whose dies are drawn, with two pictures of up to 100 KB
/// each.
const DIE_PICTURES_MAX: usize = 3;
/// Minimum share of its time that a result on flash must lose at the dies to get a picture.
const SHOWN_SHARE: f64 = 0.01;

/// Formats the accuracy card as an HTML page.
pub fn card(card: &Card) -> String {
    let mut page = Page::new(&format!("Accuracy: {}", card.documents.join(", ")));
    let (summary, rest) = super::card::halves(card);
    page.blocks(without_title(&summary));
    page.html(&figures(&card_charts(card)));
    page.blocks(&rest);
    page.finish()
}

/// Formats the result of a tuning search as an HTML page.
pub fn tuned(tuned: &Tuned) -> String {
    let mut page = Page::new(&super::tuning::heading(tuned));
    let surface = Surface::from_tuned(tuned).and_then(|surface| surface.chart());
    page.html(&figures(&surface.into_iter().collect::<Vec<_>>()));
    page.blocks(without_title(&super::tuning::blocks(tuned)));
    page.finish()
}

/// Formats the contents of a block trace as an HTML page.
pub fn trace(trace: &Trace) -> String {
    let mut page = Page::new(&format!("Trace: {}", trace.files.join(", ")));
    page.html(&figures(&trace::charts(trace)));
    page.blocks(without_title(&super::trace::blocks(trace)));
    page.finish()
}

/// Formats real drives and their replays as an HTML page.
pub fn real_drives(real_drives: &RealDrives) -> String {
    let mut page = Page::new("Real drives: modelled against measured");
    page.blocks(without_title(&super::real_drives::blocks(real_drives)));
    page.finish()
}

/// Returns blocks without their first heading, since the page has one of its own.
fn without_title(blocks: &[Block]) -> &[Block] {
    match blocks {
        [Block::Heading(_), rest @ ..] => rest,
        all => all,
    }
}

#[cfg(test)]
mod tests;
