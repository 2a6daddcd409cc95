//! Notes on runs and their rows, each once.

use super::view::RunView;
use crate::{caps, interference};
use diskperf_timeline::ProgramResult;

/// Lists all notes, each once, with the programs or runs that it is about.
pub(super) fn list_notes(views: &[RunView]) -> Vec<String> {
    let disturbed = list_disturbed_programs(views);
    let capped = list_capped_rows(views);
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
            // What disturbed the rows is said once for all.
            let own = interference::describe_disturbances(row.result);
            let others = row.result.notes.iter();
            for note in others.filter(|note| Some(*note) != own.as_ref()) {
                add(note.as_str(), row.title.as_str());
            }
        }
    }
    for (note, title) in &capped {
        add(note, title);
    }
    for (note, subjects) in &disturbed {
        subjects.iter().for_each(|about| add(note, about));
    }
    let rows = views.iter().map(|view| view.rows.len()).max().unwrap_or(0);
    found
        .into_iter()
        .map(|(note, subjects)| {
            let all = subjects.len() > 1 && subjects.len() == rows;
            if all || subjects == [""] {
                format!("note: {note}")
            } else {
                format!("note on {}: {note}", subjects.join("; "))
            }
        })
        .collect()
}

/// Describes the caps at which rows of these runs were measured, each with the title of its row.
fn list_capped_rows<'a>(views: &'a [RunView]) -> Vec<(String, &'a str)> {
    let rows = views
        .iter()
        .flat_map(|view| view.rows.iter().map(move |row| (view.run, row)));
    rows.filter_map(|(run, row)| Some((caps::describe_row(run, row.result)?, row.title.as_str())))
        .collect()
}

/// Describes the disturbances of the rows of these runs, each note with the titles of its rows.
fn list_disturbed_programs<'a>(views: &'a [RunView]) -> Vec<(String, Vec<&'a str>)> {
    let rows: Vec<_> = views.iter().flat_map(|view| &view.rows).collect();
    let noted = rows.iter().filter(|row| {
        interference::describe_disturbances(row.result)
            .is_some_and(|note| row.result.notes.contains(&note))
    });
    let rows: Vec<_> = noted.collect();
    let results: Vec<&ProgramResult> = rows.iter().map(|row| row.result).collect();
    let titles = |numbers: Vec<usize>| {
        let titles = numbers
            .into_iter()
            .map(|number| rows[number].title.as_str());
        titles.collect()
    };
    let notes = interference::describe_disturbances_together(&results).into_iter();
    notes
        .map(|(numbers, note)| (note, titles(numbers)))
        .collect()
}
