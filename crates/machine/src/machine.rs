//! Construction and execution of a modelled computer.

mod kernels;

use crate::budget::{EVENTS_PER_RIG_REQUEST, ExceededLimit, LongestStage, RunBudget};
use crate::controllers::Controllers;
use crate::event::MachineEvent;
use crate::hardware::Hardware;
use crate::hardware::bus::Bus;
use crate::hardware::cache::CacheStatistics;
use crate::hardware::drives::{Drive, Drives};
use crate::hardware::mechanism::Mechanism;
use crate::kernel::FileSystems;
use crate::kernel::computer::Computer;
use crate::kernel::ffs::FastFileSystem;
use crate::kernel::process::Cpus;
use crate::kernel::serial::SerialOutput;
use crate::medium::PartitionContents;
use crate::parts;
use crate::records::{RequestStatistics, RunRecords};
use crate::rig::{DriveEventTimer, Rig};
use crate::software::{Kernel, KernelBase};
use crate::specification::{
    ComputerSpecification, DriveHardware, MachineSpecification, MechanismSpecification,
    VolumeSpecification,
};
use crate::standstill::RunEndReason;
use crate::volumes::Volumes;
use diskperf_device::Requests;
use diskperf_device::disk::device::MediaCacheState;
use diskperf_device::disk::spindle::RotationAngle;
use diskperf_device::{BusyTimes, Unit, WhatIf};
use diskperf_sim::{RandomStreams, Simulation, TieBreak, Time};
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
pub struct RunConditions {
    /// Seed of all random streams.
    pub seed: u64,
    /// Number of volumes in use, counted from the first.
    pub volume_count: usize,
    /// Rotational offset of each drive from the previous drive at the start, in units of 2^-32 of a
    /// revolution.
    pub phase_step: u32,
    /// Rotational offset of the first drive at the start, in units of 2^-32 of a revolution.
    pub first_phase: u32,
    /// Share by which each drive rotates slower than the previous one.
    pub speed_difference_share: f64,
    /// Order of simultaneous events; see [`TieBreak`].
    pub tie_break: TieBreak,
    /// Whether a trace is recorded for [`Machine::take_trace`].
    pub records_trace: bool,
    /// Whether requests to drives are recorded for [`Machine::take_events`].
    pub records_events: bool,
    /// Hypothetical changes of the system, for counterfactual runs.
    pub counterfactual: WhatIf,
    /// Limits of the run in events, time and memory.
    pub budget: RunBudget,
    /// Number of events of earlier machines of the same command, which count toward the event
    /// limit.
    pub earlier_event_count: u64,
}

impl RunConditions {
    fn drive_speed(&self, number: usize) -> f64 {
        1.0 - self.speed_difference_share * number as f64
    }

    fn drive_phase(&self, number: usize) -> u32 {
        let against_first = self.phase_step.wrapping_mul(number as u32);
        self.first_phase.wrapping_add(against_first)
    }
}

impl Default for RunConditions {
    fn default() -> Self {
        Self {
            seed: 1,
            volume_count: 1,
            phase_step: 0,
            first_phase: 0,
            speed_difference_share: 0.0,
            tie_break: TieBreak::InsertionOrder,
            records_trace: false,
            records_events: false,
            counterfactual: WhatIf::default(),
            budget: RunBudget::DEFAULT,
            earlier_event_count: 0,
        }
    }
}

/// Modelled computer, or rig (drives without a computer), in virtual time.
pub struct Machine {
    kernel: Kernel,
    budget: RunBudget,
    earlier_event_count: u64,
    built_memory_bytes: u64,
}

