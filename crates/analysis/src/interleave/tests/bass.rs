//! What Bass says, sentence by sentence, worked out by hand.

use super::*;

/// The lattice's resolution.
const NEAR: f64 = 2e-4;

fn near(found: f64, expected: f64) {
    let error = (found - expected).abs() / expected.abs().max(1.0);
    assert!(error < NEAR, "{found}, not {expected}");
}

#[test]
fn a_service_that_takes_no_time_needs_no_interleave() {
    for sectors in [16, 17] {
        let mut inputs = small_drive();
        inputs.track.sectors_per_track = sectors;
        let found = calculated(&inputs);
        assert_eq!(found.uninterrupted_factor, 1);
        assert_eq!(found.recommended_factor.factor, 1);
        assert_eq!(found.recommended_factor.missed_share, 0.0);
        // Every sector of a revolution: 60 tracks a second.
        near(
            found.recommended_factor.kb_per_s,
            60.0 * f64::from(sectors) / 2.0,
        );
        assert_eq!(found.limiting_cost, LimitingCost::Service);
        assert_eq!(found.factor_results.len(), 4, "three rows after the best");
    }
}

#[test]
fn the_factor_is_the_interlace_time_in_sectors_and_one() {
    for (sectors, factor) in [
        (0.5, 2),
        (1.0, 2),
        (1.5, 3),
        (2.0, 3),
        (2.01, 4),
        (14.5, 16),
    ] {
        let found = calculated(&inputs_with_service(sectors));
        near(found.service_sectors, sectors);
        assert_eq!(found.uninterrupted_factor, factor, "{sectors}");
        assert_eq!(
            u64::from(found.recommended_factor.factor),
            factor,
            "{sectors}"
        );
        assert_eq!(found.recommended_factor.missed_share, 0.0);
    }
}

#[test]
fn missing_it_costs_a_rotation_plus_a_little() {
    let found = calculated(&inputs_with_service(1.5));
    let missing = found.find_factor(2).unwrap();
    assert_eq!((missing.missed_share, missing.lost_revolutions), (1.0, 1.0));
    // 17 + 2 sector times for each half KB.
    near(missing.kb_per_s, 0.5 * 60.0 * 17.0 / 19.0);
}

#[test]
fn set_exactly_one_revolution_is_lost_for_each_tick() {
    // The room of 2 sectors is full: a tick that falls into it, or is being
    // served when it begins, costs a revolution; never more than one.
    let found = calculated(&inputs_with_ticks(inputs_with_service(2.0), 0.5));
    let exact = found.find_factor(3).unwrap();
    assert!(exact.missed_share > 0.0);
    near(exact.lost_revolutions, exact.missed_share);
    // A sector takes 3 sector times and its share of revolutions; in that time
    // come so many ticks.
    let ticks = (3.0 + 17.0 * exact.lost_revolutions) / 17.0;
    assert!(exact.lost_revolutions <= ticks, "{exact:?}");
    // "Increasing the interleave factor one or two will cover clock
    // interrupts": one more has room for the tick.
    assert_eq!(found.recommended_factor.factor, 4);
    assert_eq!(found.recommended_factor.missed_share, 0.0);
    assert_eq!(
        found.limiting_cost,
        LimitingCost::Interrupts(InterruptCost::Clock)
    );
    assert_eq!(found.factor_without_cost, Some(3));
}

#[test]
fn a_tick_that_is_longer_than_its_room_is_covered_by_two() {
    // With the factors 4 and 5 ticks cost revolutions; with 6 there is room
    // for one.
    let found = calculated(&inputs_with_ticks(inputs_with_service(3.0), 1.5));
    assert!(found.find_factor(4).unwrap().missed_share > 0.0);
    assert!(found.find_factor(5).unwrap().missed_share > 0.0);
    assert_eq!(found.find_factor(6).unwrap().missed_share, 0.0);
    assert_eq!(found.recommended_factor.factor, 6);
    assert_eq!(found.factor_without_cost, Some(4));
}

