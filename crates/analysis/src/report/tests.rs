use super::*;
use crate::comparison::compare;
use crate::fixtures::{ffs83, read, result, run, seqread89};
use diskperf_timeline::units::MIB;
use diskperf_timeline::{ProgramResult, Repetition, Residency, RunState, Statistic};
use insta::assert_snapshot;

/// Four repetitions, so that intervals are neither absent nor huge.
fn calm(program: &str, row: u32, kb_per_s: f64) -> ProgramResult {
    let repetitions = [1.0, 0.99, 1.01, 1.0].map(|factor| read(MIB, kb_per_s * factor, 50.0));
    let mut one = result(program, row, repetitions.to_vec());
    one.size_bytes = MIB;
    one
}

#[test]
fn one_run_in_the_historic_form() {
    let mut one = ffs83("3fa85f6457", "/var/tmp");
    one.results[2]
        .notes
        .push("the file had 14 extents".to_owned());
    one.results[2].repetitions[1].residency = Some(Residency {
        file_bytes: 8 * MIB,
        before_bytes: 7 * MIB,
        after_bytes: 8 * MIB,
    });
    one.notes.push("the load average was above 1".to_owned());
    one.state = RunState::Interrupted;
    one.results.remove(0);
    assert_snapshot!(runs(&[one], Format::Table, 80), @r"
    ffs83 on /var/tmp, run 3fa85f6457
    host, cold cache, ext4/4096 on vda (QEMU HARDDISK), 8 MiB, median of 2
    repetitions after 1 discarded

    NOT FINISHED: interrupted by the user

    program       KB/s (CPU)  95 %  durable    from
                                       KB/s  device
    ───────────────────────────────────────────────
    read_8192     490 (69%)*  ±14%             100%
    write_8192    470 (99%)   ±14%      157
    rewrite_8192  650 (99%)   ±14%      217

    KB/s until the last call returned (CPU share of the elapsed time); durable:
      until all was synced
    95 %: interval by Student t on logarithms, wide because the repetitions are few
    * meant to be cold, but found in memory: this is not the device's speed

    note: the load average was above 1
    note on read_8192: the file had 14 extents
    ");
}

#[test]
fn runs_of_one_suite_stand_side_by_side() {
    let mut other = ffs83("8c01d77a20", "/mnt/a/rather/long/path/to/nvme");
    for (row, result) in other.results.iter_mut().enumerate() {
        result.drives = 2;
        result.size_bytes = (8 << row) * MIB;
    }
    other.results.remove(3);
    let both = [ffs83("3fa85f6457", "/var/tmp"), other];
    assert_snapshot!(runs(&both, Format::Table, 100), @r"
    ffs83 on /var/tmp, run 3fa85f6457
    host, cold cache, ext4/4096 on vda (QEMU HARDDISK), 8 MiB, median of 2 repetitions after 1 discarded

    ffs83 on /mnt/a/rather/long/path/to/nvme, run 8c01d77a20
    host, cold cache, ext4/4096 on vda (QEMU HARDDISK), 2 drives at once, median of 2 repetitions after
    1 discarded

                  /var/tmp                             /mnt/a/rather/long/path/to/nvme, 2 drives
    program       KB/s (CPU)  95 %  durable    from    KB/s (CPU)  95 %  durable    from    size
                                       KB/s  device                         KB/s  device
    ────────────────────────────────────────────────────────────────────────────────────────────
    read_8192      490 (69%)  ±14%             100%     490 (69%)  ±14%             100%  32 MiB
    write_4096     380 (99%)  ±14%      127             380 (99%)  ±14%      127           8 MiB
    write_8192     470 (99%)  ±14%      157             470 (99%)  ±14%      157          16 MiB
    rewrite_8192   650 (99%)  ±14%      217

    KB/s until the last call returned (CPU share of the elapsed time); durable: until all was synced
    95 %: interval by Student t on logarithms, wide because the repetitions are few
    ");
    assert_snapshot!(runs(&both, Format::Markdown, 0), @r"
    ## ffs83 on /var/tmp, run 3fa85f6457

    host, cold cache, ext4/4096 on vda (QEMU HARDDISK), 8 MiB, median of 2 repetitions after 1 discarded

    ## ffs83 on /mnt/a/rather/long/path/to/nvme, run 8c01d77a20

    host, cold cache, ext4/4096 on vda (QEMU HARDDISK), 2 drives at once, median of 2 repetitions after 1 discarded

    | program | /var/tmp<br>KB/s (CPU) | 95 % | durable KB/s | from device | /mnt/a/rather/long/path/to/nvme, 2 drives<br>KB/s (CPU) | 95 % | durable KB/s | from device | size |
    | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
    | read\_8192 | 490 (69%) | ±14% |  | 100% | 490 (69%) | ±14% |  | 100% | 32 MiB |
    | write\_4096 | 380 (99%) | ±14% | 127 |  | 380 (99%) | ±14% | 127 |  | 8 MiB |
    | write\_8192 | 470 (99%) | ±14% | 157 |  | 470 (99%) | ±14% | 157 |  | 16 MiB |
    | rewrite\_8192 | 650 (99%) | ±14% | 217 |  |  |  |  |  |  |

    - KB/s until the last call returned (CPU share of the elapsed time); durable: until all was synced
    - 95 %: interval by Student t on logarithms, wide because the repetitions are few
    ");
}

#[test]
fn file_systems_are_sections() {
    let mut results = Vec::new();
    for (filesystem, factor) in [("ext4/1024", 0.8), ("ext4/4096", 1.0)] {
        for (row, program) in ["read_8192", "write_8192"].into_iter().enumerate() {
            let mut one = calm(program, row as u32, 1_234_567.0 * factor);
            one.filesystem = filesystem.to_owned();
            one.protocol.statistic = Statistic::Minimum;
            results.push(one);
        }
    }
    assert_snapshot!(runs(&[run("3fa85f6457", "ffs83", "/mnt", results)], Format::Table, 80), @r"
    ffs83 on /mnt, run 3fa85f6457
    host, cold cache, on vda (QEMU HARDDISK), 1 MiB, minimum of 4 repetitions

    ext4/1024
    program       KB/s (CPU)    from
                              device
    ────────────────────────────────
    read_8192   997531 (50%)    100%
    write_8192  997531 (50%)    100%

    ext4/4096
    program        KB/s (CPU)    from
                               device
    ─────────────────────────────────
    read_8192   1246913 (50%)    100%
    write_8192  1246913 (50%)    100%

    KB/s until the last call returned (CPU share of the elapsed time)
    ");
}

#[test]
fn seqread_is_a_pivot_with_its_decomposition() {
    assert_snapshot!(runs(&[seqread89("3fa85f6457", "/var/tmp")], Format::Table, 80), @r"
    seqread89 on /var/tmp, run 3fa85f6457
    host, cold cache, ext4/4096 on vda (QEMU HARDDISK), 2 MiB, median of 3
    repetitions

    seqread: KB/s (CPU)
    per call              null             zero            cached        dropped
    ────────────────────────────────────────────────────────────────────────────
       512 B    5555556 (100%)   4716981 (100%)   2673797 (100%)§  1000000 (35%)
       1 KiB   11111111 (100%)   8928571 (100%)   4651163 (100%)   1234568 (35%)
       2 KiB   22222222 (100%)  16129032 (100%)   7407407 (100%)   1398601 (35%)
       8 KiB   88888889 (100%)  40816327 (100%)  13333333 (100%)   1553398 (35%)
      16 KiB  177777778 (100%)  54794521 (100%)  15384615 (100%)   1582591 (35%)

    per call       direct
    ─────────────────────
       512 B    8302 (8%)
       1 KiB   16543 (8%)
       2 KiB   32841 (8%)
       8 KiB  125786 (8%)
      16 KiB  238095 (8%)

    Where the time of one call goes, in µs:
                              /dev/zero
    per call          bare           clear  total
                      call
    ─────────────────────────────────────────────
       512 B  0.090 ±0.001    0.016 ±0.003  0.106
       1 KiB  0.090 ±0.001    0.022 ±0.003  0.112
       2 KiB  0.090 ±0.001    0.034 ±0.003  0.124
       8 KiB  0.090 ±0.001    0.106 ±0.003  0.196
      16 KiB  0.090 ±0.001    0.202 ±0.006  0.292

              file, not cached
    per call      look-up,            miss        device  total
                      copy        handling          wait
    ───────────────────────────────────────────────────────────
       512 B  0.097 ±0.005  -0.012 ±0.004~  0.325 ±0.009  0.500
       1 KiB  0.125 ±0.006   0.068 ±0.006   0.527 ±0.014  0.810
       2 KiB  0.180 ±0.006   0.230 ±0.010   0.930 ±0.024   1.43
       8 KiB  0.510 ±0.015    1.20 ±0.04     3.35 ±0.08    5.15
      16 KiB  0.950 ±0.026    2.50 ±0.08     6.57 ±0.17    10.1

              file, O_DIRECT
    per call      kernel     device  total
                               wait
    ──────────────────────────────────────
       512 B  4.73 ±0.12  55.4 ±1.4   60.2
       1 KiB  4.75 ±0.12  55.6 ±1.4   60.4
       2 KiB  4.78 ±0.12  56.0 ±1.4   60.9
       8 KiB  5.00 ±0.13  58.5 ±1.5   63.6
      16 KiB  5.29 ±0.13  61.8 ±1.5   67.2

    bare call: a read of /dev/null, with its timing; every total includes it
    clear: filling the buffer with zeros, which reads no memory: a floor under the
      copy
    look-up, copy: of pages in the page cache, from the cached file
    miss handling: CPU time beyond that of the cached file
    kernel: CPU time beyond that of the bare call
    device wait: elapsed without CPU; what read-ahead hides of the device is not in
      it
    ~ not told apart from nothing: within the noise, or negative, which says that
      the two layers differ by more than this part

    KB/s until the last call returned (CPU share of the elapsed time)
    § a call on /dev/null takes up to 51% of such a call: here the generator is the
      limit, not the storage
    ");
}

#[test]
fn copy_is_a_pivot_and_scan_is_not() {
    let mut results = Vec::new();
    for destination in ["null", "same"] {
        for call_bytes in ["8192", "34304", "926208"] {
            let row = results.len() as u32;
            let mut one = calm("copy", row, 1000.0 + 100.0 * f64::from(row));
            one.parameters = [
                ("destination".to_owned(), destination.to_owned()),
                ("call_bytes".to_owned(), call_bytes.to_owned()),
            ]
            .into();
            one.distinguishing = vec!["destination".to_owned(), "call_bytes".to_owned()];
            results.push(one);
        }
    }
    for readers in ["1", "4"] {
        let mut one = calm("scan", results.len() as u32, 5.25);
        one.parameters
            .insert("readers".to_owned(), readers.to_owned());
        one.distinguishing = vec!["readers".to_owned()];
        results.push(one);
    }
    assert_snapshot!(runs(&[run("3fa85f6457", "vme87", "/mnt", results)], Format::Table, 80), @r"
    vme87 on /mnt, run 3fa85f6457
    host, cold cache, ext4/4096 on vda (QEMU HARDDISK), 1 MiB, median of 4
    repetitions

    copy: KB/s (CPU)
    copy to       8 KiB    33.5 KiB   904.5 KiB
    ───────────────────────────────────────────
    null     1000 (50%)  1100 (50%)  1200 (50%)
    same     1300 (50%)  1400 (50%)  1500 (50%)

    program         KB/s (CPU)   95 %    from
                                       device
    ─────────────────────────────────────────
    scan readers=1   5.3 (50%)  ±1.3%    100%
    scan readers=4   5.3 (50%)  ±1.3%    100%

    KB/s until the last call returned (CPU share of the elapsed time)
    95 %: interval by Student t on logarithms, wide because the repetitions are few
    ");
}

#[test]
fn details_show_all() {
    let mut one = ffs83("3fa85f6457", "/var/tmp");
    one.label = Some("before the upgrade".to_owned());
    one.results.drain(..2);
    assert_snapshot!(details(&one, 80), @r#"
    ffs83 on /var/tmp, run 3fa85f6457 "before the upgrade"
    host, cold cache, ext4/4096 on vda (QEMU HARDDISK), 8 MiB, median of 2
    repetitions after 1 discarded

    started 2026-11-21 01:00:00 UTC
    command line: diskperf run ffs83 --on /var/tmp
    diskperf 0.1.0, seed 1
    overhead: a read of /dev/null takes 95 ns, of which its timing 22 ns

    Environment
    kernel: Linux 6.1.0
    CPU: 2 x Xeon E-2288G, 8 GiB of memory, load average 0.42 at the start
    calls timed by: tsc
    place: /var/tmp
    file system: ext4 of 4096-byte blocks on /dev/vda1, mounted at /var
      (rw,relatime), 40 GiB of 100 GiB free
    device: vda: 128 GiB, QEMU HARDDISK, rotating, scheduler mq-deadline, read-ahead
      128 KiB, cache: write back

    program       KB/s (CPU)  95 %  durable    from
                                       KB/s  device
    ───────────────────────────────────────────────
    read_8192      490 (69%)  ±14%             100%
    rewrite_8192   650 (99%)  ±14%      217

    KB/s until the last call returned (CPU share of the elapsed time); durable:
      until all was synced
    95 %: interval by Student t on logarithms, wide because the repetitions are few

    Latency per call, over all kept repetitions
    program, call        calls     50 %     90 %     99 %   99.9 %  99.99 %  longest
    ────────────────────────────────────────────────────────────────────────────────
    read_8192, read       2048  8.25 ms  8.25 ms   132 ms   132 ms   132 ms   132 ms
    rewrite_8192, write   2048  6.22 ms  6.22 ms  99.5 ms  99.5 ms  99.5 ms  99.5 ms

    Repetitions, the discarded ones in parentheses
    program           KB/s (CPU)  durable  elapsed
                                     KB/s
    ──────────────────────────────────────────────
    read_8192 (1)      392 (69%)           20.90 s
    read_8192 2        485 (69%)           16.89 s
    read_8192 3        495 (69%)           16.55 s
    rewrite_8192 (1)   520 (99%)      173  15.75 s
    rewrite_8192 2     644 (99%)      215  12.73 s
    rewrite_8192 3     657 (99%)      219  12.48 s

    program             user   system  calls  waits  preempted  faults
    ──────────────────────────────────────────────────────────────────
    read_8192 (1)     1.44 s  12.98 s   1024     12          3       2
    read_8192 2       1.17 s  10.49 s   1024     12          3       2
    read_8192 3       1.14 s  10.28 s   1024     12          3       2
    rewrite_8192 (1)  1.56 s  14.04 s   1024     12          3       2
    rewrite_8192 2    1.26 s  11.34 s   1024     12          3       2
    rewrite_8192 3    1.24 s  11.12 s   1024     12          3       2

    program             from  resident  resident
                      device    before     after
    ────────────────────────────────────────────
    read_8192 (1)       100%        0%      100%
    read_8192 2         100%        0%      100%
    read_8192 3         100%        0%      100%
    rewrite_8192 (1)
    rewrite_8192 2
    rewrite_8192 3
    "#);
}

#[test]
fn comparisons() {
    let of = |id: &str, target: &str, factor: f64| {
        let mut slow = calm("read_8192", 0, 2_345_678.0 * factor);
        slow.size_bytes = if factor < 1.0 { 2 * MIB } else { MIB };
        let mut results = vec![slow, calm("rewrite_8192", 1, 900.0)];
        results.extend(ffs83(id, target).results.drain(..1));
        if factor < 1.0 {
            results.push(calm("scan", 9, 5.0));
        }
        run(id, "ffs83", target, results)
    };
    let mut other = of("8c01d77a20", "/mnt", 0.9);
    other.environment.kernel = "Linux 6.12".to_owned();
    other.results[2].repetitions.truncate(2);
    let comparison = compare(&[of("3fa85f6457", "/var/tmp", 1.0), other]);
    let print = |format| super::comparison(&comparison, format, 80);
    assert_snapshot!(print(Format::Table), @r"
    base: ffs83 on /var/tmp, run 3fa85f6457
    other: ffs83 on /mnt, run 8c01d77a20

    program                base          other  ratio       95 %  verdict
                     KB/s (CPU)     KB/s (CPU)
    ────────────────────────────────────────────────────────────────────────────────
    read_8192     2345681 (50%)  2111114 (50%)  0.900  0.88-0.92  slower
    rewrite_8192      900 (50%)      900 (50%)  1.000  0.98-1.02  no difference seen
    write_4096        380 (99%)      376 (99%)                    too few
                                                                  repetitions
      durable         127            125                          too few
                                                                  repetitions

    ratio: other over base, from all kept repetitions; 95 %: its interval by
      Hodges-Lehmann, exact Mann-Whitney
    too few repetitions: a verdict takes two or more on each side, a good one ten:
      --runs 10

    warning: /mnt: kernels differ: Linux 6.1.0, Linux 6.12
    warning: read_8192: sizes differ: 1 MiB, 2 MiB
    not compared: scan (ext4/4096) is only in /mnt, not in /var/tmp
    ");
    assert_snapshot!(print(Format::Markdown), @r"
    ## base: ffs83 on /var/tmp, run 3fa85f6457

    - other: ffs83 on /mnt, run 8c01d77a20

    | program | base KB/s (CPU) | other KB/s (CPU) | ratio | 95 % | verdict |
    | --- | ---: | ---: | ---: | ---: | --- |
    | read\_8192 | 2345681 (50%) | 2111114 (50%) | 0.900 | 0.88-0.92 | slower |
    | rewrite\_8192 | 900 (50%) | 900 (50%) | 1.000 | 0.98-1.02 | no difference seen |
    | write\_4096 | 380 (99%) | 376 (99%) |  |  | too few repetitions |
    | durable | 127 | 125 |  |  | too few repetitions |

    - ratio: other over base, from all kept repetitions; 95 %: its interval by Hodges-Lehmann, exact Mann-Whitney
    - too few repetitions: a verdict takes two or more on each side, a good one ten: --runs 10

    - warning: /mnt: kernels differ: Linux 6.1.0, Linux 6.12
    - warning: read\_8192: sizes differ: 1 MiB, 2 MiB
    - not compared: scan (ext4/4096) is only in /mnt, not in /var/tmp
    ");
    assert_snapshot!(print(Format::Csv).replace("\r\n", "\n"), @r#"
    base,run,program,quantity,base_filesystem,filesystem,base_drives,drives,base_size_bytes,size_bytes,base_kept,kept,base_kb_per_s,kb_per_s,base_cpu_percent,cpu_percent,ratio,interval_low,interval_high,interval_confidence,interval_method,verdict,warnings
    3fa85f6457,8c01d77a20,read_8192,kb_per_s,ext4/4096,ext4/4096,1,1,1048576,2097152,4,4,2345680.9919665004,2111113.859957283,49.99988489215241,49.999793836537116,0.9000004123269258,0.8821782541963288,0.9181821967725133,0.95,"Hodges-Lehmann, exact Mann-Whitney",slower,"sizes differ: 1 MiB, 2 MiB"
    3fa85f6457,8c01d77a20,rewrite_8192,kb_per_s,ext4/4096,ext4/4096,1,1,1048576,1048576,4,4,900.0000006152344,900.0000006152344,49.999999911889645,49.999999911889645,1,0.9801980200862764,1.0202020199061212,0.95,"Hodges-Lehmann, exact Mann-Whitney",no difference seen,
    3fa85f6457,8c01d77a20,write_4096,kb_per_s,ext4/4096,ext4/4096,1,1,8388608,8388608,2,1,380.00000000736725,376.20000000579546,98.9999999972829,98.99999999765794,,,,,,too few repetitions,
    3fa85f6457,8c01d77a20,write_4096,durable_kb_per_s,ext4/4096,ext4/4096,1,1,8388608,8388608,2,1,126.6666666691224,125.40000000193182,98.9999999972829,98.99999999765794,,,,,,too few repetitions,
    "#);
    let json: serde_json::Value = serde_json::from_str(&print(Format::Json)).unwrap();
    let worst = &json["comparison"]["worst_slowdown"];
    assert_eq!(worst["program"], "read_8192");
    assert!(
        (worst["slowdown"].as_f64().unwrap() - 0.1).abs() < 1e-3,
        "{worst}"
    );
}

#[test]
fn json_keeps_the_contract() {
    let text = runs(&[ffs83("3fa85f6457", "/var/tmp")], Format::Json, 0);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let run = &json["runs"][0];
    for key in ["id", "suite", "target", "world", "seed", "results"] {
        assert!(!run[key].is_null(), "{key}");
    }
    assert_eq!(run["world"], "host");
    let programs: Vec<&str> = run["results"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["program"].as_str())
        .collect();
    assert_eq!(
        programs,
        ["read_8192", "write_4096", "write_8192", "rewrite_8192"]
    );
    for (index, durable) in [(0, false), (1, true)] {
        let result = run["results"][index].as_object().unwrap();
        for key in [
            "program",
            "drives",
            "filesystem",
            "size_bytes",
            "kb_per_s",
            "cpu_percent",
            "elapsed_s",
        ] {
            assert!(!result[key].is_null(), "{key}");
        }
        assert_eq!(result["durable_kb_per_s"].is_number(), durable);
        let interval = result["interval"].as_object().unwrap();
        for key in ["low", "high", "confidence", "method"] {
            assert!(!interval[key].is_null(), "{key}");
        }
        let repetitions = result["repetitions"].as_array().unwrap();
        assert_eq!(repetitions.len(), 3);
        assert!(repetitions.iter().all(|one| one["kb_per_s"].is_number()));
    }
    let single = run_of_one(vec![read(MIB, 100.0, 1.0)]);
    let json: serde_json::Value = serde_json::from_str(&runs(&[single], Format::Json, 0)).unwrap();
    assert!(json["runs"][0]["results"][0]["interval"].is_null());
}

fn run_of_one(repetitions: Vec<Repetition>) -> Run {
    run(
        "3fa85f6457",
        "read",
        "/a",
        vec![result("read", 0, repetitions)],
    )
}

#[test]
fn csv_quotes_what_must_be_quoted() {
    let mut one = run_of_one(vec![read(MIB, 100.0, 1.0)]);
    one.label = Some("a \"quoted\", name".to_owned());
    one.results[0].notes = vec!["two\nlines".to_owned()];
    let text = runs(&[one], Format::Csv, 0);
    assert!(
        text.contains("3fa85f6457,\"a \"\"quoted\"\", name\",read,"),
        "{text}"
    );
    assert!(text.ends_with(",\"two\nlines\"\r\n"), "{text}");
    let heading = text.split("\r\n").next().unwrap();
    assert!(
        heading.starts_with("run,label,suite,target,world,seed,"),
        "{heading}"
    );
}

#[test]
fn nothing_to_report_is_said() {
    assert_snapshot!(super::comparison(&compare(&[]), Format::Table, 80), @r"
    There is no run to compare.
    ");
    let lone = run("3fa85f6457", "ffs83", "/a", Vec::new());
    assert_snapshot!(super::comparison(&compare(std::slice::from_ref(&lone)), Format::Table, 80), @r"
    There is only one run, 3fa85f6457: name a second one to compare it with.
    ");
    assert_snapshot!(runs(&[lone], Format::Table, 80), @r"
    ffs83 on /a, run 3fa85f6457
    host, cold cache, on vda (QEMU HARDDISK)

    No program of this run has a result.
    ");
    assert_eq!(runs(&[], Format::Csv, 80), "");
}

#[test]
fn tables_fit_the_terminal() {
    let all = [
        ffs83("3fa85f6457", "/var/tmp"),
        ffs83("8c01d77a20", "/mnt/nvme"),
        seqread89("77aa01c3d4", "/var/tmp"),
    ];
    for width in [80, 100, 132, 200] {
        let comparison = super::comparison(&compare(&all[..2]), Format::Table, width);
        let overhead = runs(&all, Format::Table, width) + &details(&all[0], width) + &comparison;
        for line in overhead.lines() {
            assert!(
                line.chars().count() <= usize::from(width),
                "{width}: {line}"
            );
        }
    }
}
