//! The same drive in other words: files whose keys are dropped, doubled or in another order,
//! with other blanks, line ends and comments. With `DISKPERF_DRIVES` the published drives, too.

use super::small;
use diskperf_diskspecs::{ImportedSpecification, SpecificationFiles, import};
use std::collections::BTreeMap;
use std::path::PathBuf;

type Texts = BTreeMap<String, String>;

/// The first file of each drive, and the texts of all.
fn drives() -> Vec<(String, Texts)> {
    let mut drives = vec![("small.parv".to_owned(), small())];
    match std::env::var_os("DISKPERF_DRIVES").map(PathBuf::from) {
        None => eprintln!("SKIPPED the published drives: DISKPERF_DRIVES names no folder"),
        Some(folder) => {
            let mut texts = Texts::new();
            for file in std::fs::read_dir(folder).expect("a folder") {
                let path = file.expect("a file").path();
                let name = path.file_name().expect("a name").to_string_lossy();
                if !name.ends_with(".trace") && !name.ends_with(".md") {
                    let text = std::fs::read_to_string(&path).expect("a text");
                    texts.insert(name.into_owned(), text);
                }
            }
            let runs = texts.keys().filter(|name| name.ends_with(".parv"));
            drives.extend(runs.map(|name| (name.clone(), texts.clone())));
        }
    }
    drives
}

fn read(first: &str, texts: &Texts) -> ImportedSpecification {
    let read = import(first, &SpecificationFiles::Memory(texts.clone()));
    read.unwrap_or_else(|errors| panic!("{first}: {}", errors.render(false)))
}

/// An entry `KEY = VALUE` of a block.
struct Entry {
    start: usize,
    end: usize,
    key: String,
    /// Start of the block, after its bracket.
    block: usize,
}

/// The entries of all blocks of a text, with those within others before these.
fn entries(text: &str) -> Vec<Entry> {
    // For each open bracket: where it began, where its entry began, and whether it is a block.
    let (mut open, mut found) = (Vec::<(usize, usize, bool)>::new(), Vec::new());
    let mut is_comment = false;
    for (at, one) in text.char_indices() {
        is_comment = match one {
            '#' => true,
            '\n' => false,
            _ => is_comment,
        };
        if is_comment {
            continue;
        }
        match one {
            '{' | '[' => open.push((at + 1, at + 1, one == '{')),
            ',' | '}' | ']' => {
                let Some((block, start, is_block)) = open.last_mut() else {
                    continue;
                };
                let part = &text[*start..at];
                if *is_block && let Some((key, _)) = part.split_once('=') {
                    let lines = key.lines().map(|line| line.split('#').next());
                    let key = lines.flatten().collect::<Vec<_>>().join(" ");
                    let key = key.split_whitespace().collect::<Vec<_>>().join(" ");
                    let (start, end, block) = (*start, at, *block);
                    found.push(Entry {
                        start,
                        end,
                        key,
                        block,
                    });
                }
                *start = at + 1;
                if one != ',' {
                    open.pop();
                }
            }
            _ => {}
        }
    }
    found
}

/// A key that is dropped is said, or refused by its name, if the drive becomes another one.
#[test]
fn a_key_that_is_missing_is_never_lost_in_silence() {
    for (first, texts) in drives() {
        let whole = read(&first, &texts);
        let stem = first.trim_end_matches("parv");
        let own = |name: &&String| name.starts_with(stem) || name.contains("_validate.");
        let mut dropped = 0;
        for name in texts.keys().filter(own) {
            // Zones have the same keys: those of the first ones stand for all.
            for Entry {
                start, end, key, ..
            } in entries(&texts[name]).into_iter().take(120)
            {
                let mut changed = texts.clone();
                let text = changed.get_mut(name).expect("a file");
                let rest = &text[end..];
                let end = if rest.starts_with(',') { end + 1 } else { end };
                text.replace_range(start..end, "\n");
                let names_it = |text: &str| text.contains(&format!("`{key}"));
                match import(&first, &SpecificationFiles::Memory(changed)) {
                    Ok(import) => {
                        let is_said = import.warnings.iter().any(|one| names_it(one.title()));
                        let is_same = import.drives == whole.drives;
                        assert!(is_same || is_said || is_optional(&key), "{name}: {key}");
                    }
                    Err(errors) => {
                        let text = errors.render(false);
                        let is_named = names_it(&text) || text.contains(" has no model");
                        assert!(is_named, "{name}: {key}: {text}");
                    }
                }
                dropped += 1;
            }
        }
        assert!(dropped > 100, "{first}: {dropped} keys");
    }
}

/// Keys that DiskSim does without.
fn is_optional(key: &str) -> bool {
    use diskperf_diskspecs::table::BLOCK_TABLES;
    let mut keys = BLOCK_TABLES.iter().flat_map(|block| block.keys);
    keys.any(|one| one.name == key && !one.is_required)
}

#[test]
fn of_a_key_that_is_doubled_the_first_holds() {
    for (first, texts) in drives() {
        let whole = read(&first, &texts);
        let name = texts.keys().find(|name| {
            name.ends_with(".diskspecs") && name.starts_with(first.trim_end_matches("parv"))
        });
        let name = name.expect("electronics");
        for Entry { end, key, .. } in entries(&texts[name]) {
            let mut changed = texts.clone();
            let text = changed.get_mut(name).expect("a file");
            text.insert_str(end, &format!(", {key} = 7 "));
            let import = read(&first, &changed);
            assert_eq!(import.drives, whole.drives, "{name}: {key}");
            let said = format!("duplicate definition of `{key}`");
            let mut titles = import.warnings.iter().map(|one| one.title());
            assert!(titles.any(|title| title == said), "{name}: {key}");
        }
    }
}

