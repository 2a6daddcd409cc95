//! Construction and execution of a modelled computer.

mod kernels;

use crate::budget::{Budget, Exceeded, LongestStage, RIG_EVENTS};
use crate::controllers::Controllers;
use crate::event::Event;
use crate::hardware::Hardware;
use crate::hardware::bus::Bus;
use crate::hardware::cache::CacheStatistics;
use crate::hardware::drives::{Drive, Drives};
use crate::hardware::mechanism::Mechanism;
use crate::kernel::FileSystems;
use crate::kernel::computer::Computer;
use crate::kernel::ffs::FileSystem;
use crate::kernel::process::Cpus;
use crate::kernel::serial::Serial;
use crate::medium::Medium;
use crate::parts;
use crate::records::{Records, Statistics};
use crate::rig::{DriveDue, Rig};
use crate::software::{Base, Kernel};
use crate::specification::{
    ComputerSpecification, DriveHardware, MechanismSpecification, Specification, Volume,
};
use crate::standstill::Standstill;
use crate::volumes::Volumes;
use diskperf_device::Requests;
use diskperf_device::disk::device::MediaCacheState;
use diskperf_device::disk::spindle::RotationAngle;
use diskperf_device::{BusyTimes, Unit, WhatIf};
use diskperf_sim::{Sim, Streams, TieBreak, Time};
use diskperf_timeline::trace::Trace;
use diskperf_timeline::{DeviceEvent, FlashTraffic};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Conditions of a run that may differ between two runs of the same system, such as seed, drive
/// phases and limits.
#[derive(Clone, Copy, Debug)]
pub struct Circumstances {
    /// Seed of all random streams.
    pub seed: u64,
    /// Number of volumes in use, counted from the first.
    pub volumes: usize,
    /// Rotational offset of each drive from the previous drive at the start, in units of 2^-32 of a
    /// revolution.
    pub phase: u32,
    /// Rotational offset of the first drive at the start, in units of 2^-32 of a revolution.
    pub first_phase: u32,
    /// Share by which each drive rotates slower than the previous one.
    pub speed_difference: f64,
    /// Order of simultaneous events; see [`TieBreak`].
    pub tie_break: TieBreak,
    /// Whether a trace is recorded for [`Machine::take_trace`].
    pub trace: bool,
    /// Whether requests to drives are recorded for [`Machine::take_events`].
    pub record: bool,
    /// Hypothetical changes of the system, for counterfactual runs.
    pub what_if: WhatIf,
    /// Limits of the run in events, time and memory.
    pub budget: Budget,
    /// Number of events of earlier machines of the same command, which count toward the event
    /// limit.
    pub events_before: u64,
}

impl Circumstances {
    fn drive_speed(&self, number: usize) -> f64 {
        1.0 - self.speed_difference * number as f64
    }

    fn drive_phase(&self, number: usize) -> u32 {
        let against_first = self.phase.wrapping_mul(number as u32);
        self.first_phase.wrapping_add(against_first)
    }
}

impl Default for Circumstances {
    fn default() -> Self {
        Self {
            seed: 1,
            volumes: 1,
            phase: 0,
            first_phase: 0,
            speed_difference: 0.0,
            tie_break: TieBreak::Insertion,
            trace: false,
            record: false,
            what_if: WhatIf::default(),
            budget: Budget::USUAL,
            events_before: 0,
        }
    }
}

/// Modelled computer, or rig (drives without a computer), in virtual time.
pub struct Machine {
    kernel: Kernel,
    budget: Budget,
    events_before: u64,
    built_bytes: u64,
}

