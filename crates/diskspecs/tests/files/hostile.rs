//! What is refused: with its file, line and column, in bounded memory.

use super::taken::with_layout;
use super::*;
use diskperf_diskspecs::{SeekTable, trace};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, RngSeed, TestRunner};

fn refusal(result: Result<ImportedSpecification, Errors>, what: &str) -> String {
    match result {
        Ok(import) => panic!("{what} is taken: {:?}", import.drives),
        Err(errors) => errors.render(false),
    }
}

/// A file, a piece of it, and what comes in its place.
const CHANGES: &[(&str, &str, &str)] = &[
    (
        "small.model",
        "slips = [],",
        "slips = [1],\n            Slips = [2],",
    ),
    ("small.model", "slips = [],", "slips = [3, 4],"),
    ("small.model", "defects = []", "defects = [5]"),
    ("small.model", "defects = []", "defects = [5, 6]"),
    (
        "small.model",
        "Last cylinder number = 3",
        "Last cylinder number = 1000000000",
    ),
    (
        "small.model",
        "First cylinder number = 0",
        "First cylinder number = 4",
    ),
    (
        "small.model",
        "Blocks per track = 10",
        "Blocks per track = 0",
    ),
    (
        "small.model",
        "Blocks per track = 10",
        "Blocks per track = 1e3",
    ),
    ("small.model", "Blocks per track = 10,", ""),
    (
        "small.model",
        "Number of spares = 1,",
        "Number of spares = 21,",
    ),
    (
        "small.model",
        "Number of spares = 1,",
        "Number of spares = 20,",
    ),
    (
        "small.model",
        "Number of data surfaces = 2",
        "Number of data surfaces = 4000000000",
    ),
    (
        "small.model",
        "Sparing scheme used = 2",
        "Sparing scheme used = 11",
    ),
    (
        "small.model",
        "Sparing scheme used = 2",
        "Sparing scheme used = 8",
    ),
    (
        "small.model",
        "Full seek curve = small.seek",
        "Full seek curve = missing.seek",
    ),
    ("small.model", "Seek type = extracted", "Seek type = linear"),
    (
        "small.model",
        "Seek type = extracted",
        "Seek type = hpl, HPL seek equation values = [1, 2]",
    ),
    (
        "small.model",
        "Rotation speed (in rpms) = 6000",
        "Rotation speed (in rpms) = 0",
    ),
    (
        "small.model",
        "Rotation speed (in rpms)",
        "Rotation speed (in rpm)",
    ),
    ("small.model", "dm_layout_g1 {", "dm_layout_g3 {"),
    ("small.model", "dm_mech_g1 {", "dm_mech_g2 {"),
    ("small.model", "Block count = 76,", "Block count = 76"),
    (
        "small.model",
        "Block count = 76,",
        "Block count = 99999999999999999999,",
    ),
    ("small.model", "Zones = [", "Zones = [ 7,"),
    (
        "small.model",
        "dm_disk SMALL_model",
        "source small.model dm_disk SMALL_model",
    ),
    ("small.model", "}\n      ]\n   }\n}", ""),
    ("small.model", "      ]\n   }", "      }\n   }"),
    (
        "small.model",
        "Head switch time = 0.5",
        "Head switch time = \u{1}",
    ),
    ("small.seek", "3,\t2.5", "1,\t2.5"),
    ("small.seek", "3,\t2.5, 0.01\n", ""),
    ("small.seek", "2.5", "-2.5"),
    ("small.diskspecs", "Model = source small.model,", ""),
    (
        "small.diskspecs",
        "Model = source small.model",
        "Model = source elsewhere.model",
    ),
    (
        "small.diskspecs",
        "Model = source small.model",
        "Model = source small.diskspecs",
    ),
    (
        "small.diskspecs",
        "Fast write level = 1",
        "Fast write level = 3",
    ),
    ("small.diskspecs", "Never disconnect", "Never disconect"),
    (
        "small.diskspecs",
        "Maximum read-ahead (blks) = 8",
        "Maximum read-ahead (blks) = 33",
    ),
    (
        "small.diskspecs",
        "Segment size (in blks) = 0x20",
        "Segment size (in blks) = 77",
    ),
    (
        "small.diskspecs",
        "Scheduler = disksim_ioqueue {",
        "Scheduler = disksim_bus {",
    ),
    (
        "small.parv",
        "Use queueing in subsystem = 1",
        "Use queueing in subsystem = 2",
    ),
    (
        "small.diskspecs",
        "Number of buffer segments = 2",
        "Number of buffer segments = two",
    ),
    ("small.parv", "disksim_disk disk2", "disksim_disk disk7"),
    ("small.parv", "disksim_ctlr ctlr0", "disksim_bus ctlr0"),
    ("small.parv", "] as BUS0", "] BUS0"),
    (
        "small.parv",
        "[ disksim_disk disk2 []",
        "[ disksim_disk disk2",
    ),
    (
        "small.parv",
        "disksim_ctlr CTLR0 { type = 1",
        "disksim_ctlr CTLR0 { type = 4",
    ),
    ("small.parv", "disksim_stats Stats", "ssdmodel_ssd Stats"),
];

