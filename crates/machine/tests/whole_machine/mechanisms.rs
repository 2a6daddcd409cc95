//! What the kernel and the drives do, seen from outside by what they leave
//! behind: sectors written, stages booked, revolutions missed. These fail
//! when a step of the mechanism is left out, even one that costs little.

use super::*;
use diskperf_machine::{RunEndReason, SeekOrigin as Whence};
use diskperf_timeline::{Deadline, Stage};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

fn stage(machine: &Machine, stage: Stage) -> u64 {
    machine.statistics().stage_ns[stage.index()]
}

fn written(machine: &Machine) -> u64 {
    machine.statistics().drive_statistics[0].written_sectors
}

/// Writes to a file that is there, from its start or from a block of it on.
async fn write_at(session: &mut Session, path: &str, offset: usize, data: &[u8]) {
    let file = session.open_path(path, WRITE).await.expect("the file");
    let offset = offset as i64;
    session
        .lseek(file, offset, Whence::FileStart)
        .await
        .expect("a file");
    assert_eq!(session.write(file, data).await, Ok(data.len()));
    session.close(file).await.expect("it is open");
}

/// A millisecond for each KB of each new block, and of the indirect block that
/// the thirteenth needs; nothing for a block that is there.
#[test]
fn each_new_block_is_cleared_once() {
    let specification = fast(SC780, &[("host.clear_ms_per_kb", "1")]);
    for (blocks, cleared) in [(1, 1), (12, 12), (13, 14), (40, 41)] {
        let machine = machine(&specification);
        let clearing = run(&machine, async move |session| {
            let file = session
                .open_path("/mnt0/file", CREATE)
                .await
                .expect("a file");
            let mut clearing = Vec::new();
            for _ in 0..2 {
                session.open_account();
                session
                    .lseek(file, 0, Whence::FileStart)
                    .await
                    .expect("a file");
                for _ in 0..blocks {
                    assert_eq!(session.write(file, &[1; BLOCK]).await, Ok(BLOCK));
                }
                clearing.push(
                    session
                        .current_account()
                        .ledger
                        .stage_duration(Stage::Clear)
                        .0,
                );
            }
            session.close(file).await.expect("it is open");
            clearing
        });
        assert_eq!(clearing, [cleared * 8_000_000, 0], "{blocks} blocks");
    }
}

/// What a file had does not show in the file that gets its blocks.
#[test]
fn a_block_that_was_anothers_reads_as_zeroes() {
    let specification = fast(SC780, &[]);
    let machine = machine(&specification);
    run(&machine, async |session| {
        make(session, "/mnt0/old", 1).await
    });
    let old = sectors(&machine, &specification, 0);
    let contents = run(&machine, async |session| {
        session.unlink("/mnt0/old").await.expect("the file");
        session.flush_volume(0).await;
        let new = session
            .open_path("/mnt0/new", CREATE)
            .await
            .expect("a file");
        session.close(new).await.expect("it is open");
        write_at(session, "/mnt0/new", BLOCK - 1, &[9]).await;
        let new = session
            .open_path("/mnt0/new", READ)
            .await
            .expect("the file");
        let mut contents = vec![5; BLOCK];
        assert_eq!(session.read(new, &mut contents).await, Ok(BLOCK));
        contents
    });
    assert_eq!(sectors(&machine, &specification, 0), old, "the same block");
    assert!(contents[..BLOCK - 1].iter().all(|byte| *byte == 0));
    assert_eq!(contents[BLOCK - 1], 9);
}

/// Handlers' time is nobody's work: a program that computes is booked what it
/// asked for, and all beyond that is interrupts.
#[test]
fn interrupts_are_booked_as_such() {
    let machine = machine(&specification(SC780, &[]));
    let (account, elapsed) = run(&machine, async |session| {
        session.open_account();
        let from = session.current_time();
        session.consume_user_time(Time::from_millis(2000)).await;
        (session.current_account(), session.current_time() - from)
    });
    let booked = |stage| account.ledger.stage_duration(stage).0;
    assert_eq!(booked(Stage::User), 2_000_000_000);
    assert_eq!(booked(Stage::Interrupt), elapsed.0 - 2_000_000_000);
    assert!(
        booked(Stage::Interrupt) > 200 * 10_000,
        "{elapsed} for 200 ticks"
    );
}