impl Machine {
    /// Builds the machine, creates its file systems, and starts its clock and daemons.
    ///
    /// # Panics
    ///
    /// If `circumstances.volumes` is 0 or above the number of volumes of the system.
    pub fn build(specification: &Specification, circumstances: Circumstances) -> Self {
        assert!(
            (1..=specification.volumes.len()).contains(&circumstances.volumes),
            "{} of {} volumes",
            circumstances.volumes,
            specification.volumes.len()
        );
        let streams = Streams::new(circumstances.seed);
        let volumes = &specification.volumes[..circumstances.volumes];
        let drives = build_drives(specification, circumstances);
        let kernel = match specification.software.kernel() {
            None => Kernel::Rig(Rc::new(build_rig(specification, circumstances, drives))),
            Some(builder) => {
                let (controllers, drivers) = parts::attach_parts(
                    builder.attachments(),
                    &drives,
                    builder.order(),
                    streams,
                    circumstances.what_if,
                );
                let computer = build_computer(
                    specification,
                    builder.computer(),
                    circumstances,
                    drives,
                    controllers,
                );
                builder.build(specification, volumes, computer, drivers)
            }
        };
        let machine = Self {
            kernel,
            budget: circumstances.budget,
            events_before: circumstances.events_before,
            built_bytes: specification.memory(circumstances.volumes).bytes(),
        };
        if let Base::Computer(computer) = machine.kernel.base() {
            let tick = Time(1_000_000_000 / computer.costs.clock_hz);
            computer.sim.schedule_background(tick, Event::Tick);
            if let Some(kernel) = machine.kernel.running() {
                kernel.start();
            }
            computer.start_serial(streams);
        }
        machine
    }

    /// Reports whether the machine is a rig: drives without a kernel and a processor.
    pub fn is_rig(&self) -> bool {
        matches!(self.kernel, Kernel::Rig(_))
    }

    /// Kernel of the machine, for [`crate::Session::begin`].
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Starts a process that executes the given future.
    pub fn spawn(&self, name: &str, process: impl Future<Output = ()> + 'static) {
        match self.kernel.base() {
            Base::Computer(computer) => computer.sim.spawn(name, true, process),
            Base::Rig(rig) => rig.sim.spawn(name, true, process),
        };
    }

    /// Runs the machine until every started process has ended.
    ///
    /// # Errors
    ///
    /// [`Standstill`] if the processes cannot end. The machine cannot run again after an error.
    pub fn run(&self) -> Result<(), Standstill> {
        self.run_unless(&Arc::default())
    }

    /// Runs the machine as [`Machine::run`] does, but stops early if `stop` is set or the
    /// [`Budget`] is exceeded. The check is done at each tick of the modelled clock, or every few
    /// hundred events on a rig, independent of the state of the processes.
    ///
    /// # Errors
    ///
    /// See [`Machine::run`].
    pub fn run_unless(&self, stop: &Arc<AtomicBool>) -> Result<(), Standstill> {
        let monitor = RunMonitor {
            kernel: self.kernel.clone(),
            stop: Arc::clone(stop),
            budget: self.budget,
            built_bytes: self.built_bytes,
            events_before: self.events_before,
            run_started_at: self.now(),
        };
        let outcome = match self.kernel.base() {
            Base::Computer(computer) => computer.sim.run_nested(move |event| {
                if matches!(event, Event::Tick) {
                    monitor.check_limits();
                }
                monitor.kernel.handle(event);
            }),
            Base::Rig(rig) => {
                let (rig_of_events, events) = (Rc::clone(rig), Cell::new(0_u64));
                rig.sim.run_nested(move |DriveDue| {
                    events.set(events.get() + 1);
                    if events.get().is_multiple_of(EVENTS_BETWEEN_CHECKS) {
                        monitor.check_limits();
                    }
                    rig_of_events.advance();
                })
            }
        };
        outcome.map_err(Standstill::Deadlock)?;
        let halted = match self.kernel.base() {
            Base::Computer(computer) => computer.halted.borrow().clone(),
            Base::Rig(rig) => rig.halted.borrow().clone(),
        };
        match halted {
            Some(why) => Err(why),
            None => {
                self.assert_physics();
                Ok(())
            }
        }
    }

    /// Number of events of this machine and of earlier machines of the command, counted as in
    /// [`Budget::events`].
    pub fn events(&self) -> u64 {
        self.events_before + self.kernel.events()
    }

    /// Current virtual time of the machine.
    pub fn now(&self) -> Time {
        match self.kernel.base() {
            Base::Computer(computer) => computer.sim.now(),
            Base::Rig(rig) => rig.sim.now(),
        }
    }