#[test]
fn a_line_of_9600_baud_interrupts_at_each_sector_and_dma_once_a_rotation() {
    let mut inputs = small_drive();
    inputs.serial_input = Some(lines(1, SerialMethod::Programmed));
    let found = calculated(&inputs);
    let [character] = found.interruptions[..] else {
        panic!("{:?}", found.interruptions)
    };
    near(character.period_ms, 1000.0 / 960.0);
    assert!((15.0..19.0).contains(&(found.revolution_ms / character.period_ms)));
    inputs.serial_input = Some(lines(3, SerialMethod::Dma));
    let found = calculated(&inputs);
    let [buffer] = found.interruptions[..] else {
        panic!("{:?}", found.interruptions)
    };
    assert_eq!(
        (buffer.kind, buffer.source_count),
        (InterruptKind::Buffer, 3)
    );
    // 24 characters of 225 us each, every 25 ms, on three lines.
    near(buffer.cost_ms, 5.4);
    near(buffer.period_ms, 25.0);
    near(buffer.processor_share, 3.0 * 5.4 / 25.0);
}

#[test]
fn raw_input_wakes_at_every_character() {
    let mut inputs = inputs_with_service(3.0);
    inputs.serial_input = Some(lines(1, SerialMethod::PseudoDma));
    let cooked = calculated(&inputs);
    if let Some(serial) = &mut inputs.serial_input {
        serial.raw_wakeup_us = Some(200.0);
    }
    let raw = calculated(&inputs);
    assert!(raw.mean_service_ms > cooked.mean_service_ms);
    assert!(raw.recommended_factor.kb_per_s < cooked.recommended_factor.kb_per_s);
    // The wake-up is in the interrupt of the character, not beside it.
    assert_eq!(inputs.list_interrupt_sources(&|_| true).len(), 2);
    assert_eq!(
        inputs
            .list_interrupt_sources(&|term| term == InterruptCost::RawInput)
            .len(),
        1
    );
}

#[test]
fn read_ahead_loses_less_to_infrequent_events_and_needs_the_same_factor() {
    // A service of 1.8 sectors in a room of 2, ticks of 0.3: two services
    // have room for one tick, but one service has not.
    let mut inputs = inputs_with_ticks(inputs_with_service(1.8), 0.3);
    let without = calculated(&inputs);
    assert!(without.find_factor(3).unwrap().missed_share > 0.0);
    inputs.has_read_ahead = true;
    let with = calculated(&inputs);
    assert_eq!(with.find_factor(3).unwrap().missed_share, 0.0);
    assert_eq!(
        (
            without.recommended_factor.factor,
            with.recommended_factor.factor
        ),
        (4, 3)
    );
    // What is too long by itself, averaging does not help.
    let mut alone = inputs_with_service(1.8);
    alone.has_read_ahead = true;
    let alone = calculated(&alone);
    assert_eq!(alone.recommended_factor.factor, 3);
    assert_eq!(alone.find_factor(2).unwrap().missed_share, 1.0);
}

#[test]
fn outstanding_requests_hide_the_service() {
    // One sector is transferred while a request of 0.9 sectors is served.
    let mut inputs = inputs_with_service(0.9);
    assert_eq!(calculated(&inputs).recommended_factor.factor, 2);
    inputs.outstanding_reads = 2;
    let found = calculated(&inputs);
    assert_eq!(found.recommended_factor.factor, 1);
    assert_eq!(found.recommended_factor.missed_share, 0.0);
    // A rare tick is ridden out by those that are queued: 0.9 + 2 sectors
    // are within four.
    let mut inputs_with_ticks = inputs_with_ticks(inputs_with_service(0.9), 1.0);
    inputs_with_ticks.outstanding_reads = 5;
    assert_eq!(calculated(&inputs_with_ticks).recommended_factor.factor, 1);
}

#[test]
fn one_processor_cannot_serve_faster_than_it_serves() {
    // 2.5 sectors of service are within the transfers of 4 - 1, but every
    // sector falls 1.5 sectors behind: 4 - 1 - 2.5 = 0.5 is used up at the
    // second service, and the queue of 4 and one more sector have passed.
    let mut inputs = inputs_with_service(2.5);
    inputs.outstanding_reads = 4;
    let found = calculated(&inputs);
    let found_share = found.find_factor(1).unwrap().missed_share;
    assert!((found_share - 1.0 / 5.0).abs() < 0.01, "{found_share}");
    assert_eq!(found.find_factor(3).unwrap().missed_share, 0.0);
    assert_eq!(found.recommended_factor.factor, 3);
}

