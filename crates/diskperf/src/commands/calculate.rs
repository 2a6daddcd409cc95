//! Command `diskperf calculate`: calculations without a simulated program.

use super::{CommandResult, DONE};
use crate::arguments::{
    CalculateArguments, Calculation, DiskQueueArguments, FlashArguments, FormatArguments,
    InterleaveArguments, RequestListArguments, VolumeArguments,
};
use crate::output::{print, print_message, width};
use crate::signals::stop_on_signals;
use diskperf_analysis::interleave::{
    self, ClockInterrupts, InputError, InterleaveInputs, InterruptCost, SerialInput, SerialMethod,
    ServiceTimes, TrackFormat,
};
use diskperf_analysis::report;
use diskperf_laboratory::LaboratoryError;
use diskperf_laboratory::catalogue;
use diskperf_laboratory::crew::available_threads;
use diskperf_laboratory::interleave::{run_model, unmodelled_input};
use diskperf_laboratory::reproduce::DEFAULT_SEED;
use diskperf_laboratory::request_lists::{Host, RequestListRequest, calculate_request_lists};
use diskperf_laboratory::volume::{VolumeRequest, calculate_volumes};
use diskperf_machine::RunBudget;
use diskperf_models::disk_queue::{DiskQueueRequest, report_disk_queue};
use diskperf_models::formatting::estimate_formatting;
use diskperf_models::model::load_catalogue;
use std::sync::Arc;

/// Executes `diskperf calculate`: calculations that run no program.
pub(crate) fn calculate(arguments: &CalculateArguments) -> CommandResult {
    match &arguments.calculation {
        Calculation::Disk(arguments) => calculate_disk(arguments),
        Calculation::Flash(arguments) => calculate_flash(arguments),
        Calculation::Interleave(arguments) => calculate_interleave(arguments),
        Calculation::Volume(arguments) => calculate_volume(arguments),
        Calculation::Requests(arguments) => calculate_requests(arguments),
        Calculation::Format(arguments) => calculate_format(arguments),
    }
}

/// Calculates the gain from the scheduling order of a disk queue.
fn calculate_disk(arguments: &DiskQueueArguments) -> CommandResult {
    let catalogue = load_catalogue(arguments.catalogue.as_deref())?;
    let mut depths = arguments.depth.clone();
    depths.sort_unstable();
    depths.dedup();
    let asked = DiskQueueRequest {
        target: &arguments.on,
        settings: &arguments.settings,
        drive_index: arguments.drive,
        order_names: &arguments.order,
        queue_depths: &depths,
        block_bytes: arguments.block,
        requests: arguments.requests,
        seed: arguments.seed,
    };
    let found = report_disk_queue(&catalogue, &asked)?;
    print(&report::render_disk_queue(
        &found,
        arguments.format.into(),
        width(),
    ))?;
    Ok(DONE)
}

/// Calculates properties of a flash drive that do not depend on its timing.
fn calculate_flash(arguments: &FlashArguments) -> CommandResult {
    let found = diskperf_models::flash::report_flash(&arguments.to_request())?;
    print(&report::render_flash(
        &found,
        arguments.format.into(),
        width(),
    ))?;
    Ok(DONE)
}

/// Calculates which cloud volumes carry a load.
fn calculate_volume(arguments: &VolumeArguments) -> CommandResult {
    const GIB: u64 = 1 << 30;
    let catalogue = load_catalogue(arguments.catalogue.as_deref())?;
    let asked = VolumeRequest {
        load: &arguments.load,
        fio_arguments: &arguments.fio_arguments,
        volumes: &arguments.volumes,
        settings: &arguments.settings,
        total_ns: arguments.duration_ns,
        size_gib_min: arguments.size.div_ceil(GIB),
    };
    let stop = stop_on_signals()?;
    let found = calculate_volumes(&catalogue, &asked, &stop)?;
    print(&report::render_volumes(
        &found,
        arguments.format.into(),
        width(),
    ))?;
    Ok(DONE)
}

