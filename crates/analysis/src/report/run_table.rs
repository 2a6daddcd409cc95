//! The table of a run in the historic form, and of several side by side.

use super::document::{Block, Column, Grid, Group};
use super::figures;
use super::pivot;
use super::view::{Row, View};
use crate::statistics::Method;
use diskperf_timeline::units::format_size;
use diskperf_timeline::{Run, RunState, Statistic, World};

/// The report on runs: who they are, their tables, what the marks mean, and
/// all notes.
pub(super) fn blocks(views: &[View]) -> Vec<Block> {
    let mut blocks = Vec::new();
    for view in views {
        blocks.extend(heading(view));
    }
    blocks.extend(tables(views));
    blocks.extend(remarks(views));
    blocks
}

/// What a run is, in two lines.
pub(super) fn heading(view: &View) -> Vec<Block> {
    let run = view.run;
    let label = run
        .label
        .as_ref()
        .map_or_else(String::new, |label| format!(" \"{label}\""));
    let title = format!("{} on {}, run {}{label}", run.suite, run.target, run.id);
    let mut facts = vec![
        match run.world {
            World::Host => "host".to_owned(),
            World::Model => format!("model, seed {}", run.seed),
        },
        format!("{} cache", run.cache.name()),
    ];
    if run.dropped_all_caches {
        facts.push("the whole machine's caches dropped before each repetition".to_owned());
    }
    facts.extend(place(view));
    facts.extend(only(view, |row| row.result.size_bytes).map(format_size));
    facts.extend(
        only(view, |row| row.result.drives)
            .filter(|n| *n > 1)
            .map(|n| format!("{n} drives at once")),
    );
    facts.extend(protocol(view));
    let mut found = vec![Block::Heading(title), Block::Text(facts.join(", "))];
    found.extend(state(run).map(Block::Text));
    found
}

/// The value that all rows share; `None` if they differ, or there are none.
fn only<T: PartialEq>(view: &View, of: impl Fn(&Row) -> T) -> Option<T> {
    let mut values = view.rows.iter().map(of);
    let first = values.next()?;
    values.all(|value| value == first).then_some(first)
}

fn place(view: &View) -> Option<String> {
    let filesystem = only(view, |row| row.result.filesystem.clone());
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

/// `median of 2 repetitions after 1 discarded`.
fn protocol(view: &View) -> Option<String> {
    let statistic = match only(view, |row| row.result.protocol.statistic)? {
        Statistic::Median => "median",
        Statistic::Minimum => "minimum",
    };
    let kept = view.rows.iter().map(|row| row.summary.kept);
    let kept = kept.filter(|kept| *kept > 0);
    let (fewest, most) = (kept.clone().min()?, kept.max()?);
    let count = if fewest == most {
        most.to_string()
    } else {
        format!("{fewest} to {most}")
    };
    let plural = if most == 1 { "" } else { "s" };
    let discarded = match only(view, |row| row.result.protocol.discarded) {
        Some(0) | None => String::new(),
        Some(discarded) => format!(" after {discarded} discarded"),
    };
    Some(format!(
        "{statistic} of {count} repetition{plural}{discarded}"
    ))
}

fn state(run: &Run) -> Option<String> {
    match &run.state {
        RunState::Finished => None,
        RunState::Running => Some("NOT FINISHED: still running, or killed".to_owned()),
        RunState::Interrupted => Some("NOT FINISHED: interrupted by the user".to_owned()),
        RunState::Failed(error) => Some(format!("NOT FINISHED: {error}")),
    }
}

/// All tables: runs of one suite side by side, pivots run by run. A run that
/// ended before anything was measured has none.
pub(super) fn tables(views: &[View]) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut suites: Vec<&str> = Vec::new();
    let measured = || views.iter().filter(|view| view.is_measured());
    for view in measured() {
        if !suites.contains(&view.run.suite.as_str()) {
            suites.push(&view.run.suite);
        }
    }
    for suite in suites {
        let of_suite: Vec<&View> = measured().filter(|view| view.run.suite == suite).collect();
        for view in &of_suite {
            blocks.extend(pivot::blocks(view, views.len() > 1));
        }
        blocks.extend(generic(&of_suite));
    }
    blocks
}

/// The rows that no pivot shows, with one section per file system where a run
/// has several.
fn generic(views: &[&View]) -> Vec<Block> {
    let sectioned = views.iter().any(|view| {
        let mut rows = rows(view);
        let first = rows.next().map(|row| &row.result.filesystem);
        rows.any(|row| Some(&row.result.filesystem) != first)
    });
    if !sectioned {
        return grid(views, None).map(Block::Grid).into_iter().collect();
    }
    let mut filesystems: Vec<&str> = Vec::new();
    for row in views.iter().flat_map(|view| rows(view)) {
        if !filesystems.contains(&row.result.filesystem.as_str()) {
            filesystems.push(&row.result.filesystem);
        }
    }
    let mut blocks = Vec::new();
    for filesystem in filesystems {
        if let Some(grid) = grid(views, Some(filesystem)) {
            blocks.push(Block::Section(filesystem.to_owned()));
            blocks.push(Block::Grid(grid));
        }
    }
    blocks
}

fn rows<'v>(view: &'v View) -> impl Iterator<Item = &'v Row<'v>> + Clone {
    view.rows.iter().filter(|row| !pivot::shows(row.result))
}

