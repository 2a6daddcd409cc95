//! Setups that the cells of Kridle and McKusick 1983 were measured on, and the runs that reproduce
//! them.

use super::jobs::{ModelFigures, ModelJob, ModelWorkshop};
use diskperf_analysis::accuracy::{SeedRange, TwoDriveSettings};
use diskperf_battery::{Medium, Program, Suite};
use diskperf_catalogue::{Catalogue, PublishedCell, Setting};
use diskperf_models::LaboratoryError;
use diskperf_models::model::computer::ModelComputer;
use diskperf_models::rig::THREE_REPETITIONS;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes that each program of Kridle and McKusick 1983 transfers.
pub(crate) const FILE_BYTES: u64 = 8 << 20;

/// A file system on the drives of a system. One machine runs all programs on it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CellSetup {
    /// System to run: `NAME` or `NAME:VARIANT`.
    pub(crate) target: String,
    /// Name of the file system in the catalogue, such as `8k`.
    pub(crate) filesystem: String,
    /// Number of drives that run a program together.
    pub(crate) drive_count: u32,
}

/// One program on a setup, the subject of a cell.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TablePlace {
    pub(crate) setup: CellSetup,
    pub(crate) program: String,
}

/// Number of seeds that a figure is averaged over, for systems where data comes late by chance.
pub(crate) const SEED_COUNT: u32 = 4;

/// Mean of a figure over all phases or all seeds, with its spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct AveragedValue {
    pub(crate) mean: f64,
    pub(crate) seed_range: SeedRange,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ModelledPlace {
    pub(crate) kb_per_s: AveragedValue,
    pub(crate) cpu_percent: AveragedValue,
    /// Share of requests that lost a revolution.
    pub(crate) missed_share: f64,
    /// Share of the processor's work that the driver does.
    pub(crate) driver_share: f64,
    pub(crate) phase_count: u32,
    pub(crate) seed_count: u32,
}

impl CellSetup {
    /// Builds the system with this file system and the user's settings.
    pub(crate) fn build_computer(
        &self,
        catalogue: &Catalogue,
        settings: &[Setting],
    ) -> Result<ModelComputer, LaboratoryError> {
        let filesystem = Setting {
            path: "filesystem".to_owned(),
            value_text: self.filesystem.clone(),
        };
        let all: Vec<Setting> = [filesystem].into_iter().chain(settings.to_vec()).collect();
        ModelComputer::read_catalogue(catalogue, &self.target, &all)
    }
}

impl TablePlace {
    /// Returns the setup and program of a cell; `None` if the cell is not the throughput of a
    /// program on a modelled system.
    pub(crate) fn from_cell(cell: &PublishedCell) -> Option<Self> {
        if cell.kind != "fs_throughput" {
            return None;
        }
        // `8K/1K`: the block size names the catalogue's file system.
        let filesystem = cell.filesystem.as_deref()?.split('/').next()?;
        let program = cell.test.clone()?;
        Program::from_name(&program)?;
        Some(Self {
            setup: CellSetup {
                target: cell.full_target()?,
                filesystem: filesystem.to_lowercase(),
                drive_count: cell.drives.unwrap_or(1),
            },
            program,
        })
    }
}

/// Returns the programs of the suite in the order of running, up to the last requested one. Later
/// programs have no effect on it.
fn list_programs(places: &[&TablePlace], setup: &CellSetup) -> Vec<Program> {
    let suite = Suite::from_name("ffs83", Medium::Directory).expect("the battery has ffs83");
    let mut programs: Vec<Program> = suite.iter_programs().cloned().collect();
    let asked = |program: &Program| {
        places
            .iter()
            .any(|place| place.setup == *setup && place.program == program.name())
    };
    while programs.last().is_some_and(|last| !asked(last)) {
        programs.pop();
    }
    programs
}