/// A whole block goes out when it is written, a part of one stays.
#[test]
fn whole_blocks_go_out_at_once_and_parts_later() {
    let machine = machine(&fast(SC780, &[]));
    run(&machine, async |session| {
        make(session, "/mnt0/file", 6).await
    });
    let before = written(&machine);
    let write = |offset, bytes| {
        run(&machine, async move |session| {
            write_at(session, "/mnt0/file", offset, &vec![3; bytes]).await;
            let soon = session.current_time() + Time::from_millis(500);
            session.sleep_until(soon).await;
        });
        written(&machine) - before
    };
    assert_eq!(write(0, BLOCK / 2), 0);
    assert_eq!(write(BLOCK, 3 * BLOCK), 3 * 16);
    assert_eq!(write(4 * BLOCK, BLOCK - 1), 3 * 16);
}

/// An indirect block is on its drive, as zeroes, before anything points at it:
/// the call that needs it waits for that, though its own data stays behind.
#[test]
fn an_indirect_block_is_on_its_drive_before_the_call_returns() {
    let machine = machine(&fast(SC780, &[]));
    let calls = |blocks: std::ops::Range<usize>| {
        let before = written(&machine);
        let times = run(&machine, async move |session| {
            let mut times = Vec::new();
            for block in blocks {
                let from = session.current_time();
                write_at(session, "/mnt0/file", block * BLOCK, &[4; BLOCK / 2]).await;
                times.push(session.current_time() - from);
            }
            times
        });
        (written(&machine) - before, times)
    };
    run(&machine, async |session| {
        make(session, "/mnt0/file", 12).await
    });
    // A third of a revolution of 15 ms for the block of 16 sectors.
    let (sectors, times) = calls(12..13);
    assert_eq!(sectors, 16);
    assert!(times[0] > Time::from_millis(5), "{}", times[0]);
    let (sectors, times) = calls(13..15);
    assert_eq!(sectors, 0);
    assert!(
        times.iter().all(|time| *time < Time::from_millis(1)),
        "{times:?}"
    );
}

/// Two drives that always have work and never search: at each moment one has
/// the channel and the other waits for it, and that is booked as such.
#[test]
fn who_waits_for_the_channel_is_booked_so() {
    let settings = [
        ("host.memory_bytes", "268435456"),
        ("driver.position_window_sectors", "47"),
    ];
    let waited = |drives: usize| {
        let circumstances = RunConditions {
            volume_count: drives,
            ..RunConditions::default()
        };
        let machine = Machine::build(&fast(SC780, &settings), circumstances);
        let write = |blocks: usize| {
            let path = |drive: usize| format!("/mnt{drive}/file");
            let ends_at: Vec<_> = (0..drives)
                .map(|drive| {
                    start(&machine, drive, async move |session: &mut Session| {
                        make(session, &path(drive), blocks).await;
                        session.current_time()
                    })
                })
                .collect();
            machine.run_to_end().expect("the processes end");
            ends_at
                .iter()
                .map(|end| end.take().expect("it ended"))
                .max()
        };
        let elapsed = write(300).expect("processes");
        let waited = stage(&machine, Stage::ChannelWait) as f64;
        waited / elapsed.0 as f64
    };
    assert_eq!(waited(1), 0.0);
    let both = waited(2);
    assert!((0.8..1.001).contains(&both), "{both} of the time");
}