/// One row per program, one group of columns per run and number of drives.
fn grid(views: &[&View], filesystem: Option<&str>) -> Option<Grid> {
    let chosen = |row: &&Row| filesystem.is_none_or(|name| row.result.filesystem == name);
    let mut titles: Vec<(u32, &str)> = Vec::new();
    let mut groups: Vec<(&View, u32)> = Vec::new();
    for view in views {
        for row in rows(view).filter(chosen) {
            if !titles.iter().any(|(_, title)| *title == row.title) {
                titles.push((row.result.row, &row.title));
            }
            if !groups
                .iter()
                .any(|(other, drives)| std::ptr::eq(*other, *view) && *drives == row.result.drives)
            {
                groups.push((view, row.result.drives));
            }
        }
    }
    if titles.is_empty() {
        return None;
    }
    titles.sort_by_key(|(place, _)| *place);
    let single = groups.len() == 1;
    let group = |(view, drives): &(&View, u32)| {
        let cells: Vec<Option<&Row>> = titles
            .iter()
            .map(|(_, title)| {
                rows(view)
                    .filter(chosen)
                    .find(|row| row.title == *title && row.result.drives == *drives)
            })
            .collect();
        let title = match (single, view.rows.iter().all(|row| row.result.drives == 1)) {
            (true, _) => String::new(),
            (false, true) => view.name.clone(),
            (false, false) => format!("{}, {}", view.name, counted(*drives)),
        };
        Group::of(title, columns(view, &cells))
    };
    Some(Grid {
        key: Column::words(
            "program",
            titles
                .iter()
                .map(|(_, title)| (*title).to_owned())
                .collect(),
        ),
        groups: groups.iter().map(group).collect(),
    })
}

fn counted(drives: u32) -> String {
    if drives == 1 {
        "1 drive".to_owned()
    } else {
        format!("{drives} drives")
    }
}

/// The columns of one group. Cells of programs that the run lacks are empty.
fn columns(view: &View, cells: &[Option<&Row>]) -> Vec<Column> {
    let text = |of: &dyn Fn(&Row) -> String| -> Vec<String> {
        cells
            .iter()
            .map(|cell| cell.map_or_else(String::new, of))
            .collect()
    };
    let pairs = cells
        .iter()
        .map(|cell| cell.map(figures::cell).unwrap_or_default())
        .collect();
    let durable = |row: &Row| {
        row.summary
            .durable_kb_per_s
            .map_or_else(String::new, figures::speed)
    };
    let device = |row: &Row| {
        row.summary
            .device_share
            .map_or_else(String::new, figures::share)
    };
    let mut columns = vec![
        Column::pairs("KB/s (CPU)", pairs),
        Column::figures("95 %", text(&|row| figures::sureness(&row.summary))),
        Column::figures("durable\nKB/s", text(&durable)),
        Column::figures("from\ndevice", text(&device)),
    ];
    if only(view, |row| row.result.size_bytes).is_none() {
        columns.push(Column::figures(
            "size",
            text(&|row| format_size(row.result.size_bytes)),
        ));
    }
    columns
}

/// What stands under the tables: the legend and the notes.
pub(super) fn remarks(views: &[View]) -> Vec<Block> {
    let mut blocks = vec![if views.iter().any(View::is_measured) {
        Block::List(legend(views))
    } else {
        Block::Text("No program of this run has a result.".to_owned())
    }];
    let notes = notes(views);
    if !notes.is_empty() {
        blocks.push(Block::List(notes));
    }
    blocks
}

/// The meaning of the columns and marks that occur.
fn legend(views: &[View]) -> Vec<String> {
    let rows = views.iter().flat_map(|view| &view.rows);
    let mut lines =
        vec!["KB/s until the last call returned (CPU share of the elapsed time)".to_owned()];
    if rows
        .clone()
        .any(|row| row.summary.durable_kb_per_s.is_some() && !pivot::shows(row.result))
    {
        lines[0] += "; durable: until all was synced";
    }
    lines.extend(sureness(
        rows.clone().filter(|row| !pivot::shows(row.result)),
    ));
    lines.extend(figures::legend(rows));
    lines
}

/// How the intervals were computed.
fn sureness<'a>(rows: impl Iterator<Item = &'a Row<'a>>) -> Option<String> {
    let mut methods = Vec::new();
    let mut widest: f64 = 1.0;
    for interval in rows.filter_map(|row| row.summary.interval) {
        methods.push(interval.method);
        widest = widest.max(interval.widened_by);
    }
    methods.sort_unstable();
    methods.dedup();
    let names: Vec<&str> = methods.iter().map(|method| method.name()).collect();
    if names.is_empty() {
        return None;
    }
    let mut line = format!("95 %: interval by {}", names.join(" or "));
    if methods.contains(&Method::StudentLog) {
        line += ", wide because the repetitions are few";
    }
    if widest >= 1.05 {
        line += &format!(
            "; widened up to {widest:.1} times because successive repetitions resemble each other"
        );
    }
    Some(line)
}

/// All notes, each once, with the programs or runs that it is about.
fn notes(views: &[View]) -> Vec<String> {
    let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut add = |note, about| match found.iter_mut().find(|(other, _)| *other == note) {
        Some((_, subjects)) if subjects.contains(&about) => {}
        Some((_, subjects)) => subjects.push(about),
        None => found.push((note, vec![about])),
    };
    for view in views {
        for note in &view.run.notes {
            add(
                note.as_str(),
                if views.len() > 1 {
                    view.name.as_str()
                } else {
                    ""
                },
            );
        }
        for row in &view.rows {
            for note in &row.result.notes {
                add(note.as_str(), row.title.as_str());
            }
        }
    }
    let rows = views.iter().map(|view| view.rows.len()).max().unwrap_or(0);
    found
        .into_iter()
        .map(|(note, subjects)| {
            let all = subjects.len() > 1 && subjects.len() == rows;
            if all || subjects == [""] {
                format!("note: {note}")
            } else {
                format!("note on {}: {note}", subjects.join(", "))
            }
        })
        .collect()
}
