use super::*;

#[test]
fn one_run_in_the_historic_form() {
    let mut one = build_ffs83_run("3fa85f6457", "/var/tmp");
    one.results[2]
        .notes
        .push("the file had 14 extents".to_owned());
    one.results[2].repetitions[1].residency = Some(Residency {
        file_bytes: 8 * MIB,
        resident_before_bytes: 7 * MIB,
        resident_after_bytes: 8 * MIB,
    });
    one.notes.push("the load average was above 1".to_owned());
    one.state = RunState::Interrupted;
    one.results.remove(0);
    assert_snapshot!(render_runs(&[one], ReportFormat::Table, 80), @r"
    ffs83 on /var/tmp, run 3fa85f6457
    host, cold page cache, ext4/4096 on vda (QEMU HARDDISK), 8 MiB, median of 2
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
    let mut other = build_ffs83_run("8c01d77a20", "/mnt/a/rather/long/path/to/nvme");
    for (row, result) in other.results.iter_mut().enumerate() {
        result.drive_count = 2;
        result.size_bytes = (8 << row) * MIB;
    }
    other.results.remove(3);
    let both = [build_ffs83_run("3fa85f6457", "/var/tmp"), other];
    assert_snapshot!(render_runs(&both, ReportFormat::Table, 100), @r"
    ffs83 on /var/tmp, run 3fa85f6457
    host, cold page cache, ext4/4096 on vda (QEMU HARDDISK), 8 MiB, median of 2 repetitions after 1
    discarded

    ffs83 on /mnt/a/rather/long/path/to/nvme, run 8c01d77a20
    host, cold page cache, ext4/4096 on vda (QEMU HARDDISK), 2 targets at once, median of 2 repetitions
    after 1 discarded

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
    assert_snapshot!(render_runs(&both, ReportFormat::Markdown, 0), @r"
    ## ffs83 on /var/tmp, run 3fa85f6457

    host, cold page cache, ext4/4096 on vda (QEMU HARDDISK), 8 MiB, median of 2 repetitions after 1 discarded

    ## ffs83 on /mnt/a/rather/long/path/to/nvme, run 8c01d77a20

    host, cold page cache, ext4/4096 on vda (QEMU HARDDISK), 2 targets at once, median of 2 repetitions after 1 discarded

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
            let mut one = undisturbed_result(program, row as u32, 1_234_567.0 * factor);
            one.filesystem_type = filesystem.to_owned();
            one.protocol.statistic = SummaryStatistic::Minimum;
            results.push(one);
        }
    }
    assert_snapshot!(render_runs(&[build_run("3fa85f6457", "ffs83", "/mnt", results)], ReportFormat::Table, 80), @r"
    ffs83 on /mnt, run 3fa85f6457
    host, cold page cache, on vda (QEMU HARDDISK), 1 MiB, minimum of 4 repetitions

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

/// All of a run, as far as the repetitions, and from there.
fn detailed() -> (String, String) {
    let mut one = build_ffs83_run("3fa85f6457", "/var/tmp");
    one.user_label = Some("before the upgrade".to_owned());
    one.results.drain(..2);
    let text = render_details(&one, 80);
    let (run, repetitions) = text.split_once("\n\nRepetitions").unwrap();
    (run.to_owned(), format!("Repetitions{repetitions}"))
}

#[test]
fn details_show_the_environment_and_latencies() {
    assert_snapshot!(detailed().0, @r#"
    ffs83 on /var/tmp, run 3fa85f6457 "before the upgrade"
    host, cold page cache, ext4/4096 on vda (QEMU HARDDISK), 8 MiB, median of 2
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
    read_8192, read       2048  8.25 ms  8.25 ms   132 ms   132 ms        -   132 ms
    rewrite_8192, write   2048  6.22 ms  6.22 ms  99.5 ms  99.5 ms        -  99.5 ms
    "#);
}

#[test]
fn details_show_every_repetition() {
    assert_snapshot!(detailed().1, @r"
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

    program               CPU     user   system  calls  waits  preempted  faults
                               (ticks)  (ticks)
    ────────────────────────────────────────────────────────────────────────────
    read_8192 (1)     14.42 s   1.44 s  12.98 s   1024     12          3       2
    read_8192 2       11.65 s   1.17 s  10.49 s   1024     12          3       2
    read_8192 3       11.42 s   1.14 s  10.28 s   1024     12          3       2
    rewrite_8192 (1)  15.60 s   1.56 s  14.04 s   1024     12          3       2
    rewrite_8192 2    12.60 s   1.26 s  11.34 s   1024     12          3       2
    rewrite_8192 3    12.35 s   1.24 s  11.12 s   1024     12          3       2

    program             from  resident  resident
                      device    before     after
    ────────────────────────────────────────────
    read_8192 (1)       100%        0%      100%
    read_8192 2         100%        0%      100%
    read_8192 3         100%        0%      100%
    rewrite_8192 (1)
    rewrite_8192 2
    rewrite_8192 3

    ▅█ read_8192
    ▅█ rewrite_8192
    ");
}

#[test]
fn tables_fit_the_terminal() {
    let all = [
        build_ffs83_run("3fa85f6457", "/var/tmp"),
        build_ffs83_run("8c01d77a20", "/mnt/nvme"),
        build_seqread89_run("77aa01c3d4", "/var/tmp"),
    ];
    for width in [80, 100, 132, 200] {
        let compared = render_comparison(&compare(&all[..2]), ReportFormat::Table, width);
        let overhead = render_runs(&all, ReportFormat::Table, width)
            + &render_details(&all[0], width)
            + &compared;
        for line in overhead.lines() {
            assert!(
                line.chars().count() <= usize::from(width),
                "{width}: {line}"
            );
        }
    }
}
