//! Table of a run in the historic form, and of several runs side by side.

use super::document::{Column, ColumnGroup, DocumentBlock, Grid};
use super::figures;
use super::load_table;
use super::notes::list_notes;
use super::pivot;
use super::replay;
use super::targets;
use super::view::{ResultRow, RunView};
use crate::layers::ReadLayer;
use crate::statistics::IntervalMethod;
use crate::summary::cliff::CliffCache;
use diskperf_timeline::units::format_size;
use diskperf_timeline::{CacheMode, MeasuredWorld, Run, RunState, SummaryStatistic};

/// Formats the report on runs: their descriptions, their tables, the meaning of the marks, and all
/// notes.
pub(super) fn build_blocks(views: &[RunView]) -> Vec<DocumentBlock> {
    let mut blocks = Vec::new();
    for view in views {
        blocks.extend(build_heading(view));
    }
    blocks.extend(build_tables(views));
    blocks.extend(build_remarks(views));
    blocks
}

/// Describes a run in two lines: its suite and target, then its caches, drives, amount of work and
/// protocol.
pub(super) fn build_heading(view: &RunView) -> Vec<DocumentBlock> {
    let run = view.run;
    let label = run
        .user_label
        .as_ref()
        .map_or_else(String::new, |label| format!(" \"{label}\""));
    // Two runs that differ in a setting alone must not read alike.
    let settings = match &run.model_information {
        Some(model) if !model.settings.is_empty() => format!(" with {}", model.settings.join(", ")),
        Some(_) | None => String::new(),
    };
    let title = format!(
        "{} on {}{settings}, run {}{label}",
        run.suite_name,
        run.measured_description(),
        run.run_id
    );
    let mut facts = vec![
        match run.world {
            MeasuredWorld::Host => "host".to_owned(),
            MeasuredWorld::Model => format!("model, seed {}", run.seed),
        },
        describe_caches(view),
    ];
    if run.drops_all_caches {
        facts.push("the whole machine's caches dropped before each repetition".to_owned());
    }
    facts.extend(describe_location(view));
    facts.extend(describe_size(view));
    facts.extend(
        common_value(view, |row| row.result.drive_count)
            .filter(|n| *n > 1)
            .map(|n| match run.world {
                MeasuredWorld::Host => format!("{n} targets at once"),
                MeasuredWorld::Model => format!("{n} drives at once"),
            }),
    );
    facts.extend(describe_protocol(view));
    let mut found = vec![
        DocumentBlock::Heading(title),
        DocumentBlock::Text(facts.join(", ")),
    ];
    found.extend(describe_state(run).map(DocumentBlock::Text));
    found
}

/// Describes the cache that reads and writes go through, with its state, or that they bypass it:
/// `O_DIRECT`, `cold page cache`. Programs that differ from the majority are named.
fn describe_caches(view: &RunView) -> String {
    let words = |mode: CacheMode| {
        let cache = match view.run.world {
            MeasuredWorld::Host => "page cache",
            MeasuredWorld::Model => "buffer cache",
        };
        match mode {
            CacheMode::Direct => "O_DIRECT".to_owned(),
            CacheMode::Cold | CacheMode::Warm => format!("{} {cache}", mode.mode_name()),
        }
    };
    let mut found: Vec<(CacheMode, Vec<&str>)> = Vec::new();
    // The rows of layers say each for itself.
    let rows = view
        .rows
        .iter()
        .filter(|row| !pivot::is_pivoted(row.result));
    for row in rows.filter(|row| ReadLayer::from_result(row.result).is_none()) {
        match found
            .iter_mut()
            .find(|(mode, _)| *mode == row.result.cache_mode)
        {
            Some((_, titles)) => titles.push(&row.title),
            None => found.push((row.result.cache_mode, vec![&row.title])),
        }
    }
    found.sort_by_key(|(_, titles)| std::cmp::Reverse(titles.len()));
    let Some(((most, _), others)) = found.split_first() else {
        return words(view.run.cache_mode);
    };
    let others = others
        .iter()
        .map(|(mode, titles)| format!(" ({}: {})", words(*mode), titles.join("; ")));
    words(*most) + &others.collect::<String>()
}

