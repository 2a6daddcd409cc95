//! Runs the cases on real storage.

use crate::cases::{Case, POSIX, READ_END, SMALL_VOLUME_BYTES, Volume, WRITE_END, World};
use crate::support::{LoopDevice, Needs, Scratch, Undo, can_run, opened, run};
use diskperf_system::host::{CallClock, HostPorts, HostRendezvous, HostWorker, WorkerControl};
use diskperf_system::{EngineChoice, System, run_ready};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, PoisonError, RwLock};

macro_rules! host_tests {
    ($($kind:ident $module:ident on $volume:ident { $($name:ident,)* })*) => {
        $(mod $module {
            $(#[test]
            fn $name() {
                super::check(&case!($kind $module::$name on $volume));
            })*
        })*
    };
}

for_each_case!(host_tests);

macro_rules! ring_tests {
    ($($kind:ident $module:ident on $volume:ident { $($name:ident,)* })*) => {
        $(mod $module {
            $(#[test]
            fn $name() {
                super::check_engines(&case!($kind $module::$name on $volume));
            })*
        })*
    };
}

for_each_ring_case!(ring_tests);

/// The ways to hand requests to the kernel that each case of a ring is run with.
const ENGINES: [EngineChoice; 3] = [
    EngineChoice::BestAvailable,
    EngineChoice::SqPoll,
    EngineChoice::Threads,
];

/// Held for writing while a command is run, for reading while a case is. A
/// child has copies of all descriptors of this process until it executes its
/// command, so that for a moment a pipe would have readers that closed it, an
/// unlinked file would keep its space, and a volume would stay in use.
static COMMANDS: RwLock<()> = RwLock::new(());

/// The file systems of a small volume: one that gives out pages as they are
/// written, and one that promises blocks first and finds them later.
const SMALL_VOLUMES: [fn(&Case) -> Option<SmallVolume>; 2] =
    [SmallVolume::tmpfs, SmallVolume::ext4];

fn check(case: &Case) {
    check_engine(case, EngineChoice::BestAvailable);
}

fn check_engines(case: &Case) {
    for engine in ENGINES {
        eprintln!("{engine:?}");
        check_engine(case, engine);
    }
}

fn check_engine(case: &Case, engine: EngineChoice) {
    match case.volume {
        Volume::Ordinary => {
            let scratch = Scratch::new();
            run_workers(case, &scratch.path(), engine);
        }
        Volume::Small => {
            for volume in SMALL_VOLUMES.iter().filter_map(|make| make(case)) {
                run_workers(case, &volume.mount_point, engine);
            }
        }
    }
}

/// A mounted file system that is soon full.
struct SmallVolume {
    mount_point: PathBuf,
    parts: Option<Parts>,
}

/// What a small volume is made of; goes away in this order.
struct Parts {
    _unmount: Undo,
    _device: Option<LoopDevice>,
    _scratch: Scratch,
}

impl Drop for SmallVolume {
    fn drop(&mut self) {
        let _no_case_runs = COMMANDS.write().unwrap_or_else(PoisonError::into_inner);
        self.parts = None;
    }
}

impl SmallVolume {
    fn tmpfs(case: &Case) -> Option<Self> {
        let _no_case_runs = COMMANDS.write().unwrap_or_else(PoisonError::into_inner);
        let scratch = Scratch::new();
        let size = format!("size={SMALL_VOLUME_BYTES}");
        Self::mount(case, scratch, None, &["-t", "tmpfs", "-o", &size, "tmpfs"])
    }

    fn ext4(case: &Case) -> Option<Self> {
        if !can_run(case.name, &[Needs::LoopDevices, Needs::Tool("mkfs.ext4")]) {
            return None;
        }
        let _no_case_runs = COMMANDS.write().unwrap_or_else(PoisonError::into_inner);
        let scratch = Scratch::new();
        let device = LoopDevice::blank(&scratch, (SMALL_VOLUME_BYTES >> 20) as usize);
        let path = device.text();
        run("mkfs.ext4", &["-q", &path]);
        Self::mount(case, scratch, Some(device), &["-t", "ext4", &path])
    }

    fn mount(
        case: &Case,
        scratch: Scratch,
        device: Option<LoopDevice>,
        what: &[&str],
    ) -> Option<Self> {
        let mount_point = scratch.path().join("mount");
        std::fs::create_dir(&mount_point).expect("the scratch directory is writable");
        let output = Command::new("mount").args(what).arg(&mount_point).output();
        let refusal = match output {
            Ok(output) if output.status.success() => None,
            Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => Some(format!("mount: {error}")),
        };
        if let Some(why) = refusal {
            eprintln!("SKIPPED {} on {}: {why}", case.name, what[1]);
            return None;
        }
        let unmount = Undo::by(&["umount", &mount_point.to_string_lossy()]);
        let parts = Parts {
            _unmount: unmount,
            _device: device,
            _scratch: scratch,
        };
        Some(Self {
            mount_point,
            parts: Some(parts),
        })
    }
}

/// Runs the body on each worker's own thread. A worker that panics breaks the
/// barriers and, by its end, the pipes of the others, so that they end too.
fn run_workers(case: &Case, directory: &Path, engine: EngineChoice) {
    let _no_command_runs = COMMANDS.read().unwrap_or_else(PoisonError::into_inner);
    let rendezvous = Arc::new(HostRendezvous::new(case.workers));
    let clock = CallClock::new_calibrated();
    std::thread::scope(|threads| {
        let mut handles = Vec::new();
        for (worker, pipe_ends) in ring_of_pipes(case.workers).into_iter().enumerate() {
            let ports = HostPorts {
                directories: vec![opened(directory)],
                drive_ports: Vec::new(),
                pipe_ends,
                ..HostPorts::default()
            };
            let rendezvous = Arc::clone(&rendezvous);
            handles.push(threads.spawn(move || {
                let _guard = GiveUpOnPanic(&rendezvous);
                let control = WorkerControl {
                    rendezvous: Arc::clone(&rendezvous),
                    ..WorkerControl::for_single_worker(true, clock)
                };
                let system = System::HostWorker(Box::new(HostWorker::new(ports, control)));
                let mut world = World {
                    system,
                    can: POSIX,
                    engine,
                };
                run_ready((case.body)(&mut world, worker));
            }));
        }
        for (worker, handle) in handles.into_iter().enumerate() {
            assert!(
                handle.join().is_ok(),
                "worker {worker} of {} failed",
                case.name
            );
        }
    });
}

/// For each worker the reading end of the pipe from the worker before it, and
/// the writing end of the pipe to the one after it.
fn ring_of_pipes(workers: usize) -> Vec<Vec<Option<OwnedFd>>> {
    let mut ends: Vec<Vec<Option<OwnedFd>>> = (0..workers).map(|_| vec![None, None]).collect();
    for worker in 0..workers {
        let (read_end, write_end) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
            .expect("descriptors are not exhausted");
        ends[worker][WRITE_END] = Some(write_end);
        ends[(worker + 1) % workers][READ_END] = Some(read_end);
    }
    ends
}

struct GiveUpOnPanic<'a>(&'a HostRendezvous);

impl Drop for GiveUpOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.break_barrier();
        }
    }
}
