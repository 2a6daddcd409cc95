//! What the processor does to the rate. These fail when its time hides behind
//! the drive's where it cannot, or costs anything but whole revolutions where
//! it does.

use super::*;

/// When each block of a file of 300 was read, one by one.
fn moments(specification: &MachineSpecification) -> Vec<Time> {
    let machine = machine(specification);
    run(&machine, async |session| {
        make(session, "/mnt0/file", 300).await;
        read(session, "/mnt0/file").await
    })
}

fn elapsed(moments: &[Time]) -> f64 {
    (moments[moments.len() - 1] - moments[0]).as_seconds()
}

/// The drive does not care how late a request is: the block comes by every
/// revolution. From block to block it is the spacing and so many revolutions,
/// whatever the processor costs.
#[test]
fn a_slow_processor_loses_whole_revolutions() {
    let mut lost = Vec::new();
    for speed in ["100", "4", "1", "0.6", "0.3"] {
        // Clock ticks and the contention for memory move the end of a call by
        // tenths of a millisecond; neither is what this is about.
        let settings = [
            ("host.speed", speed),
            ("host.copy_ms_per_kb", "0.1"),
            ("kernel.clock_tick_ms", "0"),
            ("kernel.soft_clock_ms", "0"),
            ("kernel.read_ahead_blocks", "0"),
            ("bus.memory_contention_share", "0"),
        ];
        let specification = specification(SC750, &settings);
        let moments = moments(&specification);
        let period = 60e9
            / specification.drives[0]
                .mechanism_specification()
                .expect("a disk")
                .revolutions_per_minute;
        let sectors = {
            let machine = machine(&specification);
            run(&machine, async |session| {
                make(session, "/mnt0/file", 300).await
            });
            sectors(&machine, &specification, 0)
        };
        let geometry = &specification.drives[0]
            .mechanism_specification()
            .expect("a disk")
            .mechanics
            .geometry;
        let (mut blocks, mut revolutions) = (0, 0.0);
        for block in (1..300).filter(|block| *block != 12) {
            let cylinder = |block: usize| geometry.locate_sector(sectors[block]).cylinder;
            if sectors[block] != sectors[block - 1] + 32 || cylinder(block) != cylinder(block - 1) {
                continue;
            }
            let turned = (moments[block] - moments[block - 1]).0 as f64 / period;
            let beyond = turned - 32.0 / 48.0;
            assert!(
                (beyond - beyond.round()).abs() < 0.01 && beyond > -0.01,
                "speed {speed}, block {block}: {turned} revolutions"
            );
            blocks += 1;
            revolutions += beyond.round();
        }
        lost.push(revolutions / f64::from(blocks));
    }
    assert!(
        lost.is_sorted(),
        "a slower processor loses no less: {lost:?}"
    );
    assert_eq!(lost[0], 0.0, "a fast one loses nothing");
    assert!(lost[4] >= 1.0, "a very slow one never is in time: {lost:?}");
}

#[test]
fn reading_ahead_hides_the_processor_behind_the_drive() {
    let rate = |blocks: &str, speed: &str| {
        let settings = [("kernel.read_ahead_blocks", blocks), ("host.speed", speed)];
        elapsed(&moments(&specification(SC750, &settings)))
    };
    // The copy to the user alone is longer than the gap of 5 ms: without
    // reading ahead each block is missed; with it, the drive has its next
    // request before the copy.
    let (alone, ahead) = (rate("0", "2"), rate("1", "2"));
    assert!(alone > ahead * 1.2, "{alone} and {ahead} s");
}

#[test]
fn a_cost_slows_what_waits_for_the_processor() {
    let write = |settings: &[(&str, &str)]| {
        let machine = machine(&specification(SC780, settings));
        run(&machine, async |session| {
            let from = session.current_time();
            make(session, "/mnt0/file", 256).await;
            session.current_time() - from
        })
    };
    // A processor that is the limit, and that nothing else takes time from: a
    // millisecond more for each of 256 blocks is that much longer.
    let base = [
        ("host.speed", "0.1"),
        ("kernel.clock_tick_ms", "0"),
        ("kernel.soft_clock_ms", "0"),
        ("bus.memory_contention_share", "0"),
    ];
    let slow = |key, value| write(&[&base[..], &[(key, value)]].concat());
    let before = slow("kernel.allocate_ms", "1");
    let after = slow("kernel.allocate_ms", "6");
    let added = (after - before).as_seconds();
    let expected = 256.0 * 0.005 / 0.1;
    assert!(
        (added / expected - 1.0).abs() < 0.1,
        "{added} of {expected} s"
    );
    // What moves bytes costs by the byte, whatever the processor's speed.
    let before = slow("host.copy_ms_per_kb", "3");
    let after = slow("host.copy_ms_per_kb", "5");
    let added = (after - before).as_seconds();
    let expected = 256.0 * 8.0 * 0.002;
    assert!(
        (added / expected - 1.0).abs() < 0.1,
        "{added} of {expected} s"
    );
}

#[test]
fn the_clock_charges_who_has_the_processor_and_nobody_else() {
    let machine = machine(&specification(SC780, &[]));
    let (computing, sleeping) = run(&machine, async |session| {
        session.open_account();
        session.consume_user_time(Time::from_millis(2000)).await;
        let computing = (session.current_account(), session.current_time());
        session.open_account();
        let from = session.current_time();
        session.sleep_until(from + Time::from_millis(2000)).await;
        (computing, session.current_account())
    });
    let (account, ended) = computing;
    // Every tick found it, and the interrupts of the clock are its time, too.
    let ticks = ended.0 / 10_000_000;
    assert!(
        account.user_cpu_time.0.abs_diff(ticks * 10_000_000) <= 10_000_000,
        "{}",
        account.user_cpu_time
    );
    assert_eq!(account.system_cpu_time, Time::ZERO);
    assert!(
        ended > Time::from_millis(2000),
        "interrupts came in between"
    );
    assert_eq!(
        (sleeping.user_cpu_time, sleeping.system_cpu_time),
        (Time::ZERO, Time::ZERO)
    );
}

#[test]
fn interrupts_while_the_processor_idles_charge_nobody() {
    let settings = [("host.speed", "1000"), ("kernel.interrupt_ms", "3000")];
    let machine = machine(&fast(SC780, &settings));
    // Each interrupt takes 3 ms, all of it while the process waits for the
    // block; the process itself costs nothing.
    let account = run(&machine, async |session| {
        make(session, "/mnt0/file", 200).await;
        session
            .drop_cached_blocks("/mnt0/file")
            .await
            .expect("the file");
        session.open_account();
        let file = session
            .open_path("/mnt0/file", READ)
            .await
            .expect("the file");
        while session.read(file, &mut [0; BLOCK]).await.expect("a read") > 0 {}
        session.current_account()
    });
    let charged = account.user_cpu_time + account.system_cpu_time;
    let share = charged.0 as f64 / account.ledger.total_duration().0 as f64;
    assert!(share < 0.02, "{share} of the time was charged");
    let (_, in_handlers) = machine.processor_busy_times();
    assert!(
        in_handlers > Time::from_millis(400),
        "{in_handlers} in handlers"
    );
}
