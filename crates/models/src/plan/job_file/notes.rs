//! Notes on a job file and on its sections.

use diskperf_fio::JobFile;
use std::collections::HashMap;

/// Maximum number of sections that one note names. A note on more sections appears only once.
const SECTIONS_SHOWN_MAX: usize = 3;

/// Returns warnings about the job file, and its ignored options.
pub(super) fn list_notes(file: &JobFile) -> Vec<String> {
    let warnings = file.warnings.iter().map(|warning| match warning.span() {
        Some(place) => format!("{place}: {}", warning.title()),
        None => warning.title().to_owned(),
    });
    let ignored = file.ignored.iter().map(|ignored| {
        format!(
            "{}: {} is ignored: {}",
            ignored.place, ignored.key, ignored.reason
        )
    });
    warnings.chain(ignored).collect()
}

/// Combines the notes of sections, given as pairs of name and note. A note that many sections have
/// appears once, at the first of them, and names only the first few.
pub(super) fn merge_section_notes(all: &[(String, String)]) -> Vec<String> {
    let mut sections: HashMap<&str, Vec<&str>> = HashMap::new();
    for (section, note) in all {
        sections.entry(note).or_default().push(section);
    }
    let line = |(section, note): &(String, String)| {
        let named = &sections[note.as_str()];
        match named.len().saturating_sub(SECTIONS_SHOWN_MAX) {
            0 => Some(format!("[{section}]: {note}")),
            more if named[0] == section => {
                let shown = named[..SECTIONS_SHOWN_MAX].join("], [");
                Some(format!("[{shown}] and {more} more: {note}"))
            }
            _ => None,
        }
    };
    all.iter().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(sections: usize, note: &str) -> Vec<(String, String)> {
        let names = (0..sections).map(|number| format!("s{number}"));
        names.map(|name| (name, note.to_owned())).collect()
    }

    #[test]
    fn a_note_of_many_sections_stands_once() {
        for (sections, expected) in [
            (1, &["[s0]: n"][..]),
            (3, &["[s0]: n", "[s1]: n", "[s2]: n"]),
            (4, &["[s0], [s1], [s2] and 1 more: n"]),
            (4096, &["[s0], [s1], [s2] and 4093 more: n"]),
        ] {
            assert_eq!(merge_section_notes(&noted(sections, "n")), expected);
        }
        // Where the first section has it, beside what only one has.
        let mut all = noted(5, "n");
        all.insert(0, ("s0".to_owned(), "own".to_owned()));
        all.extend(noted(5, "m"));
        let found = merge_section_notes(&all);
        let expected = [
            "[s0]: own",
            "[s0], [s1], [s2] and 2 more: n",
            "[s0], [s1], [s2] and 2 more: m",
        ];
        assert_eq!(found, expected);
    }
}