#[test]
fn every_hostile_change_is_refused_with_its_place() {
    let mut all = String::new();
    for (file, piece, by) in CHANGES {
        let what = format!("{file}: {piece} -> {by}");
        let refused = refusal(changed(file, piece, by), &what);
        assert!(
            refused.contains("--> "),
            "{what} without a place: {refused}"
        );
        all += &format!("## {what}\n{refused}\n\n");
    }
    insta::assert_snapshot!("hostile", all);
}

#[test]
fn hostile_patterns_and_maps_are_refused_with_their_places() {
    let mut all = String::new();
    for layout in [
        "dm_layout_g4 { TP = [ 0, 9, 10 ], IDX = [ [ 0, 0, 0.0, 80, 1, 0.0, 80, 4, IDX, 0 ] ] }",
        "dm_layout_g4 { TP = [ 0, 9, 10 ], IDX = [ [ 0, 0, 0.0, 10, 0, 0.0, 80, 4, TRACK, 0, 0 ] ] }",
        "dm_layout_g4 { TP = [ 0, 9, 10 ], IDX = [ [ 0, 0, 0.0, 10 ] ] }",
        "dm_layout_g4 { TP = [ 9, 0, 10 ], IDX = [ [ 0, 0, 0.0, 10, 1, 0.0, 10, 1, TRACK, 0, 0 ] ] }",
        "dm_layout_g4 { TP = [ 0, 9, 10 ], IDX = [ [] ] }",
        "dm_layout_g4 { TP = [ 0, 9, 10 ], IDX = [] }",
        "dm_layout_g4 { TP = [ 0, 9 ], IDX = [ [] ] }",
        "dm_layout_g2 { Layout Map File = missing.map, Zones = [] }",
        "dm_layout_g2 { Layout Map File = small.map, Zones = [] }",
        "dm_layout_g2 { Layout Map File = small.seek, Zones = [] }",
    ] {
        let refused = refusal(with_layout(layout), layout);
        assert!(
            refused.contains("--> "),
            "{layout} without a place: {refused}"
        );
        all += &format!("## {layout}\n{refused}\n\n");
    }
    insta::assert_snapshot!("layouts", all);
}

#[test]
fn files_that_take_in_one_another_end_with_their_chain() {
    let files = [
        ("a", "source b"),
        ("b", "disksim_bus B { type = source c"),
        ("c", "source a"),
    ];
    let files = files.map(|(name, content)| (name.to_owned(), content.to_owned()));
    let refused = refusal(
        import("a", &SpecificationFiles::Memory(files.into())),
        "a loop",
    );
    assert!(
        refused.contains("the chain is a -> b -> c -> a"),
        "{refused}"
    );
    assert!(refused.contains("c:1:8"), "{refused}");
}

