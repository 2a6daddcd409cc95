//! Notes on cells, and parameters that all pairs of drives share, from
//! `catalogue/published/notes.toml`.

use super::glob::matches_pattern;
use diskperf_analysis::accuracy::{FreeParameter, FreeParameterOrigin};
use diskperf_models::LaboratoryError;
use diskperf_models::two_drives::{DrivePair, NOTES_TEXT, read_pair};
use serde::Deserialize;
use std::path::Path;

const NOTES_PATH: &str = "catalogue/published/notes.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NotesFile {
    two_drives: Option<DrivePair>,
    #[serde(default)]
    #[serde(rename = "note")]
    notes: Vec<CellNote>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CellNote {
    /// Patterns of cell ids, in which `*` stands for any characters.
    cells: Vec<String>,
    text: String,
}

/// All notes on cells. Those of the user's folder come before those of the program.
pub(crate) struct CellNotes(Vec<CellNote>);

fn parse_embedded() -> NotesFile {
    toml::from_str(NOTES_TEXT).expect("a test reads the file that is part of the program")
}

impl CellNotes {
    /// Loads the notes. Notes of a folder that overlays the catalogue come first and replace the
    /// program's notes on the same cells.
    ///
    /// # Errors
    ///
    /// Returns an error if a file of the folder cannot be read, or if it gives `two_drives` other
    /// values. All pairs of drives share those of the program.
    pub(crate) fn load(folder: Option<&Path>) -> Result<Self, LaboratoryError> {
        let own = parse_embedded();
        let mut notes = Vec::new();
        let path = folder.map(|folder| folder.join("published/notes.toml"));
        if let Some(path) = path.filter(|path| path.is_file()) {
            let wrong = |reason: String| LaboratoryError::File {
                path: path.clone(),
                reason,
            };
            let text = std::fs::read_to_string(&path).map_err(|error| wrong(error.to_string()))?;
            let file: NotesFile =
                toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
            if file.two_drives.is_some() && file.two_drives != own.two_drives {
                let reason = "two_drives cannot be changed by a catalogue folder; leave it out";
                return Err(wrong(reason.to_owned()));
            }
            notes.extend(file.notes);
        }
        let said = |note: &CellNote| notes.iter().any(|one: &CellNote| one.cells == note.cells);
        let added: Vec<CellNote> = own.notes.into_iter().filter(|note| !said(note)).collect();
        notes.extend(added);
        Ok(Self(notes))
    }

    /// Returns all notes on a cell; `None` if it has none.
    pub(crate) fn note_on_cell(&self, id: &str) -> Option<String> {
        let texts: Vec<&str> = self
            .0
            .iter()
            .filter(|note| {
                note.cells
                    .iter()
                    .any(|pattern| matches_pattern(pattern, id))
            })
            .map(|note| note.text.trim())
            .collect();
        (!texts.is_empty()).then(|| texts.join(" "))
    }
}

pub(crate) fn speed_difference_parameter() -> FreeParameter {
    let pair = read_pair();
    FreeParameter {
        path: "two_drives.speed_difference_share".to_owned(),
        file: NOTES_PATH.to_owned(),
        value: pair.speed_difference_share.to_string(),
        source_document: pair.speed_difference_share_source,
        origin: FreeParameterOrigin::Assumed,
        cells: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskperf_catalogue::Catalogue;

    #[test]
    fn every_note_is_about_a_cell() {
        let published = Catalogue::embedded().published_values().unwrap();
        let ids: Vec<&str> = published
            .cells
            .iter()
            .filter_map(|cell| cell.id.as_deref())
            .collect();
        for note in parse_embedded().notes {
            for pattern in &note.cells {
                assert!(
                    ids.iter().any(|id| matches_pattern(pattern, id)),
                    "{pattern} is no cell's"
                );
            }
            assert!(!note.text.trim().is_empty());
        }
        let pair = diskperf_models::two_drives::two_drive_settings();
        assert!(pair.phase_count >= 2 && pair.speed_difference_share < 0.05);
    }

    #[test]
    fn a_note_of_a_folder_replaces_the_one_on_the_same_cells() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("published/notes.toml");
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        let load = |text: &str| {
            std::fs::write(&path, text).unwrap();
            CellNotes::load(Some(folder.path()))
        };
        let id = "kridle-mckusick-1983/T2/vax780-si9900-eagle/8K/read_8192/1";
        let own = CellNotes::load(None).unwrap().note_on_cell(id).unwrap();
        assert_eq!(load(NOTES_TEXT).unwrap().note_on_cell(id).unwrap(), own);

        let other = format!("[[note]]\ncells = [\"{id}\"]\ntext = \"Another.\"\n");
        assert_eq!(load(&other).unwrap().note_on_cell(id).unwrap(), "Another.");

        let changed = NOTES_TEXT.replace("phases = 16", "phases = 8");
        let error = load(&changed).err().unwrap().to_string();
        assert!(error.contains("two_drives"), "{error}");
    }

    #[test]
    fn every_unexplained_and_every_suspect_cell_has_a_note() {
        let published = Catalogue::embedded().published_values().unwrap();
        let notes = CellNotes::load(None).unwrap();
        for document in ["kridle-mckusick-1983", "speck-bass-1984"] {
            for cell in published.cells_of_document(document).unwrap() {
                let id = cell.id.as_deref().unwrap();
                if cell.is_unexplained || cell.is_suspect {
                    assert!(notes.note_on_cell(id).is_some(), "{id}");
                }
            }
        }
    }
}
