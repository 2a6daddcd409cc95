//! Rig that runs a workload on modelled machines, as often as wanted.

use super::{Chooser, Part, Took, Workload};
use crate::error::LaboratoryError;
use crate::measured::{Task, together};
use crate::model::bench::{Bench, Usage};
use crate::model::computer::Computer;
use crate::model::settings;
use crate::observer::Nobody;
use crate::rig::Rig as _;
use diskperf_battery::Medium;
use diskperf_catalogue::Catalogue;
use diskperf_machine::parts;
use diskperf_machine::parts::vme::CachingScheme;
use diskperf_machine::specification::{MachineSpecification, Software};
use diskperf_timeline::CacheMode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const SYSTEM: &str = "sun3-rimfire-2344";

const MACHINE_SEED: u64 = 1987;

/// A workload, and the computer that runs it.
pub struct Rig {
    /// Workload that the machines of this rig run.
    pub workload: Workload,
    computer: Computer,
    stop: Arc<AtomicBool>,
}

impl Rig {
    /// Reads the computer for a workload.
    ///
    /// # Errors
    ///
    /// Returns an error if the computer refuses a setting of the workload, or if a program does not
    /// fit it.
    pub fn new(
        catalogue: &Catalogue,
        workload: &Workload,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, LaboratoryError> {
        let computer = Computer::read(catalogue, SYSTEM, &settings(&workload.settings)?)?;
        for part in workload.phases.iter().flatten() {
            part.program.check_parameters(part.size_bytes)?;
        }
        Ok(Self {
            workload: workload.clone(),
            computer,
            stop: Arc::clone(stop),
        })
    }

    /// Runs the workload twice on a new machine.
    ///
    /// # Errors
    ///
    /// Returns the error of a program, or that of an end by the user.
    pub fn run(&self, chooser: Chooser) -> Result<Took, LaboratoryError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(LaboratoryError::Interrupted);
        }
        let mut specification = self.computer.specification.clone();
        choose(&mut specification, chooser);
        let usage = Usage {
            other: self.workload.other,
            ..Usage::of((SYSTEM, self.workload.volumes()), MACHINE_SEED, &self.stop)
        };
        let bench = Bench::build(&specification, usage)?;
        let mut passes_s = [0.0; 2];
        for pass in &mut passes_s {
            for phase in &self.workload.phases {
                *pass += self.phase(&bench, phase)?;
            }
        }
        let &[(_, seen)] = &bench.machine.controller_cache_statistics()[..] else {
            panic!("the Rimfire's is the only cache")
        };
        Ok(Took { passes_s, seen })
    }

    /// Runs simultaneous programs, each on a volume of its own. Returns the seconds until all have
    /// ended.
    fn phase(&self, bench: &Bench, parts: &[Part]) -> Result<f64, LaboratoryError> {
        let asked = match self.computer.medium() {
            Medium::Device => CacheMode::Direct,
            Medium::Directory | Medium::File => CacheMode::Cold,
        };
        let tasks = (0..).zip(parts).map(|(volume, part)| Task {
            title: "a workload",
            program: &part.program,
            cache: part.program.cache_mode_for(asked),
            size_bytes: part.size_bytes,
            drive: Some(volume),
            fails_alone: false,
        });
        let assignments = bench.assignments(&tasks.collect::<Vec<_>>());
        let moved: Vec<_> = assignments.iter().map(|_| Arc::default()).collect();
        let repetitions = bench.run((&assignments, &moved), &mut Nobody)?;
        Ok(together(&repetitions).elapsed_time().seconds())
    }
}

fn choose(specification: &mut MachineSpecification, chooser: Chooser) {
    let Software::Unix(unix) = &mut specification.software else {
        panic!("a Sun runs UNIX")
    };
    let mut attached = unix.attachments.iter_mut();
    let config = attached.find_map(|attachment| match &mut attachment.controller_part {
        parts::ControllerSpecification::Vme(part) => Some(&mut part.controller),
        _ => None,
    });
    let config = config.expect("the Rimfire is a controller for the VMEbus");
    let CachingScheme::SectorCache {
        policies, adaptive, ..
    } = &mut config.caching
    else {
        panic!("the Rimfire keeps sectors")
    };
    match chooser {
        Chooser::Driver(chosen) => *policies = chosen,
        Chooser::Controller => *adaptive = true,
    }
}