/// Calculates the bios that a Linux kernel makes of file operations.
fn calculate_requests(arguments: &RequestListArguments) -> CommandResult {
    let file_systems: Vec<_> = arguments
        .filesystem
        .iter()
        .map(|kind| (*kind).into())
        .collect();
    let found = calculate_request_lists(&RequestListRequest {
        path: &arguments.file,
        file_systems: &file_systems,
        host: Host {
            version: arguments.kernel.into(),
            ticks_per_second: arguments.tick_rate,
            processors: arguments.processors,
        },
        read_ahead_kib: arguments.read_ahead,
        has_fua: arguments.fua,
    })?;
    print(&report::render_request_lists(
        &found,
        arguments.format.into(),
        width(),
    ))?;
    Ok(DONE)
}

fn calculate_format(arguments: &FormatArguments) -> CommandResult {
    let catalogue = load_catalogue(arguments.catalogue.as_deref())?;
    let times = estimate_formatting(
        &catalogue,
        (&arguments.on, &arguments.settings),
        arguments.drive,
        arguments.passes,
    )?;
    print(&report::render_formatting(
        &times,
        arguments.format.into(),
        width(),
    ))?;
    Ok(DONE)
}

/// Default track: that of most 5 MB drives of 5 1/4 inches.
const DEFAULT_TRACK: TrackFormat = TrackFormat {
    rpm: 3600.0,
    sectors_per_track: 17,
    spare_sectors_per_track: 0,
    sector_bytes: 512,
};
/// Default clock frequency in hertz, that of most machines of the time.
const DEFAULT_CLOCK_HZ: f64 = 60.0;
/// Default duration of a clock tick in sectors: the middle of Bass's 1 to 3.
const DEFAULT_CLOCK_COST_SECTORS: f64 = 2.0;
/// Default buffer size in characters: the middle of Bass's 16 to 32.
const DEFAULT_BUFFER_CHARS: u32 = 24;

fn calculate_interleave(arguments: &InterleaveArguments) -> CommandResult {
    let track = resolve_track(arguments)?;
    let inputs = InterleaveInputs {
        track,
        service: ServiceTimes {
            interrupt_latency_ms: arguments.interrupt_latency_ms,
            driver_ms: arguments.driver_ms,
            transfer_start_ms: arguments.transfer_start_ms,
            reschedule_ms: arguments.reschedule_ms,
            higher_priority_ms: arguments.higher_priority_ms,
            system_call_ms: arguments.system_call_ms,
            application_ms: arguments.application_ms,
        },
        cpu_speed: arguments.cpu_speed,
        clock_interrupts: resolve_clock(arguments, &track),
        serial_input: resolve_serial(arguments)?,
        has_read_ahead: arguments.read_ahead,
        outstanding_reads: arguments.outstanding,
    };
    if !arguments.no_budget {
        interleave::check_calculation_steps(&inputs).map_err(|error| input_error(&error))?;
    }
    let mut found = interleave::calculate_interleave(&inputs, arguments.factor)
        .map_err(|error| input_error(&error))?;
    if inputs.service == ServiceTimes::default() {
        return Err(LaboratoryError::Request(
            "no service time: give at least one of --interrupt-latency-ms, --driver-ms, --transfer-start-ms, --reschedule-ms, --higher-priority-ms, --system-call-ms and --application-ms, as measured"
                .to_owned(),
        ));
    }
    match unmodelled_input(&inputs) {
        None => {
            let factors: Vec<u32> = found.factor_results.iter().map(|row| row.factor).collect();
            let how = (DEFAULT_SEED, available_threads());
            let budget = RunBudget::default_unless_lifted(arguments.no_budget);
            match run_model(&inputs, &factors, how, budget, &Arc::default()) {
                Ok(rates) => found.set_modelled_rates(&rates),
                // The calculation stands by itself where the machine cannot
                // be given the case.
                Err(error) => {
                    print_message(&format!("not compared with the modelled machine: {error}"))
                }
            }
        }
        Some(why) => print_message(&format!("not compared with the modelled machine: {why}")),
    }
    print(&report::render_interleave(
        &found,
        arguments.format.into(),
        width(),
        arguments.factor,
    ))?;
    Ok(DONE)
}

