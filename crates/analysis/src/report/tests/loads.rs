//! Programs with several requests under way.

use super::*;
use crate::fixtures::load::{LoadFixture, READ_LOAD, build_today26_run};
use crate::summary::ResultSummary;

fn open_loop(id: &str, target: &str, factor: f64) -> Run {
    let load = LoadFixture {
        is_open_loop: true,
        response_us: 120.0 / factor,
        ..READ_LOAD
    };
    let mut result = load.build_result("random", 0);
    result.distinguishing.push("rate_iops".to_owned());
    result
        .parameters
        .insert("rate_iops".to_owned(), "2000".to_owned());
    build_run(id, "random", target, vec![result])
}

#[test]
fn a_run_of_today() {
    let text = render_runs(
        &[build_today26_run("3fa85f6457", "/var/tmp", 1.0)],
        ReportFormat::Table,
        100,
    );
    assert_snapshot!(text, @r"
    today26 on /var/tmp, run 3fa85f6457
    host, O_DIRECT, ext4/4096 on vda (QEMU HARDDISK), 512 MiB, median of 3 repetitions

    program                  IOPS   95 %  MB/s            p50            p99    p99.9      max   CPU/IO
    ───────────────────────────────────────────────────────────────────────────────────────────────────
    1 MiB sequential read,    300  ±2.5%   315  3.31 ms ±3.1%  17.3 ms ±42%   24.8 ms  26.7 ms  5.20 µs
      QD8
    4 KiB random read, QD1   2000  ±2.7%  8.19  95.6 µs ±3.0%   577 µs ±4.1%   733 µs   857 µs  5.20 µs
    4 KiB random read, QD32  6000  ±2.7%  24.6   352 µs ±3.0%  2.15 ms ±3.6%  2.72 ms  3.69 ms  5.20 µs
    4 KiB random, 30 %       6000  ±2.7%  24.6   351 µs ±2.6%  2.09 ms ±6.4%  2.67 ms  3.38 ms  5.20 µs
      writes, QD16
      read                   4200         17.2   351 µs ±2.9%  2.11 ms ±6.4%  2.72 ms  3.38 ms
      write                  1800         7.37   350 µs ±2.5%  2.05 ms ±2.1%  2.57 ms  3.21 ms
      sync                     58               3.27 ms ±7.0%  16.9 ms >±50%        -  22.6 ms
    log_append depth=1        900  ±2.7%  3.69  31.1 µs ±2.1%   184 µs ±6.0%   238 µs   261 µs  5.20 µs
      write                   900         3.69  31.1 µs ±2.1%   184 µs ±6.0%   238 µs   261 µs
      sync                    900                280 µs ±2.2%  1.66 ms ±5.9%  2.15 ms  2.34 ms

    IOPS, MB/s (10^6 bytes) until the last request was complete; p50 ... max: from a request's start
      until its completion was taken; CPU/IO: processor time per request
    p50, p99: the median of the repetitions that count, each with its own; p99.9, max: of all their
      requests together
    load generator: io_uring
    95 %: interval by Student t on logarithms, wide because the repetitions are few
    ");
}

#[test]
fn a_model_stands_below_the_drive() {
    let mut model = build_today26_run("8c01d77a20", "bare-nvme-tlc", 1.7);
    model.world = MeasuredWorld::Model;
    model.results.truncate(4);
    let both = [build_today26_run("3fa85f6457", "/var/tmp", 1.0), model];
    assert_snapshot!(render_runs(&both, ReportFormat::Table, 100), @r"
    today26 on /var/tmp, run 3fa85f6457
    host, O_DIRECT, ext4/4096 on vda (QEMU HARDDISK), 512 MiB, median of 3 repetitions

    today26 on bare-nvme-tlc, run 8c01d77a20
    model, seed 1, O_DIRECT, ext4/4096 on vda (QEMU HARDDISK), 512 MiB, median of 3 repetitions

    program                   IOPS   95 %  MB/s            p50            p99    p99.9      max   CPU/IO
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    1 MiB sequential read,
      QD8
      /var/tmp                 300  ±2.5%   315  3.31 ms ±3.1%  17.3 ms ±42%   24.8 ms  26.7 ms  5.20 µs
      bare-nvme-tlc            510          535  1.95 ms        10.9 ms        14.6 ms  15.4 ms  5.20 µs
    4 KiB random read, QD1
      /var/tmp                2000  ±2.7%  8.19  95.6 µs ±3.0%   577 µs ±4.1%   733 µs   857 µs  5.20 µs
      bare-nvme-tlc           3400         13.9  56.1 µs         336 µs         429 µs   524 µs  5.20 µs
    4 KiB random read, QD32
      /var/tmp                6000  ±2.7%  24.6   352 µs ±3.0%  2.15 ms ±3.6%  2.72 ms  3.69 ms  5.20 µs
      bare-nvme-tlc          10200         41.8   207 µs        1.24 ms        1.61 ms  2.17 ms  5.20 µs
    4 KiB random, 30 %
      writes, QD16
      /var/tmp                6000  ±2.7%  24.6   351 µs ±2.6%  2.09 ms ±6.4%  2.67 ms  3.38 ms  5.20 µs
        read                  4200         17.2   351 µs ±2.9%  2.11 ms ±6.4%  2.72 ms  3.38 ms
        write                 1800         7.37   350 µs ±2.5%  2.05 ms ±2.1%  2.57 ms  3.21 ms
        sync                    58               3.27 ms ±7.0%  16.9 ms >±50%        -  22.6 ms
      bare-nvme-tlc          10200         41.8   206 µs        1.23 ms        1.58 ms  1.94 ms  5.20 µs
        read                  7140         29.2   206 µs        1.21 ms        1.59 ms  1.90 ms
        write                 3060         12.5   206 µs        1.25 ms        1.55 ms  1.94 ms
        sync                    96               1.86 ms        12.0 ms              -  15.2 ms
    log_append depth=1
      /var/tmp                 900  ±2.7%  3.69  31.1 µs ±2.1%   184 µs ±6.0%   238 µs   261 µs  5.20 µs
        write                  900         3.69  31.1 µs ±2.1%   184 µs ±6.0%   238 µs   261 µs
        sync                   900                280 µs ±2.2%  1.66 ms ±5.9%  2.15 ms  2.34 ms

    IOPS, MB/s (10^6 bytes) until the last request was complete; p50 ... max: from a request's start
      until its completion was taken; CPU/IO: processor time per request
    p50, p99: the median of the repetitions that count, each with its own; p99.9, max: of all their
      requests together
    load generator: io_uring
    95 %: interval by Student t on logarithms, wide because the repetitions are few
    no interval: a modelled figure is exact for its requests; another --seed draws others
    ");
    assert_snapshot!(render_runs(&both, ReportFormat::Markdown, 0), @r"
    ## today26 on /var/tmp, run 3fa85f6457

    host, O\_DIRECT, ext4/4096 on vda (QEMU HARDDISK), 512 MiB, median of 3 repetitions

    ## today26 on bare-nvme-tlc, run 8c01d77a20

    model, seed 1, O\_DIRECT, ext4/4096 on vda (QEMU HARDDISK), 512 MiB, median of 3 repetitions

    | program | IOPS | 95 % | MB/s | p50 | p99 | p99.9 | max | CPU/IO |
    | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
    | 1 MiB sequential read,   QD8 |  |  |  |  |  |  |  |  |
    | /var/tmp | 300 | ±2.5% | 315 | 3.31 ms ±3.1% | 17.3 ms ±42% | 24.8 ms | 26.7 ms | 5.20 µs |
    | bare-nvme-tlc | 510 |  | 535 | 1.95 ms | 10.9 ms | 14.6 ms | 15.4 ms | 5.20 µs |
    | 4 KiB random read, QD1 |  |  |  |  |  |  |  |  |
    | /var/tmp | 2000 | ±2.7% | 8.19 | 95.6 µs ±3.0% | 577 µs ±4.1% | 733 µs | 857 µs | 5.20 µs |
    | bare-nvme-tlc | 3400 |  | 13.9 | 56.1 µs | 336 µs | 429 µs | 524 µs | 5.20 µs |
    | 4 KiB random read, QD32 |  |  |  |  |  |  |  |  |
    | /var/tmp | 6000 | ±2.7% | 24.6 | 352 µs ±3.0% | 2.15 ms ±3.6% | 2.72 ms | 3.69 ms | 5.20 µs |
    | bare-nvme-tlc | 10200 |  | 41.8 | 207 µs | 1.24 ms | 1.61 ms | 2.17 ms | 5.20 µs |
    | 4 KiB random, 30 %   writes, QD16 |  |  |  |  |  |  |  |  |
    | /var/tmp | 6000 | ±2.7% | 24.6 | 351 µs ±2.6% | 2.09 ms ±6.4% | 2.67 ms | 3.38 ms | 5.20 µs |
    | read | 4200 |  | 17.2 | 351 µs ±2.9% | 2.11 ms ±6.4% | 2.72 ms | 3.38 ms |  |
    | write | 1800 |  | 7.37 | 350 µs ±2.5% | 2.05 ms ±2.1% | 2.57 ms | 3.21 ms |  |
    | sync | 58 |  |  | 3.27 ms ±7.0% | 16.9 ms \>±50% | - | 22.6 ms |  |
    | bare-nvme-tlc | 10200 |  | 41.8 | 206 µs | 1.23 ms | 1.58 ms | 1.94 ms | 5.20 µs |
    | read | 7140 |  | 29.2 | 206 µs | 1.21 ms | 1.59 ms | 1.90 ms |  |
    | write | 3060 |  | 12.5 | 206 µs | 1.25 ms | 1.55 ms | 1.94 ms |  |
    | sync | 96 |  |  | 1.86 ms | 12.0 ms | - | 15.2 ms |  |
    | log\_append depth=1 |  |  |  |  |  |  |  |  |
    | /var/tmp | 900 | ±2.7% | 3.69 | 31.1 µs ±2.1% | 184 µs ±6.0% | 238 µs | 261 µs | 5.20 µs |
    | write | 900 |  | 3.69 | 31.1 µs ±2.1% | 184 µs ±6.0% | 238 µs | 261 µs |  |
    | sync | 900 |  |  | 280 µs ±2.2% | 1.66 ms ±5.9% | 2.15 ms | 2.34 ms |  |

    - IOPS, MB/s (10^6 bytes) until the last request was complete; p50 ... max: from a request's start until its completion was taken; CPU/IO: processor time per request
    - p50, p99: the median of the repetitions that count, each with its own; p99.9, max: of all their requests together
    - load generator: io\_uring
    - 95 %: interval by Student t on logarithms, wide because the repetitions are few
    - no interval: a modelled figure is exact for its requests; another --seed draws others
    ");
}

#[test]
fn an_open_loop_says_how_late_it_was() {
    let one = open_loop("3fa85f6457", "/var/tmp", 1.0);
    assert_snapshot!(render_runs(&[one], ReportFormat::Table, 100), @r"
    random on /var/tmp, run 3fa85f6457
    host, O_DIRECT, ext4/4096 on vda (QEMU HARDDISK), 512 MiB, median of 3 repetitions

    program                  IOPS   95 %  MB/s           p50           p99   p99.9      max   CPU/IO
    ────────────────────────────────────────────────────────────────────────────────────────────────
    4 KiB random read, QD1,  2000  ±2.7%  8.19  121 µs ±2.6%  698 µs ±6.2%  906 µs  1.03 ms  5.20 µs
      2000/s

    IOPS, MB/s (10^6 bytes) until the last request was complete; p50 ... max: from a request's start
      until its completion was taken; CPU/IO: processor time per request
    p50, p99: the median of the repetitions that count, each with its own; p99.9, max: of all their
      requests together
    in open loop, a response counts from the intended issue of its request
    load generator: io_uring
    95 %: interval by Student t on logarithms, wide because the repetitions are few

    4 KiB random read, QD1, 2000/s: requests were issued 300 ns late at p99, 48.0 µs at most; 6 had
      arrived and were not complete at the end, so that the storage may not keep up with the rate
    ");
}

#[test]
fn a_comparison_has_the_slowest_beside_the_rate() {
    let two = [
        build_today26_run("3fa85f6457", "/var/tmp", 1.0),
        build_today26_run("8c01d77a20", "/mnt", 1.6),
    ];
    assert_snapshot!(render_comparison(&compare(&two), ReportFormat::Table, 100), @r"
    base: today26 on /var/tmp, run 3fa85f6457
    other: today26 on /mnt, run 8c01d77a20

    program                           base       other  ratio     99 %  verdict         base    other
                                IOPS (CPU)  IOPS (CPU)                                   p99      p99
    ─────────────────────────────────────────────────────────────────────────────────────────────────
    1 MiB sequential read, QD8    300 (0%)    480 (0%)  1.600  unknown  too few      17.3 ms  12.3 ms
                                                                        repetitions
    4 KiB random read, QD1       2000 (1%)   3200 (2%)  1.600  unknown  too few       577 µs   359 µs
                                                                        repetitions
    4 KiB random read, QD32      6000 (3%)   9600 (5%)  1.600  unknown  too few      2.15 ms  1.33 ms
                                                                        repetitions
    4 KiB random, 30 % writes,   6000 (3%)   9600 (5%)  1.600  unknown  too few      2.09 ms  1.32 ms
    QD16                                                                repetitions
    log_append depth=1            900 (0%)   1440 (1%)  1.600  unknown  too few       184 µs   117 µs
                                                                        repetitions

    ratio: other over base, of the medians; 99 %: its interval, for all rows together, by how far
      quarters of the runs, and earlier runs, differ
    p99: 99 % of the responses took at most this time; shown beside the rate, not judged
    unknown: the repetitions are too few for an interval
    too few repetitions: separate runs need 16 that count on each side for a verdict; use --runs 20
    `diskperf ab` measures both in turn, so that what disturbs meets both, and tells differences of a
      few percent
    ");
    let two = [
        open_loop("3fa85f6457", "/var/tmp", 1.0),
        open_loop("8c01d77a20", "/mnt", 0.5),
    ];
    assert_snapshot!(render_comparison(&compare(&two), ReportFormat::Table, 100), @r"
    base: random on /var/tmp, run 3fa85f6457
    other: random on /mnt, run 8c01d77a20

    program                                base    other  ratio     99 %  verdict
    ─────────────────────────────────────────────────────────────────────────────────────────
    4 KiB random read, QD1, 2000/s, p50  121 µs   241 µs  2.000  unknown  too few repetitions
      p99                                698 µs  1.40 ms  2.000  unknown  too few repetitions

    ratio: other over base, of the medians; 99 %: its interval, for all rows together, by how far
      quarters of the runs, and earlier runs, differ
    p50, p99: requests arrived by the clock, so that their responses are judged and not their rate; a
      ratio below 1 is faster
    unknown: the repetitions are too few for an interval
    too few repetitions: separate runs need 16 that count on each side for a verdict; use --runs 20
    `diskperf ab` measures both in turn, so that what disturbs meets both, and tells differences of a
      few percent
    ");
    assert_snapshot!(render_comparison(&compare(&two), ReportFormat::Csv, 0).replace("\r\n", "\n"), @r#"
    base,run,program,title,quantity,base_filesystem,filesystem,base_drives,drives,base_size_bytes,size_bytes,base_kept,kept,base_kb_per_s,kb_per_s,base_cpu_percent,cpu_percent,base_figure,figure,base_p99_us,p99_us,ratio,interval_low,interval_high,interval_confidence,interval_method,verdict,warnings
    3fa85f6457,8c01d77a20,random depth=1 rate_iops=2000,"4 KiB random read, QD1, 2000/s",response_p50_us,ext4/4096,ext4/4096,1,1,536870912,536870912,3,3,8000,8000,1.04,1.04,120.57500000000002,241.15099999999998,698.367,1396.735,2.000008293593199,,,,,too few repetitions,
    3fa85f6457,8c01d77a20,random depth=1 rate_iops=2000,"4 KiB random read, QD1, 2000/s",response_p99_us,ext4/4096,ext4/4096,1,1,536870912,536870912,3,3,8000,8000,1.04,1.04,698.367,1396.735,698.367,1396.735,2.0000014319118744,,,,,too few repetitions,
    "#);
}

#[test]
fn details_split_the_response_and_show_the_course() {
    let mut one = build_today26_run("3fa85f6457", "/var/tmp", 1.0);
    one.results.drain(..3);
    assert_snapshot!(render_details(&one, 100), @r"
    today26 on /var/tmp, run 3fa85f6457
    host, O_DIRECT, ext4/4096 on vda (QEMU HARDDISK), 512 MiB, median of 3 repetitions

    started 2026-11-21 01:00:00 UTC
    command line: diskperf run today26 --on /var/tmp
    diskperf 0.1.0, seed 1
    overhead: a read of /dev/null takes 95 ns, of which its timing 22 ns

    Environment
    kernel: Linux 6.1.0
    CPU: 2 x Xeon E-2288G, 8 GiB of memory, load average 0.42 at the start
    calls timed by: tsc
    place: /var/tmp
    file system: ext4 of 4096-byte blocks on /dev/vda1, mounted at /var (rw,relatime), 40 GiB of 100 GiB
      free
    device: vda: 128 GiB, QEMU HARDDISK, rotating, scheduler mq-deadline, read-ahead 128 KiB, cache:
      write back

    program             IOPS   95 %  MB/s            p50            p99    p99.9      max   CPU/IO
    ──────────────────────────────────────────────────────────────────────────────────────────────
    4 KiB random, 30 %  6000  ±2.7%  24.6   351 µs ±2.6%  2.09 ms ±6.4%  2.67 ms  3.38 ms  5.20 µs
      writes, QD16
      read              4200         17.2   351 µs ±2.9%  2.11 ms ±6.4%  2.72 ms  3.38 ms
      write             1800         7.37   350 µs ±2.5%  2.05 ms ±2.1%  2.57 ms  3.21 ms
      sync                58               3.27 ms ±7.0%  16.9 ms >±50%        -  22.6 ms
    log_append depth=1   900  ±2.7%  3.69  31.1 µs ±2.1%   184 µs ±6.0%   238 µs   261 µs  5.20 µs
      write              900         3.69  31.1 µs ±2.1%   184 µs ±6.0%   238 µs   261 µs
      sync               900                280 µs ±2.2%  1.66 ms ±5.9%  2.15 ms  2.34 ms

    IOPS, MB/s (10^6 bytes) until the last request was complete; p50 ... max: from a request's start
      until its completion was taken; CPU/IO: processor time per request
    p50, p99: the median of the repetitions that count, each with its own; p99.9, max: of all their
      requests together
    load generator: io_uring
    95 %: interval by Student t on logarithms, wide because the repetitions are few

    Response of a request; submit: of that, in the call that submitted
    program, operation                              requests           50 %           99 %   99.9 %
    ───────────────────────────────────────────────────────────────────────────────────────────────
    4 KiB random, 30 % writes, QD16, read              37848   351 µs ±2.9%  2.11 ms ±6.4%  2.72 ms
    4 KiB random, 30 % writes, QD16, read, submit      37848  1.10 µs ±0.0%  1.10 µs ±0.0%  1.10 µs
    4 KiB random, 30 % writes, QD16, write             16206   350 µs ±2.5%  2.05 ms ±2.1%  2.57 ms
    4 KiB random, 30 % writes, QD16, write, submit     16206  1.10 µs ±0.0%  1.10 µs ±0.0%  1.10 µs
    4 KiB random, 30 % writes, QD16, sync                516  3.27 ms ±7.0%  16.9 ms >±50%        -
    4 KiB random, 30 % writes, QD16, sync, submit        516  1.10 µs ±0.0%  1.10 µs ±0.0%        -
    log_append depth=1, write                           8103  31.1 µs ±2.1%   184 µs ±6.0%   238 µs
    log_append depth=1, write, submit                   8103  1.10 µs ±0.0%  1.10 µs ±0.0%  1.10 µs
    log_append depth=1, sync                            8103   280 µs ±2.2%  1.66 ms ±5.9%  2.15 ms
    log_append depth=1, sync, submit                    8103  1.10 µs ±0.0%  1.10 µs ±0.0%  1.10 µs

    program, operation                              99.99 %  longest     mean
    ─────────────────────────────────────────────────────────────────────────
    4 KiB random, 30 % writes, QD16, read           3.11 ms  3.38 ms   391 µs
    4 KiB random, 30 % writes, QD16, read, submit   1.10 µs  1.10 µs  1.10 µs
    4 KiB random, 30 % writes, QD16, write          2.87 ms  3.21 ms   386 µs
    4 KiB random, 30 % writes, QD16, write, submit  1.10 µs  1.10 µs  1.10 µs
    4 KiB random, 30 % writes, QD16, sync                 -  22.6 ms  3.53 ms
    4 KiB random, 30 % writes, QD16, sync, submit         -  1.10 µs  1.10 µs
    log_append depth=1, write                             -   261 µs  34.6 µs
    log_append depth=1, write, submit                     -  1.10 µs  1.10 µs
    log_append depth=1, sync                              -  2.34 ms   312 µs
    log_append depth=1, sync, submit                      -  1.10 µs  1.10 µs

    4 KiB random, 30 % writes, QD16: depth 16, 2 workers
    log_append depth=1: depth 1, 1 worker

    IOPS over time, scaled from min to max; `diskperf show --series` has them
    ███ 4 KiB random, 30 % writes, QD16
    ███ log_append depth=1

    Repetitions, the discarded ones in parentheses
    program                            KB/s (CPU)  durable  IOPS      p99  elapsed
                                                      KB/s
    ──────────────────────────────────────────────────────────────────────────────
    4 KiB random, 30 % writes, QD16 1  24000 (3%)    23944  6000  2.14 ms   3.00 s
    4 KiB random, 30 % writes, QD16 2  24288 (3%)    24231  6072  2.04 ms   3.00 s
    4 KiB random, 30 % writes, QD16 3  23784 (3%)    23729  5946  2.09 ms   3.00 s
    log_append depth=1 1                3600 (0%)     3592   900   184 µs   3.00 s
    log_append depth=1 2                3640 (0%)     3632   910   189 µs   3.00 s
    log_append depth=1 3                3564 (0%)     3556   891   182 µs   3.00 s

    program                                CPU     user   system  calls  waits  preempted  faults
                                                (ticks)  (ticks)
    ─────────────────────────────────────────────────────────────────────────────────────────────
    4 KiB random, 30 % writes, QD16 1  0.094 s  0.000 s  0.000 s  18174      0          0       0
    4 KiB random, 30 % writes, QD16 2  0.095 s  0.000 s  0.000 s  18390      0          0       0
    4 KiB random, 30 % writes, QD16 3  0.093 s  0.000 s  0.000 s  18006      0          0       0
    log_append depth=1 1               0.014 s  0.000 s  0.000 s   5400      0          0       0
    log_append depth=1 2               0.014 s  0.000 s  0.000 s   5460      0          0       0
    log_append depth=1 3               0.014 s  0.000 s  0.000 s   5346      0          0       0

    program                              from
                                       device
    ─────────────────────────────────────────
    4 KiB random, 30 % writes, QD16 1    100%
    4 KiB random, 30 % writes, QD16 2    100%
    4 KiB random, 30 % writes, QD16 3    100%
    log_append depth=1 1
    log_append depth=1 2
    log_append depth=1 3

    ▆█▅ 4 KiB random, 30 % writes, QD16
    ▆█▅ log_append depth=1
    ");
    one.results.truncate(1);
    assert_snapshot!(render_series(&[one], ReportFormat::Table, 100), @r"
    4 KiB random, 30 % writes, QD16: every 1.00 s of repetition 1
    at (s)  IOPS  MB/s      p99
    ─────────────────────────────────────────────────
         0  6000  24.6  2.21 ms  ████████████████████
         1  6000  24.6  2.02 ms  ████████████████████
         2  6000  24.6  2.18 ms  ████████████████████
    ");
}

/// The fields that a result has because of its requests, with what it is to them.
#[test]
fn the_fields_of_the_contract() {
    let one = build_today26_run("3fa85f6457", "/var/tmp", 1.0);
    let json: serde_json::Value = serde_json::from_str(&render_runs(
        std::slice::from_ref(&one),
        ReportFormat::Json,
        0,
    ))
    .unwrap();
    let result = &json["runs"][0]["results"][3];
    for (field, value) in [
        ("depth", 16.into()),
        ("workers", 2.into()),
        ("engine", serde_json::json!(["io_uring"])),
        ("unfinished", 0.into()),
        ("interval_s", 1.0.into()),
        ("series_of", 0.into()),
    ] {
        assert_eq!(result[field], value, "{field}");
    }
    let summary = ResultSummary::from_result(&one.results[3]);
    let load = summary.load.unwrap();
    assert_eq!(result["iops"], load.iops);
    assert_eq!(result["mb_per_s"], summary.kb_per_s * 1024.0 / 1e6);
    assert_eq!(
        result["iops_interval"]["low"],
        load.iops_interval.unwrap().min
    );
    assert_eq!(result["cpu_us_per_io"], 5.2);
    assert!((result["read_share"].as_f64().unwrap() - 0.7).abs() < 0.01);
    let names = |of: &serde_json::Value| {
        let names: Vec<String> = of.as_object().unwrap().keys().cloned().collect();
        names.join(" ")
    };
    assert_eq!(names(&result["latency"]), "read sync write");
    for part in ["response", "submit"] {
        assert_eq!(
            names(&result["latency"]["sync"][part]),
            "count max_us mean_us p50_interval p50_us p99_99_us p99_9_us p99_interval p99_us"
        );
    }
    let sync = &result["latency"]["sync"]["response"];
    assert!(
        sync["p99_us"].is_number() && sync["p99_9_us"].is_null(),
        "{sync}"
    );
    assert_eq!(names(&result["series"][0]), "at_s iops mb_per_s p99_us");
    let from_repetition = &result["repetitions"][1];
    assert_eq!(
        from_repetition["series"][2]["iops"],
        from_repetition["iops"]
    );
    // What has one call under way has nothing of all this.
    let ffs = serde_json::from_str::<serde_json::Value>(&render_runs(
        &[build_ffs83_run("8c01d77a20", "/mnt")],
        ReportFormat::Json,
        0,
    ));
    let ffs = &ffs.unwrap()["runs"][0]["results"][0];
    assert!(ffs["iops"].is_null() && ffs["repetitions"][0]["series"].is_null());
}

#[test]
fn the_csv_of_both_kinds_has_one_heading() {
    let mut both = build_today26_run("3fa85f6457", "/var/tmp", 1.0);
    both.results.push(build_ffs83_run("", "").results.remove(0));
    both.results[5].table_row = 9;
    let csv = render_runs(&[both.clone()], ReportFormat::Csv, 0).replace("\r\n", "\n");
    let fields: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let at = |name: &str| fields[0].iter().position(|one| *one == name).unwrap();
    assert!(fields.iter().all(|line| line.len() == fields[0].len()));
    assert_eq!(fields[2][at("iops")], "2000");
    assert_eq!(fields[4][at("sync_p99_9_us")], "");
    assert_eq!(fields[6][at("iops")], "");
    let series = render_series(&[both], ReportFormat::Csv, 0).replace("\r\n", "\n");
    let lines: Vec<&str> = series.lines().collect();
    assert_eq!(
        lines[0],
        "run,program,title,filesystem,repetition,at_s,iops,mb_per_s,p99_us"
    );
    assert_eq!(lines.len(), 1 + 5 * 3);
    let row = "3fa85f6457,random depth=1,\"4 KiB random read, QD1\",ext4/4096,0,1,2000,8.192,";
    assert!(lines[5].starts_with(row), "{}", lines[5]);
}

#[test]
fn lines_fit() {
    let two = [
        build_today26_run("3fa85f6457", "/var/tmp", 1.0),
        build_today26_run("8c01d77a20", "/mnt/a/rather/long/path/to/a/drive", 1.6),
    ];
    for width in [80, 100, 132] {
        let text = render_runs(&two, ReportFormat::Table, width)
            + &render_details(&two[0], width)
            + &render_series(&two, ReportFormat::Table, width)
            + &render_comparison(&compare(&two), ReportFormat::Table, width);
        for line in text.lines() {
            assert!(
                line.chars().count() <= usize::from(width),
                "{width}: {line}"
            );
        }
    }
}

/// A table of this many rows takes minutes where each row is compared with all others for
/// each title.
#[test]
fn a_table_has_a_line_for_each_of_thousands_of_programs() {
    const PROGRAMS: u32 = 1024;
    let mut one = READ_LOAD.build_result("random", 0);
    // Intervals of several repetitions take longer than the table.
    one.repetitions.truncate(1);
    let result = |row: u32| ProgramResult {
        program: format!("job{row:04}"),
        table_row: row,
        distinguishing: Vec::new(),
        ..one.clone()
    };
    let results = (0..PROGRAMS).map(result).collect();
    let text = render_runs(
        &[build_run("3fa85f6457", "jobs", "/var/tmp", results)],
        ReportFormat::Markdown,
        0,
    );
    let lines = text.lines().filter(|line| line.starts_with("| job"));
    assert_eq!(lines.count(), PROGRAMS as usize);
}
