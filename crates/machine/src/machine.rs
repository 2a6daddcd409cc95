//! A computer, built and running.

use crate::budget::{Budget, Exceeded};
use crate::event::Event;
use crate::hardware::bus::Bus;
use crate::hardware::cache::CacheStatistics;
use crate::hardware::device::{Device, Devices};
use crate::hardware::mechanism::{Angle, Busy, Mechanism, Rotation};
use crate::hardware::{Hardware, Requests};
use crate::kernel::buffers::{Buffers, CLICK};
use crate::kernel::ffs::{CheckSummary, FileSystem, Problem};
use crate::kernel::medium::Medium;
use crate::kernel::minix::{Minix, MinixCheck};
use crate::kernel::serial::Serial;
use crate::kernel::statistics::Statistics;
use crate::kernel::v7::{V7, V7Check};
use crate::kernel::{Kernel, Mount, raw};
use crate::parts;
use crate::specification::{
    DeviceSpecification, DriveSpecification, FEWEST_BUFFERS, Specification, Volume,
};
use crate::standstill::Standstill;
use crate::what_if::WhatIf;
use diskperf_sim::{Processor, Sim, Streams, TieBreak, Time};
use diskperf_timeline::trace::Trace;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::rc::Rc;
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
    /// What is supposed of it that its catalogue does not have.
    pub what_if: WhatIf,
    /// What it may take.
    pub budget: Budget,
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
            what_if: WhatIf::default(),
            budget: Budget::USUAL,
        }
    }
}