/// Returns the drive's track, with individually given values in place of its own.
fn resolve_track(arguments: &InterleaveArguments) -> Result<TrackFormat, LaboratoryError> {
    let mut track = match &arguments.drive {
        Some(name) => {
            let known = load_catalogue(arguments.catalogue.as_deref())?;
            catalogue::find_track_format(&known, name)
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

fn resolve_clock(arguments: &InterleaveArguments, track: &TrackFormat) -> Option<ClockInterrupts> {
    if arguments.clock_hz.is_none() && arguments.clock_ms.is_none() {
        return None;
    }
    // Bass's sectors are measured on the machine; a faster one takes less.
    let tick_ms = || DEFAULT_CLOCK_COST_SECTORS * track.sector_ms();
    Some(ClockInterrupts {
        frequency_hz: arguments.clock_hz.unwrap_or(DEFAULT_CLOCK_HZ),
        tick_ms: arguments.clock_ms.unwrap_or_else(tick_ms),
    })
}

fn resolve_serial(arguments: &InterleaveArguments) -> Result<Option<SerialInput>, LaboratoryError> {
    let Some(lines) = arguments.serial_lines else {
        return Ok(None);
    };
    let method = SerialMethod::from(arguments.serial);
    let us_per_char = resolve_serial_time(
        ("--serial-us-per-char", arguments.serial_us_per_char),
        (method, method.us_per_char()),
        "interrupt for each character; give --serial-done-us-per-char",
    )?;
    let done_us_per_char = resolve_serial_time(
        (
            "--serial-done-us-per-char",
            arguments.serial_done_us_per_char,
        ),
        (method, method.completion_us_per_char()),
        "buffer; give --serial-us-per-char",
    )?;
    if arguments.serial_buffer_chars.is_some() && method == SerialMethod::Programmed {
        return Err(LaboratoryError::Request(
            "--serial-buffer-chars: --serial programmed has no buffer; pseudo-dma and dma have"
                .to_owned(),
        ));
    }
    Ok(Some(SerialInput {
        line_count: lines,
        baud_rate: arguments.baud,
        method,
        us_per_char,
        completion_us_per_char: done_us_per_char,
        buffer_chars: arguments
            .serial_buffer_chars
            .unwrap_or(DEFAULT_BUFFER_CHARS),
        raw_wakeup_us: arguments.raw_input.then_some(arguments.wakeup_us),
    }))
}

/// Returns a time of a method: the given value or the method's default. A value for a method
/// without this time is an error.
fn resolve_serial_time(
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
fn input_error(error: &InputError) -> LaboratoryError {
    LaboratoryError::Request(match error {
        InputError::OutOfRange { input, .. } => format!("--{}: {error}", input.replace('_', "-")),
        InputError::TooManySteps { term, .. } => format!(
            "{}: {error}; give fewer lines or a lower --baud, or lift the limit with --no-budget",
            match term {
                InterruptCost::Clock => "--clock-hz",
                InterruptCost::Serial | InterruptCost::RawInput => "--serial-lines",
            }
        ),
        InputError::InterruptOverload { term, .. } => {
            let (option, remedy) = match term {
                InterruptCost::Clock => ("--clock-ms", "give a shorter or rarer tick"),
                InterruptCost::Serial => (
                    "--serial-lines",
                    "give fewer lines, a lower --baud, pseudo-dma or dma to --serial",
                ),
                InterruptCost::RawInput => ("--wakeup-us", "give fewer lines or a shorter wake-up"),
            };
            format!("{option}: {error}; {remedy}, or a larger --cpu-speed")
        }
    })
}