#[test]
fn a_faster_processor_halves_all_of_its_times() {
    let mut inputs = inputs_with_ticks(inputs_with_service(3.0), 1.0);
    inputs.serial_input = Some(lines(1, SerialMethod::PseudoDma));
    let slow = calculated(&inputs);
    inputs.cpu_speed = 2.0;
    let fast = calculated(&inputs);
    near(fast.service_ms, slow.service_ms / 2.0);
    for (one, other) in fast.interruptions.iter().zip(&slow.interruptions) {
        near(one.cost_ms, other.cost_ms / 2.0);
        near(one.period_ms, other.period_ms);
    }
}

#[test]
fn spare_sectors_pass_as_well() {
    let mut inputs = small_drive();
    inputs.track.spare_sectors_per_track = 3;
    near(inputs.track.sector_ms(), 1000.0 / 60.0 / 20.0);
    assert_eq!(calculated(&inputs).recommended_factor.factor, 1);
}

#[test]
fn a_service_longer_than_the_track_misses_at_every_factor() {
    let found = calculated(&inputs_with_service(40.0));
    assert_eq!(found.uninterrupted_factor, 41);
    let one = found.find_factor(1).unwrap();
    // 40 sectors of 17 are within three revolutions.
    assert_eq!((one.missed_share, one.lost_revolutions), (1.0, 3.0));
}

#[test]
fn invalid_inputs_are_rejected() {
    let refused = |inputs: &InterleaveInputs, also| calculate_interleave(inputs, also).unwrap_err();
    let range = |error| match error {
        InputError::OutOfRange { input, .. } => input,
        InputError::InterruptOverload { .. } | InputError::TooManySteps { .. } => panic!("{error}"),
    };
    let mut inputs = small_drive();
    assert_eq!(range(refused(&inputs, Some(18))), "factor");
    assert_eq!(range(refused(&inputs, Some(0))), "factor");
    inputs.track.sectors_per_track = 0;
    assert_eq!(range(refused(&inputs, None)), "sectors_per_track");
    let mut inputs = small_drive();
    inputs.service.driver_ms = f64::NAN;
    assert_eq!(range(refused(&inputs, None)), "driver_ms");
    let mut inputs = small_drive();
    inputs.serial_input = Some(lines(2, SerialMethod::Programmed));
    let error = refused(&inputs, None);
    assert!(
        matches!(error, InputError::InterruptOverload { share, term: InterruptCost::Serial } if share > 1.9),
        "{error}"
    );
}

#[test]
fn lines_wait_while_a_transfer_is_started_and_the_clock_does_not() {
    // The same service once before the start of the transfer and once in it,
    // with two tenths of a sector to spare, and interrupts of half a sector.
    let before = inputs_with_service(1.8);
    let mut in_it = small_drive();
    in_it.service.transfer_start_ms = before.service.driver_ms;
    let half_ms = before.track.sector_ms() / 2.0;
    let missed = |inputs: &InterleaveInputs| calculated(inputs).factor_results[2].missed_share;
    let with_lines = |inputs: &InterleaveInputs| InterleaveInputs {
        serial_input: Some(SerialInput {
            completion_us_per_char: 1e3 * half_ms / 24.0,
            ..lines(1, SerialMethod::Dma)
        }),
        ..inputs.clone()
    };
    let with_ticks = |inputs: &InterleaveInputs| inputs_with_ticks(inputs.clone(), 0.5);
    // A buffer that is held off is served when the next sector has been asked
    // for; only one that comes just before a sector's end delays it.
    let (all, waits_for_program) = (missed(&with_lines(&before)), missed(&with_lines(&in_it)));
    assert!(
        waits_for_program > 0.0 && waits_for_program < 0.3 * all,
        "{waits_for_program} of {all}"
    );
    near(missed(&with_ticks(&in_it)), missed(&with_ticks(&before)));
}
