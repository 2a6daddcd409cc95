//! Every key of DiskSim's files, with its smallest, middle and largest value, and beyond them.

use super::small;
use super::taken::{INDEXED, MAP, MAPPED};
use diskperf_diskspecs::table::{self, BLOCK_TABLES, BlockKeyTable, KeyEffect};
use diskperf_diskspecs::{Errors, ImportedSpecification, SpecificationFiles, import};
use std::collections::{BTreeMap, BTreeSet};

/// Names, types and ranges as DiskSim checks them.
const FACTS: &str = include_str!("../data/disksim-keys.txt");
const WHOLE: &str = include_str!("../data/whole.parv");

/// A key as DiskSim has it.
struct Fact {
    block: String,
    key: String,
    /// I, D, S, L or B.
    kind: char,
    is_required: bool,
    range: String,
}

fn facts() -> Vec<Fact> {
    let (mut facts, mut block) = (Vec::new(), String::new());
    for line in FACTS.lines().skip_while(|line| !line.starts_with("**")) {
        let line = line.trim().trim_end_matches([';', '.']);
        let key = match line.strip_prefix("**") {
            Some(rest) => {
                let (name, key) = rest.split_once("**: ").expect("a block");
                let name = name.split(' ').next().expect("a name");
                block = match name.starts_with("dm_") {
                    true => name.to_owned(),
                    false => format!("disksim_{name}"),
                };
                key
            }
            None => line,
        };
        let (key, value) = key.rsplit_once(" (").expect("a type");
        let value = value.trim_end_matches(')');
        let (kind, range) = value.split_once(", ").unwrap_or((value, ""));
        facts.push(Fact {
            block: block.clone(),
            key: key.to_owned(),
            kind: kind.chars().next().expect("a letter"),
            is_required: kind.ends_with('!'),
            range: range.to_owned(),
        });
    }
    facts
}

impl Fact {
    /// Smallest and largest value of a number.
    fn range(&self) -> (Option<f64>, Option<f64>) {
        // Named limits, in the fixture's own words and drive.
        let named = |limit: &str| match limit {
            "sectors of the disk" => Some(76.0),
            "segment size" => Some(32.0),
            "number of segments" => Some(2.0),
            "MINSCHED" => Some(1.0),
            "MAXSCHED" => Some(28.0),
            "LAYOUT_MAX" => Some(2.0),
            "NO_SPARING" => Some(0.0),
            "MAXSPARESCHEME" => Some(10.0),
            limit if limit.starts_with("CACHE_") => None,
            limit => Some(limit.parse().unwrap_or_else(|_| panic!("{limit}"))),
        };
        if let Some((min, max)) = self.range.split_once(" to ") {
            return (named(min), named(max));
        }
        match self.range.trim_start_matches(['i', 'd', ' ']) {
            "" => (None, None),
            "> 0" => (Some(if self.kind == 'I' { 1.0 } else { 0.0 }), None),
            "> 0.0" => (Some(f64::MIN_POSITIVE), None),
            ">= 0" => (Some(0.0), None),
            ">= 1" => (Some(1.0), None),
            other => panic!("{}: {other}", self.key),
        }
    }

    fn number(&self, value: f64) -> String {
        match self.kind {
            'I' => format!("{value:.0}"),
            _ => format!("{value:?}"),
        }
    }

    /// Smallest, middle and largest value.
    fn legal(&self) -> Vec<String> {
        let words = |all: &[&str]| all.iter().map(|&one| one.to_owned()).collect();
        match (self.kind, self.key.as_str()) {
            ('I' | 'D', _) => {}
            (_, "Access time type") => {
                return words(&["constant", "averageRotation", "trackSwitchPlusRotation"]);
            }
            (_, "Seek type") => return words(&["constant", "curve", "hpl", "hplplus10"]),
            (_, "Skew units") => return words(&["sectors", "revolutions"]),
            (_, "Full seek curve" | "Layout Map File") => return Vec::new(),
            ('S', _) => return words(&["1", "Word", "a/long.name"]),
            _ => return Vec::new(),
        }
        let (min, max) = self.range();
        let (low, high) = self.reach();
        let min = min.map_or(low, |min| min.max(low));
        let max = max.map_or(high, |max| max.min(high));
        let values = [min, ((min + max) / 2.0).trunc().clamp(min, max), max];
        let values: BTreeSet<String> = values.map(|value| self.number(value)).into();
        values.into_iter().collect()
    }