impl Machine {
    /// Builds the machine, creates its file systems, and starts its clock and daemons.
    ///
    /// # Panics
    ///
    /// If `circumstances.volumes` is 0 or above the number of volumes of the system.
    pub fn build(specification: &MachineSpecification, circumstances: RunConditions) -> Self {
        assert!(
            (1..=specification.volumes.len()).contains(&circumstances.volume_count),
            "{} of {} volumes",
            circumstances.volume_count,
            specification.volumes.len()
        );
        let streams = RandomStreams::new(circumstances.seed);
        let volumes = &specification.volumes[..circumstances.volume_count];
        let drives = build_drives(specification, circumstances);
        let kernel = match specification.software.kernel() {
            None => Kernel::Rig(Rc::new(build_rig(specification, circumstances, drives))),
            Some(builder) => {
                let (controllers, drivers) = parts::attach_parts(
                    builder.attachments(),
                    &drives,
                    builder.queue_order(),
                    streams,
                    circumstances.counterfactual,
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
            earlier_event_count: circumstances.earlier_event_count,
            built_memory_bytes: specification
                .memory_requirement(circumstances.volume_count)
                .total_bytes(),
        };
        if let KernelBase::Computer(computer) = machine.kernel.kernel_base() {
            let tick = Time(1_000_000_000 / computer.costs.clock_hz);
            computer
                .simulation
                .schedule_background(tick, MachineEvent::ClockTick);
            if let Some(kernel) = machine.kernel.running_kernel() {
                kernel.start_daemons();
            }
            computer.start_serial_output(streams);
        }
        machine
    }

    /// Reports whether the machine is a rig: drives without a kernel and a processor.
    pub fn is_rig(&self) -> bool {
        matches!(self.kernel, Kernel::Rig(_))
    }

    /// Kernel of the machine, for [`crate::Session::begin_session`].
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Starts a process that executes the given future.
    pub fn spawn_process(&self, name: &str, process: impl Future<Output = ()> + 'static) {
        match self.kernel.kernel_base() {
            KernelBase::Computer(computer) => computer.simulation.spawn(name, true, process),
            KernelBase::Rig(rig) => rig.simulation.spawn(name, true, process),
        };
    }

    /// Runs the machine until every started process has ended.
    ///
    /// # Errors
    ///
    /// [`RunEndReason`] if the processes cannot end. The machine cannot run again after an error.
    pub fn run_to_end(&self) -> Result<(), RunEndReason> {
        self.run_unless_stopped(&Arc::default())
    }

    /// Runs the machine as [`Machine::run_to_end`] does, but stops early if `stop` is set or the
    /// [`RunBudget`] is exceeded. The check is done at each tick of the modelled clock, or every few
    /// hundred events on a rig, independent of the state of the processes.
    ///
    /// # Errors
    ///
    /// See [`Machine::run_to_end`].
    pub fn run_unless_stopped(&self, stop: &Arc<AtomicBool>) -> Result<(), RunEndReason> {
        let monitor = RunMonitor {
            kernel: self.kernel.clone(),
            stop: Arc::clone(stop),
            budget: self.budget,
            built_memory_bytes: self.built_memory_bytes,
            earlier_event_count: self.earlier_event_count,
            run_started_at: self.current_time(),
        };
        let outcome = match self.kernel.kernel_base() {
            KernelBase::Computer(computer) => computer.simulation.run_nested(move |event| {
                if matches!(event, MachineEvent::ClockTick) {
                    monitor.check_limits();
                }
                monitor.kernel.handle_event(event);
            }),
            KernelBase::Rig(rig) => {
                let (rig_of_events, events) = (Rc::clone(rig), Cell::new(0_u64));
                rig.simulation.run_nested(move |DriveEventTimer| {
                    events.set(events.get() + 1);
                    if events.get().is_multiple_of(EVENTS_BETWEEN_CHECKS) {
                        monitor.check_limits();
                    }
                    rig_of_events.advance_drives();
                })
            }
        };
        outcome.map_err(RunEndReason::Deadlock)?;
        let halted = match self.kernel.kernel_base() {
            KernelBase::Computer(computer) => computer.halt_reason.borrow().clone(),
            KernelBase::Rig(rig) => rig.halt_reason.borrow().clone(),
        };
        match halted {
            Some(why) => Err(why),
            None => {
                self.assert_busy_times_possible();
                Ok(())
            }
        }
    }

    /// Number of events of this machine and of earlier machines of the command, counted as in
    /// [`RunBudget::event_count_max`].
    pub fn event_count(&self) -> u64 {
        self.earlier_event_count + self.kernel.event_count()
    }

    /// Current virtual time of the machine.
    pub fn current_time(&self) -> Time {
        match self.kernel.kernel_base() {
            KernelBase::Computer(computer) => computer.simulation.now(),
            KernelBase::Rig(rig) => rig.simulation.now(),
        }
    }

    /// Returns the trace since the start or the last call. None if no trace is recorded.
    pub fn take_trace(&self) -> Option<Trace> {
        match self.kernel.kernel_base() {
            KernelBase::Computer(computer) => computer.take_trace(),
            KernelBase::Rig(rig) => rig.take_trace(),
        }
    }

    /// Returns the requests to drives and their completions since the start or the last call, in
    /// the order of time. Empty if requests are not recorded.
    pub fn take_events(&self) -> Vec<DeviceEvent> {
        self.kernel.records().take_events()
    }

    /// Returns the statistics of the run so far.
    pub fn statistics(&self) -> RequestStatistics {
        self.kernel.records().statistics.borrow().clone()
    }

    /// Returns the cache statistics of each controller that has a cache, with the controller's
    /// number.
    pub fn controller_cache_statistics(&self) -> Vec<(usize, [CacheStatistics; 3])> {
        let KernelBase::Computer(computer) = self.kernel.kernel_base() else {
            return Vec::new();
        };
        let caches = computer.hardware.borrow().controllers.cache_statistics();
        let numbered = caches.into_iter().enumerate();
        numbered
            .filter_map(|(number, cache)| Some((number, cache?)))
            .collect()
    }

    /// Returns the media cache state of each drive with shingled tracks, with the drive's number.
    pub fn media_cache_states(&self) -> Vec<(usize, MediaCacheState)> {
        self.kernel.with_drives_mut(|drives| {
            let numbered = drives.iter_drives().enumerate();
            numbered
                .filter_map(|(number, drive)| Some((number, drive.media_cache_state()?)))
                .collect()
        })
    }

    /// Returns the busy times of each drive.
    pub fn drive_busy_times(&self) -> Vec<BusyTimes> {
        self.kernel
            .with_drives_mut(|drives| drives.iter_drives().map(Drive::busy_times).collect())
    }

    /// Returns the busy time of the processors, and the time of it spent in interrupt handlers.
    /// Both are zero for a rig (drives without a computer).
    pub fn processor_busy_times(&self) -> (Time, Time) {
        match self.kernel.kernel_base() {
            KernelBase::Computer(computer) => {
                computer.cpus.processors.busy_times(&computer.simulation)
            }
            KernelBase::Rig(_) => (Time::ZERO, Time::ZERO),
        }
    }

    /// Returns the processor time of the driver routines, at full speed. Zero for a rig (drives
    /// without a computer).
    pub fn driver_busy_time(&self) -> Time {
        match self.kernel.kernel_base() {
            KernelBase::Computer(computer) => computer.cpus.driver_cpu_time(),
            KernelBase::Rig(_) => Time::ZERO,
        }
    }

    /// Replaces the timing of the flash drives by that of another specification with the given
    /// hypothetical changes. The drives keep their contents, and everything else stays the same.
    ///
    /// # Panics
    ///
    /// If a drive of the specification has a different geometry.
    pub fn apply_counterfactual(&self, specification: &MachineSpecification, what_if: WhatIf) {
        let of = |number: usize| specification.drives[number].flash_specification();
        self.kernel
            .with_drives_mut(|drives| drives.set_flash_timing(of, what_if));
    }

    /// Returns the traffic of each flash drive so far.
    pub fn flash_traffic(&self) -> Vec<FlashTraffic> {
        let traffic = |(number, drive): (usize, Drive<'_>)| match drive {
            Drive::Device(device) => Some(device.flash()?.flash_traffic(number as u32)),
            Drive::Mechanism(_) => None,
        };
        self.kernel.with_drives_mut(|drives| {
            drives
                .iter_drives()
                .enumerate()
                .filter_map(traffic)
                .collect()
        })
    }

    /// Checks the file system of a drive as fsck does. Returns the number of files that are open
    /// but have no name.
    ///
    /// # Errors
    ///
    /// The problems of an unsound file system.
    pub fn check_file_system(&self, drive: usize) -> Result<u32, Vec<String>> {
        let kernel = self.kernel.running_kernel();
        kernel.map_or(Ok(0), |kernel| kernel.check_file_system(drive as u32))
    }

    /// Passes the fast file system of a volume to `look` and returns its result. None if the volume
    /// has no fast file system.
    pub fn with_file_system<T>(
        &self,
        drive: usize,
        look: impl FnOnce(&FastFileSystem) -> T,
    ) -> Option<T> {
        let Kernel::Unix(unix) = &self.kernel else {
            return None;
        };
        let FileSystems::FastFileSystem(mounts) = &unix.file_systems else {
            return None;
        };
        mounts
            .borrow()
            .get(drive)
            .map(|mount| look(&mount.file_system))
    }

    /// Asserts physical invariants of every run, for example that no drive is busy for more than
    /// the elapsed time.
    fn assert_busy_times_possible(&self) {
        let now = self.current_time();
        let (busy, in_handlers) = self.processor_busy_times();
        assert!(
            in_handlers <= busy && busy <= now,
            "a processor is busy at most all the time"
        );
        self.kernel.with_drives_mut(|drives| {
            for drive in drives.mechanisms() {
                // What it does is booked when it starts; the last of it may go on.
                let (busy, most) = (drive.busy_times(), now + drive.last_operation_duration());
                assert!(
                    busy.positioning_time + busy.rotational_latency_time + busy.transfer_time
                        <= most,
                    "a drive does one thing at a time: {busy:?} by {now}"
                );
            }
        });
        if let Kernel::Unix(unix) = &self.kernel {
            let memory = unix.buffers.borrow().allocated_memory_bytes();
            assert!(memory > 0, "the buffers' memory does not go away");
        }
    }
}

/// Monitor that checks during a run whether the run must end.
struct RunMonitor {
    kernel: Kernel,
    stop: Arc<AtomicBool>,
    budget: RunBudget,
    built_memory_bytes: u64,
    earlier_event_count: u64,
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
            self.kernel.halt_run(RunEndReason::StoppedByUser);
        } else if let Some(exceeded_limit) = self.exceeded_limit() {
            self.kernel
                .halt_run(RunEndReason::LimitExceeded(exceeded_limit));
        }
    }

