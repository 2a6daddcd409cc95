//! A computer, built and running.

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
use diskperf_device::disk::spindle::Turn;
use diskperf_device::{Busy, Unit, WhatIf};
use diskperf_sim::{Sim, Streams, TieBreak, Time};
use diskperf_timeline::trace::Trace;
use diskperf_timeline::{DeviceEvent, FlashTraffic};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What differs between two runs of the same system.
#[derive(Clone, Copy, Debug)]
pub struct Circumstances {
    /// Of all random streams.
    pub seed: u64,
    /// How many of the volumes are used, from the first on.
    pub volumes: usize,
    /// By how much each drive is turned against the one before it at the
    /// start, in parts of 2^32 of a revolution.
    pub phase: u32,
    /// How far the first drive is turned at the start, in the same parts.
    pub first_phase: u32,
    /// Share by which each drive turns slower than the one before it.
    pub speed_difference: f64,
    /// See [`TieBreak`].
    pub tie_break: TieBreak,
    /// Whether what happens is recorded, for [`Machine::take_trace`].
    pub trace: bool,
    /// Whether what drives are asked for is recorded, for [`Machine::take_events`].
    pub record: bool,
    /// What is supposed of it that its catalogue does not have.
    pub what_if: WhatIf,
    /// What it may take.
    pub budget: Budget,
    /// Events of the machines before it, which count in its budget.
    pub events_before: u64,
}

impl Circumstances {
    /// The speed of the drive of this number, as a share of its specification's.
    fn speed_of(&self, number: usize) -> f64 {
        1.0 - self.speed_difference * number as f64
    }

