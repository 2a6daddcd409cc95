//! Results that need no run: of traces, disk queues, flash formulas and real drives.

use crate::errors::{request_exception, to_exception};
use crate::interruptible::run_interruptible;
use diskperf_analysis::disk_queue::DiskQueueReport;
use diskperf_analysis::expected::ExpectedFigures;
use diskperf_analysis::flash::{FlashDrive, FlashReport};
use diskperf_analysis::real_drives::RealDrives;
use diskperf_analysis::recorded::RecordingSummary;
use diskperf_analysis::report::{self, ReportFormat};
use diskperf_analysis::trace::TraceReport;
use diskperf_analysis::volume::VolumeReport;
use diskperf_laboratory::crew::{ThreadCrew, available_threads};
use diskperf_laboratory::recording::device::{ReadyRecording, RecordRequest as AskedOfDisk};
use diskperf_laboratory::reproduce::real_drives;
use diskperf_laboratory::traces::{
    ReadOptions, ReadProgress, TraceRequest as AskedOfTrace, list_files, summarize,
};
use diskperf_laboratory::volume::{DURATION_NS_MAX, VolumeRequest, calculate_volumes};
use diskperf_models::disk_queue::{self, DiskQueueRequest as AskedOfQueue};
use diskperf_models::expected;
use diskperf_models::flash::{self, FlashRequest as AskedOfFlash};
use diskperf_models::model::{load_catalogue, parse_settings};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::time::Duration;

/// Result of a calculation or an analysis.
#[pyclass(frozen, module = "diskperf._native")]
pub(crate) struct Finding(FindingKind);

enum FindingKind {
    Trace(Box<TraceReport>),
    Queue(DiskQueueReport),
    Volumes(VolumeReport),
    Flash(Box<FlashReport>),
    Drives(RealDrives),
    Expected(ExpectedFigures),
    Recorded(Box<RecordingSummary>),
}

impl Finding {
    fn render(&self, format: ReportFormat, width: u16) -> String {
        match &self.0 {
            FindingKind::Trace(of) => report::render_trace(of, format, width),
            FindingKind::Queue(of) => report::render_disk_queue(of, format, width),
            FindingKind::Volumes(of) => report::render_volumes(of, format, width),
            FindingKind::Flash(of) => report::render_flash(of, format, width),
            FindingKind::Drives(of) => report::render_real_drives(of, format, width),
            FindingKind::Expected(of) => report::render_expected(of, format, width),
            FindingKind::Recorded(of) => report::render_recording(of, format, width),
        }
    }
}

#[pymethods]
impl Finding {
    /// Returns the JSON of the command with `--format json`.
    fn json(&self) -> String {
        self.render(ReportFormat::Json, 0)
    }

    /// Returns the tables of the command, at most `width` columns wide.
    fn text(&self, width: u16) -> String {
        self.render(ReportFormat::Table, width)
    }
}

/// Keywords of a trace summary, as `python/diskperf/_findings.py` collects them.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct TraceArguments {
    files: Vec<PathBuf>,
    form: Option<String>,
    columns: Option<String>,
    time_unit: Option<String>,
    partial: bool,
    window_s: Option<(f64, f64)>,
    part: Option<usize>,
    device: Option<String>,
}

/// Summarizes a block trace.
#[pyfunction]
pub(crate) fn trace(py: Python<'_>, asked: TraceArguments) -> PyResult<Finding> {
    let refused = |error: String| request_exception(py, error);
    let ns = |seconds: f64| (seconds.max(0.0) * 1e9) as u64;
    let asked = AskedOfTrace {
        files: list_files(&asked.files).map_err(|error| to_exception(py, &error))?,
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
            is_partial_allowed: asked.partial,
        },
        window_ns: asked.window_s.map(|(from, to)| (ns(from), ns(to))),
        part_index: asked.part,
        device_name: asked.device,
        scale_to_bytes: None,
    };
    let found = run_interruptible(py, |stop| summarize(&asked, &ReadProgress::default(), stop))?;
    let found = found.map_err(|error| to_exception(py, &error))?;
    Ok(Finding(FindingKind::Trace(Box::new(found))))
}

