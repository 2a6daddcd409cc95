//! A computer, built and running.

use crate::event::Event;
use crate::hardware::bus::Bus;
use crate::hardware::controller::Controller;
use crate::hardware::controller::acsi::Acsi;
use crate::hardware::controller::massbus::Massbus;
use crate::hardware::controller::uda50::Uda50;
use crate::hardware::controller::wd1003::Wd1003;
use crate::hardware::drive::{Angle, Busy, Drive, Rotation};
use crate::hardware::{Hardware, Surroundings};
use crate::kernel::buffers::Buffers;
use crate::kernel::driver::{Driver, Hd, Hp, Uda};
use crate::kernel::ffs::{CheckSummary, FileSystem, Parameters, Problem};
use crate::kernel::medium::Medium;
use crate::kernel::minix::{Minix, MinixCheck, Volume};
use crate::kernel::serial::Serial;
use crate::kernel::statistics::Statistics;
use crate::kernel::{Kernel, Mount};
use crate::specification::{
    ControllerSpecification, DriveSpecification, DriverSpecification, Specification,
};
use diskperf_sim::{Deadlock, Processor, Sim, Streams, TieBreak, Time};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::rc::Rc;

/// What differs between two runs of the same system.
#[derive(Clone, Copy, Debug)]
pub struct Circumstances {
    /// Of all random streams.
    pub seed: u64,
    /// How many of the drives have a file system and are used.
    pub drives: usize,
    /// By how much each drive is turned against the one before it at the
    /// start, in parts of 2^32 of a revolution.
    pub phase: u32,
    /// Share by which each drive turns slower than the one before it.
    pub speed_difference: f64,
    /// See [`TieBreak`].
    pub tie_break: TieBreak,
}

impl Default for Circumstances {
    fn default() -> Self {
        Self {
            seed: 1,
            drives: 1,
            phase: 0,
            speed_difference: 0.0,
            tie_break: TieBreak::Insertion,
        }
    }
}

/// A computer in virtual time.
pub struct Machine {
    kernel: Rc<Kernel>,
}

impl Machine {
    /// Builds the computer, makes its file systems, and starts its clock and
    /// its daemons.
    ///
    /// # Panics
    ///
    /// When more drives are to be used than are configured.
    pub fn build(specification: &Specification, circumstances: Circumstances) -> Self {
        assert!(
            (1..=specification.drives.len()).contains(&circumstances.drives),
            "{} of {} drives",
            circumstances.drives,
            specification.drives.len()
        );
        let sim: Rc<Sim<Event>> = Rc::new(Sim::new(circumstances.tie_break));
        let streams = Streams::new(circumstances.seed);
        let buffers = buffers(specification);
        let (controllers, adaptor_of) = controllers(specification, streams);
        let hardware = Hardware {
            drives: drives(specification, circumstances),
            controllers,
            bus: Bus::new(
                specification.bus_bytes_per_s,
                specification.memory_contention_share,
            ),
            transfers: Kernel::transfers(buffers.all.len()),
        };
        let (mounts, mut media) = mounts(specification, circumstances.drives);
        let raw = |drive: usize| buffers.raw(drive as u32).transfer();
        let minix = specification.kernel.minix.clone().map(|config| {
            let transfers = (0..specification.drives.len()).map(raw).collect();
            let volumes = volumes(specification, circumstances.drives);
            Minix::new(config, &mut media, volumes, transfers)
        });
        let driver = specification.driver.clone();
        let driver = match driver.ordered(specification.kernel.order) {
            DriverSpecification::Hp(config) => Driver::Hp(Hp::new(config, &adaptor_of)),
            DriverSpecification::Uda(config) => {
                Driver::Uda(Uda::new(config, specification.drives.len()))
            }
            DriverSpecification::Hd(config) => {
                Driver::Hd(Hd::new(config, specification.drives.len()))
            }
            DriverSpecification::DiskTask(config) => Driver::DiskTask(config),
        };
        let kernel = Rc::new(Kernel {
            sim,
            processor: Processor::default(),
            hardware: RefCell::new(hardware),
            costs: specification.kernel.costs.clone(),
            driver,
            buffers: RefCell::new(buffers),
            media: RefCell::new(media),
            mounts: RefCell::new(mounts),
            partitions: specification.drives[..circumstances.drives]
                .iter()
                .map(DriveSpecification::raw)
                .collect(),
            scheduler: RefCell::default(),
            processes: RefCell::default(),
            ticks: Cell::new(0),
            serial: Serial::new(specification.kernel.serial),
            driver_time: Cell::new(Time::ZERO),
            statistics: RefCell::new(Statistics::new(specification.drives.len())),
            pages: RefCell::default(),
            minix,
            writing: RefCell::new(vec![(0, Vec::new()); specification.drives.len()]),
        });
        let machine = Self { kernel };
        machine.start();
        machine.kernel.start_serial(streams);
        machine
    }

