//! Command `diskperf calculate`: calculations without a simulated program.

use super::{DONE, Outcome};
use crate::arguments::{
    CalculateArguments, Calculation, DiskQueueArguments, FlashArguments, FormatArguments,
    InterleaveArguments,
};
use crate::output::{print, print_message, width};
use diskperf_analysis::interleave::{
    self, Clock, InputError, Inputs, Serial, SerialMethod, Service, Term, Track,
};
use diskperf_analysis::report;
use diskperf_laboratory::LaboratoryError;
use diskperf_laboratory::catalogue;
use diskperf_laboratory::crew::available_threads;
use diskperf_laboratory::interleave::{modelled, not_modelled};
use diskperf_laboratory::reproduce::SEED;
use diskperf_machine::RunBudget;
use diskperf_models::disk_queue::{Asked, disk_queue};
use diskperf_models::formatting::formatting;
use diskperf_models::model::load_catalogue;
use std::sync::Arc;

/// Executes `diskperf calculate`: calculations that run no program.
pub(crate) fn calculate(arguments: &CalculateArguments) -> Outcome {
    match &arguments.calculation {
        Calculation::Disk(arguments) => disk(arguments),
        Calculation::Flash(arguments) => flash(arguments),
        Calculation::Interleave(arguments) => interleave(arguments),
        Calculation::Format(arguments) => format(arguments),
    }
}

/// Calculates the gain from the scheduling order of a disk queue.
fn disk(arguments: &DiskQueueArguments) -> Outcome {
    let catalogue = load_catalogue(arguments.catalogue.as_deref())?;
    let mut depths = arguments.depth.clone();
    depths.sort_unstable();
    depths.dedup();
    let asked = Asked {
        target: &arguments.on,
        settings: &arguments.settings,
        drive: arguments.drive,
        orders: &arguments.order,
        depths: &depths,
        block_bytes: arguments.block,
        requests: arguments.requests,
        seed: arguments.seed,
    };
    let found = disk_queue(&catalogue, &asked)?;
    print(&report::disk_queue(
        &found,
        arguments.format.into(),
        width(),
    ))?;
    Ok(DONE)
}

/// Calculates properties of a flash drive that do not depend on its timing.
fn flash(arguments: &FlashArguments) -> Outcome {
    let found = diskperf_models::flash::flash(&arguments.asked())?;
    print(&report::flash(&found, arguments.format.into(), width()))?;
    Ok(DONE)
}

fn format(arguments: &FormatArguments) -> Outcome {
    let catalogue = load_catalogue(arguments.catalogue.as_deref())?;
    let times = formatting(
        &catalogue,
        (&arguments.on, &arguments.settings),
        (arguments.drive, arguments.passes),
    )?;
    print(&report::formatting(
        &times,
        arguments.format.into(),
        width(),
    ))?;
    Ok(DONE)
}

/// Default track: that of most 5 MB drives of 5 1/4 inches.
const DEFAULT_TRACK: Track = Track {
    rpm: 3600.0,
    sectors_per_track: 17,
    spare_sectors_per_track: 0,
    sector_bytes: 512,
};
/// Default clock frequency in hertz, that of most machines of the time.
const DEFAULT_CLOCK_HZ: f64 = 60.0;
/// Default duration of a clock tick in sectors: the middle of Bass's 1 to 3.
const DEFAULT_CLOCK_SECTORS: f64 = 2.0;
/// Default buffer size in characters: the middle of Bass's 16 to 32.
const DEFAULT_BUFFER_CHARS: u32 = 24;

fn interleave(arguments: &InterleaveArguments) -> Outcome {
    let track = track(arguments)?;
    let inputs = Inputs {
        track,
        service: Service {
            interrupt_latency_ms: arguments.interrupt_latency_ms,
            driver_ms: arguments.driver_ms,
            transfer_start_ms: arguments.transfer_start_ms,
            reschedule_ms: arguments.reschedule_ms,
            higher_priority_ms: arguments.higher_priority_ms,
            system_call_ms: arguments.system_call_ms,
            application_ms: arguments.application_ms,
        },
        cpu_speed: arguments.cpu_speed,
        clock: clock(arguments, &track),
        serial: serial(arguments)?,
        read_ahead: arguments.read_ahead,
        outstanding: arguments.outstanding,
    };
    if !arguments.no_budget {
        interleave::check_work(&inputs).map_err(|error| refusal(&error))?;
    }
    let mut found =
        interleave::calculate(&inputs, arguments.factor).map_err(|error| refusal(&error))?;
    if inputs.service == Service::default() {
        return Err(LaboratoryError::Request(
            "no service time: give at least one of --interrupt-latency-ms, --driver-ms, --transfer-start-ms, --reschedule-ms, --higher-priority-ms, --system-call-ms and --application-ms, as measured"
                .to_owned(),
        ));
    }
    match not_modelled(&inputs) {
        None => {
            let factors: Vec<u32> = found.factors.iter().map(|row| row.factor).collect();
            let how = (SEED, available_threads());
            let budget = RunBudget::default_unless_lifted(arguments.no_budget);
            match modelled(&inputs, &factors, how, budget, &Arc::default()) {
                Ok(rates) => found.compare(&rates),
                // The calculation stands by itself where the machine cannot
                // be given the case.
                Err(error) => {
                    print_message(&format!("not compared with the modelled machine: {error}"))
                }
            }
        }
        Some(why) => print_message(&format!("not compared with the modelled machine: {why}")),
    }
    print(&report::interleave(
        &found,
        arguments.format.into(),
        width(),
        arguments.factor,
    ))?;
    Ok(DONE)
}