/// Records the requests of a block device into a trace.
#[pyfunction]
pub(crate) fn record(
    py: Python<'_>,
    target: PathBuf,
    output: PathBuf,
    seconds: Option<f64>,
    force: bool,
) -> PyResult<Finding> {
    let lasts = seconds.map(Duration::try_from_secs_f64).transpose();
    let lasts = lasts.map_err(|error| request_exception(py, format!("seconds: {error}")))?;
    let asked = AskedOfDisk {
        target,
        duration: lasts,
    };
    let came = run_interruptible(py, |stop| {
        let ready = ReadyRecording::prepare(asked, &output, force)?;
        ready.record(stop, |_| {})
    })?;
    let came = came.map_err(|error| to_exception(py, &error))?;
    Ok(Finding(FindingKind::Recorded(Box::new(came))))
}

/// Keywords of a disk queue calculation.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct DiskQueueArguments {
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

/// Calculates the gain of scheduling policies on a disk.
#[pyfunction]
pub(crate) fn calculate_disk(py: Python<'_>, asked: DiskQueueArguments) -> PyResult<Finding> {
    let found = run_interruptible(py, |_| {
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
    let found = found.map_err(|error| to_exception(py, &error))?;
    Ok(Finding(FindingKind::Queue(found)))
}

/// Keywords of a calculation of volumes.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct VolumeArguments {
    load: String,
    volumes: Vec<String>,
    settings: Vec<String>,
    fio_arguments: Vec<String>,
    seconds: f64,
    size_gib: u64,
    catalogue: Option<PathBuf>,
}

/// Calculates which cloud volumes carry a load.
#[pyfunction]
pub(crate) fn calculate_volume(py: Python<'_>, asked: VolumeArguments) -> PyResult<Finding> {
    let total = Duration::try_from_secs_f64(asked.seconds)
        .ok()
        .and_then(|total| u64::try_from(total.as_nanos()).ok())
        .filter(|total_ns| (1..=DURATION_NS_MAX).contains(total_ns));
    let total_ns = total.ok_or_else(|| {
        request_exception(py, "seconds: give a time of up to 366 days".to_owned())
    })?;
    let found = run_interruptible(py, |stop| {
        let catalogue = load_catalogue(asked.catalogue.as_deref())?;
        let settings = parse_settings(&asked.settings)?;
        let request = VolumeRequest {
            load: &asked.load,
            fio_arguments: &asked.fio_arguments,
            volumes: &asked.volumes,
            settings: &settings,
            total_ns,
            size_gib_min: asked.size_gib,
        };
        calculate_volumes(&catalogue, &request, stop)
    })?;
    let found = found.map_err(|error| to_exception(py, &error))?;
    Ok(Finding(FindingKind::Volumes(found)))
}

/// Parameters of a flash drive, as `python/diskperf/_findings.py` collects them.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct FlashDriveArguments {
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

/// Keywords of a flash calculation.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct FlashArguments {
    spares: Vec<f64>,
    policies: Vec<String>,
    superblock_units: u32,
    hot: Option<String>,
    trimmed: f64,
    apart: bool,
    depths: Vec<u32>,
    seed: u64,
    drive: FlashDriveArguments,
}

/// Evaluates the formulas of a flash drive, beside the model of its translation layer.
#[pyfunction]
pub(crate) fn calculate_flash(py: Python<'_>, asked: FlashArguments) -> PyResult<Finding> {
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
    let found = run_interruptible(py, |_| flash::report_flash(&asked))?;
    let found = found.map_err(|error| to_exception(py, &error))?;
    Ok(Finding(FindingKind::Flash(Box::new(found))))
}

/// Calibrates each real drive of a directory on half of its trace, and replays the other half.
#[pyfunction]
pub(crate) fn reproduce_real_drives(py: Python<'_>, data: PathBuf) -> PyResult<Finding> {
    let found = run_interruptible(py, |stop| real_drives::reproduce(&data, stop, &|_, _| ()))?;
    let found = found.map_err(|error| to_exception(py, &error))?;
    Ok(Finding(FindingKind::Drives(found)))
}

/// Models a drive of the catalogue, beside the figures of its data sheet.
#[pyfunction]
pub(crate) fn expected_of(
    py: Python<'_>,
    drive: String,
    catalogue: Option<PathBuf>,
) -> PyResult<Finding> {
    let found = run_interruptible(py, |stop| {
        let catalogue = load_catalogue(catalogue.as_deref())?;
        let crew = ThreadCrew(available_threads());
        expected::compare_expected((&catalogue, &drive), &crew, stop, &|_, _| ())
    })?;
    let found = found.map_err(|error| to_exception(py, &error))?;
    Ok(Finding(FindingKind::Expected(found)))
}
