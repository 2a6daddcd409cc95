//! Validation of the inputs of the interleave calculation.

use super::follow::{SECTORS_SIMULATED, START_PHASE_COUNT};
use super::inputs::InterleaveInputs;
use super::terms::{InterruptCost, InterruptionFigures};
use std::fmt;
use std::ops::RangeInclusive;

/// Maximum share of the processor that interrupts may take. Beyond it the disk gets no usable
/// service, and real lines lose characters.
const INTERRUPT_LOAD_MAX: f64 = 0.99;

/// Invalid input of the interleave calculation.
#[derive(Clone, Debug, PartialEq)]
pub enum InputError {
    /// An input of the interleave calculation is out of its range.
    OutOfRange {
        /// Name of the invalid input: `sectors_per_track`.
        input: &'static str,
        value: f64,
        /// Smallest value that the input may have.
        least: f64,
        /// Largest value that the input may have.
        most: f64,
    },
    /// The interrupts are too many for the calculation to follow.
    TooManySteps {
        /// Approximate number of steps of the calculation.
        looks: f64,
        /// Source of interruptions with the most frequent interrupts, such as serial lines.
        term: InterruptCost,
    },
    /// The interrupts leave the processor no time.
    InterruptOverload {
        /// Share of the processor (0 to 1) that the interrupts take.
        share: f64,
        /// Source of interruptions that takes the largest share of the processor.
        term: InterruptCost,
    },
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfRange {
                value, least, most, ..
            } => write!(f, "{value} is out of range; {least} to {most} is allowed"),
            Self::TooManySteps { looks, .. } => write!(
                f,
                "simulating all interrupts takes {looks:.1e} steps; the limit is {CALCULATION_STEPS_MAX:.0e}"
            ),
            Self::InterruptOverload { share, .. } => write!(
                f,
                "interrupts alone take {:.0} % of the processor; up to {:.0} % is allowed",
                100.0 * share,
                100.0 * INTERRUPT_LOAD_MAX
            ),
        }
    }
}

impl std::error::Error for InputError {}

/// Maximum number of steps of the calculation, which take up to a minute.
const CALCULATION_STEPS_MAX: f64 = 2e10;

/// Checks that the calculation of these inputs takes a reasonable time.
///
/// # Errors
///
/// [`InputError::TooManySteps`] interrupts come while the processor waits for a sector.
pub fn check_calculation_steps(inputs: &InterleaveInputs) -> Result<(), InputError> {
    let interruptions = inputs.list_interruptions();
    let sources: u32 = interruptions.iter().map(|one| one.source_count).sum();
    // Each calculation is made again without each of the terms, and without any.
    let calculations = inputs.list_interrupt_costs().len() + 2;
    let sectors = START_PHASE_COUNT
        * SECTORS_SIMULATED
        * inputs.track.sectors_per_track.min(FACTOR_MAX_DEFAULT);
    let come = inputs.interrupts_per_ms() * inputs.track.revolution_ms();
    let looks = come * f64::from(sectors) * f64::from(sources) * calculations as f64;
    let often = |one: &InterruptionFigures| f64::from(one.source_count) / one.period_ms;
    let most = interruptions
        .iter()
        .max_by(|one, other| often(one).total_cmp(&often(other)));
    match most {
        Some(most) if looks > CALCULATION_STEPS_MAX => Err(InputError::TooManySteps {
            looks,
            term: most.kind.cost(),
        }),
        _ => Ok(()),
    }
}

/// Number of factors that most calculations need before the best is known.
const FACTOR_MAX_DEFAULT: u32 = 32;

/// Checks every input, and the factor for which a row is wanted.
pub(super) fn check_inputs(inputs: &InterleaveInputs, also: Option<u32>) -> Result<(), InputError> {
    for (input, value, allowed) in list_input_ranges(inputs, also) {
        // A number that is none is in no range.
        if !allowed.contains(&value) {
            return Err(InputError::OutOfRange {
                input,
                value,
                least: *allowed.start(),
                most: *allowed.end(),
            });
        }
    }
    let interruptions = inputs.list_interruptions();
    let share: f64 = interruptions.iter().map(|one| one.processor_share).sum();
    let most = interruptions
        .iter()
        .max_by(|one, other| one.processor_share.total_cmp(&other.processor_share));
    match most {
        Some(most) if share > INTERRUPT_LOAD_MAX => Err(InputError::InterruptOverload {
            share,
            term: most.kind.cost(),
        }),
        _ => Ok(()),
    }
}

type InputRange = (&'static str, f64, RangeInclusive<f64>);

fn list_input_ranges(inputs: &InterleaveInputs, also: Option<u32>) -> Vec<InputRange> {
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
        ("outstanding", inputs.outstanding_reads.into(), 1.0..=64.0),
    ];
    if let Some(clock) = &inputs.clock_interrupts {
        numbers.push(("clock_hz", clock.frequency_hz, 1.0..=100_000.0));
        numbers.push(ms("clock_ms", clock.tick_ms));
    }
    if let Some(serial) = &inputs.serial_input {
        let us = |input, value| (input, value, 0.0..=1_000_000.0);
        numbers.extend([
            ("serial_lines", serial.line_count.into(), 1.0..=64.0),
            ("baud", serial.baud_rate.into(), 50.0..=1_000_000.0),
            us("serial_us_per_char", serial.us_per_char),
            us("serial_done_us_per_char", serial.completion_us_per_char),
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
