//! What holds whatever the numbers are.

use super::*;
use proptest::prelude::*;

prop_compose! {
    /// A case with any of the terms, whose interrupts leave something of the
    /// processor even when one more term is added.
    fn cases()(
        sectors_per_track in 4_u32..24,
        service_sectors in 0.0..6.0_f64,
        cpu_speed in 0.5..4.0_f64,
        tick_ms in proptest::option::of(0.0..2.0_f64),
        serial in proptest::option::of((1_u32..4, 0.0..60.0_f64, 0.0..40.0_f64)),
        read_ahead: bool,
        outstanding in 1_u32..4,
    ) -> InterleaveInputs {
        let mut inputs = small_drive();
        inputs.track.sectors_per_track = sectors_per_track;
        inputs.service.system_call_ms = service_sectors * inputs.track.sector_ms();
        inputs.cpu_speed = cpu_speed;
        inputs.clock_interrupts = tick_ms.map(|tick_ms| ClockInterrupts { frequency_hz: 60.0, tick_ms });
        inputs.serial_input = serial.map(|(count, us_per_char, done_us_per_char)| SerialInput {
            us_per_char,
            completion_us_per_char: done_us_per_char,
            ..lines(count, SerialMethod::PseudoDma)
        });
        inputs.has_read_ahead = read_ahead;
        inputs.outstanding_reads = outstanding;
        inputs
    }
}

/// The case with one more term, or with more of one.
fn inputs_with_more(inputs: &InterleaveInputs, which: u8) -> InterleaveInputs {
    let mut more = inputs.clone();
    match which {
        0 => more.service.application_ms += 0.3,
        1 => {
            let tick_ms = more.clock_interrupts.map_or(0.0, |clock| clock.tick_ms) + 0.4;
            more.clock_interrupts = Some(ClockInterrupts {
                frequency_hz: 60.0,
                tick_ms,
            });
        }
        2 => match &mut more.serial_input {
            Some(serial) => serial.line_count += 1,
            None => {
                more.serial_input = Some(SerialInput {
                    us_per_char: 40.0,
                    completion_us_per_char: 30.0,
                    ..lines(1, SerialMethod::PseudoDma)
                })
            }
        },
        _ => {
            if let Some(serial) = &mut more.serial_input {
                serial.raw_wakeup_us = Some(30.0);
            }
        }
    }
    more
}

/// No factor loses less in what is slower. Sector for sector nothing ends
/// earlier; but what is counted begins when the start is over, in which the
/// slower may have lost a revolution more that the faster loses only then: one
/// of all that are counted.
fn assert_no_smaller_loss(
    slower: &InterleaveReport,
    faster: &InterleaveReport,
) -> Result<(), String> {
    for (one, other) in slower.factor_results.iter().zip(&faster.factor_results) {
        if one.lost_revolutions < other.lost_revolutions - 1.0 / follow::SECTORS_COUNTED - 1e-9 {
            return Err(format!("{one:?} loses less than {other:?}"));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_best_is_the_best_of_all_factors(inputs in cases()) {
        let all = inputs.track.sectors_per_track;
        let found = calculate_interleave(&inputs, Some(all)).unwrap();
        prop_assert_eq!(found.factor_results.len(), all as usize);
        for row in &found.factor_results {
            prop_assert!(row.kb_per_s <= found.recommended_factor.kb_per_s * (1.0 + EQUAL_RATE_SHARE_MAX), "{:?}", row);
            prop_assert!((0.0..=1.0).contains(&row.missed_share), "{:?}", row);
            prop_assert!(row.lost_revolutions >= row.missed_share - 1e-9, "{:?}", row);
        }
        // Looking no further than is needed finds the same.
        prop_assert_eq!(calculated(&inputs).recommended_factor, found.recommended_factor);
    }

    /// A term may shift where others fall, and with luck past a sector; it
    /// never makes a factor faster than it is with nothing that interrupts.
    #[test]
    fn no_term_makes_a_factor_faster_than_none(inputs in cases(), which in 1_u8..4) {
        let all = Some(inputs.track.sectors_per_track);
        let quiet = InterleaveInputs { clock_interrupts: None, serial_input: None, ..inputs.clone() };
        let none = calculate_interleave(&quiet, all).unwrap();
        let more = calculate_interleave(&inputs_with_more(&inputs, which), all).unwrap();
        prop_assert_eq!(assert_no_smaller_loss(&more, &none), Ok(()));
    }

    #[test]
    fn a_faster_processor_makes_no_undisturbed_factor_slower(inputs in cases()) {
        let all = Some(inputs.track.sectors_per_track);
        let slow = InterleaveInputs { clock_interrupts: None, serial_input: None, ..inputs };
        let mut fast = slow.clone();
        fast.cpu_speed *= 2.0;
        let mut longer = slow.clone();
        longer.service.application_ms += 0.3;
        let rates = [&longer, &slow, &fast].map(|inputs| calculate_interleave(inputs, all).unwrap());
        prop_assert!((rates[2].service_ms - rates[1].service_ms / 2.0).abs() < 1e-9);
        for pair in rates.windows(2) {
            prop_assert_eq!(assert_no_smaller_loss(&pair[0], &pair[1]), Ok(()));
        }
    }
}