    /// Returns the trace since the start or the last call. None if no trace is recorded.
    pub fn take_trace(&self) -> Option<Trace> {
        match self.kernel.base() {
            Base::Computer(computer) => computer.take_trace(),
            Base::Rig(rig) => rig.take_trace(),
        }
    }

    /// Returns the requests to drives and their completions since the start or the last call, in
    /// the order of time. Empty if requests are not recorded.
    pub fn take_events(&self) -> Vec<DeviceEvent> {
        self.kernel.records().take_events()
    }

    /// Returns the statistics of the run so far.
    pub fn statistics(&self) -> Statistics {
        self.kernel.records().statistics.borrow().clone()
    }

    /// Returns the cache statistics of each controller that has a cache, with the controller's
    /// number.
    pub fn caches(&self) -> Vec<(usize, [CacheStatistics; 3])> {
        let Base::Computer(computer) = self.kernel.base() else {
            return Vec::new();
        };
        let caches = computer.hardware.borrow().controllers.cache_statistics();
        let numbered = caches.into_iter().enumerate();
        numbered
            .filter_map(|(number, cache)| Some((number, cache?)))
            .collect()
    }

    /// Returns the media cache state of each drive with shingled tracks, with the drive's number.
    pub fn media_caches(&self) -> Vec<(usize, MediaCacheState)> {
        self.kernel.with_drives(|drives| {
            let numbered = drives.iter().enumerate();
            numbered
                .filter_map(|(number, drive)| Some((number, drive.media_cache()?)))
                .collect()
        })
    }

    /// Returns the busy times of each drive.
    pub fn drives_busy(&self) -> Vec<BusyTimes> {
        self.kernel
            .with_drives(|drives| drives.iter().map(Drive::busy).collect())
    }

    /// Returns the busy time of the processors, and the time of it spent in interrupt handlers.
    /// Both are zero for a rig (drives without a computer).
    pub fn processor_busy(&self) -> (Time, Time) {
        match self.kernel.base() {
            Base::Computer(computer) => computer.cpus.processors.busy(&computer.sim),
            Base::Rig(_) => (Time::ZERO, Time::ZERO),
        }
    }

    /// Returns the processor time of the driver routines, at full speed. Zero for a rig (drives
    /// without a computer).
    pub fn driver_busy(&self) -> Time {
        match self.kernel.base() {
            Base::Computer(computer) => computer.cpus.driver_time(),
            Base::Rig(_) => Time::ZERO,
        }
    }

    /// Replaces the timing of the flash drives by that of another specification with the given
    /// hypothetical changes. The drives keep their contents, and everything else stays the same.
    ///
    /// # Panics
    ///
    /// If a drive of the specification has a different geometry.
    pub fn suppose(&self, specification: &Specification, what_if: WhatIf) {
        let of = |number: usize| specification.drives[number].flash();
        self.kernel
            .with_drives(|drives| drives.set_flash_timing(of, what_if));
    }

    /// Returns the traffic of each flash drive so far.
    pub fn flash(&self) -> Vec<FlashTraffic> {
        let traffic = |(number, drive): (usize, Drive<'_>)| match drive {
            Drive::Device(device) => Some(device.flash()?.flash_traffic(number as u32)),
            Drive::Mechanism(_) => None,
        };
        self.kernel
            .with_drives(|drives| drives.iter().enumerate().filter_map(traffic).collect())
    }

    /// Checks the file system of a drive as fsck does. Returns the number of files that are open
    /// but have no name.
    ///
    /// # Errors
    ///
    /// The problems of an unsound file system.
    pub fn check(&self, drive: usize) -> Result<u32, Vec<String>> {
        let kernel = self.kernel.running();
        kernel.map_or(Ok(0), |kernel| kernel.check(drive as u32))
    }

    /// Passes the fast file system of a volume to `look` and returns its result. None if the volume
    /// has no fast file system.
    pub fn file_system<T>(&self, drive: usize, look: impl FnOnce(&FileSystem) -> T) -> Option<T> {
        let Kernel::Unix(unix) = &self.kernel else {
            return None;
        };
        let FileSystems::Ffs(mounts) = &unix.file_systems else {
            return None;
        };
        mounts.borrow().get(drive).map(|mount| look(&mount.fs))
    }