/// Describes the common amount of work of the programs, if they share one: a duration for programs
/// of a set time, else a size.
fn describe_size(view: &RunView) -> Option<String> {
    let lasts_ms = |row: &ResultRow| {
        let told = row
            .result
            .parameters
            .get("duration_ms")?
            .parse::<u64>()
            .ok();
        told.filter(|ms| *ms > 0)
    };
    match common_value(view, lasts_ms)? {
        Some(ms) => Some(format!("{} s each", ms as f64 / 1e3)),
        None => common_value(view, |row| row.result.size_bytes).map(format_size),
    }
}

/// Returns the value that all rows of a run share; `None` if they differ, or there are none.
fn common_value<T: PartialEq>(view: &RunView, figure_of: impl Fn(&ResultRow) -> T) -> Option<T> {
    let mut values = view.rows.iter().map(figure_of);
    let first = values.next()?;
    values.all(|value| value == first).then_some(first)
}

fn describe_location(view: &RunView) -> Option<String> {
    let filesystem = common_value(view, |row| row.result.filesystem_type.clone());
    let mut devices: Vec<String> = Vec::new();
    for device in view
        .run
        .environment
        .places
        .iter()
        .flat_map(|place| &place.devices)
    {
        let name = match &device.model {
            Some(model) => format!("{} ({})", device.name, model.trim()),
            None => device.name.clone(),
        };
        if !devices.contains(&name) {
            devices.push(name);
        }
    }
    match (filesystem, devices.is_empty()) {
        (None, true) => None,
        (Some(filesystem), true) => Some(filesystem),
        (None, false) => Some(format!("on {}", devices.join(" + "))),
        (Some(filesystem), false) if devices[0].starts_with(&filesystem) => {
            Some(devices.join(" + "))
        }
        (Some(filesystem), false) => Some(format!("{filesystem} on {}", devices.join(" + "))),
    }
}

/// Describes the protocol of the run: `median of 2 repetitions after 1 discarded`.
fn describe_protocol(view: &RunView) -> Option<String> {
    let statistic = match common_value(view, |row| row.result.protocol.statistic)? {
        SummaryStatistic::Median => "median",
        SummaryStatistic::Minimum => "minimum",
    };
    let kept = view.rows.iter().map(|row| row.summary.kept_count);
    let kept = kept.filter(|kept| *kept > 0);
    let (fewest, most) = (kept.clone().min()?, kept.max()?);
    let count = if fewest == most {
        most.to_string()
    } else {
        format!("{fewest} to {most}")
    };
    let plural = if most == 1 { "" } else { "s" };
    let discarded = match common_value(view, |row| row.result.protocol.discarded_count) {
        Some(0) | None => String::new(),
        Some(discarded) => format!(" after {discarded} discarded"),
    };
    Some(format!(
        "{statistic} of {count} repetition{plural}{discarded}"
    ))
}

fn describe_state(run: &Run) -> Option<String> {
    match &run.state {
        RunState::Finished => None,
        RunState::Running => Some("NOT FINISHED: still running, or killed".to_owned()),
        RunState::Interrupted => Some("NOT FINISHED: interrupted by the user".to_owned()),
        RunState::Failed(error) => Some(format!("NOT FINISHED: {}", error.replace('\n', "; "))),
    }
}

/// Builds all tables: runs of one suite side by side, pivot tables run by run. A run that ended
/// before any measurement has none.
pub(super) fn build_tables(views: &[RunView]) -> Vec<DocumentBlock> {
    let mut blocks = Vec::new();
    let mut suites: Vec<&str> = Vec::new();
    let measured = || views.iter().filter(|view| view.is_measured());
    for view in measured() {
        if !suites.contains(&view.run.suite_name.as_str()) {
            suites.push(&view.run.suite_name);
        }
    }
    for suite in suites {
        let of_suite: Vec<&RunView> = measured()
            .filter(|view| view.run.suite_name == suite)
            .collect();
        for view in &of_suite {
            blocks.extend(pivot::build_blocks(view, views.len() > 1));
        }
        blocks.extend(build_generic_blocks(&of_suite));
        blocks.extend(load_table::build_blocks(&of_suite));
        blocks.extend(
            of_suite
                .iter()
                .flat_map(|view| replay::build_blocks(view, views.len())),
        );
        blocks.extend(of_suite.iter().flat_map(|view| targets::build_blocks(view)));
    }
    blocks
}

