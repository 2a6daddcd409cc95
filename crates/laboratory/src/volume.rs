//! Loads of cloud volumes: job files and traces.

use crate::job_file::{names_job_file, parse_named_file};
use crate::traces::{OpenTrace, ReadProgress, TraceRequest, list_files};
use diskperf_analysis::volume::VolumeReport;
use diskperf_blocktrace::{TraceRecord, TracedOperation};
use diskperf_catalogue::Catalogue;
use diskperf_device::volume::charge::ChargeRules;
use diskperf_models::LaboratoryError;
use diskperf_models::job_file::parse_text;
use diskperf_models::volume::{
    LoadedRequest, TraceLoadBuilder, VolumeLoad, VolumeSearch, VolumeType, list_volume_types,
    read_job_file, report_volumes,
};
use diskperf_timeline::Setting;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Longest duration of the calculation, in nanoseconds: 366 days.
pub const DURATION_NS_MAX: u64 = 366 * 86_400 * 1_000_000_000;

/// Request for a calculation of the volumes that carry a load.
#[derive(Clone, Debug)]
pub struct VolumeRequest<'a> {
    /// Job file or trace, as the user named it.
    pub load: &'a str,
    /// Words of fio's command line for the job file.
    pub fio_arguments: &'a [String],
    /// Types of volumes, each as `TYPE`, `TYPE:SIZE` or `TYPE:TIER`; empty for all.
    pub volumes: &'a [String],
    /// Settings of all volumes.
    pub settings: &'a [Setting],
    /// Duration for which the load repeats, in nanoseconds.
    pub total_ns: u64,
    /// Smallest size of a volume in GiB.
    pub size_gib_min: u64,
}

/// Calculates which volumes carry a load.
///
/// # Errors
///
/// Returns an error if the load cannot be read, if its jobs have no end in time, or if a volume does
/// not exist.
pub fn calculate_volumes(
    catalogue: &Catalogue,
    request: &VolumeRequest<'_>,
    stop: &Arc<AtomicBool>,
) -> Result<VolumeReport, LaboratoryError> {
    let types = list_volume_types(catalogue, request.volumes, request.settings)?;
    let rules: Result<Vec<ChargeRules>, LaboratoryError> =
        types.iter().map(VolumeType::charge_rules).collect();
    let load = match names_job_file(request.load) && !is_trace(request.load) {
        true => {
            let text = parse_named_file(request.load, request.fio_arguments)?;
            read_job_file(&parse_text(&text)?, request.load, &rules?)?
        }
        false => read_trace(request, &rules?, stop)?,
    };
    report_volumes(&VolumeSearch {
        types: &types,
        load: &load,
        total_ns: request.total_ns,
        size_gib_min: request.size_gib_min,
        stop,
    })
}

/// Reports whether a file has a name that job files do not have.
fn is_trace(name: &str) -> bool {
    let ending = Path::new(name).extension().and_then(|one| one.to_str());
    !matches!(ending, Some("fio" | "job" | "ini"))
}

/// Reads the requests of a trace that are issued within the duration, in parts of a second or longer.
fn read_trace(
    request: &VolumeRequest<'_>,
    rules: &[ChargeRules],
    stop: &Arc<AtomicBool>,
) -> Result<VolumeLoad, LaboratoryError> {
    if let Some(word) = request.fio_arguments.first() {
        return Err(LaboratoryError::Request(format!(
            "--fio-arg {word}: it is for fio job files, and {} is a trace",
            request.load
        )));
    }
    let asked = TraceRequest {
        files: list_files(&[request.load.into()])?,
        ..TraceRequest::default()
    };
    let mut builder = TraceLoadBuilder::new(request.load, rules, request.total_ns);
    let mut opened = OpenTrace::open(&asked, &ReadProgress::default(), stop)?;
    opened.for_each_request(stop, |record, _| {
        builder.advance(record.issued_ns);
        let Some(loaded) = loaded_request(record) else {
            return Ok(());
        };
        builder
            .add_request(loaded)
            .map_err(|why| LaboratoryError::Request(format!("{}: {why}", request.load)))
    })?;
    opened.check_requests(&asked)?;
    builder
        .finish()
        .map_err(|why| LaboratoryError::Request(format!("{}: {why}", request.load)))
}

/// Returns the request as a volume charges it; `None` for flushes and discards, which are free.
fn loaded_request(record: &TraceRecord) -> Option<LoadedRequest> {
    let is_write = match record.operation {
        TracedOperation::Read => false,
        TracedOperation::Write | TracedOperation::WriteZeroes => true,
        TracedOperation::Flush | TracedOperation::Discard => return None,
    };
    Some(LoadedRequest {
        start_byte: record.offset_bytes,
        bytes: record.length_bytes,
        is_write,
    })
}
