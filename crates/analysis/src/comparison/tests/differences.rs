//! Names of compared runs, and warnings of how they differ.

use super::*;

/// Arms on one directory are told apart by what they were asked to do, and by what lay
/// below them.
#[test]
fn compared_runs_are_named_by_what_differs() {
    type Change = fn(&mut Run);
    let changes: [(Change, &[&str], &[&str]); 7] = [
        (|_| {}, &[], &[]),
        (
            |run| run.results[0].notes = vec![format!("{FRESH_NOTE_PREFIX}xfs")],
            &["ext4", "rw", "relatime"],
            &["a fresh xfs"],
        ),
        (
            |run| {
                let place = &mut run.environment.places[0];
                let options = &mut place.filesystem.as_mut().unwrap().mount_options;
                *options = "rw,relatime,data=journal".to_owned();
            },
            &[],
            &["data=journal"],
        ),
        (
            |run| run.cache_mode = CacheMode::Direct,
            &["--cache cold"],
            &["--direct"],
        ),
        (
            |run| {
                run.experiment = Some(Experiment {
                    settings: vec![Setting::parse("program.call_bytes=4096").unwrap()],
                    size_choice: SizeChoice::SizeBytes(MIB),
                    ..Experiment::default()
                });
            },
            &[],
            &["program.call_bytes=4096", "--size 1 MiB"],
        ),
        // A run keeps settings of programs in its results.
        (
            |run| {
                for (number, one) in run.results.iter_mut().enumerate() {
                    let set = |name: &str, value: String| (name.to_owned(), value);
                    one.parameters.extend([
                        set("call_bytes", "65536".to_owned()),
                        set("apart", number.to_string()),
                    ]);
                    one.distinguishing = vec!["call_bytes".to_owned(), "apart".to_owned()];
                }
            },
            &[],
            &["program.call_bytes=65536"],
        ),
        (
            |run| {
                let [arm, _] = arms(&[(1.0, 1.0, true)]);
                run.interleaved = arm.interleaved;
                run.interleaved.as_mut().unwrap().ordered_after = Some("sync".to_owned());
            },
            &[],
            &["after `sync`"],
        ),
    ];
    for (change, of_base, of_other) in changes {
        let mut base = build_ffs83_run("aaaaaaaaaa", "/x");
        let filesystem = base.environment.places[0].filesystem.as_mut().unwrap();
        filesystem.mount_options = "rw,relatime".to_owned();
        filesystem.filesystem_type = "ext4".to_owned();
        let mut other = Run {
            run_id: "bbbbbbbbbb".to_owned(),
            ..base.clone()
        };
        change(&mut other);
        let compared = compare(&[base, other]);
        let [base, other] = [0, 1].map(|run| &compared.runs[run]);
        assert_eq!(base.differences, of_base);
        assert_eq!(other.differences, of_other);
        let name = compared.run_name(1);
        for fact in of_other {
            assert!(name.contains(fact), "{name}");
        }
        assert_ne!(name, compared.run_name(0));
        let table =
            crate::report::render_comparison(&compared, crate::report::ReportFormat::Table, 300);
        for fact in of_base.iter().chain(of_other) {
            assert!(table.contains(fact), "{table}");
        }
    }
}

#[test]
fn warnings_name_both_values() {
    let base = build_ffs83_run("aaaaaaaaaa", "/a");
    let mut other = build_ffs83_run("bbbbbbbbbb", "/b");
    other.state = RunState::Interrupted;
    other.world = MeasuredWorld::Model;
    other.environment.kernel_version = "Linux 6.12".to_owned();
    other.environment.places[0].devices[0].model = None;
    other.results.remove(3);
    let changed = &mut other.results[2];
    changed.size_bytes = 64 * MIB;
    changed.cache_mode = CacheMode::Warm;
    changed.filesystem_type = "xfs/4096".to_owned();
    changed.protocol.statistic = diskperf_timeline::SummaryStatistic::Minimum;
    let comparison = compare(&[base, other]);
    let texts: Vec<&str> = comparison
        .warnings
        .iter()
        .map(|one| one.message.as_str())
        .collect();
    assert_eq!(
        texts,
        [
            "not finished: interrupted by the user",
            "worlds differ: host, model. KB/s is compared with KB/s and durable KB/s with \
             durable KB/s, never one with the other",
            "kernels differ: Linux 6.1.0, Linux 6.12",
            "devices differ: vda (QEMU HARDDISK), vda",
        ]
    );
    assert_eq!(
        comparison.result_pairs[0].warnings,
        [
            "sizes differ: 8 MiB, 64 MiB",
            "cache modes differ: cold, warm",
            "file systems differ: ext4/4096, xfs/4096",
            "protocols differ: median of 2 after 1 discarded, minimum of 2 after 1 discarded",
        ]
    );
    assert_eq!(comparison.unpaired_results.len(), 1);
    assert_eq!(comparison.unpaired_results[0].title, "rewrite_8192");
    assert_eq!(
        (
            comparison.unpaired_results[0].run_index,
            comparison.unpaired_results[0].run_index_without
        ),
        (0, 1)
    );
}
