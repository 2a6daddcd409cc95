//! Piziali and Zam 1991: a bare drive, formatted with interleaves from 1:1 to 6:1 and read by whole
//! tracks and by single sectors.

use super::asking::{CellValues, ModelQueries};
use super::jobs::ModelJob;
use diskperf_battery::{Medium, Program, Suite};
use diskperf_catalogue::{PublishedCell, Setting};
use diskperf_models::LaboratoryError;
use diskperf_models::model::computer::{ModelComputer, bare_drive_settings};
use std::sync::Arc;

pub(super) const DOCUMENT_ID: &str = "piziali-zam-1991";

/// About a thousand tracks: enough for a rate that depends on chance.
const TRACK_COUNT: u64 = 960;

pub(super) fn model_values(
    asking: &ModelQueries<'_>,
    cells: &[&PublishedCell],
) -> Result<CellValues, LaboratoryError> {
    let mut ids = Vec::new();
    let mut jobs = Vec::new();
    for cell in cells {
        let (Some(id), Some(target), Some(interleave), Some(program)) = (
            &cell.id,
            cell.full_target(),
            cell.interleave,
            program_of_cell(cell),
        ) else {
            continue;
        };
        // The cell's interleave is the cell: it comes after the user's.
        let interleave = Setting::new("drive.interleave", &interleave.to_string());
        let all = asking.own_settings_first([interleave]);
        let computer =
            ModelComputer::read_catalogue(asking.catalogue, &target, &bare_drive_settings(&all))?;
        ids.push(id.clone());
        let size_bytes = TRACK_COUNT * bytes_per_track();
        jobs.push(ModelJob::from_repetitions(
            Arc::new(computer),
            program,
            size_bytes,
            asking.seed,
        ));
    }
    Ok(ids.into_iter().zip(asking.run_rates(&jobs)?).collect())
}

/// Returns the name of a cell's test on the accuracy card.
pub(super) fn title_of_cell(cell: &PublishedCell) -> Option<String> {
    let interleave = cell.interleave?;
    Some(format!("{}, {interleave}:1", cell.test.as_ref()?))
}

fn list_programs() -> Vec<Program> {
    let suite =
        Suite::from_name("interleave91", Medium::Device).expect("the battery has interleave91");
    suite.iter_programs().cloned().collect()
}

/// Returns the program of a cell. The suite reads whole tracks first, then single sectors.
fn program_of_cell(cell: &PublishedCell) -> Option<Program> {
    let place = match cell.test.as_deref()? {
        "full track read" => 0,
        "single sector read" => 1,
        _ => return None,
    };
    list_programs().into_iter().nth(place)
}

fn bytes_per_track() -> u64 {
    list_programs()[0].call_bytes()
}