    /// Asserts physical invariants of every run, for example that no drive is busy for more than
    /// the elapsed time.
    fn assert_physics(&self) {
        let now = self.now();
        let (busy, in_handlers) = self.processor_busy();
        assert!(
            in_handlers <= busy && busy <= now,
            "a processor is busy at most all the time"
        );
        self.kernel.with_drives(|drives| {
            for drive in drives.mechanisms() {
                // What it does is booked when it starts; the last of it may go on.
                let (busy, most) = (drive.busy(), now + drive.last_operation_time());
                assert!(
                    busy.positioning_time + busy.rotational_latency_time + busy.transfer_time
                        <= most,
                    "a drive does one thing at a time: {busy:?} by {now}"
                );
            }
        });
        if let Kernel::Unix(unix) = &self.kernel {
            let memory = unix.buffers.borrow().memory();
            assert!(memory > 0, "the buffers' memory does not go away");
        }
    }
}

/// Monitor that checks during a run whether the run must end.
struct RunMonitor {
    kernel: Kernel,
    stop: Arc<AtomicBool>,
    budget: Budget,
    built_bytes: u64,
    events_before: u64,
    run_started_at: Time,
}

/// Number of events of a rig (drives without a computer) between two checks of its limits: few
/// enough to stop soon, and many enough to make the checks cheap.
const EVENTS_BETWEEN_CHECKS: u64 = 256;

impl RunMonitor {
    /// Checks whether a run must end. Called at each tick of a modelled clock, and after each
    /// [`EVENTS_BETWEEN_CHECKS`] events of a rig.
    fn check_limits(&self) {
        if self.stop.load(Ordering::Relaxed) {
            self.kernel.halt(Standstill::Stopped);
        } else if let Some(exceeded_limit) = self.exceeded_limit() {
            self.kernel.halt(Standstill::Exceeded(exceeded_limit));
        }
    }

    fn exceeded_limit(&self) -> Option<Exceeded> {
        let (now, (made, recorded)) = match self.kernel.base() {
            Base::Computer(computer) => (computer.sim.now(), computer.memory_bytes()),
            Base::Rig(rig) => (rig.sim.now(), rig.memory_bytes()),
        };
        let stage = || {
            let (stage, is_on_rig) = match self.kernel.base() {
                Base::Computer(computer) => (computer.longest_stage(), false),
                Base::Rig(rig) => (rig.longest_stage(), true),
            };
            stage.map(|stage| LongestStage { stage, is_on_rig })
        };
        let events = self.events_before + self.kernel.events();
        let time = now - self.run_started_at;
        let bytes = self.built_bytes + made + recorded;
        if events > self.budget.events {
            let stage = stage();
            Some(Exceeded::Events {
                events,
                time,
                stage,
            })
        } else if time > self.budget.time {
            let stage = stage();
            Some(Exceeded::Time { time, stage })
        } else if bytes > self.budget.bytes {
            Some(Exceeded::Memory { bytes, recorded })
        } else {
            None
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Tasks own the kernel, and the kernel the tasks.
        match self.kernel.base() {
            Base::Computer(computer) => computer.sim.clear(),
            Base::Rig(rig) => rig.sim.clear(),
        }
    }
}

impl Kernel {
    fn events(&self) -> u64 {
        match self.base() {
            Base::Computer(computer) => computer.events(),
            Base::Rig(rig) => rig.sim.events() / RIG_EVENTS,
        }
    }

    fn records(&self) -> &Records {
        match self.base() {
            Base::Computer(computer) => &computer.records,
            Base::Rig(rig) => &rig.records,
        }
    }

    fn with_drives<T>(&self, with: impl FnOnce(&mut Drives) -> T) -> T {
        match self.base() {
            Base::Computer(computer) => with(&mut computer.hardware.borrow_mut().drives),
            Base::Rig(rig) => with(&mut rig.drives.borrow_mut().all),
        }
    }

