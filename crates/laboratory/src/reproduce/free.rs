//! Free parameters, and the cells that they were calibrated on.

use super::notes;
use crate::error::LaboratoryError;
use crate::model::computer::Computer;
use diskperf_analysis::accuracy::{FreeParameter, Parameters};
use diskperf_machine::catalogue::{Origin, Published};
use std::collections::{BTreeMap, BTreeSet};

/// The free parameters of some systems, and what they were calibrated on.
#[derive(Default)]
pub(super) struct Free {
    list: Vec<FreeParameter>,
    /// The calibration cells of each system, by its name with its file system.
    of_system: BTreeMap<String, BTreeSet<String>>,
}

impl Free {
    /// Adds a system, under a name of the caller's.
    pub(super) fn add(
        &mut self,
        name: &str,
        computer: &Computer,
        published: &Published,
    ) -> Result<(), LaboratoryError> {
        let mut used = BTreeSet::new();
        for parameter in &computer.parameters {
            let cells: Vec<String> = match parameter.origin() {
                Origin::Documented => continue,
                Origin::Assumed => Vec::new(),
                Origin::Calibrated(set) => published
                    .calibration_set(&set)
                    .map_err(LaboratoryError::catalogue)?
                    .into_iter()
                    .map(str::to_owned)
                    .collect(),
            };
            used.extend(cells.iter().cloned());
            let known = self
                .list
                .iter()
                .any(|free| free.path == parameter.path && free.file == parameter.file);
            if !known {
                self.list.push(FreeParameter {
                    path: parameter.path.clone(),
                    file: parameter.file.clone(),
                    value: parameter.value.clone(),
                    source: parameter.source.clone(),
                    cells,
                });
            }
        }
        self.of_system.insert(name.to_owned(), used);
        Ok(())
    }

    /// Whether a parameter of this system was calibrated on this cell.
    pub(super) fn calibrates(&self, name: &str, id: &str) -> bool {
        let cells = self.of_system.get(name);
        cells.is_some_and(|cells| cells.contains(id))
    }

    /// All of them, sorted; with what pairs of drives share, if any did run.
    pub(super) fn into_parameters(mut self, pairs: bool) -> Parameters {
        if pairs {
            self.list.push(notes::speed_difference());
        }
        self.list
            .sort_by(|left, right| (&left.path, &left.file).cmp(&(&right.path, &right.file)));
        Parameters {
            calibrated: self.list.len(),
            list: self.list,
        }
    }
}
