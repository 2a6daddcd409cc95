use super::*;

/// Verdicts of every kind, and one program in one run only.
fn compared() -> Comparison {
    let twenty = |speeds: &[f64]| -> Vec<Repetition> {
        let twenty = speeds.iter().cycle().take(20);
        twenty
            .map(|speed| read_repetition(MIB, *speed, 50.0))
            .collect()
    };
    let of = |id: &str, target: &str, factor: f64| {
        let about = |speed: f64| twenty(&[speed, speed * 1.004, speed * 0.996]);
        let mut slow = build_result("read_8192", 0, about(2_345_678.0 * factor));
        slow.size_bytes = if factor < 1.0 { 2 * MIB } else { MIB };
        let modes = [900.0 * factor, 900.0 * factor, 720.0 * factor];
        let few = [1.0, factor].map(|factor| read_repetition(MIB, 100.0 * factor, 50.0));
        let mut results = vec![
            slow,
            build_result("rewrite_8192", 1, about(900.0)),
            build_result("grow", 2, about(100.0 / factor)),
            build_result("mix", 5, twenty(&modes)),
            build_result("alternate", 6, few.to_vec()),
        ];
        results.extend(build_ffs83_run(id, target).results.drain(..1));
        if factor < 1.0 {
            results.push(undisturbed_result("scan", 9, 5.0));
        }
        build_run(id, "ffs83", target, results)
    };
    let mut other = of("8c01d77a20", "/mnt", 0.6);
    other.environment.kernel_version = "Linux 6.12".to_owned();
    other.results[5].repetitions.truncate(2);
    compare(&[of("3fa85f6457", "/var/tmp", 1.0), other])
}

fn printed(format: ReportFormat) -> String {
    render_comparison(&compared(), format, 80)
}