    fn exceeded_limit(&self) -> Option<ExceededLimit> {
        let (now, (made, recorded)) = match self.kernel.kernel_base() {
            KernelBase::Computer(computer) => (computer.simulation.now(), computer.memory_bytes()),
            KernelBase::Rig(rig) => (rig.simulation.now(), rig.memory_bytes()),
        };
        let stage = || {
            let (stage, is_on_rig) = match self.kernel.kernel_base() {
                KernelBase::Computer(computer) => (computer.longest_stage(), false),
                KernelBase::Rig(rig) => (rig.longest_stage(), true),
            };
            stage.map(|stage| LongestStage { stage, is_on_rig })
        };
        let events = self.earlier_event_count + self.kernel.event_count();
        let time = now - self.run_started_at;
        let bytes = self.built_memory_bytes + made + recorded;
        if events > self.budget.event_count_max {
            let stage = stage();
            Some(ExceededLimit::Events {
                events,
                time,
                stage,
            })
        } else if time > self.budget.virtual_time_max {
            let stage = stage();
            Some(ExceededLimit::Time { time, stage })
        } else if bytes > self.budget.memory_bytes_max {
            Some(ExceededLimit::Memory { bytes, recorded })
        } else {
            None
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Tasks own the kernel, and the kernel the tasks.
        match self.kernel.kernel_base() {
            KernelBase::Computer(computer) => computer.simulation.drop_all(),
            KernelBase::Rig(rig) => rig.simulation.drop_all(),
        }
    }
}

impl Kernel {
    fn event_count(&self) -> u64 {
        match self.kernel_base() {
            KernelBase::Computer(computer) => computer.event_count(),
            KernelBase::Rig(rig) => rig.simulation.event_count() / EVENTS_PER_RIG_REQUEST,
        }
    }