/// Runs all programs that these cells need. Each setup runs once, or once for each phase of several
/// drives, or once for each seed if data of a single drive comes late.
pub(crate) fn run_figures(
    catalogue: &Catalogue,
    settings: &[Setting],
    (places, seed): (&[&TablePlace], u64),
    two_drives: &TwoDriveSettings,
    workshop: &ModelWorkshop<'_>,
) -> Result<BTreeMap<TablePlace, ModelledPlace>, LaboratoryError> {
    let mut setups: Vec<&CellSetup> = places.iter().map(|place| &place.setup).collect();
    setups.sort_unstable();
    setups.dedup();
    let mut jobs = Vec::new();
    let mut ranges = Vec::new();
    for setup in &setups {
        let computer = Arc::new(setup.build_computer(catalogue, settings)?);
        check_drives(&computer, setup.drive_count)?;
        let programs = list_programs(places, setup);
        let first = jobs.len();
        let seeds = choose_seed_count(&computer, setup.drive_count);
        let phases = choose_phases(setup.drive_count, two_drives.phase_count);
        let times = phases
            .into_iter()
            .flat_map(|phase| (0..seeds).map(move |more| (phase, more)));
        for (phase, more) in times {
            jobs.push(ModelJob {
                computer: Arc::clone(&computer),
                drive_count: setup.drive_count as usize,
                has_other_volume: false,
                spindle_phase: phase,
                speed_difference_share: two_drives.speed_difference_share,
                programs: programs.clone(),
                size_bytes: FILE_BYTES,
                protocol: THREE_REPETITIONS,
                seed: seed.wrapping_add(u64::from(more)),
            });
        }
        ranges.push((first..jobs.len(), seeds, programs));
    }
    let done = workshop.run_jobs(&jobs)?;
    let mut figures = BTreeMap::new();
    for (setup, (range, seeds, programs)) in setups.into_iter().zip(ranges) {
        for (number, program) in programs.iter().enumerate() {
            let over: Vec<&ModelFigures> =
                done[range.clone()].iter().map(|job| &job[number]).collect();
            let place = TablePlace {
                setup: setup.clone(),
                program: program.name().to_owned(),
            };
            figures.insert(place, ModelledPlace::from_figures(&over, seeds));
        }
    }
    Ok(figures)
}

fn check_drives(computer: &ModelComputer, drives: u32) -> Result<(), LaboratoryError> {
    let configured = computer.configured_drive_count();
    if drives as usize <= configured {
        return Ok(());
    }
    Err(LaboratoryError::Request(format!(
        "{} has {configured} drives configured, and cells of {drives} are asked for",
        computer.name
    )))
}

/// Returns the number of seeds that the figure of one drive is averaged over. Two drives are
/// averaged over phases instead.
fn choose_seed_count(computer: &ModelComputer, drives: u32) -> u32 {
    match drives < 2 && computer.specification.may_lose_data() {
        true => SEED_COUNT,
        false => 1,
    }
}

/// Returns the phases of the second drive, evenly spaced over a revolution; a single zero for one
/// drive.
pub(crate) fn choose_phases(drives: u32, phases: u32) -> Vec<u32> {
    if drives < 2 {
        return vec![0];
    }
    let part = |number: u32| (u64::from(number) << 32) / u64::from(phases);
    (0..phases).map(|number| part(number) as u32).collect()
}

impl ModelledPlace {
    fn from_figures(figures: &[&ModelFigures], seeds: u32) -> Self {
        let over = |of: fn(&ModelFigures) -> f64| {
            let values: Vec<f64> = figures.iter().map(|figure| of(figure)).collect();
            AveragedValue::from_values(&values)
        };
        let share = |part: fn(&ModelFigures) -> u64, whole: fn(&ModelFigures) -> u64| {
            let sum =
                |of: fn(&ModelFigures) -> u64| figures.iter().map(|figure| of(figure)).sum::<u64>();
            sum(part) as f64 / sum(whole).max(1) as f64
        };
        Self {
            kb_per_s: over(|figure| figure.kb_per_s),
            cpu_percent: over(|figure| figure.cpu_percent),
            missed_share: share(
                |figure| figure.missed_revolution_count,
                |figure| figure.request_count,
            ),
            driver_share: share(
                |figure| figure.driver_time.0,
                |figure| figure.processor_time.0,
            ),
            phase_count: figures.len() as u32 / seeds,
            seed_count: seeds,
        }
    }
}

impl AveragedValue {
    fn from_values(values: &[f64]) -> Self {
        let fold = |start, of: fn(f64, f64) -> f64| values.iter().copied().fold(start, of);
        Self {
            mean: values.iter().sum::<f64>() / values.len() as f64,
            seed_range: SeedRange {
                min: fold(f64::INFINITY, f64::min),
                max: fold(f64::NEG_INFINITY, f64::max),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_divide_a_revolution_evenly() {
        assert_eq!(choose_phases(1, 16), [0]);
        let sixteen = choose_phases(2, 16);
        assert_eq!(sixteen.len(), 16);
        for (number, phase) in sixteen.iter().enumerate() {
            assert_eq!(*phase, number as u32 * (1 << 28));
        }
    }
}