#[test]
fn a_comparison_as_a_table() {
    assert_snapshot!(printed(ReportFormat::Table), @r"
    base: ffs83 on /var/tmp, run 3fa85f6457
    other: ffs83 on /mnt, run 8c01d77a20

    program                base          other  ratio       99 %  verdict
                     KB/s (CPU)     KB/s (CPU)
    ────────────────────────────────────────────────────────────────────────────────
    read_8192     2345681 (50%)  1407407 (50%)  0.600  0.40-0.89  slower
    rewrite_8192      900 (50%)      900 (50%)  1.000  0.67-1.49  not sure below 49%
    write_4096        380 (99%)      376 (99%)  0.990    unknown  too few
                                                                  repetitions
      durable         127            125        0.990    unknown  too few
                                                                  repetitions
    grow              100 (50%)      167 (50%)  1.667  1.12-2.47  faster
    mix               900 (50%)      540 (50%)  0.600  0.40-0.89  not sure: two
                                                                  modes
    alternate         100 (50%)       80 (50%)  0.800    unknown  too few
                                                                  repetitions

    ratio: other over base, of the medians; 99 %: its interval, for all rows
      together, by how far quarters of the runs, and earlier runs, differ
    unknown: the repetitions are too few for an interval
    too few repetitions: separate runs need 16 that count on each side for a
      verdict; use --runs 20
    two modes: which of them a run was in more often decides the medians
    not sure below N: neither is faster than the other by more than N; less cannot
      be told from how runs of one thing differ
    `diskperf ab` measures both in turn, so that what disturbs meets both, and tells
      differences of a few percent

    mix, /var/tmp: two modes, 25 % apart (6 of 20 in the slower one)
      ██▁██▁██▁██▁██▁██▁██
    mix, /mnt: two modes, 25 % apart (6 of 20 in the slower one)
      ██▁██▁██▁██▁██▁██▁██

    warning: /mnt: kernels differ: Linux 6.1.0, Linux 6.12
    warning: read_8192: sizes differ: 1 MiB, 2 MiB
    not compared: scan (ext4/4096) is only in /mnt, not in /var/tmp
    ");
}

#[test]
fn a_comparison_in_markdown() {
    assert_snapshot!(printed(ReportFormat::Markdown), @r"
    ## base: ffs83 on /var/tmp, run 3fa85f6457

    - other: ffs83 on /mnt, run 8c01d77a20

    | program | base KB/s (CPU) | other KB/s (CPU) | ratio | 99 % | verdict |
    | --- | ---: | ---: | ---: | ---: | --- |
    | read\_8192 | 2345681 (50%) | 1407407 (50%) | 0.600 | 0.40-0.89 | slower |
    | rewrite\_8192 | 900 (50%) | 900 (50%) | 1.000 | 0.67-1.49 | not sure below 49% |
    | write\_4096 | 380 (99%) | 376 (99%) | 0.990 | unknown | too few repetitions |
    | durable | 127 | 125 | 0.990 | unknown | too few repetitions |
    | grow | 100 (50%) | 167 (50%) | 1.667 | 1.12-2.47 | faster |
    | mix | 900 (50%) | 540 (50%) | 0.600 | 0.40-0.89 | not sure: two modes |
    | alternate | 100 (50%) | 80 (50%) | 0.800 | unknown | too few repetitions |

    - ratio: other over base, of the medians; 99 %: its interval, for all rows together, by how far quarters of the runs, and earlier runs, differ
    - unknown: the repetitions are too few for an interval
    - too few repetitions: separate runs need 16 that count on each side for a verdict; use --runs 20
    - two modes: which of them a run was in more often decides the medians
    - not sure below N: neither is faster than the other by more than N; less cannot be told from how runs of one thing differ
    - \`diskperf ab\` measures both in turn, so that what disturbs meets both, and tells differences of a few percent

    - mix, /var/tmp: two modes, 25 % apart (6 of 20 in the slower one) ██▁██▁██▁██▁██▁██▁██
    - mix, /mnt: two modes, 25 % apart (6 of 20 in the slower one) ██▁██▁██▁██▁██▁██▁██

    - warning: /mnt: kernels differ: Linux 6.1.0, Linux 6.12
    - warning: read\_8192: sizes differ: 1 MiB, 2 MiB
    - not compared: scan (ext4/4096) is only in /mnt, not in /var/tmp
    ");
}

#[test]
fn a_comparison_for_machines() {
    assert_snapshot!(printed(ReportFormat::Csv).replace("\r\n", "\n"), @r#"
    base,run,program,title,quantity,base_filesystem,filesystem,base_drives,drives,base_size_bytes,size_bytes,base_kept,kept,base_kb_per_s,kb_per_s,base_cpu_percent,cpu_percent,ratio,interval_low,interval_high,interval_confidence,interval_method,verdict,warnings
    3fa85f6457,8c01d77a20,read_8192,read_8192,kb_per_s,ext4/4096,ext4/4096,1,1,1048576,2097152,20,20,2345680.9919665004,1407407.3055984299,49.99988546479531,49.99993155382402,0.5999994502315213,0.40486456792099007,0.8891846034508563,0.99,Student t on the medians of quarters of two runs,slower,"sizes differ: 1 MiB, 2 MiB"
    3fa85f6457,8c01d77a20,rewrite_8192,rewrite_8192,kb_per_s,ext4/4096,ext4/4096,1,1,8388608,8388608,20,20,900.0000006152344,900.0000006152344,49.99999991175781,49.99999991175781,1,0.6747748981515987,1.4819756969906344,0.99,Student t on the medians of quarters of two runs,not sure below 49%,
    3fa85f6457,8c01d77a20,write_4096,write_4096,kb_per_s,ext4/4096,ext4/4096,1,1,8388608,8388608,2,1,380.00000000736725,376.20000000579546,98.9999999972829,98.99999999765794,0.9899999999960576,,,,,too few repetitions,
    3fa85f6457,8c01d77a20,write_4096,write_4096,durable_kb_per_s,ext4/4096,ext4/4096,1,1,8388608,8388608,2,1,126.6666666691224,125.40000000193182,98.9999999972829,98.99999999765794,0.9899999999960576,,,,,too few repetitions,
    3fa85f6457,8c01d77a20,grow,grow,kb_per_s,ext4/4096,ext4/4096,1,1,8388608,8388608,20,20,100,166.6666666937934,49.99999999513672,49.99999998365885,1.666666666937934,1.124624830435709,2.4699594953864024,0.99,Student t on the medians of quarters of two runs,faster,
    3fa85f6457,8c01d77a20,mix,mix,kb_per_s,ext4/4096,ext4/4096,1,1,8388608,8388608,20,20,900.0000006152344,540.000000084375,49.99999986816406,49.99999994726563,0.5999999996835937,0.40486493867745627,0.8891854177254742,0.99,Student t on the medians of quarters of two runs,not sure: two modes,
    3fa85f6457,8c01d77a20,alternate,alternate,kb_per_s,ext4/4096,ext4/4096,1,1,8388608,8388608,2,2,100,80.00000000117188,50,49.99999999707031,0.8000000000117189,,,,,too few repetitions,
    "#);
    let json: serde_json::Value = serde_json::from_str(&printed(ReportFormat::Json)).unwrap();
    let worst = &json["comparison"]["worst_slowdown"];
    assert_eq!(worst["program"], "read_8192");
    assert!(
        (worst["slowdown"].as_f64().unwrap() - 0.4).abs() < 1e-3,
        "{worst}"
    );
}
