//! A probe of a modelled drive.

use diskperf_analysis::caps::{CapObservations, CapVerdict, recognise_cap};
use diskperf_battery::Program;
use diskperf_catalogue::{Catalogue, Setting};
use diskperf_machine::RunBudget;
use diskperf_models::measured::JobTask;
use diskperf_models::model::bench::{BenchUsage, ModelBench};
use diskperf_models::model::computer::ModelComputer;
use diskperf_models::rig::{ONE_REPETITION, repeat_unobserved};
use diskperf_timeline::CacheMode;
use std::fmt;
use std::sync::Arc;

/// System with the load that is probed.
#[derive(Debug)]
pub(crate) struct ProbedSystem {
    pub(crate) name: String,
    /// Settings of the drive by key.
    pub(crate) settings: Vec<(&'static str, String)>,
    pub(crate) depth: u64,
    pub(crate) block_bytes: u64,
    pub(crate) write_share: f64,
    pub(crate) area_bytes: u64,
    pub(crate) seed: u64,
}

impl ProbedSystem {
    fn settings(&self) -> Vec<Setting> {
        let settings = self.settings.iter();
        settings
            .map(|(key, value)| Setting::new(&format!("drive.{key}"), value))
            .collect()
    }

    /// Runs `cap_probe`, and judges what it observed.
    pub(crate) fn probe(&self) -> CapVerdict {
        let computer =
            ModelComputer::read_catalogue(&Catalogue::embedded(), &self.name, &self.settings())
                .unwrap_or_else(|error| panic!("{self}: {error}"));
        let stop = Arc::default();
        let usage = BenchUsage {
            budget: RunBudget::UNLIMITED,
            ..BenchUsage::for_system((&self.name, 1), self.seed, &stop)
        };
        let bench = ModelBench::build(&computer.specification, usage).expect("a machine");
        let mut program = Program::from_name("cap_probe").expect("a program");
        for (name, value) in [
            ("depth", self.depth.to_string()),
            ("block_bytes", self.block_bytes.to_string()),
            ("write_share", self.write_share.to_string()),
            ("area_bytes", self.area_bytes.to_string()),
        ] {
            program.set_parameter(name, &value).expect("a parameter");
        }
        let task = JobTask {
            title: "a probe",
            program: &program,
            cache_mode: CacheMode::Direct,
            size_bytes: 1 << 30,
            drive_index: None,
            keeps_others_on_failure: false,
        };
        let repetitions = repeat_unobserved(&bench, (task, ONE_REPETITION), |_| true)
            .unwrap_or_else(|error| panic!("{self}: {error}"));
        let mut loads = repetitions[0].load_measures();
        let load = loads.next().expect("a measure");
        recognise_cap(CapObservations {
            probe: load.cap_probe.as_ref().expect("a probe"),
            processor_share: None,
            known_limits: &[],
        })
    }
}

impl fmt::Display for ProbedSystem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} {:?}, depth {}, {} bytes, writes {}, area {}",
            self.name,
            self.settings,
            self.depth,
            self.block_bytes,
            self.write_share,
            self.area_bytes
        )
    }
}
