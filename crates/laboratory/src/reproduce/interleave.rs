//! Piziali and Zam 1991: a bare drive, formatted with interleaves from 1:1 to 6:1 and read by whole
//! tracks and by single sectors.

use super::asking::{Asking, Values};
use super::jobs::Job;
use diskperf_battery::{Medium, Program, Suite};
use diskperf_catalogue::{Cell, Setting};
use diskperf_models::LaboratoryError;
use diskperf_models::model::computer::{Computer, by_itself};
use std::sync::Arc;

pub(super) const DOCUMENT: &str = "piziali-zam-1991";

/// About a thousand tracks: enough for a rate that depends on chance.
const TRACKS: u64 = 960;

/// Models the cells that name an interleave, in KB/s.
pub(super) fn values(asking: &Asking<'_>, cells: &[&Cell]) -> Result<Values, LaboratoryError> {
    let mut ids = Vec::new();
    let mut jobs = Vec::new();
    for cell in cells {
        let (Some(id), Some(target), Some(interleave), Some(program)) =
            (&cell.id, cell.full_target(), cell.interleave, program(cell))
        else {
            continue;
        };
        // The cell's interleave is the cell: it comes after the user's.
        let interleave = Setting::new("drive.interleave", &interleave.to_string());
        let all = asking.under([interleave]);
        let computer = Computer::read(asking.catalogue, &target, &by_itself(&all))?;
        ids.push(id.clone());
        let size_bytes = TRACKS * track_bytes();
        jobs.push(Job::of(
            Arc::new(computer),
            program,
            size_bytes,
            asking.seed,
        ));
    }
    Ok(ids.into_iter().zip(asking.rates(&jobs)?).collect())
}

/// Returns the name of a cell's test on the accuracy card.
pub(super) fn title(cell: &Cell) -> Option<String> {
    let interleave = cell.interleave?;
    Some(format!("{}, {interleave}:1", cell.test.as_ref()?))
}

fn programs() -> Vec<Program> {
    let suite =
        Suite::from_name("interleave91", Medium::Device).expect("the battery has interleave91");
    suite.iter_programs().cloned().collect()
}

/// Returns the program of a cell. The suite reads whole tracks first, then single sectors.
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
