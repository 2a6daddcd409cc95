//! Removal of runs from the store.

use super::{find_all_labelled, open_store};
use crate::store_path::store_error;
use diskperf_models::LaboratoryError;
use diskperf_store::{RunHeading, Store};
use diskperf_timeline::RunState;
use std::path::Path;

/// Selection of stored runs to remove.
#[derive(Clone, Debug, Default)]
pub struct RunDeletion {
    /// Runs to remove: ids, unique prefixes, labels that only one run has, or `last`.
    pub run_names: Vec<String>,
    /// Whether to remove unfinished runs of killed processes as well.
    pub only_interrupted: bool,
    /// Whether to only list the runs that would be removed.
    pub is_dry_run: bool,
}

impl RunDeletion {
    /// Removes all selected runs, or none, and returns them.
    ///
    /// # Errors
    ///
    /// Returns an error if a name matches no run or several, if a run has not ended, or if the
    /// store cannot be written.
    pub fn delete_runs(&self, store: Option<&Path>) -> Result<Vec<RunHeading>, LaboratoryError> {
        let mut store = open_store(store)?;
        let mut listed = store.list_runs().map_err(store_error)?;
        let mut found: Vec<RunHeading> = Vec::new();
        for name in &self.run_names {
            let id = resolve_one_run(&store, name)?;
            if let Some(place) = listed.iter().position(|run| run.id == id) {
                found.push(listed.remove(place));
            } else if !found.iter().any(|run| run.id == id) {
                return Err(LaboratoryError::Request(format!(
                    "run `{id}` is damaged: `diskperf list runs` says how it is removed"
                )));
            }
        }
        if !self.only_interrupted
            && let Some(run) = found.iter().find(|run| run.state == RunState::Running)
        {
            return Err(LaboratoryError::Request(format!(
                "run {} has not ended: it is under way, or was killed; if no diskperf measures it any more, add --killed",
                run.id
            )));
        }
        if !self.is_dry_run {
            let ids: Vec<&str> = found.iter().map(|run| run.id.as_str()).collect();
            store.delete_runs(&ids).map_err(store_error)?;
        }
        Ok(found)
    }
}

fn resolve_one_run(store: &Store, name: &str) -> Result<String, LaboratoryError> {
    if name.contains('/') || name.ends_with(".json") {
        return Err(LaboratoryError::Request(format!(
            "`{name}` is the name of a file, and stored runs are deleted: `diskperf list runs` lists them"
        )));
    }
    let resolved = store.resolve_run_id(name);
    let labelled = find_all_labelled(store, name)?;
    match (resolved, labelled.as_slice()) {
        (Ok(id), _) if name == "last" || id == name => Ok(id),
        (Ok(id), []) => Ok(id),
        (Ok(id), [one]) if id == *one => Ok(id),
        (Err(_), [one]) => Ok(one.clone()),
        (Err(error), []) => Err(store_error(error)),
        (resolved, several) => {
            let ids = several.iter().cloned().chain(resolved.ok());
            Err(LaboratoryError::Request(format!(
                "`{name}` is a name of several runs: write the id of one: {}",
                ids.collect::<Vec<_>>().join(", ")
            )))
        }
    }
}