/// With no gap, each block of a cylinder comes by just before it is asked for:
/// one revolution each, and each is counted once.
#[test]
fn each_missed_revolution_is_counted_once() {
    let settings = [
        ("kernel.read_ahead_blocks", "0"),
        ("filesystem.rotdelay_ms", "0"),
    ];
    let specification = fast(SC750, &settings);
    let machine = machine(&specification);
    run(&machine, async |session| {
        make(session, "/mnt0/file", 300).await
    });
    let all = |machine: &Machine| {
        let deadlines = [Deadline::TransferCommand, Deadline::ReadAhead];
        let spans = deadlines.map(|deadline| stage(machine, Stage::MissedRevolution(deadline)));
        let missed = machine.statistics().drive_statistics[0].missed_revolution_count;
        (missed, spans.iter().sum::<u64>())
    };
    let before = all(&machine);
    run(&machine, async |session| read(session, "/mnt0/file").await);
    let after = all(&machine);
    let (missed, span) = (after.0 - before.0, (after.1 - before.1) as f64);
    let sectors = sectors(&machine, &specification, 0);
    let geometry = &specification.drives[0]
        .mechanism_specification()
        .expect("a disk")
        .mechanics
        .geometry;
    let follows = |pair: &&[u64]| {
        pair[1] == pair[0] + 16
            && geometry.locate_sector(pair[0]).cylinder == geometry.locate_sector(pair[1]).cylinder
    };
    let just_missed = sectors.windows(2).filter(follows).count() as u64;
    assert!(just_missed > 250, "{just_missed}");
    // None of the 300 blocks, and the indirect one, more than once.
    assert!(
        (just_missed..=301).contains(&missed),
        "{missed} for {just_missed} blocks"
    );
    let period = 60e9
        / specification.drives[0]
            .mechanism_specification()
            .expect("a disk")
            .revolutions_per_minute;
    let each = span / missed as f64 / period;
    assert!((0.99..1.0).contains(&each), "{each} revolutions each");
}

/// A sector that was late is lost: all of its transfer is done again.
#[test]
fn a_transfer_with_late_data_is_done_again() {
    let late = [
        "controller.data_late_per_sector",
        "controller.data_late_idle_share",
    ];
    let machine = machine(&fast(SC780, &[(late[0], "0.01"), (late[1], "1")]));
    run(&machine, async |session| {
        make(session, "/mnt0/file", 300).await;
        read(session, "/mnt0/file").await
    });
    let (drive, busy) = (
        machine.statistics().drive_statistics[0],
        machine.drive_busy_times()[0],
    );
    let needed = (drive.read_sectors + drive.written_sectors) * 512;
    // Of 16 sectors one or more are late in 15 % of the transfers that write: no
    // process runs here while one reads.
    let (written, repeated) = (
        drive.written_sectors / 16,
        busy.transfer_count - drive.request_count,
    );
    assert!(
        repeated * 100 > written * 10,
        "{repeated} repeated of {written} written"
    );
    assert!(
        busy.transferred_bytes > needed,
        "{} of {needed} bytes",
        busy.transferred_bytes
    );
    assert!(stage(&machine, Stage::MissedRevolution(Deadline::DataLate)) > 0);
}

/// A transfer that never succeeds is given up like hp.c does, and not tried for
/// ever.
#[test]
fn a_transfer_that_never_succeeds_halts_the_machine() {
    let late = [
        ("controller.data_late_per_sector", "1"),
        ("controller.data_late_idle_share", "1"),
    ];
    let machine = machine(&fast(SC780, &late));
    let ended = start(&machine, 0, async |session: &mut Session| {
        make(session, "/mnt0/file", 1).await
    });
    let standstill = machine.run_to_end().expect_err("no sector arrives in time");
    assert_eq!(ended.take(), None);
    let RunEndReason::HardError(error) = standstill else {
        panic!("{standstill}")
    };
    assert_eq!((error.drive, error.attempt_count), (0, 28));
    let again = machine.run_to_end().expect_err("it has halted");
    assert_eq!(again, RunEndReason::HardError(error));
}

/// Whoever runs a machine may end it in the middle of a system call.
#[test]
fn a_machine_is_stopped_at_a_tick() {
    let machine = machine(&fast(SC780, &[]));
    let ended = start(&machine, 0, async |session: &mut Session| {
        make(session, "/mnt0/file", 300).await
    });
    let stopped = machine.run_unless_stopped(&Arc::new(AtomicBool::new(true)));
    assert_eq!(stopped, Err(RunEndReason::StoppedByUser));
    assert_eq!(
        machine.run_to_end(),
        Err(RunEndReason::StoppedByUser),
        "for good"
    );
    assert_eq!(ended.take(), None);
    let tick = Time(1_000_000_000 / 100);
    assert_eq!(machine.current_time(), tick, "the first tick of 100 Hz");
}

