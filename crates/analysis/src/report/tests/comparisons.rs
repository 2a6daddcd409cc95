use super::*;

/// Every verdict but "faster", and one program in one run only.
fn compared() -> Comparison {
    let noisy = [500.0, 900.0, 1400.0, 800.0];
    let of = |id: &str, target: &str, factor: f64| {
        let mut slow = calm("read_8192", 0, 2_345_678.0 * factor);
        slow.size_bytes = if factor < 1.0 { 2 * MIB } else { MIB };
        let unsure = noisy.map(|speed| read(MIB, speed * factor, 50.0));
        let few = [1.0, factor].map(|factor| read(MIB, 100.0 * factor.powi(20), 50.0));
        let mut results = vec![
            slow,
            calm("rewrite_8192", 1, 900.0),
            result("mix", 5, unsure.to_vec()),
            result("alternate", 6, few.to_vec()),
        ];
        results.extend(ffs83(id, target).results.drain(..1));
        if factor < 1.0 {
            results.push(calm("scan", 9, 5.0));
        }
        run(id, "ffs83", target, results)
    };
    let mut other = of("8c01d77a20", "/mnt", 0.9);
    other.environment.kernel = "Linux 6.12".to_owned();
    other.results[4].repetitions.truncate(2);
    compare(&[of("3fa85f6457", "/var/tmp", 1.0), other])
}

fn printed(format: Format) -> String {
    comparison(&compared(), format, 80)
}

