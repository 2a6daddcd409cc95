//! Free parameters, and the cells that they were calibrated on.

use super::document::Document;
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
            let path = without_number(&parameter.path);
            let known = self
                .list
                .iter()
                .any(|free| free.path == path && free.file == parameter.file);
            if !known {
                self.list.push(FreeParameter {
                    path,
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

    /// Those that are free in these documents, sorted; with what pairs of drives
    /// share, if any did run. What was calibrated on cells of other documents
    /// alone is as fixed here as what a data sheet says.
    pub(super) fn into_parameters(mut self, documents: &[Document], pairs: bool) -> Parameters {
        let all = self.list.len();
        self.list.retain(|free| {
            let of_one = |id: &String| {
                let document = id.split('/').next().unwrap_or_default();
                documents.iter().any(|one| one.name() == document)
            };
            free.cells.is_empty() || free.cells.iter().any(of_one)
        });
        let elsewhere = all - self.list.len();
        if pairs {
            self.list.push(notes::speed_difference());
        }
        self.list
            .sort_by(|left, right| (&left.path, &left.file).cmp(&(&right.path, &right.file)));
        Parameters {
            calibrated: self.list.len(),
            assumed: self
                .list
                .iter()
                .filter(|free| free.cells.is_empty())
                .count(),
            elsewhere,
            list: self.list,
        }
    }
}

/// The path without the number of a drive or of an attachment: a file's key is
/// one parameter, however many of its kind there are in a system.
fn without_number(path: &str) -> String {
    let words = path.split('.');
    let named = words.filter(|word| !word.chars().all(|digit| digit.is_ascii_digit()));
    named.collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_one_parameter_on_every_drive() {
        assert_eq!(without_number("drive.2.settle_ms"), "drive.settle_ms");
        assert_eq!(without_number("kernel.switch_ms"), "kernel.switch_ms");
    }
}
