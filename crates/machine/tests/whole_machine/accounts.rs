//! Time and bytes are conserved. These fail when anything is booked twice or
//! not at all, when a daemon does not come, and when a limit limits nothing.

use super::*;
use diskperf_sim::RandomStreams;
use diskperf_timeline::Stage;

/// Writes, rewrites and reads a file, each with an account of its own.
async fn programs(session: &mut Session, path: &str, calls: usize) {
    for pass in 0..3 {
        session.open_account();
        let from = session.current_time();
        let how = [CREATE, WRITE, READ][pass];
        let file = session.open_path(path, how).await.expect("the file");
        let mut data = [1; BLOCK];
        for _ in 0..calls {
            let moved = if how.read {
                session.read(file, &mut data).await
            } else {
                session.write(file, &data).await
            };
            assert_eq!(moved, Ok(BLOCK));
        }
        session.close(file).await.expect("it is open");
        let account = session.current_account();
        assert_eq!(
            account.ledger.total_duration().0,
            (session.current_time() - from).0
        );
        assert!(
            account.user_cpu_time + account.system_cpu_time
                <= session.current_time() - from + Time(10_000_000)
        );
    }
}

#[test]
fn the_ledger_sums_to_the_time_that_passed() {
    for system in [SC780, SC750, UDA50, "vax780-si9900-eagle"] {
        let specification = specification(system, &[("filesystem.block_bytes", "4096")]);
        let circumstances = RunConditions {
            volume_count: 2,
            phase_step: 1 << 29,
            speed_difference_share: 0.003,
            ..RunConditions::default()
        };
        let machine = Machine::build(&specification, circumstances);
        for drive in 0..2 {
            start(&machine, drive, async move |session: &mut Session| {
                programs(session, &format!("/mnt{drive}/file"), 128).await;
            });
        }
        machine.run_to_end().expect("the processes end");
        machine.check_file_system(0).expect("a sound file system");
        machine.check_file_system(1).expect("a sound file system");
    }
}

#[test]
fn requests_and_drives_are_busy_for_what_they_were() {
    for system in [SC780, UDA50] {
        let specification = specification(system, &[]);
        let machine = machine(&specification);
        run(&machine, async |session| {
            make(session, "/mnt0/file", 500).await;
            read(session, "/mnt0/file").await;
            session.flush_volume(0).await;
        });
        let (statistics, busy) = (machine.statistics(), machine.drive_busy_times()[0]);
        let drive = statistics.drive_statistics[0];
        // Bytes in are bytes out, at the drive as at the kernel.
        let sectors = drive.read_sectors + drive.written_sectors;
        assert_eq!(
            (busy.transfer_count, busy.transferred_bytes),
            (drive.request_count, sectors * 512)
        );
        assert!(drive.read_sectors >= 500 * 16 && drive.read_sectors < 500 * 16 + 400);
        assert!(drive.written_sectors >= 500 * 16 && drive.written_sectors < 500 * 16 + 400);
        // Every sector passes under the heads once, at the spindle's speed.
        let period = 60e9
            / specification.drives[0]
                .mechanism_specification()
                .expect("a disk")
                .revolutions_per_minute;
        let slots = f64::from(
            specification.drives[0]
                .mechanism_specification()
                .expect("a disk")
                .mechanics
                .geometry
                .slots_per_track(0),
        );
        let media = sectors as f64 / slots * period;
        let transfer = busy.transfer_time.0 as f64;
        assert!(
            (transfer / media - 1.0).abs() < 1e-3,
            "{transfer} of {media} ns"
        );
        // The spans of all requests are their times, to the nanosecond.
        assert_eq!(
            statistics.stage_ns.iter().sum::<u64>(),
            drive.response_time_total.0
        );
        let all = busy.positioning_time + busy.rotational_latency_time + busy.transfer_time;
        assert!(all <= machine.current_time(), "one thing at a time");
        // Blocks of the Eagle lie within a cylinder, so that arms only move
        // before them; some of the RA81's do not.
        let seeks = statistics.stage_ns[Stage::Seek.index()];
        if system == SC780 {
            assert_eq!(
                seeks, busy.positioning_time.0,
                "arms move for requests and nothing else"
            );
        } else {
            assert!(seeks <= busy.positioning_time.0);
        }
    }
}

/// Little's law: with a reader that has one request at a time, the mean
/// number under way is the share of the time that it waits; with a writer
/// that fills the cache, it is the cache.
#[test]
fn what_is_under_way_is_rate_by_response() {
    let under_way = |settings: &[(&str, &str)], writes: bool| {
        let machine = machine(&fast(SC780, settings));
        run(&machine, async |session| {
            make(session, "/mnt0/file", 1024).await
        });
        let before = (
            machine.current_time(),
            machine.statistics().drive_statistics[0].response_time_total,
        );
        run(&machine, async move |session| {
            if writes {
                make(session, "/mnt0/other", 1024).await;
            } else {
                read(session, "/mnt0/file").await;
            }
        });
        let after = machine.statistics().drive_statistics[0].response_time_total;
        (after - before.1).0 as f64 / (machine.current_time() - before.0).0 as f64
    };
    let reader = under_way(&[("kernel.read_ahead_blocks", "0")], false);
    assert!((0.99..1.0001).contains(&reader), "{reader}");
    let ahead = under_way(&[], false);
    assert!(
        (1.8..2.0001).contains(&ahead),
        "{ahead}: one that it waits for, one ahead"
    );
    // 4 MB times a tenth are 51 blocks of 8 KB; whenever the writer has to
    // have a map again, all of them go out before it goes on.
    let cache = |share| {
        under_way(
            &[
                ("host.memory_bytes", "4194304"),
                ("kernel.buffer_cache_share", share),
            ],
            true,
        )
    };
    let (once, twice) = (cache("0.1"), cache("0.2"));
    assert!((20.0..51.3).contains(&once), "{once}");
    assert!((1.6..2.4).contains(&(twice / once)), "{twice} and {once}");
}

