//! What ext4 does by itself: commits, the flusher, and checkpoints of a full journal.

use crate::notation::{core, device, ext4, prepare, run};
use diskperf_linux::request_list::describe_bios;
use diskperf_linux::stack::Stack;
use diskperf_linux::version::KernelVersion;

#[test]
fn a_transaction_is_committed_at_the_age_that_the_mount_says() {
    for (mount, seconds) in [("commit=1", 1.0), ("", 5.0), ("commit=15", 15.0)] {
        let mut stack = ext4(KernelVersion::V6_18, device(), "", mount);
        prepare(&mut stack, &["open d f creat", "pwrite d 0 4096"]);
        run(&mut stack, "pwrite d 0 4096");
        run(&mut stack, "fdatasync d");
        let start_ns = stack.now_ns();
        let mut age = 0.0;
        loop {
            let effects = stack_step(&mut stack);
            if !core(&stack, &effects).is_empty() {
                break;
            }
            age = (stack.now_ns() - start_ns) as f64 / 1e9;
            assert!(age < seconds + 2.0, "{mount}: no commit until {age} s");
        }
        assert!(age >= seconds - 0.2, "{mount}: committed after {age} s");
    }
}

/// A tenth of a second passes.
fn stack_step(stack: &mut Stack) -> diskperf_linux::effect::Effects {
    stack.sleep(100_000_000).expect("time passes")
}

/// Seconds after the start at which something reaches the device in an idle system, with the first
/// entry of each.
fn idle_events(stack: &mut Stack, seconds: u32) -> Vec<(f64, String)> {
    let start_ns = stack.now_ns();
    let mut events = Vec::new();
    for _ in 0..seconds * 10 {
        let effects = stack.sleep(100_000_000).expect("time passes");
        let list = describe_bios(effects.bios(), |file| stack.label(file));
        if let Some(first) = list.first() {
            let age = (stack.now_ns() - start_ns) as f64 / 1e9;
            events.push((age, first.split('+').next().unwrap_or_default().to_owned()));
        }
    }
    events
}

#[test]
fn dirty_data_and_metadata_go_out_by_themselves_when_they_are_old() {
    // Expectation 34: 40 MiB, then nothing. The commit of the creation comes first, then the data;
    // its metadata is old five seconds later.
    let mut stack = ext4(KernelVersion::V6_18, device(), "", "");
    run(&mut stack, "open d f creat");
    run(&mut stack, "pwrite d 0 41943040");
    let events = idle_events(&mut stack, 80);
    let names: Vec<&str> = events.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(names[0], "M jsb 4 sm");
    assert!((5.0..6.2).contains(&events[0].0), "{events:?}");
    assert_eq!(names[1], "W f 0");
    assert!((30.0..35.2).contains(&events[1].0), "{events:?}");
    let home = events
        .iter()
        .find(|(_, name)| name.starts_with("M ") && !name.contains("jsb"));
    let home = home.expect("metadata goes home");
    assert!((35.0..42.0).contains(&home.0), "{events:?}");
}

#[test]
fn a_device_without_history_gets_all_data_at_the_first_wake_before_6_12() {
    for (version, range) in [
        (KernelVersion::V6_1, 5.0..5.3),
        (KernelVersion::V6_18, 30.0..35.2),
    ] {
        let mut stack = ext4(version, device(), "", "");
        run(&mut stack, "open d f creat");
        run(&mut stack, "pwrite d 0 4194304");
        let events = idle_events(&mut stack, 40);
        let data = events
            .iter()
            .find(|(_, name)| name == "W f 0")
            .expect("data goes out");
        assert!(range.contains(&data.0), "{}: {events:?}", version.name());
    }
}

#[test]
fn a_full_journal_is_checkpointed_and_then_its_tail_moves_by_thirds() {
    // Expectation 139: each commit takes 5 of the journal's 4096 blocks.
    let mut stack = ext4(KernelVersion::V6_18, device(), "", "");
    run(&mut stack, "open d f creat");
    let mut checkpoints = Vec::new();
    let mut tails = Vec::new();
    for commit in 1..=1400_u64 {
        for text in [
            format!("pwrite d {} 4096", commit * 4096),
            "fsync d".to_owned(),
        ] {
            stack.sleep(4_000_000).expect("time passes");
            let effects = stack
                .run(&crate::notation::operation(&text))
                .expect("it runs");
            let list = describe_bios(effects.bios(), |file| stack.label(file));
            let has = |text: &str| list.iter().any(|entry| entry.starts_with(text));
            if has("M dir") {
                checkpoints.push(commit);
            }
            if has("M jsb 4 fsm") && !has("M dir") {
                tails.push(commit);
            }
        }
    }
    assert_eq!(checkpoints.len(), 1, "{checkpoints:?}");
    assert!((539..=542).contains(&checkpoints[0]), "{checkpoints:?}");
    assert!(
        tails.windows(2).all(|pair| pair[1] - pair[0] == 273),
        "{tails:?}"
    );
    assert_eq!(tails.len(), 3, "{tails:?}");
}