    fn records(&self) -> &RunRecords {
        match self.kernel_base() {
            KernelBase::Computer(computer) => &computer.records,
            KernelBase::Rig(rig) => &rig.records,
        }
    }

    fn with_drives_mut<T>(&self, with: impl FnOnce(&mut Drives) -> T) -> T {
        match self.kernel_base() {
            KernelBase::Computer(computer) => with(&mut computer.hardware.borrow_mut().drives),
            KernelBase::Rig(rig) => with(&mut rig.drives.borrow_mut().all_drives),
        }
    }

    fn halt_run(&self, why: RunEndReason) {
        match self.kernel_base() {
            KernelBase::Computer(computer) => computer.halt_computer(why),
            KernelBase::Rig(rig) => rig.halt_rig(why),
        }
    }

    fn handle_event(&self, event: MachineEvent) {
        let KernelBase::Computer(computer) = self.kernel_base() else {
            return;
        };
        match event {
            MachineEvent::ProcessorCompletion(completion) => {
                computer
                    .cpus
                    .processors
                    .complete_work(&computer.simulation, completion);
            }
            MachineEvent::ControllerPart(event) => {
                let mut hardware = computer.hardware.borrow_mut();
                hardware.handle_event(&computer.simulation_context(), event);
            }
            MachineEvent::ClockTick => {
                if let Some(kernel) = self.running_kernel() {
                    computer.charge_tick(|found| kernel.process_to_charge(found));
                }
            }
            MachineEvent::SerialCharacter(line) => computer.handle_character_interrupt(line),
            MachineEvent::DaemonWakeUp(task) => computer.simulation.wake_task(task),
        }
    }
}

/// Returns the volumes in use without contents, and the records of the drives.
fn build_volumes_and_records(
    specification: &MachineSpecification,
    circumstances: RunConditions,
    drives: &mut Drives,
) -> (Volumes, RunRecords) {
    if circumstances.records_trace {
        drives.start_recording();
    }
    let volumes = &specification.volumes[..circumstances.volume_count];
    let written = |volume: &VolumeSpecification| {
        let (block_bytes, fragment_bytes) = specification.block_sizes(volume);
        let fragments = volume
            .partition
            .size_bytes()
            .div_ceil(u64::from(fragment_bytes));
        let medium = PartitionContents::new(fragments, (block_bytes, fragment_bytes));
        (volume.partition.raw_partition(volume.drive), medium)
    };
    let kept = (circumstances.records_trace, circumstances.records_events);
    let records = RunRecords::new(specification.drives.len(), kept);
    (Volumes::new(volumes.iter().map(written)), records)
}

fn build_rig(
    specification: &MachineSpecification,
    circumstances: RunConditions,
    mut drives: Drives,
) -> Rig {
    let volumes_and_records = build_volumes_and_records(specification, circumstances, &mut drives);
    Rig::new(
        Simulation::new(circumstances.tie_break),
        drives,
        volumes_and_records,
    )
}

fn build_computer(
    specification: &MachineSpecification,
    computer: &ComputerSpecification,
    circumstances: RunConditions,
    mut drives: Drives,
    controllers: Controllers,
) -> Computer {
    let (volumes, records) = build_volumes_and_records(specification, circumstances, &mut drives);
    let sim = Rc::new(Simulation::new(circumstances.tie_break));
    Computer {
        cpus: Cpus::new(Rc::clone(&sim), 1),
        simulation: sim,
        hardware: RefCell::new(Hardware {
            drives,
            controllers,
            bus: Bus::new(computer.bus_bytes_per_s, computer.memory_contention_share),
            submitted_requests: Requests::default(),
        }),
        costs: computer.kernel.kernel_costs.clone(),
        processor_speed: computer.kernel.processor_speed,
        volumes,
        serial_lines: SerialOutput::new(computer.kernel.serial_lines),
        records,
        halt_reason: RefCell::default(),
    }
}

fn build_drives(specification: &MachineSpecification, circumstances: RunConditions) -> Drives {
    let streams = RandomStreams::new(circumstances.seed);
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
                    slower_share: circumstances.speed_difference_share * number as f64,
                };
                let device = of.build(&streams, unit);
                drives.add_device(device.with_what_if(circumstances.counterfactual));
            }
        }
    }
    drives
}

fn build_mechanism(
    specification: &MechanismSpecification,
    number: usize,
    circumstances: RunConditions,
) -> Mechanism {
    let phase = RotationAngle(u64::from(circumstances.drive_phase(number)) << 32);
    let mechanism = specification.with_rotation(
        specification.revolutions_per_minute * circumstances.drive_speed(number),
        phase,
    );
    mechanism.with_counterfactual(circumstances.counterfactual)
}
