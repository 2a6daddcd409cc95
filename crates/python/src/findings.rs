//! What is found without a run: in a trace, at the arm of a disk, by formula of a flash
//! drive, of real drives.

use crate::errors::{exception, request_error};
use crate::interruptible::interruptible;
use diskperf_analysis::disk_queue::DiskQueueReport;
use diskperf_analysis::expected::ExpectedFigures;
use diskperf_analysis::flash::{FlashDrive, FlashReport};
use diskperf_analysis::real_drives::RealDrives;
use diskperf_analysis::recorded::RecordingSummary;
use diskperf_analysis::report::{self, ReportFormat};
use diskperf_analysis::trace::TraceReport;
use diskperf_laboratory::crew::{ThreadCrew, available_threads};
use diskperf_laboratory::recording::device::{ReadyRecording, RecordRequest as AskedOfDisk};
use diskperf_laboratory::reproduce::real_drives;
use diskperf_laboratory::traces::{
    ReadOptions, ReadProgress, TraceRequest as AskedOfTrace, list_files, summarize,
};
use diskperf_models::disk_queue::{self, DiskQueueRequest as AskedOfQueue};
use diskperf_models::expected;
use diskperf_models::flash::{self, FlashRequest as AskedOfFlash};
use diskperf_models::model::{load_catalogue, parse_settings};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::time::Duration;

/// What was found.
#[pyclass(frozen, module = "diskperf._native")]
pub(crate) struct Finding(Found);

enum Found {
    Trace(Box<TraceReport>),
    Queue(DiskQueueReport),
    Flash(Box<FlashReport>),
    Drives(RealDrives),
    Expected(ExpectedFigures),
    Recorded(Box<RecordingSummary>),
}

impl Finding {
    fn printed(&self, format: ReportFormat, width: u16) -> String {
        match &self.0 {
            Found::Trace(of) => report::render_trace(of, format, width),
            Found::Queue(of) => report::render_disk_queue(of, format, width),
            Found::Flash(of) => report::render_flash(of, format, width),
            Found::Drives(of) => report::render_real_drives(of, format, width),
            Found::Expected(of) => report::render_expected(of, format, width),
            Found::Recorded(of) => report::render_recording(of, format, width),
        }
    }
}

#[pymethods]
impl Finding {
    /// The JSON of the command line's `--format json`.
    fn json(&self) -> String {
        self.printed(ReportFormat::Json, 0)
    }

    /// The tables of the command line, as wide as this many columns.
    fn text(&self, width: u16) -> String {
        self.printed(ReportFormat::Table, width)
    }
}

/// How a trace is asked for, as `python/diskperf/_findings.py` gathers it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct AskedTrace {
    files: Vec<PathBuf>,
    form: Option<String>,
    columns: Option<String>,
    time_unit: Option<String>,
    partial: bool,
    window_s: Option<(f64, f64)>,
    part: Option<usize>,
    device: Option<String>,
}

/// What a block trace holds.
#[pyfunction]
pub(crate) fn trace(py: Python<'_>, asked: AskedTrace) -> PyResult<Finding> {
    let refused = |error: String| request_error(py, error);
    let ns = |seconds: f64| (seconds.max(0.0) * 1e9) as u64;
    let asked = AskedOfTrace {
        files: list_files(&asked.files).map_err(|error| exception(py, &error))?,
        read_options: ReadOptions {
            form: asked
                .form
                .map(|name| name.parse())
                .transpose()
                .map_err(refused)?,
            columns: asked
                .columns
                .map(|text| text.parse())
                .transpose()
                .map_err(refused)?,
            time_unit: asked
                .time_unit
                .map(|name| name.parse())
                .transpose()
                .map_err(refused)?,
            partial: asked.partial,
        },
        window_ns: asked.window_s.map(|(from, to)| (ns(from), ns(to))),
        part_index: asked.part,
        device_name: asked.device,
        scale_to_bytes: None,
    };
    let found = interruptible(py, |stop| summarize(&asked, &ReadProgress::default(), stop))?;
    let found = found.map_err(|error| exception(py, &error))?;
    Ok(Finding(Found::Trace(Box::new(found))))
}

/// Records what a disk is asked by whoever.
#[pyfunction]
pub(crate) fn record(
    py: Python<'_>,
    target: PathBuf,
    output: PathBuf,
    seconds: Option<f64>,
    force: bool,
) -> PyResult<Finding> {
    let lasts = seconds.map(Duration::try_from_secs_f64).transpose();
    let lasts = lasts.map_err(|error| request_error(py, format!("seconds: {error}")))?;
    let asked = AskedOfDisk {
        target,
        duration: lasts,
    };
    let came = interruptible(py, |stop| {
        let ready = ReadyRecording::prepare(asked, &output, force)?;
        ready.record(stop, |_| {})
    })?;
    let came = came.map_err(|error| exception(py, &error))?;
    Ok(Finding(Found::Recorded(Box::new(came))))
}