/// A computer in virtual time.
pub struct Machine {
    kernel: Rc<Kernel>,
    budget: Budget,
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
        let sim: Rc<Sim<Event>> = Rc::new(Sim::new(circumstances.tie_break));
        let streams = Streams::new(circumstances.seed);
        let buffers = cache(specification);
        let attaching = (specification.kernel.order, streams, circumstances.what_if);
        let (controllers, drivers) = parts::attach(&specification.attachments, attaching);
        let hardware = Hardware {
            drives: drives(specification, circumstances),
            controllers,
            bus: Bus::new(
                specification.bus_bytes_per_s,
                specification.memory_contention_share,
            ),
            requests: Requests::default(),
        };
        let volumes = &specification.volumes[..circumstances.volumes];
        let (mounts, mut media) = mounts(specification, volumes);
        let minix = specification.kernel.minix.clone().map(|config| {
            let volumes = minix_volumes(specification, volumes);
            Minix::new(config, &mut media, volumes)
        });
        let v7 = specification.v7_filesystem.map(|parameters| {
            let bytes = volumes.iter().map(|volume| volume.partition.bytes());
            V7::new(&mut media, parameters, &bytes.collect::<Vec<_>>())
        });
        let kernel = Rc::new(Kernel {
            sim,
            processor: Processor::default(),
            hardware: RefCell::new(hardware),
            costs: specification.kernel.costs.clone(),
            speed: specification.kernel.speed,
            drivers,
            driver_of: driver_of(specification),
            buffers: RefCell::new(buffers),
            media: RefCell::new(media),
            mounts: RefCell::new(mounts),
            partitions: volumes
                .iter()
                .map(|volume| volume.partition.raw(volume.drive))
                .collect(),
            scheduler: RefCell::default(),
            processes: RefCell::default(),
            ticks: Cell::new(0),
            serial: Serial::new(specification.kernel.serial),
            driver_time: Cell::new(Time::ZERO),
            statistics: RefCell::new(Statistics::new(specification.drives.len())),
            pages: RefCell::default(),
            minix,
            v7,
            tracing: circumstances.trace.then(RefCell::default),
            halted: RefCell::default(),
            writing: RefCell::new(vec![(0, Vec::new()); volumes.len()]),
            owners: RefCell::default(),
            raw_headers: raw::headers(volumes.len()),
        });
        let machine = Self {
            kernel,
            budget: circumstances.budget,
            built_bytes: specification.memory(circumstances.volumes).bytes(),
        };
        machine.start();
        machine.kernel.start_serial(streams);
        machine
    }

    /// Starts what runs for ever: the clock, the interrupt handlers, update.
    fn start(&self) {
        let kernel = &self.kernel;
        let sim = &kernel.sim;
        sim.schedule_background(Time(1_000_000_000 / kernel.costs.clock_hz), Event::Tick);
        for driver in &kernel.drivers {
            driver.start(kernel);
        }
        if kernel.minix.is_some() {
            kernel.start_minix(sim);
        } else {
            sim.spawn("update", false, Rc::clone(kernel).update());
        }
    }

    /// The kernel, for [`crate::Session::begin`].
    pub fn kernel(&self) -> &Rc<Kernel> {
        &self.kernel
    }

    /// Starts a process; what it does is up to the future.
    pub fn spawn(&self, name: &str, process: impl Future<Output = ()> + 'static) {
        self.kernel.sim.spawn(name, true, process);
    }

    /// Runs until every process that was started has ended.
    ///
    /// # Errors
    ///
    /// [`Standstill`] when they cannot; such a machine runs no more.
    pub fn run(&self) -> Result<(), Standstill> {
        self.run_unless(&AtomicBool::new(false))
    }

    /// The same, unless `stop` is set, or the machine takes more than its
    /// [`Budget`]: at the next tick of the modelled clock it stands still, whatever
    /// its processes are at.
    ///
    /// # Errors
    ///
    /// See [`Machine::run`].
    pub fn run_unless(&self, stop: &AtomicBool) -> Result<(), Standstill> {
        let kernel = &self.kernel;
        let since = (kernel.sim.events(), kernel.sim.now());
        let outcome = kernel.sim.run(|event| {
            if matches!(event, Event::Tick) {
                if stop.load(Ordering::Relaxed) {
                    kernel.halt(Standstill::Stopped);
                } else if let Some(exceeded) = self.exceeded(since) {
                    kernel.halt(Standstill::Exceeded(exceeded));
                }
            }
            kernel.handle(event);
        });
        outcome.map_err(Standstill::Deadlock)?;
        match &*kernel.halted.borrow() {
            Some(why) => Err(why.clone()),
            None => {
                self.assert_physics();
                Ok(())
            }
        }
    }

    /// What has grown beyond the budget since so many events and that moment.
    fn exceeded(&self, (events, began): (u64, Time)) -> Option<Exceeded> {
        let kernel = &self.kernel;
        let events = kernel.sim.events() - events;
        let time = kernel.sim.now() - began;
        let (made, recorded) = kernel.memory_bytes();
        let bytes = self.built_bytes + made + recorded;
        if events > self.budget.events {
            let stage = kernel.longest_stage();
            Some(Exceeded::Events {
                events,
                time,
                stage,
            })
        } else if time > self.budget.time {
            let stage = kernel.longest_stage();
            Some(Exceeded::Time { time, stage })
        } else if bytes > self.budget.bytes {
            Some(Exceeded::Memory { bytes, recorded })
        } else {
            None
        }
    }

    /// The present moment.
    pub fn now(&self) -> Time {
        self.kernel.sim.now()
    }

    /// What was recorded since the start, or since this was asked last; nothing
    /// unless it was asked for.
    pub fn take_trace(&self) -> Option<Trace> {
        self.kernel.take_trace()
    }

    /// What was counted so far.
    pub fn statistics(&self) -> Statistics {
        self.kernel.statistics.borrow().clone()
    }

    /// What the caches of the controllers that have one did, by the number of
    /// the controller.
    pub fn caches(&self) -> Vec<(usize, [CacheStatistics; 3])> {
        let caches = self.kernel.hardware.borrow().controllers.cache_statistics();
        let numbered = caches.into_iter().enumerate();
        numbered
            .filter_map(|(number, cache)| Some((number, cache?)))
            .collect()
    }

    /// What each drive has done.
    pub fn drives_busy(&self) -> Vec<Busy> {
        let hardware = self.kernel.hardware.borrow();
        hardware.drives.iter().map(Device::busy).collect()
    }

    /// For how long the processor worked, and how much of that in handlers.
    pub fn processor_busy(&self) -> (Time, Time) {
        self.kernel.processor.busy(&self.kernel.sim)
    }

    /// How much of that the driver's routines took, at full speed.
    pub fn driver_busy(&self) -> Time {
        self.kernel.driver_time.get()
    }

    /// Checks a file system as fsck does.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn check(&self, drive: usize) -> Result<CheckSummary, Vec<Problem>> {
        self.kernel.mounts.borrow()[drive].fs.check()
    }

    /// The same of a file system of Minix's.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    ///
    /// # Panics
    ///
    /// When the computer runs another kernel.
    pub fn check_minix(&self, drive: usize) -> Result<MinixCheck, Vec<String>> {
        self.kernel.check_minix(drive as u32)
    }

    /// The same of a file system of the seventh edition.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    ///
    /// # Panics
    ///
    /// When the computer runs another kernel.
    pub fn check_v7(&self, drive: usize) -> Result<V7Check, Vec<String>> {
        self.kernel.check_v7(drive as u32)
    }

    /// What is wrong with a drive's file system, whatever its kind.
    pub fn problems(&self, drive: usize) -> Vec<String> {
        if self.kernel.minix.is_some() {
            return self.check_minix(drive).err().unwrap_or_default();
        }
        if self.kernel.v7.is_some() {
            return self.check_v7(drive).err().unwrap_or_default();
        }
        let found = self.check(drive).err().unwrap_or_default();
        found.iter().map(ToString::to_string).collect()
    }

    /// Files of a drive's file system, if it is sound, that somebody has open
    /// and nothing names.
    pub fn open_unlinked(&self, drive: usize) -> u32 {
        if self.kernel.minix.is_some() {
            let found = self.check_minix(drive);
            return found.map_or(0, |found| found.open_unlinked);
        }
        if self.kernel.v7.is_some() {
            let found = self.check_v7(drive);
            return found.map_or(0, |found| found.open_unlinked);
        }
        self.check(drive).map_or(0, |found| found.open_unlinked)
    }

    /// Looks at a file system.
    pub fn file_system<T>(&self, drive: usize, look: impl FnOnce(&FileSystem) -> T) -> T {
        look(&self.kernel.mounts.borrow()[drive].fs)
    }

    /// What must be true of every run.
    fn assert_physics(&self) {
        let now = self.now();
        let (busy, in_handlers) = self.processor_busy();
        assert!(
            in_handlers <= busy && busy <= now,
            "a processor is busy at most all the time"
        );
        let drives = &self.kernel.hardware.borrow().drives;
        for drive in drives.iter().filter_map(Device::mechanism) {
            // What it does is booked when it starts; the last of it may go on.
            let (busy, most) = (drive.busy(), now + drive.booked_last());
            assert!(
                busy.positioning + busy.latency + busy.transfer <= most,
                "a drive does one thing at a time: {busy:?} by {now}"
            );
        }
        let memory = self.kernel.buffers.borrow().memory();
        assert!(memory > 0, "the buffers' memory does not go away");
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Tasks own the kernel, and the kernel the tasks.
        self.kernel.sim.clear();
    }
}