    /// Values that leave the rest of the small drive in order: cylinders lie between the first
    /// and the last of its zone, and its tracks have room for a spare. The last two are as
    /// many as a modelled drive has.
    fn reach(&self) -> (f64, f64) {
        let any = f64::from(i32::MAX);
        match (self.block.as_str(), self.key.as_str()) {
            // Where the extents of the map lie.
            ("dm_layout_g2_zone", "First cylinder number") => (0.0, 0.0),
            ("dm_layout_g2_zone", "Last cylinder number") => (1.0, 99_999_999.0),
            ("dm_layout_g2_zone", "Blocks per track") => (10.0, 1_048_576.0),
            (_, "First cylinder number") => (0.0, 3.0),
            (_, "Last cylinder number") => (0.0, 99_999_999.0),
            (_, "Number of cylinders") => (1.0, 1e8),
            (_, "Number of data surfaces") => (1.0, 1024.0),
            (_, "Blocks per track") => (2.0, 1_048_576.0),
            (_, "Empty space at zone front") => (-any, 30.0),
            (_, "Number of spares") => (-any, 8.0),
            _ => (-any, any),
        }
    }

    /// Values that DiskSim refuses.
    fn illegal(&self) -> Vec<String> {
        let words = |all: &[&str]| all.iter().map(|&one| one.to_owned()).collect();
        let mut values: Vec<String> = match self.kind {
            'I' => words(&["1.5", "word", "[ 1 ]", "a { b = 1 }"]),
            'D' => words(&["word", "[ 1.0 ]", "a { b = 1 }"]),
            'S' => words(&["[ a ]", "a { b = 1 }"]),
            'L' => words(&["1", "word", "a { b = 1 }"]),
            _ => words(&["1", "word", "[ a ]"]),
        };
        if matches!(self.kind, 'I' | 'D') {
            let (min, max) = self.range();
            let step = if self.kind == 'I' { 1.0 } else { 1e-6 };
            values.extend(min.map(|min| self.number(min - step)));
            values.extend(max.map(|max| self.number(max + step)));
        }
        if self.range == "d > 0.0" {
            values.push("0.0".to_owned());
        }
        values
    }
}

/// The files of the small drive with all blocks, with one key set.
fn files(fact: &Fact, value: &str) -> (BTreeMap<String, String>, &'static str) {
    let mut files = small();
    files.insert("whole.parv".to_owned(), WHOLE.to_owned());
    files.insert("small.map".to_owned(), MAP.to_owned());
    let is_of_layout = fact.block.starts_with("dm_");
    if is_of_layout || fact.key == "Segment size (in blks)" {
        let text = files.get_mut("small.diskspecs").expect("a file");
        // Sizes that the smallest disk and the smallest segment have room for.
        let sizes = [
            ("sectors per cylinder = 20", "sectors per cylinder = 1"),
            (
                "Segment size (in blks) = 0x20",
                "Segment size (in blks) = 1",
            ),
            ("read-ahead (blks) = 8", "read-ahead (blks) = 0"),
        ];
        for (from, to) in sizes {
            *text = text.replacen(from, to, 1);
        }
    }
    let layouts = [("dm_layout_g2", MAPPED), ("dm_layout_g4", INDEXED)];
    for (kind, layout) in layouts {
        if fact.block.starts_with(kind) {
            let model = files.get_mut("small.model").expect("a file");
            let start = model.find("dm_layout_g1 {").expect("a layout");
            let end = model.rfind('}').expect("an end");
            model.replace_range(start..end, layout);
        }
    }
    let name = match fact.block.as_str() {
        _ if is_of_layout => "small.model",
        "disksim_disk" | "disksim_ioqueue" => "small.diskspecs",
        _ => "whole.parv",
    };
    let text = files.get_mut(name).expect("a file");
    if fact.key == "Seek type" {
        let times = "Constant seek time = 1.0, Single cylinder seek time = 1.0, \
            Average seek time = 5.0, Full strobe seek time = 9.0, \
            HPL seek equation values = [ 2, 1.0, 0.1, 1.0, 0.1, -1 ], \
            First ten seek times = [ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 ],";
        *text = text.replacen("Seek type", &format!("{times} Seek type"), 1);
    }
    let seek = match fact.key.as_str() {
        "Constant seek time" => "Seek type = constant",
        "Average seek time" | "Single cylinder seek time" | "Full strobe seek time" => {
            "Single cylinder seek time = 1.0, Average seek time = 5.0, \
             Full strobe seek time = 9.0, Seek type = curve"
        }
        _ => "Seek type = extracted",
    };
    *text = text.replacen("Seek type = extracted", seek, 1);
    if fact.key == "Rangesize for sparing" {
        *text = text.replacen("scheme used = 2", "scheme used = 8", 1);
    }
    set(text, fact, value);
    (files, name)
}

/// Sets a key of the first block of a type, or adds it.
fn set(text: &mut String, Fact { block, key, .. }: &Fact, value: &str) {
    let kind = text.match_indices(block.as_str());
    let mut kind = kind.map(|(at, _)| at + block.len());
    let start = kind
        .find(|&at| text[at..].starts_with(' '))
        .expect("a block");
    let start = start + text[start..].find('{').expect("a block") + 1;
    let (mut depth, mut entry) = (0, start);
    for (at, one) in text[start..].char_indices() {
        let at = start + at;
        match one {
            '{' | '[' => depth += 1,
            '}' | ']' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                let (name, _) = text[entry..at].split_once('=').unwrap_or_default();
                if name.trim() == key {
                    let from = entry + text[entry..at].find('=').expect("a key") + 2;
                    return text.replace_range(from..at, value);
                }
                if one == '}' {
                    break;
                }
                entry = at + 1;
            }
            _ => {}
        }
    }
    text.insert_str(start, &format!(" {key} = {value},\n"));
}

