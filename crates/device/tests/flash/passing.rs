//! Reads that pass a die while something keeps it, as is supposed of them: on the drive of
//! facts 7, where a read alone takes 54.096.

use super::*;
use diskperf_device::WhatIf;
use diskperf_spans::{DieBusy, Stage};

const EXACT_US: f64 = 0.001;

/// The drive, all of it written in order.
fn written() -> FlashSpecification {
    let mut specification = toy();
    specification.translation.precondition = PreconditionState::Sequential;
    specification.translation.filled_share = 64;
    specification
}

fn passing(specification: &FlashSpecification, wait: Stage) -> Drive {
    let device = new_host(specification).device().clone();
    Drive::new(device.with_what_if(WhatIf {
        bypassed_stage: Some(wait),
        ..WhatIf::default()
    }))
}

fn are(found: &[f64], expected: &[f64]) {
    for (one, other) in found.iter().zip(expected) {
        assert!((one - other).abs() < EXACT_US, "{found:?}: {expected:?}");
    }
}

/// Facts 7.7: without a suspension, the read ends at 558.192.
#[test]
fn a_read_passes_a_program_which_takes_as_long_as_before() {
    let script = [(0.0, WRITE, 0, 1), (100.0, READ, 1, 1)];
    let specification = written();
    are(
        &ends_of(&mut new_host(&specification), &script),
        &[504.096, 558.192],
    );
    let mut host = passing(&specification, Stage::DieWait(DieBusy::Program));
    are(&ends_of(&mut host, &script), &[504.096, 154.096]);
    // What it does not pass, it waits for.
    let mut host = passing(&specification, Stage::DieWait(DieBusy::Erase));
    are(&ends_of(&mut host, &script), &[504.096, 558.192]);
}

/// Facts 7.8: with a suspension, the read waits 20, and the program ends at 563.192.
#[test]
fn a_read_does_not_wait_until_a_program_stands_still() {
    let script = [(0.0, WRITE, 0, 1), (100.0, READ, 1, 1)];
    let mut specification = written();
    specification.suspension = suspending(8);
    are(
        &ends_of(&mut new_host(&specification), &script),
        &[563.192, 174.096],
    );
    let mut host = passing(&specification, Stage::DieWait(DieBusy::Suspension));
    let found = ends_of(&mut host, &script);
    are(&found[1..], &[154.096]);
}

/// Of two dies on one channel, whose reads end together: the second waits 4.096 until the
/// first has crossed.
#[test]
fn reads_cross_beside_what_a_channel_carries() {
    let script = [(0.0, READ, 0, 1), (0.0, READ, 1, 1)];
    let mut specification = written();
    specification.geometry.dies_per_channel = 2;
    let mut host = new_host(&specification);
    are(&ends_of(&mut host, &script), &[54.096, 58.192]);
    let mut host = passing(&specification, Stage::ChannelWait);
    are(&ends_of(&mut host, &script), &[54.096, 54.096]);
    let mut host = passing(&specification, Stage::DieWait(DieBusy::Read));
    are(&ends_of(&mut host, &script), &[54.096, 58.192]);
}

/// Three of one die: where it senses all planes at once and the first keeps it, the third does
/// not wait until the second, which is nobody's any more, is sensed.
#[test]
fn all_reads_pass_and_not_only_the_next() {
    let script = [(0.0, READ, 1, 1), (0.0, READ, 2, 1), (0.0, READ, 3, 1)];
    let mut specification = written();
    for independent in [false, true] {
        specification.has_independent_planes = independent;
        let mut host = passing(&specification, Stage::DieWait(DieBusy::Read));
        are(&ends_of(&mut host, &script), &[54.096, 58.192, 62.288]);
    }
}

/// Of a link that takes 10 for each: the second waits until the first has crossed.
#[test]
fn data_cross_a_link_beside_others() {
    let script = [(0.0, READ, 0, 1), (0.0, READ, 1, 1)];
    let mut specification = written();
    specification.geometry.channel_count = 2;
    specification.interface.link.read_bytes_per_s = 409.6e6;
    let mut host = new_host(&specification);
    are(&ends_of(&mut host, &script), &[64.096, 74.096]);
    let mut host = passing(&specification, Stage::BusWait);
    are(&ends_of(&mut host, &script), &[64.096, 64.096]);
}

/// Commands that the controller works on for 10 each: none waits for those before.
#[test]
fn commands_are_worked_on_beside_others() {
    let script = [(0.0, READ, 0, 1), (0.0, READ, 1, 1)];
    let mut specification = written();
    specification.geometry.dies_per_channel = 2;
    specification.interface.command_time = us(10.0);
    let mut host = new_host(&specification);
    are(&ends_of(&mut host, &script), &[54.096, 64.096]);
    let mut host = passing(&specification, Stage::ControllerQueue);
    are(&ends_of(&mut host, &script), &[54.096, 58.192]);
}

/// Facts 7.2: the second of two ends at 108.192. A third, which comes while they keep the
/// die, finds it as busy as before where it does not pass.
#[test]
fn reads_pass_reads_which_keep_the_die_as_before() {
    let script = [(0.0, READ, 1, 1), (0.0, READ, 2, 1)];
    let specification = written();
    let mut host = passing(&specification, Stage::DieWait(DieBusy::Read));
    // Their transfers follow each other.
    are(&ends_of(&mut host, &script), &[54.096, 58.192]);
    let with_write = [(0.0, READ, 1, 1), (0.0, READ, 2, 1), (1.0, WRITE, 0, 1)];
    let as_it_is = ends_of(&mut new_host(&specification), &with_write)[2];
    let mut host = passing(&specification, Stage::DieWait(DieBusy::Read));
    let passed = ends_of(&mut host, &with_write)[2];
    // Nothing is transferred for the read that was passed.
    assert!(
        (as_it_is - passed).abs() <= 4.1 + EXACT_US,
        "{as_it_is}: {passed}"
    );
}
