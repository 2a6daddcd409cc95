//! Programs on the running kernel; skipped without the rights.

use super::*;
use crate::host::bpf::{find_program, tests::has_bpf_rights};
use diskperf_chains::History;
use diskperf_chains::event::EventKind;
use diskperf_chains::identity::{CallKind, ThreadId};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

#[test]
fn the_running_kernel_takes_every_program() {
    if has_bpf_rights("the_running_kernel_takes_every_program") {
        let recorder = KernelEventRecorder::load_programs(&[]).expect("root loads programs");
        assert_eq!(recorder.missing_tracepoints(), [""; 0]);
        assert_eq!(recorder.tracepoint_count(), RecordKind::ALL.len());
    }
}

/// A write and an fsync of this thread, between the calls of all other threads and processes.
#[test]
fn the_calls_of_a_thread_are_recorded_with_chains_that_sum_to_them() {
    if !has_bpf_rights("the_calls_of_a_thread_are_recorded_with_chains_that_sum_to_them") {
        return;
    }
    let path = std::env::temp_dir().join(format!("diskperf-events-{}", std::process::id()));
    let recorder = KernelEventRecorder::load_programs(&[]).expect("root loads programs");
    recorder.begin_recording().expect("programs attach");
    let mut file = std::fs::File::create(&path).expect("a file in the temporary folder");
    file.write_all(&[1; 4096]).expect("the file takes a page");
    file.sync_all().expect("the file is synced");
    let recording = recorder.end_recording();
    std::fs::remove_file(&path).expect("the file is removed");
    let recording = recording.expect("a recording was begun");
    let own = ThreadId(crate::host::current_thread());
    let history = History::from_recording(&recording);
    let calls: Vec<_> = history
        .operations()
        .iter()
        .filter(|call| call.thread == own)
        .collect();
    let kinds: Vec<CallKind> = calls.iter().map(|call| call.call).collect();
    // Detaching the programs closes files, which is seen up to its own end.
    assert!(
        kinds.starts_with(&[CallKind::Names, CallKind::Write, CallKind::Fsync]),
        "{kinds:?}"
    );
    for call in calls {
        let chain = history.explain_operation(call);
        assert_eq!(chain.duration(), call.end.since(call.start));
    }
    assert_eq!(recording.lost_event_count, 0);
    assert!(recorder.end_recording().is_none());
}

#[test]
fn a_second_recording_has_no_events_of_the_first() {
    if !has_bpf_rights("a_second_recording_has_no_events_of_the_first") {
        return;
    }
    let recorder = KernelEventRecorder::load_programs(&[]).expect("root loads programs");
    let record = || {
        recorder.begin_recording().expect("programs attach");
        std::thread::sleep(Duration::from_millis(5));
        let recording = recorder.end_recording();
        recording.expect("a recording was begun").events
    };
    let (first, second) = (record(), record());
    let is_switch = |kind: &EventKind| matches!(kind, EventKind::Switch { .. });
    assert!(
        first.iter().any(|event| is_switch(&event.kind)),
        "a sleep is a switch"
    );
    let (last, start) = (first.last().map(|event| event.time), second[0].time);
    assert!(
        last.is_some_and(|last| last <= start),
        "{last:?} is behind {start:?}"
    );
}

#[test]
fn a_recording_is_possible_after_a_program_was_refused() {
    if !has_bpf_rights("a_recording_is_possible_after_a_program_was_refused") {
        return;
    }
    let mut recorder = KernelEventRecorder::load_programs(&[]).expect("root loads programs");
    // Its program reads arguments that the end of a timer does not have.
    let right = std::mem::replace(&mut recorder.programs[0].kind, RecordKind::TimerExit);
    assert_eq!(right, RecordKind::Switch);
    recorder
        .begin_recording()
        .expect_err("the kernel refuses the program");
    recorder.programs[0].kind = right;
    recorder.begin_recording().expect("programs attach");
    std::thread::sleep(Duration::from_millis(5));
    let recording = recorder.end_recording();
    assert!(!recording.expect("a recording was begun").events.is_empty());
}

#[test]
fn another_namespace_of_tasks_is_told_from_the_first() {
    assert!(!has_kernel_task_numbers(Path::new("/proc/self/ns/mnt")));
    assert!(has_kernel_task_numbers(Path::new("/no/such/file")));
}

/// Program ids that [`programs_end_with_their_owner_however_it_ends`] reads from this test, which
/// holds the programs attached until it is killed.
#[test]
#[ignore = "it waits to be killed by another test"]
fn hold_programs_until_killed() {
    let recorder = KernelEventRecorder::load_programs(&[]).expect("root loads programs");
    recorder.begin_recording().expect("programs attach");
    let ids = recorder
        .programs
        .iter()
        .map(|one| one.program.id().expect("a number"));
    let ids: Vec<String> = ids.map(|id| id.to_string()).collect();
    println!("\nprograms {}", ids.join(" "));
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
fn programs_end_with_their_owner_however_it_ends() {
    if !has_bpf_rights("programs_end_with_their_owner_however_it_ends") {
        return;
    }
    let mut owner = Command::new(std::env::current_exe().expect("this test's program"))
        .args(["--ignored", "--nocapture", "--exact"])
        .arg("host::kernel_events::tests::hold_programs_until_killed")
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program starts again");
    let lines = BufReader::new(owner.stdout.take().expect("a pipe")).lines();
    let line = lines
        .map_while(Result::ok)
        .find(|line| line.starts_with("programs "));
    let line = line.expect("the owner says which programs it holds");
    let ids: Vec<u32> = line
        .split(' ')
        .skip(1)
        .map(|id| id.parse().expect("an id"))
        .collect();
    assert_eq!(ids.len(), RecordKind::ALL.len());
    assert!(
        ids.iter().all(|id| find_program(*id)),
        "they are in the kernel"
    );
    owner.kill().expect("the owner is killed");
    owner.wait().expect("the owner has ended");
    // The kernel frees programs after a grace period of its own.
    let mut held = ids;
    for _ in 0..500 {
        held.retain(|id| find_program(*id));
        if held.is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("programs {held:?} outlive their owner");
}
