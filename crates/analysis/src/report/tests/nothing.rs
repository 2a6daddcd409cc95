use super::*;

#[test]
fn nothing_to_report_is_said() {
    assert_snapshot!(render_comparison(&compare(&[]), ReportFormat::Table, 80), @"There are no runs to compare.");
    let lone = build_run("3fa85f6457", "ffs83", "/a", Vec::new());
    assert_snapshot!(render_comparison(&compare(std::slice::from_ref(&lone)), ReportFormat::Table, 80), @"There is only one run, 3fa85f6457: name a second one to compare it with.");
    assert_snapshot!(render_runs(&[lone], ReportFormat::Table, 80), @r"
    ffs83 on /a, run 3fa85f6457
    host, cold page cache, on vda (QEMU HARDDISK)

    No program of this run has a result.
    ");
    assert_eq!(render_runs(&[], ReportFormat::Csv, 80), "");
}

#[test]
fn a_run_that_failed_before_a_repetition_was_kept_has_no_figures() {
    let mut failed = run_of_one(vec![read_repetition(MIB, 100.0, 1.0)]);
    failed.results[0].repetitions[0].is_discarded = true;
    failed.state = RunState::Failed("No space left on device".to_owned());
    failed.notes.push("the load average was above 1".to_owned());
    assert_snapshot!(render_runs(&[failed.clone()], ReportFormat::Table, 80), @r"
    read on /a, run 3fa85f6457
    host, cold page cache, ext4/4096 on vda (QEMU HARDDISK), 8 MiB

    NOT FINISHED: No space left on device

    No program of this run has a result.

    note: the load average was above 1
    ");
    let mut pivot = build_seqread89_run("3fa85f6457", "/var/tmp");
    pivot
        .results
        .iter_mut()
        .for_each(|one| one.repetitions.clear());
    for run in [&failed, &pivot] {
        let done = run_of_one(vec![read_repetition(MIB, 100.0, 1.0)]);
        for text in [
            render_runs(std::slice::from_ref(run), ReportFormat::Markdown, 80),
            render_runs(&[run.clone(), done], ReportFormat::Table, 80),
            render_details(run, 80),
        ] {
            assert!(!text.contains("n.m."), "{text}");
            assert!(!text.contains("of 0 repetitions"), "{text}");
        }
    }
}

#[test]
fn repetitions_of_no_time_have_a_speed_of_nothing() {
    let mut still = run_of_one(vec![read_repetition(MIB, 100.0, 1.0); 4]);
    for repetition in &mut still.results[0].repetitions {
        repetition.workers[0].elapsed_time = Nanoseconds(0);
    }
    let json: serde_json::Value =
        serde_json::from_str(&render_runs(&[still.clone()], ReportFormat::Json, 0)).unwrap();
    let found = &json["runs"][0]["results"][0];
    for figure in ["kb_per_s", "cpu_percent", "elapsed_s"] {
        assert_eq!(found[figure], 0.0, "{figure}");
    }
    assert!(found["interval"].is_null(), "{found}");
    let text = render_runs(&[still.clone()], ReportFormat::Csv, 0);
    let mut lines = text.lines().map(|line| line.split(','));
    let (headings, fields) = (lines.next().unwrap(), lines.next().unwrap());
    let speed = headings
        .zip(fields)
        .find(|(heading, _)| *heading == "kb_per_s");
    assert_eq!(speed, Some(("kb_per_s", "0")));
    let compared = compare(&[still.clone(), still]);
    assert_eq!(
        (
            compared.result_pairs[0].judgement.ratio,
            compared.result_pairs[0].judgement.interval
        ),
        (None, None)
    );
}