fn read(fact: &Fact, value: &str) -> (Result<ImportedSpecification, Errors>, &'static str) {
    let (files, name) = files(fact, value);
    (
        import("whole.parv", &SpecificationFiles::Memory(files)),
        name,
    )
}

#[test]
fn the_tables_have_the_keys_of_disksim() {
    let facts = facts();
    assert_eq!(
        facts.len(),
        BLOCK_TABLES.iter().map(|of| of.keys.len()).sum()
    );
    for fact in facts {
        let what = format!("{} of {}", fact.key, fact.block);
        let table = BlockKeyTable::find(&fact.block).unwrap_or_else(|| panic!("{what}"));
        let key = table
            .find_key(&fact.key)
            .unwrap_or_else(|| panic!("{what}"));
        assert_eq!(key.is_required, fact.is_required, "{what}");
    }
}

#[test]
fn what_disksim_accepts_is_read_and_used_or_listed() {
    let mut values = 0;
    for fact in facts() {
        for value in fact.legal() {
            let what = format!("{}: {} = {value}", fact.block, fact.key);
            let found = read(&fact, &value).0;
            let found = found.unwrap_or_else(|errors| panic!("{what}: {}", errors.render(false)));
            let listed = found.ignored_keys.iter().any(|line| {
                line.key == fact.key && line.block.split(' ').next() == Some(&*fact.block)
            });
            let is_used = found
                .key_spans
                .iter()
                .any(|all| all.contains_key(&fact.key))
                || fact.block == "disksim_bus"
                || fact.block == "disksim_ctlr";
            let table = BlockKeyTable::find(&fact.block).expect("a table");
            let key = table.find_key(&fact.key).expect("a key");
            match key.effect {
                KeyEffect::Used => assert!(is_used || listed, "{what} is lost"),
                KeyEffect::Ignored(_) | KeyEffect::Substituted(..) => {
                    assert!(listed, "{what} is not listed")
                }
            }
            values += 1;
        }
    }
    assert!(values > 400, "{values} values");
}

#[test]
fn what_disksim_refuses_is_refused_with_its_place_and_range() {
    let mut values = 0;
    for fact in facts() {
        for value in fact.illegal() {
            let what = format!("{}: {} = {value}", fact.block, fact.key);
            let (found, file) = read(&fact, &value);
            let errors = match found {
                Ok(_) => panic!("{what} is taken"),
                Err(errors) => errors,
            };
            let title = format!("`{}` cannot be", fact.key);
            let mut problems = errors.problems().iter();
            let problem = problems.find(|one| one.title().starts_with(&title));
            let rendered = errors.render(false);
            let problem = problem.unwrap_or_else(|| panic!("{what}: {rendered}"));
            let place = problem.span().expect("a place");
            assert_eq!(place.file(), file, "{what}");
            let written = value.split(' ').next().expect("a word");
            assert_eq!(place.as_str(), written, "{what}");
            let (line, column) = (place.line_number(), place.column());
            assert!(
                rendered.contains(&format!("{file}:{line}:{column}")),
                "{what}"
            );
            let help = format!("help: write `{} = ", fact.key);
            assert!(rendered.contains(&help), "{what}: {rendered}");
            values += 1;
        }
    }
    assert!(values > 700, "{values} values");
}

/// Puts the value that a message advises in place of the refused one.
#[test]
fn what_a_message_advises_is_read() {
    for fact in facts().iter().filter(|fact| matches!(fact.kind, 'I' | 'D')) {
        for value in fact.illegal() {
            let errors = read(fact, &value).0.expect_err(&value);
            let rendered = errors.render(false);
            let start = format!("help: write `{} = ", fact.key);
            let (_, advice) = rendered.split_once(&start).expect("an advice");
            let (advice, _) = advice.split_once('`').expect("an end");
            let title = format!("`{}` cannot be", fact.key);
            if let Err(errors) = read(fact, advice).0 {
                let still = errors.render(false);
                assert!(!still.contains(&title), "{} = {advice}: {still}", fact.key);
            }
        }
    }
}

/// Page of the documentation. `DISKPERF_WRITE_DOCS=1` writes it anew.
#[test]
fn the_page_of_keys_is_that_of_the_tables() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/disksim-keys.md"
    );
    let page = std::fs::read_to_string(path).expect("the page");
    let (head, tables) = page.split_once("\n## ").expect("a table");
    if std::env::var_os("DISKPERF_WRITE_DOCS").is_some() {
        return std::fs::write(path, format!("{head}{}", table::render_page())).expect("a page");
    }
    let is_same = format!("\n## {tables}") == table::render_page();
    assert!(
        is_same,
        "DISKPERF_WRITE_DOCS=1 writes the tables of {path} anew"
    );
}
