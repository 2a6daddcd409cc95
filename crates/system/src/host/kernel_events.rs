//! Recording of the kernel's events by eBPF programs on raw tracepoints, from which chains of stages
//! are made (`diskperf_chains`).
//!
//! The programs are built at run time for the running kernel: arguments and offsets come from its
//! own description of its types (BTF), never from version numbers. They read memory and write
//! records into a ring; they change nothing. The kernel removes them when this process ends,
//! however it ends.

mod decode;
mod layout;
mod probe;
mod programs;
mod reader;
mod record;
mod surroundings;

use super::bpf::{
    BpfMap, BpfProgram, MapKind, MapShape, RingBufferReader, raise_locked_memory_limit,
};
use super::device::BlockDevice;
use decode::RecordDecoder;
use diskperf_bpf::BtfError;
use diskperf_chains::event::KernelRecording;
use layout::{FlagBits, KernelTypes};
use probe::MapDescriptors;
use programs::{EventFilters, build_program, is_essential};
use reader::{RecordedBytes, RingReader};
use record::RecordKind;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Mutex;

/// Reason why the kernel's events cannot be recorded by programs.
#[derive(Debug, thiserror::Error)]
pub enum KernelEventsError {
    /// User without root or the two capabilities.
    #[error("eBPF programs need root, or the capabilities CAP_BPF and CAP_PERFMON")]
    NotPermitted,
    /// Container whose tasks have numbers of their own, of which the programs know nothing.
    #[error(
        "eBPF programs see other task numbers than this container; run outside of it, or with the host's (docker run --pid=host)"
    )]
    ForeignTaskNumbers,
    /// Kernel without a ring of records.
    #[error("this kernel has no ring of eBPF records, which Linux has since 5.8: {0}")]
    NoRing(io::Error),
    /// Kernel without a description of its types.
    #[error("this kernel does not describe its types in /sys/kernel/btf: {0}")]
    NoTypes(io::Error),
    /// Types of the kernel that lack what the programs read.
    #[error(transparent)]
    UnknownTypes(#[from] BtfError),
    /// Tracepoint that chains need, and that the kernel lacks or refuses.
    #[error("tracepoint {tracepoint}: {reason}")]
    NoTracepoint {
        /// Name of the tracepoint.
        tracepoint: &'static str,
        /// Error of the kernel, or the type that its description lacks.
        reason: String,
    },
    /// Resource that the kernel refuses.
    #[error("the kernel refuses a map or a program: {0}")]
    Refused(#[from] io::Error),
}

/// Size of the ring of records, in bytes; it holds half a second at 100,000 requests a second.
const RING_BYTES: u32 = 64 << 20;

/// Recorder of the kernel's events during timed parts.
#[derive(Debug)]
pub struct KernelEventRecorder {
    programs: Vec<LoadedProgram>,
    losses: BpfMap,
    flag_bits: FlagBits,
    missing_tracepoints: Vec<String>,
    /// Reader of the ring, between recordings.
    idle_reader: Mutex<Option<RingBufferReader>>,
    current: Mutex<Option<CurrentRecording>>,
    _ring: BpfMap,
}

#[derive(Debug)]
struct LoadedProgram {
    kind: RecordKind,
    program: BpfProgram,
}

/// Recording in progress. The programs run as long as their links are open.
#[derive(Debug)]
struct CurrentRecording {
    links: Vec<OwnedFd>,
    reader: RingReader,
    /// Misses of all programs before this recording.
    earlier_miss_count: u64,
}

impl KernelEventRecorder {
    /// Builds and loads the programs. They record the system calls of this process, the requests to
    /// these disks and to all devices underneath them, and the scheduling of all tasks.
    ///
    /// # Errors
    ///
    /// The user may not load programs, or the kernel lacks what they need.
    pub fn load_programs(disks: &[BlockDevice]) -> Result<Self, KernelEventsError> {
        if !has_kernel_task_numbers(Path::new("/proc/self/ns/pid")) {
            return Err(KernelEventsError::ForeignTaskNumbers);
        }
        raise_locked_memory_limit();
        let ring = BpfMap::create(
            MapKind::RingBuffer,
            MapShape {
                key_bytes: 0,
                value_bytes: 0,
                entries_max: RING_BYTES,
            },
        )
        .map_err(describe_ring_error)?;
        let losses = BpfMap::create(
            MapKind::PerCpuArray,
            MapShape {
                key_bytes: 4,
                value_bytes: 8,
                entries_max: 1,
            },
        )?;
        let reader = RingBufferReader::map_ring(&ring, RING_BYTES as usize)?;
        let types = KernelTypes::read()?;
        let filters = EventFilters {
            process: std::process::id(),
            devices: surroundings::list_device_numbers(disks),
        };
        let maps = MapDescriptors {
            ring: ring.raw_descriptor(),
            losses: losses.raw_descriptor(),
        };
        let mut recorder = Self {
            programs: Vec::new(),
            losses,
            flag_bits: FlagBits::find(&types)?,
            missing_tracepoints: Vec::new(),
            idle_reader: Mutex::new(Some(reader)),
            current: Mutex::new(None),
            _ring: ring,
        };
        for kind in RecordKind::ALL {
            recorder.load_program(*kind, &types, &filters, maps)?;
        }
        Ok(recorder)
    }

    fn load_program(
        &mut self,
        kind: RecordKind,
        types: &KernelTypes,
        filters: &EventFilters,
        maps: MapDescriptors,
    ) -> Result<(), KernelEventsError> {
        let tracepoint = kind.tracepoint();
        let built = build_program(kind, types, filters, maps);
        let loaded = match built.map(|code| BpfProgram::load(tracepoint, &code)) {
            Ok(Ok(program)) => Ok(program),
            // Maps need one capability, and programs on tracepoints both.
            Ok(Err(refused)) if refused.source.raw_os_error() == Some(libc::EPERM) => {
                return Err(KernelEventsError::NotPermitted);
            }
            Ok(Err(refused)) => Err(match refused.verifier_log {
                log if log.is_empty() => refused.source.to_string(),
                log => format!("{}; the kernel's verifier: {log}", refused.source),
            }),
            Err(error) => Err(error.to_string()),
        };
        // Attaching shows whether the running kernel has the tracepoint.
        let attachable = loaded.and_then(|program| {
            let attached = program.attach_to_tracepoint(tracepoint);
            attached.map(|_| program).map_err(|error| error.to_string())
        });
        match attachable {
            Ok(program) => self.programs.push(LoadedProgram { kind, program }),
            Err(reason) if is_essential(kind) => {
                return Err(KernelEventsError::NoTracepoint { tracepoint, reason });
            }
            Err(_) => self.missing_tracepoints.push(tracepoint.to_owned()),
        }
        Ok(())
    }

    /// Returns the names of the tracepoints that this kernel does not have, or does not describe as
    /// expected. Chains do not see these events.
    pub fn missing_tracepoints(&self) -> &[String] {
        &self.missing_tracepoints
    }

    /// Reports whether the functions of kernel workers get their names. Without them the limits of
    /// a cgroup and the workers of loop devices are not recognised.
    pub fn names_functions(&self) -> bool {
        surroundings::can_read_symbols()
    }

    /// Returns the number of tracepoints that are recorded.
    pub fn tracepoint_count(&self) -> usize {
        self.programs.len()
    }

    /// Attaches the programs and starts to read their records.
    ///
    /// # Errors
    ///
    /// The kernel refuses a program, or the reader's thread cannot be started.
    pub fn begin_recording(&self) -> Result<(), KernelEventsError> {
        let mut current = lock(&self.current);
        if let Some(left) = current.take() {
            let (_, reader) = left.finish();
            *lock(&self.idle_reader) = Some(reader);
        }
        let Some(reader) = lock(&self.idle_reader).take() else {
            return Err(io::Error::other("the ring has no reader").into());
        };
        let earlier_miss_count = self.count_misses();
        let reader = match RingReader::start(reader, &self.losses) {
            Ok(reader) => reader,
            Err((reader, error)) => {
                *lock(&self.idle_reader) = Some(reader);
                return Err(error.into());
            }
        };
        let attached: io::Result<Vec<OwnedFd>> = self
            .programs
            .iter()
            .map(|one| one.program.attach_to_tracepoint(one.kind.tracepoint()))
            .collect();
        match attached {
            Ok(links) => {
                *current = Some(CurrentRecording {
                    links,
                    reader,
                    earlier_miss_count,
                });
                Ok(())
            }
            Err(error) => {
                *lock(&self.idle_reader) = Some(reader.finish().1);
                Err(error.into())
            }
        }
    }

    /// Returns how often an event in an interrupt of the same program was missed since the programs
    /// were loaded.
    fn count_misses(&self) -> u64 {
        let programs = self.programs.iter();
        programs
            .filter_map(|one| one.program.recursion_misses().ok())
            .sum()
    }

    /// Detaches the programs and returns what they recorded, with the names of tasks, devices and
    /// functions; `None` if nothing is being recorded.
    pub fn end_recording(&self) -> Option<KernelRecording> {
        let current = lock(&self.current).take()?;
        let earlier_miss_count = current.earlier_miss_count;
        let (mut recorded, reader) = current.finish();
        *lock(&self.idle_reader) = Some(reader);
        // An event in an interrupt of the same program is lost at a time that nobody notes.
        recorded.add_untimed_loss(self.count_misses().saturating_sub(earlier_miss_count));
        let mut recording = RecordDecoder::new(self.flag_bits).decode(&recorded);
        surroundings::describe(&mut recording);
        Some(recording)
    }
}

impl CurrentRecording {
    fn finish(self) -> (RecordedBytes, RingBufferReader) {
        drop(self.links);
        self.reader.finish()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Inode number of the first namespace of tasks, whose numbers are the kernel's own
/// (`PROC_PID_INIT_INO` in the kernel's include/linux/proc_ns.h).
const FIRST_NAMESPACE: u64 = 0xEFFF_FFFC;

/// Reports whether tasks have the same numbers in this process's namespace as in the kernel.
/// A kernel without namespaces has no file for them.
fn has_kernel_task_numbers(namespace: &Path) -> bool {
    std::fs::metadata(namespace).map_or(true, |file| file.ino() == FIRST_NAMESPACE)
}

fn describe_ring_error(error: io::Error) -> KernelEventsError {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => KernelEventsError::NotPermitted,
        Some(libc::EINVAL | libc::ENOSYS) => KernelEventsError::NoRing(error),
        _ => KernelEventsError::Refused(error),
    }
}

#[cfg(test)]
mod tests;
