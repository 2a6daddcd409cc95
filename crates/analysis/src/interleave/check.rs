//! Which inputs make sense.

use super::inputs::Inputs;
use super::terms::Term;
use std::fmt;
use std::ops::RangeInclusive;

/// Above this share of the processor, interrupts leave the disk nothing that
/// could be called a service, and real lines lose characters.
const HIGHEST_LOAD: f64 = 0.99;

/// An input that makes no sense.
#[derive(Clone, Debug, PartialEq)]
pub enum InputError {
    /// A number is out of its range.
    Range {
        /// The input: `sectors_per_track`.
        input: &'static str,
        /// What it is.
        value: f64,
        /// The least that is allowed.
        least: f64,
        /// The most that is allowed.
        most: f64,
    },
    /// The interrupts leave nothing of the processor.
    Overload {
        /// The share of the processor that they take.
        share: f64,
        /// What takes the most of it.
        term: Term,
    },
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Range {
                value, least, most, ..
            } => write!(f, "{value} is out of range; {least} to {most} is allowed"),
            Self::Overload { share, .. } => write!(
                f,
                "interrupts alone take {:.0} % of the processor; up to {:.0} % is allowed",
                100.0 * share,
                100.0 * HIGHEST_LOAD
            ),
        }
    }
}

impl std::error::Error for InputError {}

/// Checks every input, and a factor that a row is wanted of.
pub(super) fn check(inputs: &Inputs, also: Option<u32>) -> Result<(), InputError> {
    for (input, value, allowed) in numbers(inputs, also) {
        // A number that is none is in no range.
        if !allowed.contains(&value) {
            return Err(InputError::Range {
                input,
                value,
                least: *allowed.start(),
                most: *allowed.end(),
            });
        }
    }
    let interruptions = inputs.interruptions();
    let share: f64 = interruptions.iter().map(|one| one.processor_share).sum();
    let most = interruptions
        .iter()
        .max_by(|one, other| one.processor_share.total_cmp(&other.processor_share));
    match most {
        Some(most) if share > HIGHEST_LOAD => Err(InputError::Overload {
            share,
            term: most.interrupt.term(),
        }),
        _ => Ok(()),
    }
}

type Number = (&'static str, f64, RangeInclusive<f64>);

/// Every number with its range.
fn numbers(inputs: &Inputs, also: Option<u32>) -> Vec<Number> {
    let (track, service) = (&inputs.track, &inputs.service);
    let sectors = f64::from(track.sectors_per_track);
    let spare = f64::from(track.spare_sectors_per_track);
    let ms = |input, value| (input, value, 0.0..=10_000.0);
    let mut numbers = vec![
        ("rpm", track.rpm, 60.0..=30_000.0),
        ("sectors_per_track", sectors, 1.0..=10_000.0),
        ("spare_sectors_per_track", spare, 0.0..=1_000.0),
        ("sector_bytes", track.sector_bytes.into(), 1.0..=1_048_576.0),
        ms("interrupt_latency_ms", service.interrupt_latency_ms),
        ms("driver_ms", service.driver_ms),
        ms("transfer_start_ms", service.transfer_start_ms),
        ms("reschedule_ms", service.reschedule_ms),
        ms("higher_priority_ms", service.higher_priority_ms),
        ms("system_call_ms", service.system_call_ms),
        ms("application_ms", service.application_ms),
        ("cpu_speed", inputs.cpu_speed, 0.001..=1_000_000.0),
        ("outstanding", inputs.outstanding.into(), 1.0..=64.0),
    ];
    if let Some(clock) = &inputs.clock {
        numbers.push(("clock_hz", clock.hz, 1.0..=100_000.0));
        numbers.push(ms("clock_ms", clock.tick_ms));
    }
    if let Some(serial) = &inputs.serial {
        let us = |input, value| (input, value, 0.0..=1_000_000.0);
        numbers.extend([
            ("serial_lines", serial.lines.into(), 1.0..=64.0),
            ("baud", serial.baud.into(), 50.0..=1_000_000.0),
            us("serial_us_per_char", serial.us_per_char),
            us("serial_done_us_per_char", serial.done_us_per_char),
            (
                "serial_buffer_chars",
                serial.buffer_chars.into(),
                1.0..=4_096.0,
            ),
        ]);
        numbers.extend(serial.raw_wakeup_us.map(|value| us("wakeup_us", value)));
    }
    numbers.extend(also.map(|factor| ("factor", factor.into(), 1.0..=sectors)));
    numbers
}