#[test]
fn the_order_of_keys_does_not_matter() {
    for (first, texts) in drives() {
        let whole = read(&first, &texts);
        let mut changed = texts.clone();
        for text in changed.values_mut() {
            // The innermost blocks: what is in them has no entries of its own.
            let all = entries(text);
            let is_inner = |block: usize| {
                let end = all
                    .iter()
                    .filter(|one| one.block == block)
                    .map(|one| one.end);
                let end = end.max().unwrap_or(block);
                all.iter().all(|one| one.block <= block || one.block > end)
            };
            let mut blocks: Vec<usize> = all.iter().map(|one| one.block).collect();
            blocks.sort_unstable();
            blocks.dedup();
            for block in blocks.into_iter().rev().filter(|block| is_inner(*block)) {
                let own = all.iter().filter(|one| one.block == block);
                let parts: Vec<(usize, usize)> = own.map(|one| (one.start, one.end)).collect();
                // A comment behind the last one would hide a comma.
                let reversed = parts.iter().rev().map(|(start, end)| &text[*start..*end]);
                let reversed = reversed.collect::<Vec<_>>().join("\n,");
                let (from, to) = (parts[0].0, parts[parts.len() - 1].1);
                let reversed = format!("{reversed}\n");
                text.replace_range(from..to, &reversed);
            }
        }
        assert_ne!(changed, texts);
        assert_eq!(read(&first, &changed).drives, whole.drives, "{first}");
    }
}

/// A text in other words.
type Rewrite = fn(&str) -> String;

#[test]
fn blanks_line_ends_and_comments_do_not_matter() {
    let changes: [(&str, Rewrite); 6] = [
        ("CR LF", |text| text.replace('\n', "\r\n")),
        ("tabs", |text| text.replace(' ', "\t")),
        ("no indents", |text| {
            text.lines()
                .map(|line| format!("{}\n", line.trim()))
                .collect()
        }),
        ("comments", |text| {
            text.replace('\n', " # Head switch time = 9 { [\n")
        }),
        ("empty lines", |text| text.replace('\n', "\n\n \t\n")),
        ("a byte order mark", |text| format!("\u{feff}{text}")),
    ];
    for (first, texts) in drives() {
        let whole = read(&first, &texts);
        for (what, change) in changes {
            let is_curve = |name: &str| name.ends_with(".seek");
            let changed: Texts = texts
                .iter()
                .map(|(name, text)| match is_curve(name) {
                    true => (name.clone(), text.replace('\n', "\r\n")),
                    false => (name.clone(), change(text)),
                })
                .collect();
            assert_eq!(
                read(&first, &changed).drives,
                whole.drives,
                "{first}: {what}"
            );
        }
    }
}

/// Files in folders: beside the file that names them, and in a folder that it names.
#[test]
fn files_are_found_beside_the_one_that_names_them() {
    let (first, texts) = drives().remove(0);
    let whole = read(&first, &texts);
    let mut moved = Texts::new();
    for (name, text) in texts {
        let (name, text) = match name.as_str() {
            "small.parv" => (
                name,
                text.replace("small.diskspecs", "parts/small.diskspecs"),
            ),
            "small.diskspecs" => (
                format!("parts/{name}"),
                text.replace("small.model", "more/small.model"),
            ),
            _ => (format!("parts/more/{name}"), text),
        };
        moved.insert(name, text);
    }
    assert_eq!(read(&first, &moved).drives, whole.drives);
}

/// Numbers as DiskSim's language reads them: digits on both sides of a point.
#[test]
fn numbers_are_those_of_the_language() {
    let with = |value: &str| {
        let mut texts = small();
        let text = texts.get_mut("small.diskspecs").expect("a file");
        let line = "Per-request overhead time = ";
        *text = text.replacen(&format!("{line}0.1"), &format!("{line}{value}"), 1);
        import("small.parv", &SpecificationFiles::Memory(texts))
    };
    for (value, ms) in [
        ("1", 1.0),
        ("0x10", 16.0),
        ("1.5e1", 15.0),
        ("1.5E-1", 0.15),
        ("007", 7.0),
        ("-0", 0.0),
    ] {
        let import = with(value).unwrap_or_else(|errors| panic!("{value}: {errors}"));
        let firmware = import.drives[0].firmware.expect("electronics");
        assert_eq!(firmware.request_overhead_ms, ms, "{value}");
    }
    for (value, number) in [
        ("1e3", "1000.0"),
        ("1e-9", "1.0e-9"),
        ("1e300", "1.0e300"),
        (".5", "0.5"),
        ("5.", "5.0"),
        ("+2", "2.0"),
        ("1,5", ""),
        ("0x", "0.0"),
        ("0x1.8", "0.0"),
        ("\"3\"", "0.0"),
        ("-0.1", "0.0"),
        ("nan", "0.0"),
        ("inf", "0.0"),
    ] {
        let errors = with(value).expect_err(value).render(false);
        assert!(errors.contains("small.diskspecs:3:"), "{value}: {errors}");
        let advice = format!("write `Per-request overhead time = {number}`");
        assert!(
            value == "1,5" || errors.contains(&advice),
            "{value}: {errors}"
        );
    }
}