#[test]
fn a_comparison_as_a_table() {
    assert_snapshot!(printed(Format::Table), @r"
    base: ffs83 on /var/tmp, run 3fa85f6457
    other: ffs83 on /mnt, run 8c01d77a20

    program                base          other  ratio       95 %  verdict
                     KB/s (CPU)     KB/s (CPU)
    ────────────────────────────────────────────────────────────────────────────────
    read_8192     2345681 (50%)  2111114 (50%)  0.900  0.88-0.92  slower
    rewrite_8192      900 (50%)      900 (50%)  1.000  0.98-1.02  no difference seen
    write_4096        380 (99%)      376 (99%)  0.990    unknown  too few
                                                                  repetitions to
                                                                  tell
      durable         127            125        0.990    unknown  too few
                                                                  repetitions to
                                                                  tell
    mix               850 (50%)      765 (50%)  0.900  0.19-4.33  not sure: >±50%
    alternate         100 (50%)       56 (50%)  0.349    unknown  too few
                                                                  repetitions to
                                                                  tell

    ratio: other over base, from all kept repetitions; 95 %: its interval by
      Hodges-Lehmann, exact Mann-Whitney
    unknown: the repetitions are too few, or differ too much, for an interval
    too few repetitions to tell: fewer than four on either side show only large
      differences; use --runs 10
    not sure: the ratio suggests a difference, but the intervals of all comparisons
      together exclude neither 10 % nor 0 %; use more repetitions or a quieter
      machine

    warning: /mnt: kernels differ: Linux 6.1.0, Linux 6.12
    warning: read_8192: sizes differ: 1 MiB, 2 MiB
    not compared: scan (ext4/4096) is only in /mnt, not in /var/tmp
    ");
}

#[test]
fn a_comparison_in_markdown() {
    assert_snapshot!(printed(Format::Markdown), @r"
    ## base: ffs83 on /var/tmp, run 3fa85f6457

    - other: ffs83 on /mnt, run 8c01d77a20

    | program | base KB/s (CPU) | other KB/s (CPU) | ratio | 95 % | verdict |
    | --- | ---: | ---: | ---: | ---: | --- |
    | read\_8192 | 2345681 (50%) | 2111114 (50%) | 0.900 | 0.88-0.92 | slower |
    | rewrite\_8192 | 900 (50%) | 900 (50%) | 1.000 | 0.98-1.02 | no difference seen |
    | write\_4096 | 380 (99%) | 376 (99%) | 0.990 | unknown | too few repetitions to tell |
    | durable | 127 | 125 | 0.990 | unknown | too few repetitions to tell |
    | mix | 850 (50%) | 765 (50%) | 0.900 | 0.19-4.33 | not sure: \>±50% |
    | alternate | 100 (50%) | 56 (50%) | 0.349 | unknown | too few repetitions to tell |

    - ratio: other over base, from all kept repetitions; 95 %: its interval by Hodges-Lehmann, exact Mann-Whitney
    - unknown: the repetitions are too few, or differ too much, for an interval
    - too few repetitions to tell: fewer than four on either side show only large differences; use --runs 10
    - not sure: the ratio suggests a difference, but the intervals of all comparisons together exclude neither 10 % nor 0 %; use more repetitions or a quieter machine

    - warning: /mnt: kernels differ: Linux 6.1.0, Linux 6.12
    - warning: read\_8192: sizes differ: 1 MiB, 2 MiB
    - not compared: scan (ext4/4096) is only in /mnt, not in /var/tmp
    ");
}

#[test]
fn a_comparison_for_machines() {
    assert_snapshot!(printed(Format::Csv).replace("\r\n", "\n"), @r#"
    base,run,program,quantity,base_filesystem,filesystem,base_drives,drives,base_size_bytes,size_bytes,base_kept,kept,base_kb_per_s,kb_per_s,base_cpu_percent,cpu_percent,ratio,interval_low,interval_high,interval_confidence,interval_method,verdict,warnings
    3fa85f6457,8c01d77a20,read_8192,kb_per_s,ext4/4096,ext4/4096,1,1,1048576,2097152,4,4,2345680.9919665004,2111113.859957283,49.99988489215241,49.999793836537116,0.9000004123269258,0.8821782541963288,0.9181821967725133,0.95,"Hodges-Lehmann, exact Mann-Whitney",slower,"sizes differ: 1 MiB, 2 MiB"
    3fa85f6457,8c01d77a20,rewrite_8192,kb_per_s,ext4/4096,ext4/4096,1,1,1048576,1048576,4,4,900.0000006152344,900.0000006152344,49.999999911889645,49.999999911889645,1,0.9801980200862764,1.0202020199061212,0.95,"Hodges-Lehmann, exact Mann-Whitney",no difference seen,
    3fa85f6457,8c01d77a20,write_4096,kb_per_s,ext4/4096,ext4/4096,1,1,8388608,8388608,2,1,380.00000000736725,376.20000000579546,98.9999999972829,98.99999999765794,0.9899999999960576,,,,,too few repetitions to tell,
    3fa85f6457,8c01d77a20,write_4096,durable_kb_per_s,ext4/4096,ext4/4096,1,1,8388608,8388608,2,1,126.6666666691224,125.40000000193182,98.9999999972829,98.99999999765794,0.9899999999960576,,,,,too few repetitions to tell,
    3fa85f6457,8c01d77a20,mix,kb_per_s,ext4/4096,ext4/4096,1,1,8388608,8388608,4,4,850.0000003076173,765.0000003331054,49.99999996582031,49.99999992749024,0.9000000001801762,0.1872383593760676,4.3260366260856635,0.95,"Hodges-Lehmann, exact Mann-Whitney",not sure,
    3fa85f6457,8c01d77a20,alternate,kb_per_s,ext4/4096,ext4/4096,1,1,8388608,8388608,2,2,100,56.07883272954957,50,49.99999999970318,0.348678440100605,,,,,too few repetitions to tell,
    "#);
    let json: serde_json::Value = serde_json::from_str(&printed(Format::Json)).unwrap();
    let worst = &json["comparison"]["worst_slowdown"];
    assert_eq!(worst["program"], "read_8192");
    assert!(
        (worst["slowdown"].as_f64().unwrap() - 0.1).abs() < 1e-3,
        "{worst}"
    );
}
