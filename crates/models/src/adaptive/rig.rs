//! Rig that runs a workload on modelled machines, as often as wanted.

use super::{AdaptiveWorkload, PolicyChooser, WorkloadPart, WorkloadTimes};
use crate::error::LaboratoryError;
use crate::measured::{JobTask, merge_repetitions};
use crate::model::bench::{BenchUsage, ModelBench};
use crate::model::computer::ModelComputer;
use crate::model::parse_settings;
use crate::observer::SilentObserver;
use crate::rig::MeasurementRig as _;
use diskperf_battery::Medium;
use diskperf_catalogue::Catalogue;
use diskperf_machine::parts;
use diskperf_machine::parts::vme::CachingScheme;
use diskperf_machine::specification::{MachineSpecification, Software};
use diskperf_timeline::CacheMode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const MODEL_SYSTEM: &str = "sun3-rimfire-2344";

const MACHINE_SEED: u64 = 1987;

/// A workload, and the computer that runs it.
pub struct AdaptiveRig {
    /// Workload that the machines of this rig run.
    pub workload: AdaptiveWorkload,
    computer: ModelComputer,
    stop: Arc<AtomicBool>,
}

impl AdaptiveRig {
    /// Reads the computer for a workload.
    ///
    /// # Errors
    ///
    /// Returns an error if the computer refuses a setting of the workload, or if a program does not
    /// fit it.
    pub fn new(
        catalogue: &Catalogue,
        workload: &AdaptiveWorkload,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, LaboratoryError> {
        let computer = ModelComputer::read_catalogue(
            catalogue,
            MODEL_SYSTEM,
            &parse_settings(&workload.settings)?,
        )?;
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
    pub fn run_workload(&self, chooser: PolicyChooser) -> Result<WorkloadTimes, LaboratoryError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(LaboratoryError::Interrupted);
        }
        let mut specification = self.computer.specification.clone();
        set_policies(&mut specification, chooser);
        let usage = BenchUsage {
            has_other_volume: self.workload.has_other_volume,
            ..BenchUsage::for_system(
                (MODEL_SYSTEM, self.workload.volume_count()),
                MACHINE_SEED,
                &self.stop,
            )
        };
        let bench = ModelBench::build(&specification, usage)?;
        let mut passes_s = [0.0; 2];
        for pass in &mut passes_s {
            for phase in &self.workload.phases {
                *pass += self.run_phase(&bench, phase)?;
            }
        }
        let &[(_, seen)] = &bench.machine.controller_cache_statistics()[..] else {
            panic!("the Rimfire's is the only cache")
        };
        Ok(WorkloadTimes { passes_s, seen })
    }

    /// Runs simultaneous programs, each on a volume of its own. Returns the seconds until all have
    /// ended.
    fn run_phase(
        &self,
        bench: &ModelBench,
        parts: &[WorkloadPart],
    ) -> Result<f64, LaboratoryError> {
        let asked = match self.computer.medium() {
            Medium::Device => CacheMode::Direct,
            Medium::Directory | Medium::File => CacheMode::Cold,
        };
        let tasks = (0..).zip(parts).map(|(volume, part)| JobTask {
            title: "a workload",
            program: &part.program,
            cache_mode: part.program.cache_mode_for(asked),
            size_bytes: part.size_bytes,
            drive_index: Some(volume),
            keeps_others_on_failure: false,
        });
        let assignments = bench.list_assignments(&tasks.collect::<Vec<_>>());
        let moved: Vec<_> = assignments.iter().map(|_| Arc::default()).collect();
        let repetitions = bench.run_assignments((&assignments, &moved), &mut SilentObserver)?;
        Ok(merge_repetitions(&repetitions).elapsed_time().seconds())
    }
}

fn set_policies(specification: &mut MachineSpecification, chooser: PolicyChooser) {
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
        PolicyChooser::Driver(chosen) => *policies = chosen,
        PolicyChooser::Controller => *adaptive = true,
    }
}