impl Kernel {
    /// Nothing more happens; [`Machine::run`] says why.
    pub(crate) fn halt(&self, why: Standstill) {
        *self.halted.borrow_mut() = Some(why);
        self.sim.halt();
    }

    /// An event has come up.
    fn handle(&self, event: Event) {
        match event {
            Event::Processor(completion) => self.processor.complete(&self.sim, completion),
            Event::Part(event) => {
                let mut hardware = self.hardware.borrow_mut();
                hardware.handle(&self.surroundings(), event);
            }
            Event::Tick => self.tick(),
            Event::Character(line) => self.character(line),
            Event::Daemon(task) => self.sim.wake(task),
        }
    }
}

fn cache(specification: &Specification) -> Buffers {
    let memory = specification.kernel.cache_bytes;
    let headers = specification.buffers();
    if specification.v7_filesystem.is_some() {
        // A click is the least that a header can have.
        return Buffers::new(headers, headers * CLICK, CLICK);
    }
    let blocks = specification
        .volumes
        .iter()
        .map(|volume| specification.block_sizes(volume).0);
    let block = blocks.max().unwrap_or(4096);
    Buffers::new(headers, memory.max(FEWEST_BUFFERS * block), block)
}

fn drives(specification: &Specification, circumstances: Circumstances) -> Devices {
    let drive = |(number, drive): (usize, &DriveSpecification)| {
        let slower = 1.0 - circumstances.speed_difference * number as f64;
        let of = match &drive.device {
            DeviceSpecification::Mechanism(mechanism) => mechanism,
            DeviceSpecification::Sectors(sectors) => return Device::Sectors(*sectors),
        };
        let speed = (of.hundredths_of_rpm as f64 * slower + 0.5) as u64;
        let against_first = circumstances.phase.wrapping_mul(number as u32);
        let phase = circumstances.first_phase.wrapping_add(against_first);
        let rotation = Rotation::new(speed.max(1), Angle::of_share(phase));
        let mechanism = Mechanism::new(of.mechanics.clone(), rotation);
        Device::Mechanism(Box::new(mechanism.supposing(circumstances.what_if)))
    };
    specification.drives.iter().enumerate().map(drive).collect()
}

/// Of each drive, the place of its driver.
fn driver_of(specification: &Specification) -> Vec<usize> {
    let of = |drive: usize| {
        let mut attachments = specification.attachments.iter();
        attachments
            .position(|attachment| attachment.drives.contains(&drive))
            .expect("every drive hangs on some controller")
    };
    (0..specification.drives.len()).map(of).collect()
}

fn mounts(specification: &Specification, volumes: &[Volume]) -> (Vec<Mount>, Vec<Medium>) {
    let medium = |volume: &Volume| {
        let (block_bytes, fragment_bytes) = specification.block_sizes(volume);
        let fragments = volume.partition.bytes().div_ceil(u64::from(fragment_bytes));
        Medium::new(fragments, (block_bytes, fragment_bytes))
    };
    let mount = |volume: &Volume| {
        let parameters = volume.filesystem?;
        let fs = FileSystem::newfs(volume.partition.label, parameters);
        Some(Mount {
            fs: fs.expect("the specification was checked"),
            inodes: BTreeMap::new(),
            modified: false,
        })
    };
    (
        volumes.iter().filter_map(mount).collect(),
        volumes.iter().map(medium).collect(),
    )
}

/// The file systems of Minix on the volumes that are used.
fn minix_volumes(
    specification: &Specification,
    volumes: &[Volume],
) -> Vec<crate::kernel::minix::Volume> {
    let Some(parameters) = specification.minix_filesystem else {
        return Vec::new();
    };
    let made = |volume: &Volume| {
        crate::kernel::minix::Volume::new(volume.partition.bytes(), parameters)
            .expect("the specification was checked")
    };
    volumes.iter().map(made).collect()
}