    /// How far the drive of this number is turned at the start, in parts of 2^32 of a
    /// revolution.
    fn phase_of(&self, number: usize) -> u32 {
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

/// A computer in virtual time.
pub struct Machine {
    kernel: Kernel,
    budget: Budget,
    events_before: u64,
    /// Memory that it was built with.
    built_bytes: u64,
}

impl Machine {
    /// Builds the computer, makes its file systems, and starts its clock and
    /// its daemons.
    ///
    /// # Panics
    ///
    /// When more volumes are to be used than there are.
    pub fn build(specification: &Specification, circumstances: Circumstances) -> Self {
        assert!(
            (1..=specification.volumes.len()).contains(&circumstances.volumes),
            "{} of {} volumes",
            circumstances.volumes,
            specification.volumes.len()
        );
        let streams = Streams::new(circumstances.seed);
        let volumes = &specification.volumes[..circumstances.volumes];
        let drives = drives(specification, circumstances);
        let kernel = match specification.software.kernel() {
            None => Kernel::Rig(Rc::new(rig(specification, circumstances, drives))),
            Some(of) => {
                let attaching = (of.order(), streams, circumstances.what_if);
                let (controllers, drivers) = parts::attach((of.attachments(), &drives), attaching);
                let hardware = (drives, controllers);
                let computer = computer((specification, of.computer()), circumstances, hardware);
                of.build(specification, volumes, (computer, drivers))
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

    /// Whether the machine is a rig: drives without a kernel and a processor.
    pub fn is_rig(&self) -> bool {
        matches!(self.kernel, Kernel::Rig(_))
    }

    /// The kernel, for [`crate::Session::begin`].
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Starts a process; what it does is up to the future.
    pub fn spawn(&self, name: &str, process: impl Future<Output = ()> + 'static) {
        match self.kernel.base() {
            Base::Computer(computer) => computer.sim.spawn(name, true, process),
            Base::Rig(rig) => rig.sim.spawn(name, true, process),
        };
    }

    /// Runs until every process that was started has ended.
    ///
    /// # Errors
    ///
    /// [`Standstill`] when they cannot; such a machine runs no more.
    pub fn run(&self) -> Result<(), Standstill> {
        self.run_unless(&Arc::default())
    }

    /// The same, unless `stop` is set, or the machine takes more than its
    /// [`Budget`]: at the next tick of the modelled clock it stands still, whatever
    /// its processes are at.
    ///
    /// # Errors
    ///
    /// See [`Machine::run`].
    pub fn run_unless(&self, stop: &Arc<AtomicBool>) -> Result<(), Standstill> {
        let watch = Watch {
            kernel: self.kernel.clone(),
            stop: Arc::clone(stop),
            budget: self.budget,
            built_bytes: self.built_bytes,
            events_before: self.events_before,
            since: self.now(),
        };
        let outcome = match self.kernel.base() {
            Base::Computer(computer) => computer.sim.run_on_the_spot(move |event| {
                if matches!(event, Event::Tick) {
                    watch.look();
                }
                watch.kernel.handle(event);
            }),
            Base::Rig(rig) => {
                let (rig_of_events, events) = (Rc::clone(rig), Cell::new(0_u64));
                rig.sim.run_on_the_spot(move |DriveDue| {
                    events.set(events.get() + 1);
                    if events.get().is_multiple_of(EVENTS_BETWEEN_LOOKS) {
                        watch.look();
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

    /// Events of this machine and of those before it, as [`Budget::events`] counts them.
    pub fn events(&self) -> u64 {
        self.events_before + self.kernel.events()
    }

    /// The present moment.
    pub fn now(&self) -> Time {
        match self.kernel.base() {
            Base::Computer(computer) => computer.sim.now(),
            Base::Rig(rig) => rig.sim.now(),
        }
    }

    /// What was recorded since the start, or since this was asked last; nothing
    /// unless it was asked for.
    pub fn take_trace(&self) -> Option<Trace> {
        match self.kernel.base() {
            Base::Computer(computer) => computer.take_trace(),
            Base::Rig(rig) => rig.take_trace(),
        }
    }

    /// What drives were asked for, and what of it completed, since the start or since this
    /// was asked last, in the order of time; nothing unless it is recorded.
    pub fn take_events(&self) -> Vec<DeviceEvent> {
        self.kernel.records().take_events()
    }

    /// What was counted so far.
    pub fn statistics(&self) -> Statistics {
        self.kernel.records().statistics.borrow().clone()
    }

    /// What the caches of the controllers that have one did, by the number of
    /// the controller.
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

    /// What the drives with shingled tracks did with their media caches, by the number of
    /// the drive.
    pub fn media_caches(&self) -> Vec<(usize, MediaCacheState)> {
        self.kernel.with_drives(|drives| {
            let numbered = drives.iter().enumerate();
            numbered
                .filter_map(|(number, drive)| Some((number, drive.media_cache()?)))
                .collect()
        })
    }

    /// What each drive has done.
    pub fn drives_busy(&self) -> Vec<Busy> {
        self.kernel
            .with_drives(|drives| drives.iter().map(Drive::busy).collect())
    }

    /// For how long the processor worked, and how much of that in handlers; a rig has none.
    pub fn processor_busy(&self) -> (Time, Time) {
        match self.kernel.base() {
            Base::Computer(computer) => computer.cpus.processors.busy(&computer.sim),
            Base::Rig(_) => (Time::ZERO, Time::ZERO),
        }
    }

    /// How much of that the driver's routines took, at full speed.
    pub fn driver_busy(&self) -> Time {
        match self.kernel.base() {
            Base::Computer(computer) => computer.cpus.driver_time(),
            Base::Rig(_) => Time::ZERO,
        }
    }

    /// From now on its flash drives take as long as this specification has it, with this
    /// supposed of them; what they hold stays, and all else is as it was.
    ///
    /// # Panics
    ///
    /// When a drive of the specification is of another shape.
    pub fn suppose(&self, specification: &Specification, what_if: WhatIf) {
        let of = |number: usize| specification.drives[number].flash();
        self.kernel
            .with_drives(|drives| drives.suppose_flash(of, what_if));
    }

    /// What flash drives have programmed so far.
    pub fn flash(&self) -> Vec<FlashTraffic> {
        let traffic = |(number, drive): (usize, Drive<'_>)| match drive {
            Drive::Device(device) => Some(device.flash()?.counted(number as u32)),
            Drive::Mechanism(_) => None,
        };
        self.kernel
            .with_drives(|drives| drives.iter().enumerate().filter_map(traffic).collect())
    }

    /// Checks a drive's file system as fsck does; its files, if it is sound, that
    /// somebody has open and nothing names.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn check(&self, drive: usize) -> Result<u32, Vec<String>> {
        let kernel = self.kernel.running();
        kernel.map_or(Ok(0), |kernel| kernel.check(drive as u32))
    }

    /// Looks at a volume's fast file system; none where it has none.
    pub fn file_system<T>(&self, drive: usize, look: impl FnOnce(&FileSystem) -> T) -> Option<T> {
        let Kernel::Unix(unix) = &self.kernel else {
            return None;
        };
        let FileSystems::Ffs(mounts) = &unix.file_systems else {
            return None;
        };
        mounts.borrow().get(drive).map(|mount| look(&mount.fs))
    }

    /// What must be true of every run.
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
                let (busy, most) = (drive.busy(), now + drive.booked_last());
                assert!(
                    busy.positioning + busy.latency + busy.transfer <= most,
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

/// Who looks, during a run, whether it has to end.
struct Watch {
    kernel: Kernel,
    stop: Arc<AtomicBool>,
    budget: Budget,
    built_bytes: u64,
    events_before: u64,
    /// When the run began.
    since: Time,
}

/// Events of a rig from one look to the next: so few that nobody waits long, and so many
/// that looking costs nothing.
const EVENTS_BETWEEN_LOOKS: u64 = 256;

impl Watch {
    /// Looks whether the run has to end: at each tick of a modelled clock, and every so many
    /// events of a rig.
    fn look(&self) {
        if self.stop.load(Ordering::Relaxed) {
            self.kernel.halt(Standstill::Stopped);
        } else if let Some(exceeded) = self.exceeded() {
            self.kernel.halt(Standstill::Exceeded(exceeded));
        }
    }

    /// What has grown beyond the budget.
    fn exceeded(&self) -> Option<Exceeded> {
        let (now, (made, recorded)) = match self.kernel.base() {
            Base::Computer(computer) => (computer.sim.now(), computer.memory_bytes()),
            Base::Rig(rig) => (rig.sim.now(), rig.memory_bytes()),
        };
        let stage = || {
            let (stage, on_rig) = match self.kernel.base() {
                Base::Computer(computer) => (computer.longest_stage(), false),
                Base::Rig(rig) => (rig.longest_stage(), true),
            };
            stage.map(|stage| LongestStage { stage, on_rig })
        };
        let events = self.events_before + self.kernel.events();
        let time = now - self.since;
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
    /// Events so far, as [`Budget::events`] counts them.
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

    /// Does something with the drives.
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

    /// An event of a computer has come up.
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

/// The volumes that are used, with nothing written on them, and what is recorded of the
/// drives.
fn blank(
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

/// The drives by themselves.
fn rig(specification: &Specification, circumstances: Circumstances, mut drives: Drives) -> Rig {
    let blank = blank(specification, circumstances, &mut drives);
    Rig::new(Sim::new(circumstances.tie_break), drives, blank)
}

/// The computer, with nothing written on its media.
fn computer(
    (specification, of): (&Specification, &ComputerSpecification),
    circumstances: Circumstances,
    (mut drives, controllers): (Drives, Controllers),
) -> Computer {
    let (volumes, records) = blank(specification, circumstances, &mut drives);
    let sim = Rc::new(Sim::new(circumstances.tie_break));
    Computer {
        cpus: Cpus::new(Rc::clone(&sim), 1),
        sim,
        hardware: RefCell::new(Hardware {
            drives,
            controllers,
            bus: Bus::new(of.bus_bytes_per_s, of.memory_contention_share),
            requests: Requests::default(),
        }),
        costs: of.kernel.costs.clone(),
        speed: of.kernel.speed,
        volumes,
        serial: Serial::new(of.kernel.serial),
        records,
        halted: RefCell::default(),
    }
}

fn drives(specification: &Specification, circumstances: Circumstances) -> Drives {
    let streams = Streams::new(circumstances.seed);
    let mut drives = Drives::default();
    for (number, drive) in specification.drives.iter().enumerate() {
        match &drive.hardware {
            DriveHardware::Mechanism(of) => {
                drives.add_mechanism(mechanism(of, (number, circumstances)));
            }
            DriveHardware::Device(of) => {
                let unit = Unit {
                    number,
                    phase: Turn(u64::from(circumstances.phase_of(number)) << 32),
                    slower_share: circumstances.speed_difference * number as f64,
                };
                let device = of.build(&streams, unit);
                drives.add_device(device.supposing(circumstances.what_if));
            }
        }
    }
    drives
}

/// The mechanism of the drive of this number.
fn mechanism(
    of: &MechanismSpecification,
    (number, circumstances): (usize, Circumstances),
) -> Mechanism {
    let phase = Turn(u64::from(circumstances.phase_of(number)) << 32);
    let mechanism = of.turning(of.rpm * circumstances.speed_of(number), phase);
    mechanism.supposing(circumstances.what_if)
}
