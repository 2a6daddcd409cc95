//! The command `diskperf serve`.

mod control;
mod logs;
mod page;
mod progress;
mod report;
mod transport;

use super::{CommandResult, DONE};
use crate::arguments::ServeArguments;
use crate::output::{print, print_message};
use crate::signals::stop_on_signals;
use diskperf_laboratory::clean::{CleanOutcome, CleanRequest, Leftover};
use diskperf_laboratory::served_disk::prepare_served_disk;
use diskperf_laboratory::{LaboratoryError, Output};
use diskperf_models::model::load_catalogue;
use diskperf_serve::{
    ControlServer, ServeError, Served, ServedOptions, abandoned_directories, read_faults,
    resolve_drive, served_sectors,
};
use diskperf_timeline::units::format_size;
use logs::Logs;
use page::DrivePage;
use progress::ServeProgress;
use report::format_report;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use transport::Transport;

/// Interval at which the command looks for a signal, and shows its progress.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Serves a drive until its time is over or a signal comes, and prints the statistics.
pub(crate) fn serve(arguments: &ServeArguments) -> CommandResult {
    let catalogue = load_catalogue(arguments.catalogue.as_deref())?;
    let settings = &arguments.settings;
    let specification =
        resolve_drive(&catalogue, &arguments.drive, settings).map_err(serve_error)?;
    let copies_on_write = copies_on_write(arguments);
    if let Some(path) = arguments.data_file.as_ref().filter(|_| !copies_on_write) {
        require_data_file(path)?;
    }
    let sectors = served_sectors(&specification, arguments.size).map_err(serve_error)?;
    let faults =
        read_faults(&arguments.fault_files, arguments.seed, sectors).map_err(serve_error)?;
    let options = ServedOptions {
        data: arguments.data_file.clone(),
        copies_on_write,
        size_bytes: arguments.size,
        speed: arguments.speed,
        is_read_only: arguments.read_only,
        seed: arguments.seed,
        keeps_arrivals: false,
        faults,
    };
    if arguments.device {
        prepare_served_disk()?;
    }
    // Before anything is made that a signal would leave.
    let stop = stop_on_signals()?;
    let served = Arc::new(Served::start(&specification, &options).map_err(serve_error)?);
    let mut transport = Transport::start(arguments, &served)?;
    let mut logs = Logs::open(arguments, &served)?;
    let control = start_control(arguments, &served)?;
    let page = DrivePage::start(arguments, &served).map_err(serve_error)?;
    let copied = arguments.data_file.as_ref().filter(|_| copies_on_write);
    print_address(arguments, &served, copied, &transport);
    if let Some(page) = &page {
        let url = page.url();
        print_message(&format!("watch it at {url}; Prometheus finds {url}metrics"));
    }
    let ended = wait_for_end(arguments, &served, &stop, &mut logs, page.as_ref());
    drop((control, page));
    let unserved = transport.end();
    let logged = logs.add(&served).and_then(|()| logs.finish());
    let synced = served.data.sync();
    let report = served.statistics.report();
    print(&format_report(arguments, &served, &report)?)?;
    let is_running = ended?;
    logged?;
    unserved?;
    if !is_running {
        let reason = "the model of the drive failed, and clients were disconnected";
        return Err(LaboratoryError::Failure(reason.to_owned()));
    }
    synced.map_err(|error| {
        let path = arguments.data_file.as_deref().unwrap_or(Path::new("-"));
        LaboratoryError::Failure(format!("{}: cannot be synced: {error}", path.display()))
    })?;
    Ok(DONE)
}

/// Removes what killed servers left.
pub(super) fn clean(request: &CleanRequest, cleaned: &mut CleanOutcome) {
    match abandoned_directories() {
        Ok(found) => {
            for abandoned in found {
                let leftover = Leftover::Server(abandoned.path().to_owned());
                cleaned.finish(request, leftover, || abandoned.remove());
            }
        }
        Err(error) => cleaned.failures.push(error.to_string()),
    }
}

pub(super) fn serve_error(error: ServeError) -> LaboratoryError {
    match error {
        ServeError::Request(text) => LaboratoryError::Request(text),
        ServeError::Catalogue(errors) => LaboratoryError::Catalogue(errors),
        ServeError::Work(text) => LaboratoryError::Failure(text),
    }
}

/// Whether the data are those of a file that is left as it is.
fn copies_on_write(arguments: &ServeArguments) -> bool {
    let is_there = |path: &PathBuf| path.symlink_metadata().is_ok();
    let changes = arguments.write || arguments.read_only;
    !changes && arguments.data_file.as_ref().is_some_and(is_there)
}

/// Makes sure that the data go to a file of the user's, by the rules for outputs.
fn require_data_file(path: &Path) -> Result<(), LaboratoryError> {
    match Output::open(path)? {
        Output::File(_) => Ok(()),
        Output::StandardOutput => Err(LaboratoryError::Request(format!(
            "--data {}: the data are read and written at any place: name a file",
            path.display()
        ))),
    }
}

/// Listens at the control socket, if there is to be one.
fn start_control(
    arguments: &ServeArguments,
    served: &Arc<Served>,
) -> Result<Option<ControlServer>, LaboratoryError> {
    let Some(path) = &arguments.control else {
        return Ok(None);
    };
    let (served, arguments) = (Arc::clone(served), arguments.clone());
    let answer = move |line: &str| control::answer(line, &arguments, &served).to_string();
    ControlServer::start(path, answer)
        .map(Some)
        .map_err(serve_error)
}

/// Says where the drive is served, and how it is used.
fn print_address(
    arguments: &ServeArguments,
    served: &Served,
    copied: Option<&PathBuf>,
    transport: &Transport,
) {
    let size = format_size(served.size_bytes);
    let speed = match arguments.speed {
        1.0 => String::new(),
        speed => format!(" at {speed} times its speed"),
    };
    let access = if arguments.read_only {
        ", read-only"
    } else {
        ""
    };
    let (drive, address) = (&arguments.drive, transport.address());
    print_message(&format!(
        "serving {drive}, {size}{access}{speed}, at {address}"
    ));
    if let Some(path) = copied {
        let path = path.display();
        print_message(&format!(
            "{path} is left as it is, and what is written ends with the server; --write writes it"
        ));
    }
    print_message(&format!(
        "use it as {}; Ctrl-C ends it and prints the statistics",
        transport.describe_use()
    ));
}

/// Waits until the time is over or a signal comes. Returns whether the drive was served all the
/// time.
///
/// # Errors
///
/// A log cannot be written.
fn wait_for_end(
    arguments: &ServeArguments,
    served: &Served,
    stop: &AtomicBool,
    logs: &mut Logs,
    page: Option<&DrivePage>,
) -> Result<bool, LaboratoryError> {
    let mut progress = ServeProgress::new(arguments);
    let start = Instant::now();
    while !stop.load(Ordering::SeqCst) {
        let left = arguments
            .lasts
            .map(|lasts| lasts.saturating_sub(start.elapsed()));
        if left == Some(Duration::ZERO) {
            break;
        }
        if !served.drive.is_running() {
            return Ok(false);
        }
        logs.add(served)?;
        if let Some(page) = page {
            page.update();
        }
        thread::sleep(left.map_or(POLL_INTERVAL, |left| left.min(POLL_INTERVAL)));
        progress.update(served);
    }
    Ok(true)
}
