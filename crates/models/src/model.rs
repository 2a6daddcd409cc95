//! Programs on modelled computers.
//!
//! A computer is a system of the catalogue, read and checked; a bench is one
//! machine built from it, on which the battery's programs run as they run on
//! real storage, in virtual time.

pub mod bench;
pub mod computer;
pub mod counts;
pub mod run;
pub mod version;

use crate::error::LaboratoryError;
use diskperf_catalogue::{Catalogue, Setting};
use std::path::Path;

/// Loads the catalogue that is part of the program, with the user's folder as an overlay if there
/// is one.
///
/// # Errors
///
/// Returns the faults of the folder.
pub fn load_catalogue(folder: Option<&Path>) -> Result<Catalogue, LaboratoryError> {
    let catalogue = Catalogue::embedded();
    match folder {
        Some(folder) => catalogue
            .with_overlay(folder)
            .map_err(LaboratoryError::catalogue),
        None => Ok(catalogue),
    }
}

/// Parses settings from texts of the form `PATH=VALUE`.
///
/// # Errors
///
/// Returns the error of the first text that is no setting.
pub fn parse_settings(typed: &[String]) -> Result<Vec<Setting>, LaboratoryError> {
    let parsed = typed.iter().map(|setting| Setting::parse(setting));
    Ok(parsed.collect::<Result<_, _>>()?)
}
