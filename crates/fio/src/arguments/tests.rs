use crate::{Direction, JobEnvironment, JobFile};

const FILE: &str = "[global]\nrw=read\n[a]\n[b]\nsize=2m\nrw=randwrite\n";

fn parsed(words: &[&str]) -> Result<JobFile, String> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    JobFile::parse_with("job.fio", FILE, &words, &JobEnvironment::default())
        .map_err(|errors| errors.render(false))
}

fn sizes(file: &JobFile) -> Vec<(&str, Option<u64>)> {
    let size = |job: &crate::JobDefinition| job.target.size.and_then(crate::job::Amount::bytes);
    let jobs = file.jobs.iter();
    jobs.map(|job| (job.section.as_str(), size(job))).collect()
}

#[test]
fn the_command_line_gives_defaults_that_the_file_overrides() {
    let file = parsed(&["--size=1m", "--rw=write", "-bs=8k"]).unwrap();
    assert_eq!(sizes(&file), [("a", Some(1 << 20)), ("b", Some(2 << 20))]);
    assert!(file.jobs[0].pattern.access.includes(Direction::Read));
    assert_eq!(file.jobs[1].blocks.fixed_bytes.read, 8192);
    let said = file.global_options.iter().map(|(key, _)| key.as_str());
    assert_eq!(said.collect::<Vec<_>>(), ["size", "rw", "bs", "rw"]);
}

#[test]
fn a_word_that_the_file_overrides_is_named_with_the_line_that_does_so() {
    for (words, expected) in [
        (&["--bs=8k"][..], &[][..]),
        (&["--size=1m"], &["--size gives way to [b], as with fio"]),
        (
            &["--rw=write"],
            &["--rw gives way to the file, as with fio"],
        ),
        (
            &["--rw=write", "--bs=8k", "--size=1m"],
            &[
                "--rw gives way to the file, as with fio",
                "--size gives way to [b], as with fio",
            ],
        ),
        // An alias is the same option.
        (
            &["--readwrite=write"],
            &["--rw gives way to the file, as with fio"],
        ),
        // The options of a job of its own are those of no other.
        (&["--name=x", "--size=1m", "--rw=write"], &[]),
    ] {
        let file = parsed(words).unwrap();
        let titles: Vec<&str> = file
            .warnings
            .iter()
            .map(|warning| warning.title())
            .collect();
        assert_eq!(titles, expected, "{words:?}");
        for warning in &file.warnings {
            let shown = warning.render(false);
            assert!(shown.contains("--> --fio-arg:"), "{shown}");
            assert!(shown.contains("job.fio:"), "{shown}");
        }
    }
}

#[test]
fn only_the_chosen_sections_run_with_the_globals() {
    let file = parsed(&["--section=b"]).unwrap();
    assert_eq!(sizes(&file), [("b", Some(2 << 20))]);
    let refused = parsed(&["--section=c"]).unwrap_err();
    assert!(refused.contains("there are: a, b"), "{refused}");
}

#[test]
fn a_name_begins_a_job_in_front_of_the_files() {
    let file = parsed(&["--bs=1k", "--name=x", "--size=4k", "--bs=2k"]).unwrap();
    assert_eq!(
        sizes(&file),
        [("x", Some(4096)), ("a", None), ("b", Some(2 << 20))]
    );
    assert_eq!(file.jobs[0].blocks.fixed_bytes.read, 2048);
    assert_eq!(file.jobs[1].blocks.fixed_bytes.read, 1024);
}

#[test]
fn what_is_wrong_with_a_word_is_shown_in_it() {
    for (word, says) in [
        ("size=1g", "options begin with `--`"),
        ("--size= 4k", "--fio-arg:1:8"),
        ("--size", "write `size=VALUE`"),
        ("--bogus=3", "fio has no option `--bogus`"),
        ("--fil=x", "several options begin with `--fil`"),
        ("--output-format=json,xml", "fio has no output format `xml`"),
        ("--output-format=", "write `--output-format=VALUE`"),
        ("--parse-only", "give --dry-run"),
        ("--client=host", "run diskperf on that machine"),
        ("--readonly", "[b] writes"),
        ("--section", "write `--section=VALUE`"),
        ("--", "options begin with `--`"),
    ] {
        let refused = parsed(&[word]).expect_err(word);
        assert!(refused.contains(says), "{word}: {refused}");
    }
}

#[test]
fn the_only_name_that_begins_so_is_taken() {
    let file = parsed(&["--bsspl=4k/50:8k/50", "--status=1"]).unwrap();
    assert!(file.jobs[0].blocks.weighted_sizes.read.is_some());
    assert!(
        file.warnings[0]
            .title()
            .contains("--status-interval is ignored")
    );
}

/// Options that shape the report of fio alone change nothing of what is measured.
#[test]
fn an_option_that_shapes_fios_report_is_taken_with_a_note() {
    let words = [
        ("--output-format=normal", "--format fio-json"),
        ("--output-format=json,terse", "--format fio-json"),
        ("--output-format=json+", "--format fio-json"),
        ("--output=C:\\temp\\fio.txt", "redirect it"),
        ("--minimal", "--format fio-json"),
        ("--append-terse", "--format fio-json"),
        ("--terse-version=4", "--format fio-json"),
        ("--bandwidth-log", "--format fio-json"),
        ("--eta=always", "see --quiet"),
        ("--eta-newline=1s", "see --quiet"),
        ("--status-interval=10", "see --quiet"),
        ("--debug=io", "it is of fio's own process"),
        ("--max-jobs=64", "it is of fio's own process"),
        ("--alloc-size=65536", "it is of fio's own process"),
        ("--aux-path=/tmp", "it is of fio's own process"),
        ("--warnings-fatal", "it is of fio's own process"),
    ];
    for (word, says) in words {
        let file = parsed(&[word]).unwrap_or_else(|error| panic!("{word}: {error}"));
        let titles: Vec<&str> = file
            .warnings
            .iter()
            .map(|warning| warning.title())
            .collect();
        let is_said = titles.iter().any(|title| title.contains(says));
        assert!(is_said, "{word}: {titles:?}");
        assert_eq!(file.jobs, parsed(&[]).unwrap().jobs, "{word}");
    }
}
