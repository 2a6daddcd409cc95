use super::*;
use crate::fixtures::load::build_today26_run;
use crate::fixtures::{
    build_ffs83_run, build_result, build_run, build_seqread89_run, read_repetition,
};
use diskperf_timeline::{Deadline, Ledger, Stage};
use serde_json::Value;

fn reported(run: Run) -> ReportedRun {
    ReportedRun {
        run,
        printed_figures: Vec::new(),
        pictures_by_result: Vec::new(),
        no_pictures_reason: None,
    }
}

/// A modelled run with ledgers, of a system that a document is about.
fn modelled() -> ReportedRun {
    let mut run = build_ffs83_run("aaaa", "vax780-sc780-eagle");
    run.world = MeasuredWorld::Model;
    for worker in run
        .results
        .iter_mut()
        .flat_map(|result| &mut result.repetitions)
        .flat_map(|repetition| &mut repetition.workers)
    {
        let mut table = [0; Stage::COUNT];
        table[Stage::Copy.index()] = 1_000_000_001;
        table[Stage::MissedRevolution(Deadline::Search).index()] = 500_000_000;
        table[Stage::MediaTransfer.index()] = 250_000_000;
        worker.ledger = Ledger::from_table(&table);
    }
    let printed = PrintedFigure {
        document: "a document, T1".to_owned(),
        program: "read_8192".to_owned(),
        filesystem: run.results[0].filesystem_type.clone(),
        drives: 1,
        kb_per_s: 500.0,
        cpu_percent: Some(70.0),
    };
    let on_two = PrintedFigure {
        drives: 2,
        ..printed.clone()
    };
    ReportedRun {
        printed_figures: vec![printed, on_two],
        ..reported(run)
    }
}

/// A run of two programs, of which the first changes between two speeds.
fn of_two_modes(id: &str) -> ReportedRun {
    let speed = |number: u32| match number % 3 {
        0 => 400.0,
        _ => 800.0 + f64::from(number),
    };
    let size_bytes = 1 << 20;
    let changing = (0..20).map(|number| read_repetition(size_bytes, speed(number), 10.0));
    let steady = (0..20).map(|number| read_repetition(size_bytes, 800.0 + f64::from(number), 10.0));
    let results = vec![
        build_result("read_8192", 0, changing.collect()),
        build_result("read_512", 1, steady.collect()),
    ];
    reported(build_run(id, "suite", "/mnt", results))
}

/// A chart of every kind but those of the accuracy card.
pub(super) fn all_charts() -> Vec<Chart> {
    let mut all = build_charts(&[
        modelled(),
        reported(build_seqread89_run("bbbb", "/dev/sda")),
    ]);
    all.extend(build_charts(&[of_two_modes("eeee"), of_two_modes("ffff")]));
    let mut many = modelled();
    many.run.results = [many.run.results.clone(), many.run.results].concat();
    many.run.results.extend_from_within(..1);
    all.extend(build_charts(&[many]));
    all.extend(build_charts(&[reported(build_today26_run(
        "cccc", "/var/tmp", 1.0,
    ))]));
    for rows in [1, 2] {
        let tuned = crate::tuning::tests::tuned(rows, &[1.0, 2.0, 3.0, 95.0, 100.0, 50.0]);
        all.extend(TuningSurface::from_tuned(&tuned).unwrap().build_chart());
    }
    all
}

pub(super) fn rows(chart: &Chart) -> &[Value] {
    chart.vega_spec["data"]["values"].as_array().unwrap()
}

fn name_stage<'c>(charts: &'c [Chart], prefix: &str) -> Vec<&'c Chart> {
    let of_kind = charts.iter().filter(|one| one.name.starts_with(prefix));
    of_kind.collect()
}