#[test]
fn a_full_cache_makes_the_writer_wait() {
    let write = |memory_bytes: &str| {
        let settings = [("host.memory_bytes", memory_bytes)];
        let machine = machine(&fast(SC780, &settings));
        run(&machine, async |session| {
            session.open_account();
            let file = session
                .open_path("/mnt0/file", CREATE)
                .await
                .expect("a new file");
            for _ in 0..200 {
                assert_eq!(session.write(file, &[1; BLOCK]).await, Ok(BLOCK));
            }
            let ledger = session.current_account().ledger;
            (
                ledger.stage_duration(Stage::BufferWait).0,
                ledger.total_duration().0,
            )
        })
    };
    // What 51 buffers do not hold has to go out first, in blocks of two
    // thirds of a revolution each.
    let (waited, elapsed) = write("4194304");
    assert!(waited > 0);
    assert!(elapsed > (200 - 51) * 10_000_000, "{elapsed} ns");
    // A cache of 6 MB holds the whole file.
    let (waited, shorter) = write("67108864");
    assert_eq!(waited, 0);
    assert!(shorter * 3 < elapsed, "{shorter} and {elapsed} ns");
}

#[test]
fn update_comes_every_interval_and_not_before() {
    let machine = machine(&fast(SC780, &[("kernel.update_interval_s", "30")]));
    let written = |machine: &Machine| machine.statistics().drive_statistics[0].written_sectors;
    let until = |machine: &Machine, ms: u64| {
        run(machine, async move |session| {
            session.sleep_until(Time::from_millis(ms)).await
        });
    };
    // Half a block stays in the cache.
    let file = run(&machine, async |session| {
        let file = session
            .open_path("/mnt0/file", CREATE)
            .await
            .expect("a new file");
        session
            .write(file, &[1; 4096])
            .await
            .expect("there is room");
        session.close(file).await
    });
    file.expect("it was open");
    let at_first = written(&machine);
    until(&machine, 29_900);
    assert_eq!(written(&machine), at_first, "before update came");
    until(&machine, 31_000);
    let after = written(&machine);
    assert!(
        after >= at_first + 8,
        "{after}: what was delayed has gone out"
    );
    // Nothing is left, so the next rounds have nothing to write.
    until(&machine, 95_000);
    assert_eq!(written(&machine), after);
    let late = run(&machine, async |session| {
        let file = session
            .open_path("/mnt0/file", WRITE)
            .await
            .expect("the file");
        session
            .write(file, &[2; 4096])
            .await
            .expect("there is room");
        session.close(file).await
    });
    late.expect("it was open");
    until(&machine, 119_000);
    assert_eq!(written(&machine), after);
    until(&machine, 121_000);
    assert!(written(&machine) > after, "the fourth round");
}

#[test]
fn two_drives_at_once_keep_their_own_data() {
    for system in [SC780, SC750, UDA50] {
        let circumstances = RunConditions {
            volume_count: 2,
            ..RunConditions::default()
        };
        let machine = Machine::build(&specification(system, &[]), circumstances);
        let starts: Vec<_> = (0..2)
            .map(|drive| {
                start(&machine, drive, async move |session: &mut Session| {
                    random_data(session, &format!("/mnt{drive}/file")).await
                })
            })
            .collect();
        machine.run_to_end().expect("the processes end");
        for result in starts {
            assert_eq!(result.take(), Some(64 * 6000));
        }
        machine.check_file_system(0).expect("a sound file system");
        machine.check_file_system(1).expect("a sound file system");
    }
}

/// Writes random data in pieces that fit no block, and reads them back from
/// the drive; how many bytes were right.
async fn random_data(session: &mut Session, path: &str) -> usize {
    let pieces = || {
        let mut random = RandomStreams::new(5).named_stream(path);
        (0..64).map(move |_| -> Vec<u8> { (0..6000).map(|_| random.draw_bits() as u8).collect() })
    };
    let file = session.open_path(path, CREATE).await.expect("a new file");
    for piece in pieces() {
        assert_eq!(session.write(file, &piece).await, Ok(6000));
    }
    session.close(file).await.expect("it is open");
    session.drop_cached_blocks(path).await.expect("the file");
    let file = session.open_path(path, READ).await.expect("the file");
    let mut right = 0;
    for piece in pieces() {
        let mut into = vec![0; 6000];
        assert_eq!(session.read(file, &mut into).await, Ok(6000));
        right += into
            .iter()
            .zip(&piece)
            .filter(|(one, other)| one == other)
            .count();
    }
    assert_eq!(
        session.read(file, &mut [0; 1]).await,
        Ok(0),
        "the end of the file"
    );
    right
}
