//! Job files that are refused, each with its file, line and column.

use diskperf_fio::offsets::SequentialOffsets;
use diskperf_fio::plan;
use diskperf_fio::{FileSource, JobDefinition, JobEnvironment, JobFile};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/hostile")
}

fn refusal(name: &str, content: &str, surroundings: &JobEnvironment) -> String {
    match JobFile::parse(name, content, surroundings) {
        Ok(file) => panic!("{name} is taken: {file:?}"),
        Err(errors) => errors.render(false),
    }
}

#[test]
fn every_hostile_file_is_refused_with_its_place() {
    let surroundings = JobEnvironment {
        file_source: FileSource::FileSystem {
            working_directory: folder(),
        },
        ..JobEnvironment::default()
    };
    let entries = std::fs::read_dir(folder()).expect("the folder of hostile files");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a file").path()).collect();
    paths.sort();
    assert!(paths.len() >= 50, "{} files", paths.len());
    let mut all = String::new();
    for path in paths {
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let content = std::fs::read_to_string(&path).expect("a text");
        let refused = refusal(&name, &content, &surroundings);
        let has_place = refused.contains("--> ") || refused.contains("has no job");
        assert!(has_place, "{name} without a place: {refused}");
        all += &format!("## {name}\n{refused}\n\n");
    }
    insta::assert_snapshot!("hostile", all);
}

#[test]
fn a_loop_of_includes_ends_with_its_chain() {
    let mut surroundings = JobEnvironment::default();
    let files = [
        ("a", "include b\ninclude b\n"),
        ("b", "include a\ninclude a\n"),
    ];
    let files = files.map(|(name, content)| (name.to_owned(), content.to_owned()));
    surroundings.file_source = FileSource::Memory(files.into());
    let refused = refusal("job.fio", "[x]\ninclude a\n", &surroundings);
    assert!(
        refused.contains("the chain is job.fio -> a -> b -> a"),
        "{refused}"
    );
    assert!(
        refused.len() < 100_000,
        "{} bytes of messages",
        refused.len()
    );
}

#[test]
fn a_file_that_grows_is_refused() {
    let mut surroundings = JobEnvironment::default();
    let large = "# a comment\n".repeat(100_000);
    surroundings.file_source = FileSource::Memory([("large".to_owned(), large)].into());
    let refused = refusal("job.fio", "[x]\ninclude large\n", &surroundings);
    assert!(refused.contains("exceed 1048576 bytes"), "{refused}");
}

#[test]
fn many_mistakes_give_a_bounded_message() {
    let text = format!("[x]\n{}", "bogus=1\n".repeat(50_000));
    let refused = refusal("job.fio", &text, &JobEnvironment::default());
    assert_eq!(refused.matches("fio has no option").count(), 50);
}

/// Lines that are nearly right, and anything at all between them.
fn text() -> impl Strategy<Value = String> {
    let names = prop::sample::select(vec![
        "bs",
        "size",
        "rw",
        "bssplit",
        "runtime",
        "filename",
        "numjobs",
        "rate",
        "ss",
        "offset",
        "random_distribution",
        "include",
        "[x",
        "startdelay",
        "percentile_list",
        "zonesize",
    ]);
    let line = (names, "[0-9a-z:,/%()+*^.$ {}=\\[\\]-]{0,24}")
        .prop_map(|(key, value)| format!("{key}={value}"));
    let any = "\\PC{0,40}";
    let lines = prop::collection::vec(prop_oneof![4 => line, 1 => any], 0..20);
    lines.prop_map(|lines| format!("[x]\n{}\n", lines.join("\n")))
}

/// What is planned of a job that was taken, however odd it is.
fn planned(job: &JobDefinition) {
    let existing = [("a".to_owned(), plan::FileSize::Fixed(1 << 20))].into();
    let Ok(files) = plan::plan_files(job, job.order.clone_count - 1, &existing) else {
        return;
    };
    if let Some(ios) = plan::predict_ios(job, &files) {
        assert!(ios.total() < u64::MAX, "{job:?}");
    }
    let region = files[0].region;
    let offsets =
        SequentialOffsets::new(region, job.blocks.fixed_bytes.read, job.pattern.skip_bytes);
    for offset in offsets.take(100) {
        assert!(
            offset >= region.offset_bytes && offset < region.file_bytes,
            "{job:?}"
        );
    }
}

#[test]
fn no_text_makes_it_panic() {
    let asked = std::env::var("PROPTEST_RNG_SEED").ok();
    let seed = asked.and_then(|asked| asked.parse().ok()).unwrap_or(9);
    println!("PROPTEST_RNG_SEED={seed}");
    let mut runner = TestRunner::new(Config {
        cases: 1000,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..Config::default()
    });
    let surroundings = JobEnvironment::default();
    let outcome = runner.run(&text(), |text| {
        match JobFile::parse("job.fio", &text, &surroundings) {
            Ok(file) => {
                prop_assert!(!file.jobs.is_empty());
                file.jobs.iter().for_each(planned);
            }
            Err(errors) => prop_assert!(!errors.render(false).is_empty()),
        }
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}
