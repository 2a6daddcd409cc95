//! Free parameters, and the cells that they were calibrated on.

use super::document::Document;
use super::notes;
use diskperf_analysis::accuracy::{FreeParameter, FreeParameters, ParameterOrigin};
use diskperf_catalogue::{CalibrationMethod, PublishedValues, ValueOrigin};
use diskperf_models::LaboratoryError;
use diskperf_models::model::computer::Computer;
use std::collections::BTreeMap;

/// Free parameters of some systems, and the cells that they were calibrated on.
#[derive(Default)]
pub(super) struct Free {
    list: Vec<FreeParameter>,
    sets: BTreeMap<String, Vec<String>>,
}

impl Free {
    /// Adds the free parameters of a system.
    pub(super) fn add(
        &mut self,
        computer: &Computer,
        published: &PublishedValues,
    ) -> Result<(), LaboratoryError> {
        for parameter in &computer.parameters {
            let path = without_number(&parameter.path);
            let is_it = |free: &FreeParameter| free.path == path && free.file == parameter.file;
            if self.list.iter().any(is_it) {
                continue;
            }
            let (choice, cells): (ParameterOrigin, Vec<String>) = match parameter.origin() {
                ValueOrigin::Documented => continue,
                ValueOrigin::Assumed => (ParameterOrigin::Assumed, Vec::new()),
                ValueOrigin::Calibrated { set, by } => {
                    let cells = self.cells_of(set, published)?;
                    let choice = match by {
                        CalibrationMethod::AutomaticFit => ParameterOrigin::Fitted,
                        CalibrationMethod::ByHand => ParameterOrigin::SetByHand,
                    };
                    (choice, cells)
                }
            };
            self.list.push(FreeParameter {
                path,
                file: parameter.file.clone(),
                value: parameter.value.clone(),
                source_document: parameter.source.clone(),
                origin: choice,
                cells,
            });
        }
        Ok(())
    }

    fn cells_of(
        &mut self,
        set: String,
        published: &PublishedValues,
    ) -> Result<Vec<String>, LaboratoryError> {
        if let Some(cells) = self.sets.get(&set) {
            return Ok(cells.clone());
        }
        let cells = published.calibration_set(&set);
        let cells = cells.map_err(LaboratoryError::catalogue)?;
        let cells: Vec<String> = cells.into_iter().map(str::to_owned).collect();
        self.sets.insert(set, cells.clone());
        Ok(cells)
    }

    /// Returns the parameters that are free in these documents, sorted. `pairs` adds the parameter
    /// that all pairs of drives share. A parameter that was calibrated only on cells of other
    /// documents is as fixed here as one from a data sheet.
    pub(super) fn into_parameters(mut self, documents: &[Document], pairs: bool) -> FreeParameters {
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
        let of = |choice| {
            self.list
                .iter()
                .filter(|free| free.origin == choice)
                .count()
        };
        FreeParameters {
            calibrated_count: self.list.len(),
            fitted_count: of(ParameterOrigin::Fitted),
            set_by_hand_count: of(ParameterOrigin::SetByHand),
            assumed_count: of(ParameterOrigin::Assumed),
            other_documents_count: elsewhere,
            list: self.list,
        }
    }
}

/// Removes the number of a drive or attachment from a path. A key of a file is one parameter,
/// however many drives of its kind a system has.
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