/// Returns the drive's track, with individually given values in place of its own.
fn track(arguments: &InterleaveArguments) -> Result<Track, LaboratoryError> {
    let mut track = match &arguments.drive {
        Some(name) => {
            let known = load_catalogue(arguments.catalogue.as_deref())?;
            catalogue::track(&known, name)
                .map_err(|error| LaboratoryError::Request(format!("--drive {name}: {error}")))?
        }
        None => DEFAULT_TRACK,
    };
    track.rpm = arguments.rpm.unwrap_or(track.rpm);
    track.sectors_per_track = arguments
        .sectors_per_track
        .unwrap_or(track.sectors_per_track);
    track.spare_sectors_per_track = arguments
        .spare_sectors_per_track
        .unwrap_or(track.spare_sectors_per_track);
    track.sector_bytes = arguments.sector_bytes.unwrap_or(track.sector_bytes);
    Ok(track)
}

fn clock(arguments: &InterleaveArguments, track: &Track) -> Option<Clock> {
    if arguments.clock_hz.is_none() && arguments.clock_ms.is_none() {
        return None;
    }
    // Bass's sectors are measured on the machine; a faster one takes less.
    let tick_ms = || DEFAULT_CLOCK_SECTORS * track.sector_ms();
    Some(Clock {
        hz: arguments.clock_hz.unwrap_or(DEFAULT_CLOCK_HZ),
        tick_ms: arguments.clock_ms.unwrap_or_else(tick_ms),
    })
}

fn serial(arguments: &InterleaveArguments) -> Result<Option<Serial>, LaboratoryError> {
    let Some(lines) = arguments.serial_lines else {
        return Ok(None);
    };
    let method = SerialMethod::from(arguments.serial);
    let us_per_char = serial_time(
        ("--serial-us-per-char", arguments.serial_us_per_char),
        (method, method.us_per_char()),
        "interrupt for each character; give --serial-done-us-per-char",
    )?;
    let done_us_per_char = serial_time(
        (
            "--serial-done-us-per-char",
            arguments.serial_done_us_per_char,
        ),
        (method, method.done_us_per_char()),
        "buffer; give --serial-us-per-char",
    )?;
    if arguments.serial_buffer_chars.is_some() && method == SerialMethod::Programmed {
        return Err(LaboratoryError::Request(
            "--serial-buffer-chars: --serial programmed has no buffer; pseudo-dma and dma have"
                .to_owned(),
        ));
    }
    Ok(Some(Serial {
        lines,
        baud: arguments.baud,
        method,
        us_per_char,
        done_us_per_char,
        buffer_chars: arguments
            .serial_buffer_chars
            .unwrap_or(DEFAULT_BUFFER_CHARS),
        raw_wakeup_us: arguments.raw_input.then_some(arguments.wakeup_us),
    }))
}

/// Returns a time of a method: the given value or the method's default. A value for a method
/// without this time is an error.
fn serial_time(
    (option, given): (&str, Option<f64>),
    (method, own): (SerialMethod, Option<f64>),
    lacks: &str,
) -> Result<f64, LaboratoryError> {
    match (given, own) {
        (Some(_), None) => Err(LaboratoryError::Request(format!(
            "{option}: --serial {} has no {lacks}",
            method.name()
        ))),
        (given, own) => Ok(given.or(own).unwrap_or(0.0)),
    }
}

/// Converts an input error of the calculation into an error about the option, whose name differs
/// only in hyphens.
fn refusal(error: &InputError) -> LaboratoryError {
    LaboratoryError::Request(match error {
        InputError::Range { input, .. } => format!("--{}: {error}", input.replace('_', "-")),
        InputError::TooMany { term, .. } => format!(
            "{}: {error}; give fewer lines or a lower --baud, or lift the limit with --no-budget",
            match term {
                Term::Clock => "--clock-hz",
                Term::Serial | Term::RawInput => "--serial-lines",
            }
        ),
        InputError::Overload { term, .. } => {
            let (option, remedy) = match term {
                Term::Clock => ("--clock-ms", "give a shorter or rarer tick"),
                Term::Serial => (
                    "--serial-lines",
                    "give fewer lines, a lower --baud, pseudo-dma or dma to --serial",
                ),
                Term::RawInput => ("--wakeup-us", "give fewer lines or a shorter wake-up"),
            };
            format!("{option}: {error}; {remedy}, or a larger --cpu-speed")
        }
    })
}