#[test]
fn charts_stand_by_themselves() {
    let charts = build_charts(&[
        modelled(),
        reported(build_seqread89_run("bbbb", "/dev/sda")),
    ]);
    let mut names: Vec<&str> = charts.iter().map(|chart| chart.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), charts.len(), "{names:?}");
    for chart in &charts {
        assert!(chart.row_count() > 0, "{}", chart.name);
        let layers = chart.vega_spec["layer"].as_array().unwrap();
        let drawn = layers.iter().filter(|layer| layer["name"] == ROWS_DATASET);
        assert_eq!(drawn.count(), 1, "{}", chart.name);
        let text = chart.vega_spec.to_string();
        assert!(
            !text.contains("var(--"),
            "{}: a colour of the page",
            chart.name
        );
    }
}

#[test]
fn printed_stands_before_modelled() {
    let charts = build_charts(&[modelled()]);
    let bars = rows(name_stage(&charts, "throughput-")[0]);
    let of_program = bars.iter().filter(|bar| bar["program"] == "read_8192");
    let of_program: Vec<_> = of_program
        .map(|bar| {
            (
                bar["series"].as_str().unwrap(),
                bar["label"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        of_program,
        [
            ("printed: a document, T1", "500 (70%)"),
            ("modelled: vax780-sc780-eagle", "490 (69%)")
        ]
    );
    assert_eq!(
        bars.len(),
        5,
        "what was printed of two drives is of another program"
    );
}

#[test]
fn runs_of_the_same_programs_have_verdicts() {
    let alone = render_page(&[modelled()]);
    assert!(!alone.contains("id=\"comparison\""));
    let both = render_page(&[
        reported(build_ffs83_run("bbbb", "/a")),
        reported(build_ffs83_run("cccc", "/b")),
    ]);
    let (_, verdicts) = both.split_once("id=\"comparison\"").unwrap();
    for part in ["read_8192", "ratio"] {
        assert!(verdicts.contains(part), "{part}");
    }
    let other = render_page(&[
        reported(build_ffs83_run("bbbb", "/a")),
        reported(build_seqread89_run("dddd", "/dev/sda")),
    ]);
    assert!(!other.contains("id=\"comparison\""), "nothing is in both");
    let with_other = render_page(&[
        reported(build_ffs83_run("bbbb", "/a")),
        reported(build_seqread89_run("dddd", "/dev/sda")),
        reported(build_ffs83_run("cccc", "/b")),
    ]);
    assert!(with_other.contains("id=\"comparison\""));
    assert!(!with_other.contains("not compared: seqread"));
}

#[test]
fn repetitions_about_two_levels_are_drawn_one_by_one() {
    let alone = build_charts(&[of_two_modes("eeee")]);
    let drawn = name_stage(&alone, "repetitions-");
    assert_eq!(drawn.len(), 1, "what is steady needs no picture");
    assert!(drawn[0].title.contains("two modes"), "{}", drawn[0].title);
    let speeds = rows(drawn[0]).iter().map(|row| row["figure"].as_f64());
    let slow = speeds.flatten().filter(|speed| *speed < 600.0);
    assert_eq!((rows(drawn[0]).len(), slow.count()), (20, 7));
    assert!(name_stage(&alone, "pair-").is_empty());
    assert!(render_page(&[of_two_modes("eeee")]).contains("data-chart=\"repetitions-eeee-0\""));

    let both = [of_two_modes("eeee"), of_two_modes("ffff")];
    let compared = build_charts(&both);
    let pairs = name_stage(&compared, "pair-");
    assert_eq!(pairs.len(), 1);
    assert_eq!(rows(pairs[0]).len(), 2 * 20);
    assert!(render_page(&both).contains("data-chart=\"pair-1-0\""));
}

#[test]
fn bars_do_not_overlap() {
    let other = ReportedRun {
        run: Run {
            target_label: "vax750-sc750-eagle".to_owned(),
            ..modelled().run
        },
        ..modelled()
    };
    let charts = build_charts(&[modelled(), other]);
    let bars = rows(name_stage(&charts, "throughput-")[0]).iter();
    let mut places: Vec<String> = bars
        .map(|bar| format!("{} {}", bar["program"], bar["series"]))
        .collect();
    assert_eq!(places.len(), 10);
    places.sort_unstable();
    places.dedup();
    assert_eq!(places.len(), 10, "{places:?}");
}

#[test]
fn speeds_far_apart_get_two_charts() {
    let mut fast = reported(build_ffs83_run("bbbb", "/fast"));
    for worker in fast
        .run
        .results
        .iter_mut()
        .flat_map(|result| &mut result.repetitions)
        .flat_map(|repetition| &mut repetition.workers)
    {
        worker.elapsed_time.0 /= 1000;
    }
    let slow = reported(build_ffs83_run("cccc", "/slow"));
    let alike = build_charts(&[slow.clone(), reported(build_ffs83_run("dddd", "/other"))]);
    assert_eq!(name_stage(&alike, "throughput-").len(), 1);
    let apart = build_charts(&[slow, fast]);
    assert_eq!(name_stage(&apart, "throughput-").len(), 2);
}

#[test]
fn a_waterfall_ends_at_the_elapsed_time() {
    let charts = build_charts(&[modelled()]);
    let ledgers = name_stage(&charts, "ledger-");
    assert_eq!(ledgers.len(), 4);
    let steps = rows(ledgers[0]);
    let until = |step: &Value| step["until"].as_f64().unwrap();
    for pair in steps[..steps.len() - 1].windows(2) {
        assert_eq!(pair[1]["from"], pair[0]["until"], "no gap");
    }
    assert_eq!(until(&steps[2]), 1_750.000_001);
    assert_eq!(steps[3]["stage"], "elapsed");
    assert_eq!(until(&steps[3]), until(&steps[2]));
}

#[test]
fn call_sizes_have_a_point_for_each_layer_and_size() {
    let charts = build_charts(&[reported(build_seqread89_run("bbbb", "/dev/sda"))]);
    let curves = name_stage(&charts, "call-sizes-");
    assert_eq!(rows(curves[0]).len(), 5 * 5);
    assert!(
        name_stage(&charts, "throughput-").is_empty(),
        "curves say it better"
    );
}

#[test]
fn a_page_says_everything_and_fetches_nothing() {
    let page = render_page(&[
        modelled(),
        reported(build_seqread89_run("bbbb", "/dev/sda")),
    ]);
    for part in [
        "<title>2 runs</title>",
        "How to repeat it",
        "Where the time went",
        "University of Washington Interactive Data Lab",
        "default-src &#39;none&#39;",
        "prefers-color-scheme: dark",
        "@media print",
    ] {
        let part = part.replace("&#39;", "'");
        assert!(page.contains(&part), "{part}");
    }
    for outside in ["src=\"http", "href=\"http", "url(http", "@import"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
}

#[test]
fn hostile_words_are_text_everywhere() {
    let evil = "</script><script>alert(1)</script>\"'<!--";
    let mut one = modelled();
    one.run.user_label = Some(evil.to_owned());
    one.run.target_label = evil.to_owned();
    one.run.suite_name = evil.to_owned();
    one.run.command_line.push(evil.to_owned());
    one.run.notes.push(evil.to_owned());
    one.run.results[0].program = evil.to_owned();
    one.run.environment.kernel_version = evil.to_owned();
    one.printed_figures[0].document = evil.to_owned();
    one.no_pictures_reason = Some(evil.to_owned());
    let page = render_page(&[one]);
    assert!(!page.contains("alert(1)</script>"));
    assert!(!page.contains("</script><script>alert"));
    let scripts = page.matches("<script").count();
    let charts = page.matches("data-chart=").count();
    assert_eq!(
        scripts,
        charts + 4,
        "one for each chart, three libraries, and the page's own"
    );
}

#[test]
fn the_feet_of_all_cliffs_are_marked() {
    let tuned = crate::tuning::tests::tuned(2, &[1.0, 2.0, 3.0, 95.0, 100.0, 50.0]);
    let chart = TuningSurface::from_tuned(&tuned)
        .unwrap()
        .build_chart()
        .unwrap();
    let marks: Vec<_> = rows(&chart)
        .iter()
        .map(|row| {
            (
                row["down"].as_str().unwrap(),
                row["across"].as_str().unwrap(),
                row["mark"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        marks,
        [
            ("1", "1", "cliff"),
            ("1", "2", "cliff"),
            ("1", "3", "cliff"),
            ("2", "1", ""),
            ("2", "2", "best"),
            ("2", "3", "cliff"),
        ]
    );
    assert!(super::render_tuning(&tuned).contains("a cliff"));
}

#[test]
fn pictures_are_of_all_programs_or_of_those_that_lose_the_most() {
    let mut run = modelled().run;
    let all: Vec<usize> = (0..run.results.len()).collect();
    assert!(all.len() < 8, "{all:?}");
    assert_eq!(choose_pictured_results(&run), all);
    // Of more than are drawn, the ones that lose nothing are left out.
    while run.results.len() < 9 {
        run.results.push(run.results[1].clone());
    }
    let workers = run.results[4].repetitions.iter_mut();
    for worker in workers.flat_map(|one| &mut one.workers) {
        let mut table = [0; Stage::COUNT];
        table[Stage::Copy.index()] = 1;
        worker.ledger = Ledger::from_table(&table);
    }
    assert_eq!(choose_pictured_results(&run), [0, 1, 2, 3, 5, 6, 7, 8]);
    // Dies are drawn large: of the ones that lose the most, or of the first.
    let device = diskperf_timeline::Device {
        is_rotational: Some(false),
        ..Default::default()
    };
    run.environment.places = vec![diskperf_timeline::TargetDescription {
        path: "flash".to_owned(),
        filesystem: None,
        devices: vec![device],
    }];
    assert_eq!(choose_pictured_results(&run), [0, 1, 2]);
    let idle = run.results[4].clone();
    run.results = vec![idle.clone(), idle];
    assert_eq!(choose_pictured_results(&run), [0]);
    run.results.clear();
    assert!(choose_pictured_results(&run).is_empty());
}

#[test]
fn several_requests_under_way_have_a_course_and_a_distribution() {
    let charts = build_charts(&[reported(build_today26_run("cccc", "/var/tmp", 1.0))]);
    let names: Vec<&str> = charts.iter().map(|chart| chart.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "iops-over-time-cccc-1",
            "iops-over-time-cccc-2",
            "p99-over-time-cccc",
            "latency-cccc"
        ]
    );
    // Each of five programs has three intervals.
    let of = |prefix: &str| {
        name_stage(&charts, prefix)
            .iter()
            .map(|one| one.row_count())
            .sum::<usize>()
    };
    assert_eq!((of("iops"), of("p99")), (15, 15));
    // Two intervals are no course.
    let mut short = build_today26_run("cccc", "/var/tmp", 1.0);
    for one in short
        .results
        .iter_mut()
        .flat_map(|one| &mut one.repetitions)
    {
        for load in one
            .workers
            .iter_mut()
            .filter_map(|worker| worker.load_measure.as_mut())
        {
            load.time_series.truncate(2);
        }
    }
    let short = super::build_charts(&[reported(short)]);
    assert!(short.iter().all(|one| !one.name.contains("over-time")));
    let latency = rows(&charts[3]);
    for kind in ["4 KiB random read, QD1, read", "log_append depth=1, sync"] {
        assert!(latency.iter().any(|row| row["series"] == kind), "{kind}");
    }
    let page = render_page(&[reported(build_today26_run("cccc", "/var/tmp", 1.0))]);
    // What stands below a program is further in.
    assert!(page.contains("<th scope=\"row\">  read</th>") && page.contains("white-space: pre;"));
    assert!(page.contains("Over time") && page.contains("data-chart=\"p99-over-time-cccc\""));
}
