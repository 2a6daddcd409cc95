//! Units are written in one way, in whatever prints them.

use std::path::{Path, PathBuf};

/// The crates whose text reaches a reader; input and fio's own units are read elsewhere.
const PRINTING: [&str; 3] = ["analysis", "laboratory", "diskperf"];

/// Whether a line of source writes microseconds as `us`: behind a figure, in a heading, or in
/// help.
fn writes_us(line: &str) -> bool {
    let line = line.trim();
    let is_help = line.starts_with("///");
    if line.starts_with("//") && !is_help {
        return false;
    }
    let is_end = |rest: &str| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_');
    let behind = |before: &str| before.ends_with(|last: char| last == '}' || last.is_ascii_digit());
    let is_heading = |before: &str| before.ends_with([',', 'd']) && !is_help;
    line.match_indices(" us").any(|(at, found)| {
        let (before, rest) = (&line[..at], &line[at + found.len()..]);
        let is_quoted = before.matches('"').count() % 2 == 1;
        is_end(rest) && (is_help || is_quoted) && (behind(before) || is_heading(before))
    }) || line.contains("::figures(\"us\"")
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => sources(&path, found),
            false if path.extension().is_some_and(|one| one == "rs") => found.push(path),
            false => {}
        }
    }
}

#[test]
fn microseconds_are_written_in_one_way() {
    for (line, wrong) in [
        (r#"format!("{:.1} us", ns / 1e3)"#, true),
        (r#""response p99, us","#, true),
        (r#"Column::figures("us", column)"#, true),
        (r#"figures(drives, "period us", |one| {"#, true),
        ("/// The time of a program, 5 us", true),
        (r#"format!("{:.1} µs", ns / 1e3)"#, false),
        ("let of = |us: f64| us;", false),
        ("(us(1), us(2))", false),
        ("// It takes 5 us.", false),
    ] {
        assert_eq!(writes_us(line), wrong, "{line}");
    }
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut all = Vec::new();
    for name in PRINTING {
        sources(&crates.join(name).join("src"), &mut all);
    }
    assert!(all.len() > 100, "{} sources", all.len());
    let mut wrong = Vec::new();
    for path in all.iter().filter(|path| !path.ends_with("units.rs")) {
        let text = std::fs::read_to_string(path).unwrap();
        // Documentation is help where options are; units that options take are input.
        let has_help = path
            .components()
            .any(|part| part.as_os_str() == "arguments");
        let lines = text.lines().enumerate().filter(|(_, line)| writes_us(line));
        let lines = lines.filter(|(_, line)| has_help || !line.trim().starts_with("///"));
        let lines = lines.filter(|(_, line)| !line.contains("us, ns or ps"));
        wrong.extend(
            lines.map(|(number, line)| {
                format!("{}:{}: {}", path.display(), number + 1, line.trim())
            }),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
