//! Comparison of Bass's interleave calculation with a run of the same case on the modelled machine.

use crate::crew::ThreadCrew;
use crate::reproduce::jobs::{ModelFigures, ModelJob, ModelWorkshop};
use diskperf_analysis::interleave::{
    InterleaveInputs, RATE_LOSS_SHARE_MAX, SerialInput, SerialMethod,
};
use diskperf_battery::Program;
use diskperf_catalogue::{Catalogue, Setting};
use diskperf_machine::RunBudget;
use diskperf_models::LaboratoryError;
use diskperf_models::crew::WatchedCrew;
use diskperf_models::model::computer::{ModelComputer, bare_drive_settings};
use diskperf_models::rig::ONE_REPETITION;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const MODEL_SYSTEM: &str = "pcat-st251";
/// Sectors to read for each interleave factor: enough for a rate that depends on the times of
/// interrupts.
const SECTORS_READ: u64 = 6000;
/// Number of phase offsets between serial lines that are tried.
const START_COUNT: u64 = 24;
/// Maximum number of heads of a modelled drive. All sectors lie in one cylinder, so that there are
/// no seeks.
const HEADS_MAX: u64 = 255;

/// Returns the reason why a case has no counterpart on the modelled machine, if there is one.
pub fn unmodelled_input(inputs: &InterleaveInputs) -> Option<&'static str> {
    if inputs.has_read_ahead {
        Some("no software reads ahead on bare drives")
    } else if inputs.outstanding_reads > 1 {
        Some("the controller of the PC-AT handles one request at a time")
    } else if inputs
        .clock_interrupts
        .is_some_and(|clock| clock.frequency_hz.fract() != 0.0)
    {
        Some("its clock needs a whole number of ticks per second")
    } else {
        None
    }
}

/// Interrupts of all machines per event that one machine may have. A tick or a character causes
/// several events of the engine.
const INTERRUPT_BUDGET_SHARE: f64 = 2.0;

/// Returns the rate of the modelled machine for each interleave factor, in KB/s.
///
/// # Errors
///
/// Returns an error for a case that the machine cannot be given (see [`unmodelled_input`]), for a case
/// out of the catalogue's ranges, and for one with more interrupts than the budget allows.
pub fn run_model(
    inputs: &InterleaveInputs,
    factors: &[u32],
    (seed, threads): (u64, usize),
    budget: RunBudget,
    stop: &Arc<AtomicBool>,
) -> Result<Vec<f64>, LaboratoryError> {
    if let Some(why) = unmodelled_input(inputs) {
        return Err(LaboratoryError::Request(format!(
            "the case has no counterpart on {MODEL_SYSTEM}: {why}"
        )));
    }
    // Lines that bring characters at one rate stand to each other for ever as
    // they did at first.
    let starts = if inputs.serial_input.is_some() {
        START_COUNT
    } else {
        1
    };
    check_interrupts(inputs, factors.len() as u64 * starts, budget)?;
    let mut jobs = Vec::new();
    for factor in factors {
        let first = build_job(inputs, *factor, seed)?;
        jobs.extend((0..starts).map(|start| ModelJob {
            seed: seed + start,
            ..first.clone()
        }));
    }
    let crew = WatchedCrew {
        crew: &ThreadCrew(threads),
        stop,
        progress: &|_, _| (),
    };
    let done = ModelWorkshop::new(crew, budget).run_jobs(&jobs)?;
    // As many sectors from each start: the times are what is averaged.
    let mean = |runs: &[Vec<ModelFigures>]| {
        let inverse = runs.iter().map(|figures| 1.0 / figures[0].kb_per_s);
        runs.len() as f64 / inverse.sum::<f64>()
    };
    Ok(done.chunks(starts as usize).map(mean).collect())
}

/// Verifies that this number of machines can complete within the budget of events.
fn check_interrupts(
    inputs: &InterleaveInputs,
    machines: u64,
    budget: RunBudget,
) -> Result<(), LaboratoryError> {
    let sectors = (machines * sector_count(inputs)) as f64;
    let interrupts = inputs.interrupts_per_sector() * sectors;
    let most = budget.event_count_max as f64 * INTERRUPT_BUDGET_SHARE;
    if interrupts <= most || budget == RunBudget::UNLIMITED {
        return Ok(());
    }
    let parts = inputs.service.list_parts().into_iter();
    let (longest, ms) = parts
        .max_by(|one, other| one.1.total_cmp(&other.1))
        .expect("a service has parts");
    Err(LaboratoryError::Request(format!(
        "its machines would serve {interrupts:.1e} interrupts, and up to {most:.0e} are allowed; the longest part of the service, {longest}, takes {ms} ms; give shorter times, fewer --serial-lines or a lower --baud, or lift the limit with --no-budget"
    )))
}

fn sector_count(inputs: &InterleaveInputs) -> u64 {
    let most = HEADS_MAX * u64::from(inputs.track.sectors_per_track);
    let sectors = match inputs.serial_input {
        Some(_) => SECTORS_READ / 4,
        None => SECTORS_READ,
    };
    sectors.min(most)
}