/// Tabulates the rows that no pivot table shows. Where runs have several file systems, each gets a
/// section, or, where no two runs share one, all stand side by side.
fn build_generic_blocks(views: &[&RunView]) -> Vec<DocumentBlock> {
    let sectioned = views.iter().any(|view| list_filesystems(view).len() > 1);
    let shared = views.iter().enumerate().any(|(number, view)| {
        let others = views[..number].iter();
        let others: Vec<&str> = others.flat_map(|other| list_filesystems(other)).collect();
        list_filesystems(view)
            .iter()
            .any(|one| others.contains(one))
    });
    if !sectioned || (views.len() > 1 && !shared) {
        let layout = if sectioned {
            FilesystemLayout::SideBySide
        } else {
            FilesystemLayout::AllTheSame
        };
        return build_grid(views, layout)
            .map(DocumentBlock::Grid)
            .into_iter()
            .collect();
    }
    let mut all: Vec<&str> = Vec::new();
    for filesystem in views.iter().flat_map(|view| list_filesystems(view)) {
        if !all.contains(&filesystem) {
            all.push(filesystem);
        }
    }
    let mut blocks = Vec::new();
    for filesystem in all {
        if let Some(grid) = build_grid(views, FilesystemLayout::OneFilesystem(filesystem)) {
            blocks.push(DocumentBlock::Section(filesystem.to_owned()));
            blocks.push(DocumentBlock::Grid(grid));
        }
    }
    blocks
}

fn list_filesystems<'v>(view: &'v RunView) -> Vec<&'v str> {
    let mut found: Vec<&str> = Vec::new();
    for row in list_rows(view) {
        if !found.contains(&row.result.filesystem_type.as_str()) {
            found.push(&row.result.filesystem_type);
        }
    }
    found
}

/// Treatment of file systems in a table of runs.
#[derive(Clone, Copy)]
enum FilesystemLayout<'f> {
    /// Layout of a table for runs with one file system each.
    AllTheSame,
    /// Layout of a table with the rows of one file system alone.
    OneFilesystem(&'f str),
    /// Layout of a table with separate columns for each file system of a run.
    SideBySide,
}

fn list_rows<'v>(view: &'v RunView) -> impl Iterator<Item = &'v ResultRow<'v>> + Clone {
    let elsewhere = |row: &ResultRow| pivot::is_pivoted(row.result) || load_table::is_shown(row);
    view.rows.iter().filter(move |row| !elsewhere(row))
}

/// Selection of the results in one group of table columns.
#[derive(Clone, Copy)]
struct ChosenRows<'v> {
    view: &'v RunView<'v>,
    drive_count: u32,
    filesystem: Option<&'v str>,
}

impl<'v> ChosenRows<'v> {
    fn select(
        view: &'v RunView<'v>,
        row: &'v ResultRow<'v>,
        layout: FilesystemLayout<'_>,
    ) -> Option<Self> {
        let own = row.result.filesystem_type.as_str();
        let filesystem = match layout {
            FilesystemLayout::AllTheSame => None,
            FilesystemLayout::OneFilesystem(name) if name != own => return None,
            FilesystemLayout::OneFilesystem(_) | FilesystemLayout::SideBySide => Some(own),
        };
        Some(Self {
            view,
            drive_count: row.result.drive_count,
            filesystem,
        })
    }

    fn is_same_group(&self, other: &Self) -> bool {
        std::ptr::eq(self.view, other.view)
            && self.drive_count == other.drive_count
            && self.filesystem == other.filesystem
    }

    fn find_row(&self, title: &str) -> Option<&'v ResultRow<'v>> {
        list_rows(self.view).find(|row| {
            let filesystem = self.filesystem;
            row.title == title
                && row.result.drive_count == self.drive_count
                && filesystem.is_none_or(|name| row.result.filesystem_type == name)
        })
    }

    /// Returns a title that distinguishes the group of columns from the others.
    fn format_title(&self, layout: FilesystemLayout<'_>) -> String {
        let mut title = self.view.name.clone();
        if matches!(layout, FilesystemLayout::SideBySide) && list_filesystems(self.view).len() > 1 {
            title += &format!(" {}", self.filesystem.unwrap_or_default());
        }
        if self.view.rows.iter().any(|row| row.result.drive_count != 1) {
            title += &format!(", {}", format_drive_count(self.drive_count));
        }
        title
    }
}