#[test]
fn what_has_no_end_has_one() {
    let of = |content: String| {
        let files = SpecificationFiles::Memory([("x".to_owned(), content)].into());
        refusal(import("x", &files), "a hostile file")
    };
    let deep = of(format!("a {{ k = {}", "[".repeat(1_000_000)));
    assert!(
        deep.contains("nested more than 64 deep") && deep.len() < 10_000,
        "{} bytes",
        deep.len()
    );
    let long = of("# a comment\n".repeat(500_000));
    assert!(long.contains("exceed 4194304 bytes"), "{long}");
    let zone = "dm_layout_g1_zone { First cylinder number = 0 },";
    let zones = format!(
        "dm_disk D {{ Number of cylinders = 1, Number of data surfaces = 1, Layout Model = \
         dm_layout_g1 {{ Zones = [ {} ] }} }}",
        zone.repeat(80_000)
    );
    let zones = of(zones);
    assert!(
        zones.contains("x:1:") && zones.len() < 100_000,
        "{} bytes",
        zones.len()
    );
    let none = of(String::new());
    assert!(none.contains("does not describe a drive"), "{none}");
}

#[test]
fn lines_of_a_trace_are_refused_by_their_numbers() {
    let mut all = String::new();
    for line in [
        "R Hit 1 4 100.0",
        "R Hit 1 4 100.0 5.0 7",
        "X Hit 1 4 100.0 5.0",
        "R 1 4 100.0 5.0",
        "R Hit -1 4 100.0 5.0",
        "R Hit 99999999999999999999 4 100.0 5.0",
        "R Hit 1 0 100.0 5.0",
        "R Hit 1 4 nan 5.0",
        "R Hit 1 4 100.0 -5.0",
        "größe",
    ] {
        let text = format!("R Hit 1 4 100.0 5.0\n{line}\n");
        let errors = trace::parse("t.trace", &text)
            .expect_err(line)
            .render(false);
        assert!(errors.contains("t.trace:2:"), "{errors}");
        all += &format!("{errors}\n\n");
    }
    insta::assert_snapshot!("trace", all);
    let many = "bad\n".repeat(100_000);
    let errors = trace::parse("t.trace", &many).expect_err("no trace");
    assert_eq!(errors.problems().len(), 50);
    assert!(trace::parse("t.trace", "\n").is_err());
}

fn seed() -> u64 {
    let asked = std::env::var("PROPTEST_RNG_SEED").ok();
    asked.and_then(|asked| asked.parse().ok()).unwrap_or(25)
}

#[test]
fn no_text_makes_it_panic() {
    println!("PROPTEST_RNG_SEED={}", seed());
    let mut runner = TestRunner::new(Config {
        cases: 1500,
        rng_seed: RngSeed::Fixed(seed()),
        failure_persistence: None,
        ..Config::default()
    });
    let words = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        "=",
        "source",
        "small.model",
        "..",
        "#",
        "-1",
        "0",
        "0x",
        "9223372036854775807",
        "1.0e308",
        "0.5",
        "dm_layout_g1_zone {",
        "10",
        "\n",
        "\u{0}",
        "é",
    ]);
    let steps = prop::collection::vec((0..4usize, any::<Index>(), 0..40usize, words), 1..5);
    let outcome = runner.run(&steps, |steps| {
        let mut files = small();
        for (file, at, cut, word) in steps {
            let content = files.get_mut(PARTS[file].0).expect("a file");
            let mut from = at.index(content.len() + 1);
            let mut to = (from + cut).min(content.len());
            while !content.is_char_boundary(from) {
                from -= 1;
            }
            while !content.is_char_boundary(to) {
                to -= 1;
            }
            content.replace_range(from..to.max(from), word);
        }
        let seek = SeekTable::parse("small.seek", &files["small.seek"]);
        if let Err(errors) = seek {
            prop_assert!(!errors.render(false).is_empty());
        }
        match import("small.parv", &SpecificationFiles::Memory(files)) {
            Ok(import) => {
                for drive in import.drives {
                    let layout = drive.model.layout;
                    let last = layout
                        .locate_block(layout.block_count() - 1)
                        .expect("a place");
                    let back = layout.find_block_at(last.cylinder, last.head, last.sector);
                    prop_assert_eq!(back, Some(layout.block_count() - 1));
                }
            }
            Err(errors) => prop_assert!(!errors.render(false).is_empty()),
        }
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}