    /// Starts what runs for ever: the clock, the interrupt handlers, update.
    fn start(&self) {
        let kernel = &self.kernel;
        let sim = &kernel.sim;
        sim.schedule_background(Time(1_000_000_000 / kernel.costs.clock_hz), Event::Tick);
        let controllers = kernel.hardware.borrow().controllers.len();
        for number in 0..controllers {
            let task = match &kernel.driver {
                Driver::Hp(_) => sim.spawn(
                    format!("interrupts of adaptor {number}"),
                    false,
                    Rc::clone(kernel).hp_interrupts(number),
                ),
                Driver::Uda(_) => sim.spawn(
                    "interrupts of the controller",
                    false,
                    Rc::clone(kernel).uda_interrupts(),
                ),
                Driver::Hd(_) => sim.spawn(
                    "interrupts of the controller",
                    false,
                    Rc::clone(kernel).hd_interrupts(),
                ),
                Driver::DiskTask(_) => sim.spawn(
                    "interrupts of the controller",
                    false,
                    Rc::clone(kernel).acsi_interrupts(),
                ),
            };
            match &mut kernel.hardware.borrow_mut().controllers[number] {
                Controller::Massbus(massbus) => massbus.connect(task),
                Controller::Uda50(uda50) => uda50.connect(task),
                Controller::Wd1003(wd1003) => wd1003.connect(task),
                Controller::Acsi(acsi) => acsi.connect(task),
            }
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
    /// [`Deadlock`] when none of them can go on.
    pub fn run(&self) -> Result<(), Deadlock> {
        let kernel = &self.kernel;
        kernel.sim.run(|event| kernel.handle(event))?;
        self.assert_physics();
        Ok(())
    }

    /// The present moment.
    pub fn now(&self) -> Time {
        self.kernel.sim.now()
    }

    /// What was counted so far.
    pub fn statistics(&self) -> Statistics {
        self.kernel.statistics.borrow().clone()
    }

    /// What each drive has done.
    pub fn drives_busy(&self) -> Vec<Busy> {
        let hardware = self.kernel.hardware.borrow();
        hardware.drives.iter().map(Drive::busy).collect()
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

    /// What is wrong with a drive's file system, whatever its kind.
    pub fn problems(&self, drive: usize) -> Vec<String> {
        if self.kernel.minix.is_some() {
            return self.check_minix(drive).err().unwrap_or_default();
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
        for drive in self.drives_busy() {
            // A transfer is booked when it starts; the last may go on.
            let most = now + Time::from_millis(1000);
            assert!(
                drive.positioning + drive.latency + drive.transfer <= most,
                "a drive does one thing at a time: {drive:?} by {now}"
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
    /// An event has come up.
    fn handle(&self, event: Event) {
        match event {
            Event::Processor(completion) => self.processor.complete(&self.sim, completion),
            Event::Controller(number, event) => {
                let around = Surroundings {
                    sim: &self.sim,
                    processor: &self.processor,
                };
                let mut hardware = self.hardware.borrow_mut();
                hardware.handle(&around, usize::from(number), event);
            }
            Event::Tick => self.tick(),
            Event::Character(line) => self.character(line),
            Event::Daemon(task) => self.sim.wake(task),
        }
    }
}

/// A buffer for each two kilobytes of the cache, as 4.2BSD has it, and at
/// least these many.
const FEWEST_BUFFERS: u32 = 16;

fn buffers(specification: &Specification) -> Buffers {
    let memory = specification.kernel.cache_bytes;
    let headers = (memory / 2048).max(FEWEST_BUFFERS);
    let block = block_sizes(specification).0;
    Buffers::new(headers, memory.max(FEWEST_BUFFERS * block), block)
        .with_raw(specification.drives.len())
}

fn drives(specification: &Specification, circumstances: Circumstances) -> Vec<Drive> {
    let drive = |(number, drive): (usize, &DriveSpecification)| {
        let slower = 1.0 - circumstances.speed_difference * number as f64;
        let speed = (drive.hundredths_of_rpm as f64 * slower + 0.5) as u64;
        let phase = circumstances.phase.wrapping_mul(number as u32);
        let rotation = Rotation::new(speed.max(1), Angle::of_share(phase));
        Drive::new(drive.mechanics.clone(), rotation)
    };
    specification.drives.iter().enumerate().map(drive).collect()
}

/// The controllers, and of each drive the one that it hangs on.
fn controllers(specification: &Specification, streams: Streams) -> (Vec<Controller>, Vec<usize>) {
    let all: Vec<usize> = (0..specification.drives.len()).collect();
    match &specification.controller {
        ControllerSpecification::Massbus { config, separate } => {
            let groups: Vec<Vec<usize>> = if *separate {
                all.iter().map(|drive| vec![*drive]).collect()
            } else {
                vec![all.clone()]
            };
            let adaptor_of = if *separate {
                all.clone()
            } else {
                vec![0; all.len()]
            };
            let controllers = groups.into_iter().enumerate().map(|(number, drives)| {
                Controller::Massbus(Massbus::new(number as u8, config.clone(), drives, streams))
            });
            (controllers.collect(), adaptor_of)
        }
        ControllerSpecification::Uda50(config) => {
            let spread = streams.stream("controller.0.spread");
            let uda50 = Uda50::new(0, config.clone(), &all, spread);
            (vec![Controller::Uda50(uda50)], vec![0; all.len()])
        }
        ControllerSpecification::Wd1003(config) => {
            let wd1003 = Wd1003::new(config.clone(), streams);
            (vec![Controller::Wd1003(wd1003)], vec![0; all.len()])
        }
        ControllerSpecification::Acsi(config) => {
            let acsi = Acsi::new(config.clone(), streams);
            (vec![Controller::Acsi(acsi)], vec![0; all.len()])
        }
    }
}

/// Bytes of a block and of a fragment; without a file system, of what the
/// contents of a drive are kept in.
fn block_sizes(specification: &Specification) -> (u32, u32) {
    let of = |parameters: &Parameters| (parameters.block_bytes, parameters.fragment_bytes);
    specification.filesystem.as_ref().map_or((4096, 512), of)
}

fn mounts(specification: &Specification, drives: usize) -> (Vec<Mount>, Vec<Medium>) {
    let drives = &specification.drives[..drives];
    let (_, fragment_bytes) = block_sizes(specification);
    let medium = |drive: &DriveSpecification| {
        let fragments = drive.raw().bytes().div_ceil(u64::from(fragment_bytes));
        Medium::new(fragments as u32, block_sizes(specification))
    };
    let media = drives.iter().map(medium).collect();
    let Some(parameters) = specification.filesystem else {
        return (Vec::new(), media);
    };
    let mount = |drive: &DriveSpecification| Mount {
        fs: FileSystem::newfs(drive.partition, parameters).expect("the specification was checked"),
        first_sector: drive.first_sector,
        inodes: BTreeMap::new(),
        modified: false,
    };
    (drives.iter().map(mount).collect(), media)
}

/// The file systems of Minix on the drives that are used.
fn volumes(specification: &Specification, drives: usize) -> Vec<Volume> {
    let Some(parameters) = specification.minix_filesystem else {
        return Vec::new();
    };
    let drives = specification.drives[..drives].iter();
    let volume = |drive: &DriveSpecification| {
        Volume::new(drive.raw().bytes(), parameters).expect("the specification was checked")
    };
    drives.map(volume).collect()
}