/// Builds a table with one row per program, and one group of columns per run, number of drives and,
/// in the side-by-side layout, file system.
fn build_grid(views: &[&RunView], layout: FilesystemLayout<'_>) -> Option<Grid> {
    let mut titles: Vec<(u32, &str)> = Vec::new();
    let mut groups: Vec<ChosenRows<'_>> = Vec::new();
    for view in views {
        for row in list_rows(view) {
            let Some(chosen) = ChosenRows::select(view, row, layout) else {
                continue;
            };
            if !titles.iter().any(|(_, title)| *title == row.title) {
                titles.push((row.result.table_row, &row.title));
            }
            if !groups.iter().any(|group| group.is_same_group(&chosen)) {
                groups.push(chosen);
            }
        }
    }
    if titles.is_empty() {
        return None;
    }
    titles.sort_by_key(|(place, _)| *place);
    let single = groups.len() == 1;
    let group = |chosen: &ChosenRows<'_>| {
        let cells: Vec<Option<&ResultRow>> = titles
            .iter()
            .map(|(_, title)| chosen.find_row(title))
            .collect();
        let title = if single {
            String::new()
        } else {
            chosen.format_title(layout)
        };
        ColumnGroup::new(title, build_columns(chosen.view, &cells))
    };
    Some(Grid {
        key_column: Column::left_aligned(
            "program",
            titles
                .iter()
                .map(|(_, title)| (*title).to_owned())
                .collect(),
        ),
        groups: groups.iter().map(group).collect(),
    })
}

fn format_drive_count(drives: u32) -> String {
    if drives == 1 {
        "1 drive".to_owned()
    } else {
        format!("{drives} drives")
    }
}

/// Builds the columns of one group. Cells of programs that the run lacks stay empty.
fn build_columns(view: &RunView, cells: &[Option<&ResultRow>]) -> Vec<Column> {
    let text = |of: &dyn Fn(&ResultRow) -> String| -> Vec<String> {
        cells
            .iter()
            .map(|cell| cell.map_or_else(String::new, of))
            .collect()
    };
    let pairs = cells
        .iter()
        .map(|cell| cell.map(figures::format_cell).unwrap_or_default())
        .collect();
    let durable = |row: &ResultRow| {
        row.summary
            .durable_kb_per_s
            .map_or_else(String::new, figures::format_kb_per_s)
    };
    // A model that was asked for a cold cache has one.
    let told = view.run.world == MeasuredWorld::Host
        || cells
            .iter()
            .flatten()
            .any(|row| row.summary.device_share.is_some_and(|share| share < 1.0));
    let device = |row: &ResultRow| {
        row.summary
            .device_share
            .filter(|_| told)
            .map_or_else(String::new, figures::format_share)
    };
    let mut columns = vec![
        Column::right_aligned_pairs("KB/s (CPU)", pairs),
        Column::right_aligned(
            "95 %",
            text(&|row| figures::format_relative_half_width(&row.summary)),
        ),
        Column::right_aligned("durable\nKB/s", text(&durable)),
        Column::right_aligned("from\ndevice", text(&device)),
    ];
    if common_value(view, |row| row.result.size_bytes).is_none() {
        columns.push(Column::right_aligned(
            "size",
            text(&|row| format_size(row.result.size_bytes)),
        ));
    }
    columns
}

/// Formats the remarks under the tables: the legend and the notes.
pub(super) fn build_remarks(views: &[RunView]) -> Vec<DocumentBlock> {
    let mut blocks = vec![if views.iter().any(RunView::is_measured) {
        DocumentBlock::List(list_legend(views))
    } else {
        DocumentBlock::Text("No program of this run has a result.".to_owned())
    }];
    let mut notes = list_notes(views);
    notes.extend(views.iter().flat_map(load_table::list_notes));
    notes.extend(
        views
            .iter()
            .flat_map(|view| describe_cliffs(view, views.len())),
    );
    notes.extend(replay::list_notes(views));
    notes.extend(
        views
            .iter()
            .flat_map(|view| describe_steadiness(view, views.len())),
    );
    notes.extend(describe_shapes(views));
    if !notes.is_empty() {
        blocks.push(DocumentBlock::List(notes));
    }
    blocks
}

/// Describes the rows in which a modelled drive filled its cache: the bytes written before, and the
/// share of the counted writes after that.
fn describe_cliffs(view: &RunView, views: usize) -> Vec<String> {
    let line = |row: &ResultRow| {
        let cliff = row.summary.cache_cliff?;
        let falls = match cliff.written_bytes_at_cliff {
            0 => "is slow from the start".to_owned(),
            bytes => format!("falls at {}", format_bytes(bytes)),
        };
        let title = view.format_row_title(row, views);
        let past = figures::format_share(cliff.past_cache_share);
        Some(match cliff.cache {
            CliffCache::Slc => format!(
                "{title}: {falls}: the drive's SLC cache is full; {past} of the counted writes bypassed it"
            ),
            CliffCache::Media => format!(
                "{title}: {falls}: the disk's media cache, or its map, is full; {past} of the counted writes came later and wait for the cleaning of bands"
            ),
        })
    };
    view.rows.iter().filter_map(line).collect()
}

