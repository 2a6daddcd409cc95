//! Seed 004: a drive by itself, formatted with interleaves from 1:1 to 6:1,
//! read by whole tracks and by single sectors.

use super::jobs::{Job, Workshop};
use crate::error::LaboratoryError;
use crate::model::computer::{Computer, by_itself};
use diskperf_battery::{Medium, Program, Suite};
use diskperf_machine::catalogue::{Catalogue, Cell, Setting};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) const DOCUMENT: &str = "piziali-zam-1991";

/// A thousand tracks or so: enough for a rate that hangs on chance.
const TRACKS: u64 = 960;

/// KB/s of each cell, by its id.
pub(super) struct Interleaves {
    rates: BTreeMap<String, f64>,
}

impl Interleaves {
    /// Runs the cells that name an interleave.
    pub(super) fn run(
        catalogue: &Catalogue,
        settings: &[Setting],
        (cells, seed): (&[&Cell], u64),
        workshop: &Workshop<'_>,
    ) -> Result<Self, LaboratoryError> {
        let mut ids = Vec::new();
        let mut jobs = Vec::new();
        for cell in cells {
            let (Some(id), Some(target), Some(interleave)) =
                (&cell.id, cell.full_target(), cell.interleave)
            else {
                continue;
            };
            let Some(program) = program(cell) else {
                continue;
            };
            let interleave = Setting {
                path: "drive.interleave".to_owned(),
                text: interleave.to_string(),
            };
            // The cell's interleave is the cell.
            let all: Vec<Setting> = settings.iter().cloned().chain([interleave]).collect();
            let computer = Computer::read(catalogue, &target, &by_itself(&all))?;
            ids.push(id.clone());
            jobs.push(Job {
                computer: Arc::new(computer),
                drives: 1,
                other: false,
                phase: 0,
                speed_difference: 0.0,
                size_bytes: TRACKS * track_bytes(),
                programs: vec![program],
                repetitions: (3, 1),
                seed,
            });
        }
        let done = workshop.carry_out(&jobs)?;
        let rate = |figures: &Vec<super::jobs::Figure>| figures[0].kb_per_s;
        Ok(Self {
            rates: ids.into_iter().zip(done.iter().map(rate)).collect(),
        })
    }

    /// The modelled value of a cell.
    pub(super) fn value(&self, cell: &Cell) -> Option<f64> {
        self.rates.get(cell.id.as_deref()?).copied()
    }
}

fn programs() -> Vec<Program> {
    let suite = Suite::named("interleave91", Medium::Device).expect("the battery has interleave91");
    suite.steps.into_iter().map(|step| step.program).collect()
}

/// The suite reads whole tracks first, then single sectors.
fn program(cell: &Cell) -> Option<Program> {
    let place = match cell.test.as_deref()? {
        "full track read" => 0,
        "single sector read" => 1,
        _ => return None,
    };
    programs().into_iter().nth(place)
}

fn track_bytes() -> u64 {
    programs()[0].call_bytes()
}