fn build_job(
    inputs: &InterleaveInputs,
    factor: u32,
    seed: u64,
) -> Result<ModelJob, LaboratoryError> {
    let sector_bytes = u64::from(inputs.track.sector_bytes);
    let size_bytes = sector_count(inputs) * sector_bytes;
    let computer = ModelComputer::read_catalogue(
        &Catalogue::embedded(),
        MODEL_SYSTEM,
        &bare_drive_settings(&build_settings(inputs, factor)),
    )?;
    let mut program = Program::from_name("track_read").expect("the battery has track_read");
    let think = inputs.service.application_ms / inputs.cpu_speed * 1e6;
    for (key, value) in [
        ("call_bytes", sector_bytes),
        ("area_bytes", size_bytes),
        ("think_ns", (think + 0.5) as u64),
    ] {
        let set = program.set_parameter(key, &value.to_string());
        set.map_err(|error| LaboratoryError::Request(error.to_string()))?;
    }
    Ok(ModelJob {
        protocol: ONE_REPETITION,
        ..ModelJob::from_repetitions(Arc::new(computer), program, size_bytes, seed)
    })
}

/// Settings of the modelled machine for the case: its drive, costs and interrupts. Nothing else
/// takes time.
fn build_settings(inputs: &InterleaveInputs, factor: u32) -> Vec<Setting> {
    let track = &inputs.track;
    let service = &inputs.service;
    let sectors = HEADS_MAX * u64::from(track.sectors_per_track);
    let (tick_ms, clock_hz) = match &inputs.clock_interrupts {
        Some(clock) => (clock.tick_ms, clock.frequency_hz),
        None => (0.0, 10.0),
    };
    let ms = |value: f64| format!("{value:.9}");
    let mut all = vec![
        ("drive.interleave", factor.to_string()),
        (
            "drive.spindle_rpm",
            format!("{:.4}", track.rpm / (1.0 + RATE_LOSS_SHARE_MAX)),
        ),
        (
            "drive.sectors_per_track",
            track.sectors_per_track.to_string(),
        ),
        (
            "drive.spare_sectors_per_track",
            track.spare_sectors_per_track.to_string(),
        ),
        ("drive.sector_bytes", track.sector_bytes.to_string()),
        ("drive.index_gap_share", "0".to_owned()),
        ("drive.heads", HEADS_MAX.to_string()),
        ("drive.cylinders", "2".to_owned()),
        ("drive.seek_minimum_ms", "1".to_owned()),
        ("drive.seek_average_ms", "1".to_owned()),
        ("drive.seek_maximum_ms", "1".to_owned()),
        ("drive.partition_sectors", sectors.to_string()),
        ("controller.command_ms", "0".to_owned()),
        ("controller.command_poll_ms", "0".to_owned()),
        ("host.speed", format!("{}", inputs.cpu_speed)),
        ("host.clock_hz", format!("{clock_hz}")),
        ("kernel.clock_tick_ms", ms(tick_ms)),
        ("kernel.soft_clock_ms", "0".to_owned()),
        ("kernel.interrupt_ms", ms(service.interrupt_latency_ms)),
        ("kernel.switch_ms", ms(service.reschedule_ms)),
        ("kernel.system_call_ms", ms(service.system_call_ms)),
        ("kernel.read_write_ms", ms(service.higher_priority_ms)),
        ("driver.complete_ms", ms(service.driver_ms)),
        ("driver.move_sector_ms", "0".to_owned()),
        ("driver.strategy_ms", "0".to_owned()),
        ("driver.start_ms", ms(service.transfer_start_ms)),
    ];
    if let Some(serial) = &inputs.serial_input {
        all.extend(build_serial_settings(serial, inputs.cpu_speed));
    }
    let setting = |(path, text): (&str, String)| Setting {
        path: path.to_owned(),
        value_text: text,
    };
    all.into_iter().map(setting).collect()
}

/// Settings of the serial lines on the modelled machine. The speed of the processor is part of
/// their costs.
fn build_serial_settings(serial: &SerialInput, cpu_speed: f64) -> Vec<(&'static str, String)> {
    let per_char = match serial.method {
        SerialMethod::Programmed | SerialMethod::PseudoDma => serial.us_per_char,
        SerialMethod::Dma => 0.0,
    } + serial.raw_wakeup_us.unwrap_or(0.0);
    let per_buffer = match serial.method {
        SerialMethod::Programmed => 0.0,
        SerialMethod::PseudoDma | SerialMethod::Dma => {
            serial.completion_us_per_char * f64::from(serial.buffer_chars)
        }
    };
    let us = |value: f64| format!("{:.6}", value / cpu_speed);
    vec![
        ("host.serial_lines", serial.line_count.to_string()),
        ("host.serial_baud", serial.baud_rate.to_string()),
        ("host.serial_us_per_char", us(per_char)),
        ("host.serial_us_per_buffer", us(per_buffer)),
        (
            "host.serial_buffer_chars",
            serial.buffer_chars.max(1).to_string(),
        ),
    ]
}