/// How a queue is asked for.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct AskedQueue {
    on: String,
    settings: Vec<String>,
    drive: u32,
    orders: Vec<String>,
    depths: Vec<u32>,
    block_bytes: u64,
    requests: u64,
    seed: u64,
    catalogue: Option<PathBuf>,
}

/// What orders of service gain at the arm of a disk.
#[pyfunction]
pub(crate) fn calculate_disk(py: Python<'_>, asked: AskedQueue) -> PyResult<Finding> {
    let found = interruptible(py, |_| {
        let catalogue = load_catalogue(asked.catalogue.as_deref())?;
        let settings = parse_settings(&asked.settings)?;
        disk_queue::report_disk_queue(
            &catalogue,
            &AskedOfQueue {
                target: &asked.on,
                settings: &settings,
                drive_index: asked.drive,
                order_names: &asked.orders,
                queue_depths: &asked.depths,
                block_bytes: asked.block_bytes,
                requests: asked.requests,
                seed: asked.seed,
            },
        )
    })?;
    let found = found.map_err(|error| exception(py, &error))?;
    Ok(Finding(Found::Queue(found)))
}

/// A flash drive's numbers, as `python/diskperf/_findings.py` gathers them.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct AskedDrive {
    dies: u32,
    program_bytes: u64,
    program_us: f64,
    sensed_bytes: u64,
    read_us: f64,
    transfer_us: f64,
    capacity_bytes: u64,
    buffer_bytes: u64,
    arrival_mb_per_s: f64,
    cache_bytes: u64,
    cache_mb_per_s: f64,
    cycles: f64,
    years: f64,
}

/// What is to be calculated of it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct AskedCalculation {
    spares: Vec<f64>,
    policies: Vec<String>,
    superblock_units: u32,
    hot: Option<String>,
    trimmed: f64,
    apart: bool,
    depths: Vec<u32>,
    seed: u64,
    drive: AskedDrive,
}

/// Formulas of a flash drive, beside the model of its translation layer.
#[pyfunction]
pub(crate) fn calculate_flash(py: Python<'_>, asked: AskedCalculation) -> PyResult<Finding> {
    let drive = asked.drive;
    let asked = AskedOfFlash {
        spare_shares: asked.spares,
        policy_names: asked.policies,
        superblock_units: asked.superblock_units,
        hot_shares: asked.hot,
        trimmed_share: asked.trimmed,
        separates_hot: asked.apart,
        queue_depths: asked.depths,
        seed: asked.seed,
        drive: FlashDrive {
            die_count: drive.dies,
            program_bytes: drive.program_bytes,
            program_us: drive.program_us,
            sensed_bytes: drive.sensed_bytes,
            read_us: drive.read_us,
            transfer_us: drive.transfer_us,
            capacity_bytes: drive.capacity_bytes,
            buffer_bytes: drive.buffer_bytes,
            arrival_mb_per_s: drive.arrival_mb_per_s,
            cache_bytes: drive.cache_bytes,
            cache_mb_per_s: drive.cache_mb_per_s,
            erase_cycles: drive.cycles,
            warranty_years: drive.years,
        },
    };
    let found = interruptible(py, |_| flash::report_flash(&asked))?;
    let found = found.map_err(|error| exception(py, &error))?;
    Ok(Finding(Found::Flash(Box::new(found))))
}

/// Real drives of a directory, each calibrated on half of its trace and replayed.
#[pyfunction]
pub(crate) fn reproduce_real_drives(py: Python<'_>, data: PathBuf) -> PyResult<Finding> {
    let found = interruptible(py, |stop| real_drives::reproduce(&data, stop, &|_, _| ()))?;
    let found = found.map_err(|error| exception(py, &error))?;
    Ok(Finding(Found::Drives(found)))
}

/// What a drive of the catalogue does, beside what is expected of it.
#[pyfunction]
pub(crate) fn expected_of(
    py: Python<'_>,
    drive: String,
    catalogue: Option<PathBuf>,
) -> PyResult<Finding> {
    let found = interruptible(py, |stop| {
        let catalogue = load_catalogue(catalogue.as_deref())?;
        let crew = ThreadCrew(available_threads());
        expected::compare_expected((&catalogue, &drive), &crew, stop, &|_, _| ())
    })?;
    let found = found.map_err(|error| exception(py, &error))?;
    Ok(Finding(Found::Expected(found)))
}
