//! Recorder of the kernel's events while programs run: eBPF programs where the kernel takes them,
//! tracefs otherwise, and the reason why it is not the better one.

use diskperf_models::{Observer, ObserverEvent};
use diskperf_system::host::block_events::{BlockEventRecorder, BlockEventsError};
use diskperf_system::host::device::BlockDevice;
use diskperf_system::host::kernel_events::{KernelEventRecorder, KernelEventsError};
use diskperf_timeline::block::TimedPart;

const HIDDEN_SYMBOLS: &str = "the kernel hides its symbols (kptr_restrict, CAP_SYSLOG): limits of a cgroup and loop workers are not recognised";

/// Recorder of the kernel's events.
#[derive(Debug)]
pub(crate) enum EventRecorder {
    /// Programs on tracepoints, whose events give chains of stages.
    Programs {
        recorder: Box<KernelEventRecorder>,
        device_names: Vec<String>,
    },
    /// Text of tracefs, which shows the requests of the disks and the waits of the workers.
    Tracefs(BlockEventRecorder),
}

impl EventRecorder {
    /// Opens the best recorder that this system permits. Notes say which one it is, and why.
    pub(crate) fn open(disks: &[BlockDevice], observer: &mut dyn Observer) -> Option<Self> {
        if disks.is_empty() {
            let why = BlockEventsError::NoBlockDevice;
            note(
                observer,
                &format!("no events of the kernel: {why}; the kernel's counters are used instead"),
            );
            return None;
        }
        let refusal = match KernelEventRecorder::load_programs(disks) {
            Ok(recorder) => {
                note(observer, &describe_programs(&recorder));
                if !recorder.names_functions() {
                    note(observer, HIDDEN_SYMBOLS);
                }
                return Some(Self::Programs {
                    recorder: Box::new(recorder),
                    device_names: disks.iter().map(|disk| disk.name().to_owned()).collect(),
                });
            }
            Err(refusal) => refusal,
        };
        match BlockEventRecorder::record_disks(disks) {
            Ok(events) => {
                note(
                    observer,
                    &format!(
                        "recorded through tracefs, since eBPF is not available: {refusal}; tracefs shows neither the journal's work nor what other tasks did while a program waited for them"
                    ),
                );
                Some(Self::Tracefs(events))
            }
            Err(error) => {
                note(observer, &describe_no_events(&error, &refusal));
                None
            }
        }
    }

    /// Includes the calling thread in the recording, and returns its number.
    ///
    /// # Errors
    ///
    /// The kernel refuses to rename the thread, which tracefs needs.
    pub(crate) fn register_this_thread(&self) -> std::io::Result<u32> {
        match self {
            Self::Programs { .. } => Ok(diskperf_system::host::current_thread()),
            Self::Tracefs(events) => events.register_this_thread(),
        }
    }

    pub(crate) fn begin_recording(&self, observer: &mut dyn Observer) {
        let error = match self {
            Self::Programs { recorder, .. } => recorder.begin_recording().err().map(to_text),
            Self::Tracefs(events) => events.begin_recording().err().map(to_text),
        };
        if let Some(error) = error {
            note(observer, &error);
        }
    }

    /// Ends the recording and reports its events.
    pub(crate) fn end_recording(&self, parts: Vec<TimedPart>, observer: &mut dyn Observer) {
        let ended =
            match self {
                Self::Programs {
                    recorder,
                    device_names,
                } => Ok(recorder.end_recording().map(|recording| {
                    ObserverEvent::KernelEventsRecorded {
                        recording,
                        timed_parts: parts,
                        device_names: device_names.clone(),
                    }
                })),
                Self::Tracefs(events) => events
                    .end_recording(parts)
                    .map(|trace| Some(ObserverEvent::BlockTraceRecorded(trace)))
                    .map_err(to_text),
            };
        match ended {
            Ok(Some(event)) => observer.handle_event(event),
            Ok(None) => {}
            Err(error) => note(observer, &error),
        }
    }

    /// Ends all recording. Programs leave nothing behind.
    ///
    /// # Errors
    ///
    /// The buffer of tracefs cannot be removed; `diskperf clean` finds it later.
    pub(crate) fn close(self) -> Result<(), BlockEventsError> {
        match self {
            Self::Programs { .. } => Ok(()),
            Self::Tracefs(events) => events.remove_instance(),
        }
    }
}

fn note(observer: &mut dyn Observer, text: &str) {
    observer.handle_event(ObserverEvent::Note(text));
}

fn to_text(error: impl ToString) -> String {
    error.to_string()
}

fn describe_programs(recorder: &KernelEventRecorder) -> String {
    let count = recorder.tracepoint_count();
    match recorder.missing_tracepoints() {
        [] => format!("recorded by eBPF programs on {count} tracepoints"),
        missing => format!(
            "recorded by eBPF programs on {count} tracepoints; this kernel lacks {}, so the stages that they show are part of others",
            missing.join(", ")
        ),
    }
}

/// Describes why no events are recorded. Without root both recorders have the same reason.
fn describe_no_events(error: &BlockEventsError, refusal: &KernelEventsError) -> String {
    match (error, refusal) {
        (BlockEventsError::NotRoot, KernelEventsError::NotPermitted) => {
            format!(
                "no events of the kernel: {refusal}: use sudo; the kernel's counters are used instead"
            )
        }
        _ => format!(
            "no events of the kernel: eBPF: {refusal}; tracefs: {error}; the kernel's counters are used instead"
        ),
    }
}