#[test]
fn each_drive_turns_slower_than_the_one_before_it() {
    let circumstances = RunConditions {
        volume_count: 2,
        speed_difference_share: 0.01,
        ..RunConditions::default()
    };
    let machine = Machine::build(&fast(SC750, &[]), circumstances);
    for path in ["/mnt0/file", "/mnt1/file"] {
        run(&machine, async move |session| {
            make(session, path, 100).await
        });
    }
    let busy = machine.drive_busy_times();
    let per_byte =
        |drive: usize| busy[drive].transfer_time.0 as f64 / busy[drive].transferred_bytes as f64;
    let slower = per_byte(1) / per_byte(0);
    assert!((slower - 1.0 / 0.99).abs() < 1e-4, "{slower}");
}

/// While sectors pass, memory serves them first: who computes meanwhile loses
/// that share of its speed, for as long as they pass and no longer.
#[test]
fn data_that_moves_slows_who_computes() {
    let lost = |share: &str| {
        let settings = [
            ("host.memory_bytes", "268435456"),
            ("bus.memory_contention_share", share),
        ];
        let machine = machine(&fast(SC780, &settings));
        run(&machine, async |session| {
            make(session, "/mnt0/file", 200).await
        });
        let ledger = run(&machine, async |session| {
            write_at(session, "/mnt0/file", 0, &[1; 200 * BLOCK]).await;
            session.open_account();
            session.consume_user_time(Time::from_millis(5000)).await;
            session.current_account().ledger
        });
        let mb = (200 * BLOCK) as f64 / 1e6;
        ledger.stage_duration(Stage::MemoryContention).0 as f64 / 1e9 / mb
    };
    assert_eq!(lost("0"), 0.0);
    for (share, per_mb) in [("0.1", 0.1), ("0.3", 0.3)] {
        let lost = lost(share);
        assert!((lost / per_mb - 1.0).abs() < 0.02, "{lost} s for each MB");
    }
}

/// A driver that queues a request lets no interrupt of a disk in: the transfer
/// that ends meanwhile is seen to afterwards.
#[test]
fn a_driver_at_work_is_not_interrupted_by_its_disk() {
    // Queueing takes 30 ms, longer than any transfer; all else nothing.
    let settings = [
        ("host.speed", "300"),
        ("host.memory_bytes", "268435456"),
        ("driver.strategy_ms", "9000"),
    ];
    let specification = fast(SC750, &settings);
    let machine = machine(&specification);
    run(&machine, async |session| {
        make(session, "/mnt0/file", 100).await
    });
    let before = stage(&machine, Stage::Completion);
    run(&machine, async |session| {
        write_at(session, "/mnt0/file", 0, &[1; 100 * BLOCK]).await;
        session.flush_volume(0).await;
    });
    let mean_ms = (stage(&machine, Stage::Completion) - before) as f64 / 100.0 / 1e6;
    // 30 ms less a third of a revolution of 15 ms, and up to one of latency.
    assert!((8.0..25.0).contains(&mean_ms), "{mean_ms} ms");
}

/// Two files of two partitions of a drive, read at once: when each was read.
fn both_read(scan_from: &str) -> [f64; 2] {
    let specification = specification("sun3-cheetah-2344", &[("driver.scan_from", scan_from)]);
    let used = RunConditions {
        volume_count: 2,
        ..RunConditions::default()
    };
    let machine = Machine::build(&specification, used);
    run(&machine, async |session| {
        make(session, "/mnt0/file", 100).await;
        make(session, "/mnt1/file", 100).await;
    });
    let begin = machine.current_time();
    let readers = ["/mnt0/file", "/mnt1/file"]
        .map(|path| start(&machine, 0, async move |session| read(session, path).await));
    machine
        .run_to_end()
        .unwrap_or_else(|error| panic!("{error}"));
    readers.map(|reader| {
        let moments = reader.take().expect("it ended");
        (moments[moments.len() - 1] - begin).0 as f64 / 1e9
    })
}

/// A scan from where the heads are serves whoever goes on there before all others; one
/// from the first that waits lets two take turns, for which the heads go to and fro.
#[test]
fn where_the_scan_goes_up_from_decides_who_waits() {
    let [first, last] = sorted(both_read("active"));
    assert!(first < 0.6 * last, "{first} of {last} s");
    let [turn, about] = sorted(both_read("waiting"));
    assert!(turn > 0.9 * about, "{turn} of {about} s");
    assert!(
        about > last,
        "{about} s in turns, {last} s one after the other"
    );
}

fn sorted([a, b]: [f64; 2]) -> [f64; 2] {
    [a.min(b), a.max(b)]
}
