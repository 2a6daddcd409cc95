//! Free parameters, and the cells that they were calibrated on.

use super::document::ReproducedDocument;
use super::notes;
use diskperf_analysis::accuracy::{FreeParameter, FreeParameterOrigin, FreeParameters};
use diskperf_catalogue::{CalibrationMethod, PublishedValues, ValueOrigin};
use diskperf_models::LaboratoryError;
use diskperf_models::model::computer::ModelComputer;
use std::collections::BTreeMap;

/// Free parameters of some systems, and the cells that they were calibrated on.
#[derive(Default)]
pub(super) struct FreeParameterList {
    parameters: Vec<FreeParameter>,
    cells_by_set: BTreeMap<String, Vec<String>>,
}

impl FreeParameterList {
    pub(super) fn add_parameter(
        &mut self,
        computer: &ModelComputer,
        published: &PublishedValues,
    ) -> Result<(), LaboratoryError> {
        for parameter in &computer.parameters {
            let path = strip_index(&parameter.path);
            let is_it = |free: &FreeParameter| free.path == path && free.file == parameter.file;
            if self.parameters.iter().any(is_it) {
                continue;
            }
            let (choice, cells): (FreeParameterOrigin, Vec<String>) = match parameter.origin() {
                ValueOrigin::Documented => continue,
                ValueOrigin::Assumed => (FreeParameterOrigin::Assumed, Vec::new()),
                ValueOrigin::Calibrated { set, by } => {
                    let cells = self.list_cells(set, published)?;
                    let choice = match by {
                        CalibrationMethod::AutomaticFit => FreeParameterOrigin::Fitted,
                        CalibrationMethod::ByHand => FreeParameterOrigin::SetByHand,
                    };
                    (choice, cells)
                }
            };
            self.parameters.push(FreeParameter {
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

    fn list_cells(
        &mut self,
        set: String,
        published: &PublishedValues,
    ) -> Result<Vec<String>, LaboratoryError> {
        if let Some(cells) = self.cells_by_set.get(&set) {
            return Ok(cells.clone());
        }
        let cells = published.calibration_set(&set);
        let cells = cells.map_err(LaboratoryError::catalogue)?;
        let cells: Vec<String> = cells.into_iter().map(str::to_owned).collect();
        self.cells_by_set.insert(set, cells.clone());
        Ok(cells)
    }

    /// Returns the parameters that are free in these documents, sorted. `pairs` adds the parameter
    /// that all pairs of drives share. A parameter that was calibrated only on cells of other
    /// documents is as fixed here as one from a data sheet.
    pub(super) fn into_parameters(
        mut self,
        documents: &[ReproducedDocument],
        pairs: bool,
    ) -> FreeParameters {
        let all = self.parameters.len();
        self.parameters.retain(|free| {
            let of_one = |id: &String| {
                let document = id.split('/').next().unwrap_or_default();
                documents.iter().any(|one| one.name() == document)
            };
            free.cells.is_empty() || free.cells.iter().any(of_one)
        });
        let elsewhere = all - self.parameters.len();
        if pairs {
            self.parameters.push(notes::speed_difference_parameter());
        }
        self.parameters
            .sort_by(|left, right| (&left.path, &left.file).cmp(&(&right.path, &right.file)));
        let of = |choice| {
            self.parameters
                .iter()
                .filter(|free| free.origin == choice)
                .count()
        };
        FreeParameters {
            calibrated_count: self.parameters.len(),
            fitted_count: of(FreeParameterOrigin::Fitted),
            set_by_hand_count: of(FreeParameterOrigin::SetByHand),
            assumed_count: of(FreeParameterOrigin::Assumed),
            other_documents_count: elsewhere,
            list: self.parameters,
        }
    }
}

/// Removes the number of a drive or attachment from a path. A key of a file is one parameter,
/// however many drives of its kind a system has.
fn strip_index(path: &str) -> String {
    let words = path.split('.');
    let named = words.filter(|word| !word.chars().all(|digit| digit.is_ascii_digit()));
    named.collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_one_parameter_on_every_drive() {
        assert_eq!(strip_index("drive.2.settle_ms"), "drive.settle_ms");
        assert_eq!(strip_index("kernel.switch_ms"), "kernel.switch_ms");
    }
}