/// Formats bytes in decimal units, as drives are sold: `142 GB`, `1.8 GB`, `2.1 MB`.
fn format_bytes(bytes: u64) -> String {
    match bytes as f64 / 1e9 {
        few if few < 0.0995 => format!("{:.1} MB", few * 1000.0),
        few if few < 9.95 => format!("{few:.1} GB"),
        many => format!("{many:.0} GB"),
    }
}

/// Describes when programs that were repeated until steady became steady, with their rounds as a
/// strip of bars.
pub(super) fn describe_steadiness(view: &RunView, views: usize) -> Vec<String> {
    let line = |row: &ResultRow| {
        let found = row.summary.steady?;
        let rule = row.result.protocol.steady_rule?;
        let name = view.format_row_title(row, views);
        let (rounds, strip) = (found.round_count, figures::render_strip(row.result));
        Some(match found.attained_at_s {
            Some(at_s) => format!(
                "{name}: steady after {rounds} rounds, {} of load; the last {} count {strip}",
                figures::format_us(at_s * 1e6),
                rule.window_rounds
            ),
            None => format!(
                "{name}: not steady in {rounds} rounds (last {}: range at most {:.0} %, slope at most {:.0} % of the mean); --runs N allows more {strip}",
                rule.window_rounds,
                rule.excursion_share * 100.0,
                rule.slope_share * 100.0
            ),
        })
    };
    view.rows.iter().filter_map(line).collect()
}

/// Lists the programs whose repetitions are not steady, as strips of bars. A single figure does not
/// represent them.
fn describe_shapes(views: &[RunView]) -> Vec<String> {
    let mut lines = Vec::new();
    for view in views {
        for row in view
            .rows
            .iter()
            .filter(|row| !row.summary.shape.is_steady() && row.summary.steady.is_none())
        {
            let name = view.format_row_title(row, views.len());
            let strip = figures::render_strip(row.result);
            lines.push(format!("{name}: {} {strip}", row.summary.shape.label()));
        }
    }
    lines
}

fn list_legend(views: &[RunView]) -> Vec<String> {
    let rows = views.iter().flat_map(|view| &view.rows);
    let mut lines = Vec::new();
    let mut calls = rows.clone().filter(|row| !load_table::is_shown(row));
    if calls.clone().next().is_some() {
        let durable = calls
            .any(|row| row.summary.durable_kb_per_s.is_some() && !pivot::is_pivoted(row.result));
        let durable = if durable {
            "; durable: until all was synced"
        } else {
            ""
        };
        lines.push(format!(
            "KB/s until the last call returned (CPU share of the elapsed time){durable}"
        ));
    }
    lines.extend(load_table::list_legend(rows.clone()));
    lines.extend(describe_relative_half_width(
        rows.clone().filter(|row| !pivot::is_pivoted(row.result)),
    ));
    if views
        .iter()
        .any(|view| view.run.world == MeasuredWorld::Model && view.is_measured())
    {
        lines.push(
            "no interval: a modelled figure is exact for its requests; another --seed draws others"
                .to_owned(),
        );
    }
    lines.extend(figures::list_legend(rows));
    lines
}

/// Describes the methods by which the table's intervals were computed.
fn describe_relative_half_width<'a>(
    rows: impl Iterator<Item = &'a ResultRow<'a>>,
) -> Option<String> {
    let mut methods = Vec::new();
    let mut widest: f64 = 1.0;
    for interval in rows.filter_map(|row| row.summary.speed_interval) {
        if interval.method == IntervalMethod::ExactValue {
            continue;
        }
        methods.push(interval.method);
        widest = widest.max(interval.widening_factor);
    }
    methods.sort_unstable();
    methods.dedup();
    let names: Vec<&str> = methods.iter().map(|method| method.name()).collect();
    if names.is_empty() {
        return None;
    }
    let mut line = format!("95 %: interval by {}", names.join(" or "));
    if methods.contains(&IntervalMethod::StudentLog) {
        line += ", wide because the repetitions are few";
    }
    if widest >= 1.05 {
        line += &format!(
            "; widened up to {widest:.1} times because successive repetitions resemble each other"
        );
    }
    Some(line)
}