    fn halt(&self, why: Standstill) {
        match self.base() {
            Base::Computer(computer) => computer.halt(why),
            Base::Rig(rig) => rig.halt(why),
        }
    }

    fn handle(&self, event: Event) {
        let Base::Computer(computer) = self.base() else {
            return;
        };
        match event {
            Event::Processor(completion) => {
                computer.cpus.processors.complete(&computer.sim, completion);
            }
            Event::Part(event) => {
                let mut hardware = computer.hardware.borrow_mut();
                hardware.handle(&computer.surroundings(), event);
            }
            Event::Tick => {
                if let Some(kernel) = self.running() {
                    computer.tick(|found| kernel.billed(found));
                }
            }
            Event::Character(line) => computer.character(line),
            Event::Daemon(task) => computer.sim.wake(task),
        }
    }
}

/// Returns the volumes in use without contents, and the records of the drives.
fn build_volumes_and_records(
    specification: &Specification,
    circumstances: Circumstances,
    drives: &mut Drives,
) -> (Volumes, Records) {
    if circumstances.trace {
        drives.record();
    }
    let volumes = &specification.volumes[..circumstances.volumes];
    let written = |volume: &Volume| {
        let (block_bytes, fragment_bytes) = specification.block_sizes(volume);
        let fragments = volume.partition.bytes().div_ceil(u64::from(fragment_bytes));
        let medium = Medium::new(fragments, (block_bytes, fragment_bytes));
        (volume.partition.raw(volume.drive), medium)
    };
    let kept = (circumstances.trace, circumstances.record);
    let records = Records::new(specification.drives.len(), kept);
    (Volumes::new(volumes.iter().map(written)), records)
}

fn build_rig(
    specification: &Specification,
    circumstances: Circumstances,
    mut drives: Drives,
) -> Rig {
    let volumes_and_records = build_volumes_and_records(specification, circumstances, &mut drives);
    Rig::new(
        Sim::new(circumstances.tie_break),
        drives,
        volumes_and_records,
    )
}

fn build_computer(
    specification: &Specification,
    computer: &ComputerSpecification,
    circumstances: Circumstances,
    mut drives: Drives,
    controllers: Controllers,
) -> Computer {
    let (volumes, records) = build_volumes_and_records(specification, circumstances, &mut drives);
    let sim = Rc::new(Sim::new(circumstances.tie_break));
    Computer {
        cpus: Cpus::new(Rc::clone(&sim), 1),
        sim,
        hardware: RefCell::new(Hardware {
            drives,
            controllers,
            bus: Bus::new(computer.bus_bytes_per_s, computer.memory_contention_share),
            requests: Requests::default(),
        }),
        costs: computer.kernel.costs.clone(),
        speed: computer.kernel.speed,
        volumes,
        serial: Serial::new(computer.kernel.serial),
        records,
        halted: RefCell::default(),
    }
}

fn build_drives(specification: &Specification, circumstances: Circumstances) -> Drives {
    let streams = Streams::new(circumstances.seed);
    let mut drives = Drives::default();
    for (number, drive) in specification.drives.iter().enumerate() {
        match &drive.hardware {
            DriveHardware::Mechanism(of) => {
                drives.add_mechanism(build_mechanism(of, number, circumstances));
            }
            DriveHardware::Device(of) => {
                let unit = Unit {
                    number,
                    phase: RotationAngle(u64::from(circumstances.drive_phase(number)) << 32),
                    slower_share: circumstances.speed_difference * number as f64,
                };
                let device = of.build(&streams, unit);
                drives.add_device(device.with_what_if(circumstances.what_if));
            }
        }
    }
    drives
}

fn build_mechanism(
    specification: &MechanismSpecification,
    number: usize,
    circumstances: Circumstances,
) -> Mechanism {
    let phase = RotationAngle(u64::from(circumstances.drive_phase(number)) << 32);
    let mechanism =
        specification.with_rotation(specification.rpm * circumstances.drive_speed(number), phase);
    mechanism.supposing(circumstances.what_if)
}
