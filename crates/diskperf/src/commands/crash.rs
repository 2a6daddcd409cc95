//! The command `diskperf crash`.

mod format;

use super::{CommandResult, DONE, FAILED};
use crate::arguments::{CrashArguments, CrashFormat};
use crate::commands::serve::serve_error;
use crate::output::{print, print_message};
use crate::progress::CountProgress;
use crate::signals::stop_on_signals;
use diskperf_crash::{CutPolicy, Instants, Log, log_writes};
use diskperf_laboratory::crash::{
    self, CrashObserver, CrashOptions, DirectoryWorkload, DriveRequests, DriveWorkload,
    RequestSource,
};
use diskperf_laboratory::crew::available_threads;
use diskperf_laboratory::{LaboratoryError, Output};
use diskperf_models::model::load_catalogue;
use diskperf_serve::resolve_drive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Media that are checked at the same time for each processor. A mount and an unmount mostly wait
/// for the kernel; from 4 on, two processors are busy.
const MEDIA_PER_PROCESSOR: usize = 4;

/// Runs a workload on a modelled drive, cuts the power, and prints what was lost.
pub(crate) fn crash(arguments: &CrashArguments, store: Option<&Path>) -> CommandResult {
    let options = CrashOptions {
        source: source(arguments)?,
        filesystem: arguments.fs.parse().map_err(LaboratoryError::request)?,
        check: arguments.check.clone(),
        check_time_max: arguments.check_timeout,
        instants: arguments.cuts.unwrap_or(match arguments.directory {
            true => Instants::Marks,
            false => Instants::Each,
        }),
        policy: arguments.cut,
        seed: arguments.seed,
        jobs: match (arguments.jobs, arguments.directory) {
            (Some(jobs), _) => usize::from(jobs),
            (None, true) => available_threads(),
            (None, false) => MEDIA_PER_PROCESSOR * available_threads(),
        },
        resume: arguments.resume.clone(),
    };
    let open = |option: &str, path: &Option<PathBuf>| {
        let path = path.as_deref();
        path.map(|path| Output::open_beside_table(option, path))
            .transpose()
    };
    let junit = open("--junit", &arguments.junit)?;
    let mut watcher = Watcher {
        export: open("--export-log", &arguments.export_log)?,
        progress: CountProgress::new(arguments.quiet),
        checked: None,
    };
    let stop = stop_on_signals()?;
    let report = crash::crash(&options, store, &stop, &mut watcher);
    let checked = watcher.checked;
    drop(watcher);
    if let (Err(_), Some(path), Some(Checked { count, of })) = (&report, &options.resume, checked) {
        let path = path.display();
        print_message(&format!(
            "{count} of {of} cuts are checked and kept in {path}: the same command checks the others"
        ));
    }
    let report = report?;
    print(&match arguments.format {
        CrashFormat::Table => format::table(arguments, &report),
        CrashFormat::Json => {
            let json = format::json(arguments, &report);
            serde_json::to_string_pretty(&json).map_err(LaboratoryError::work)?
        }
    })?;
    if let Some(junit) = junit {
        let text = format::junit(arguments, &report);
        junit.write_with(|output| {
            output
                .write_all(text.as_bytes())
                .map_err(LaboratoryError::work)
        })?;
    }
    Ok(if report.is_good() { DONE } else { FAILED })
}

fn source(arguments: &CrashArguments) -> Result<RequestSource, LaboratoryError> {
    let lying = arguments.lying_flush.unwrap_or_default();
    if arguments.directory && arguments.cut == CutPolicy::Unreadable {
        return Err(LaboratoryError::Request(
            "--cut unreadable: files have no sectors that a cut makes unreadable: name a drive (`--on`) in place of --directory".to_owned(),
        ));
    }
    match (&arguments.log, &arguments.workload, &arguments.on) {
        (Some(log), ..) => {
            let log = crash::read_log(log, arguments.size)?;
            Ok(RequestSource::Drive(DriveRequests::Log(Arc::new(log))))
        }
        (None, Some(command), None) if arguments.directory => {
            Ok(RequestSource::Directory(DirectoryWorkload {
                command: command.clone(),
                lying,
                failing: arguments.failing_sync.unwrap_or_default(),
            }))
        }
        (None, Some(command), Some(drive)) => {
            let catalogue = load_catalogue(arguments.catalogue.as_deref())?;
            let drive =
                resolve_drive(&catalogue, drive, &arguments.settings).map_err(serve_error)?;
            let workload = DriveWorkload {
                command: command.clone(),
                drive: Box::new(drive),
                speed: arguments.speed,
                lying,
            };
            Ok(RequestSource::Drive(DriveRequests::Workload(workload)))
        }
        (None, ..) => Err(LaboratoryError::Request(
            "name a workload and a drive (`--on`), or a log (`--log`)".to_owned(),
        )),
    }
}

/// Takes the log and the progress of a crash test.
struct Watcher {
    export: Option<Output>,
    progress: CountProgress,
    /// Progress that was shown last.
    checked: Option<Checked>,
}

/// Number of cuts that are checked, and of all of them.
#[derive(Clone, Copy)]
struct Checked {
    count: usize,
    of: usize,
}

impl CrashObserver for Watcher {
    fn recorded(&mut self, log: &Log) -> Result<(), LaboratoryError> {
        let Some(export) = self.export.take() else {
            return Ok(());
        };
        export.write_with(|output| log_writes::write(log, output).map_err(LaboratoryError::work))
    }

    fn checked(&mut self, checked_count: usize, cut_count: usize, failure_count: usize) {
        self.checked = Some(Checked {
            count: checked_count,
            of: cut_count,
        });
        self.progress.show(checked_count, cut_count, failure_count);
    }
}
