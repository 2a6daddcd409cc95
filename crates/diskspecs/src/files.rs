//! Source of the files that a parameter file refers to.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Source of the files that a parameter file refers to: a file system or memory.
#[derive(Clone, Debug)]
pub enum SpecificationFiles {
    /// File system. A file is searched next to the file that names it, then in the search folders.
    FileSystem {
        /// Search folders, in the order of the search.
        search: Vec<PathBuf>,
    },
    /// Files in memory: contents by path. A file is searched next to the file that names it, then
    /// by name.
    Memory(BTreeMap<String, String>),
}

impl SpecificationFiles {
    /// Returns the path and the text of a file. It reads at most `bytes_max` bytes and one more,
    /// so that the caller can detect a longer file.
    ///
    /// # Errors
    ///
    /// A readable reason if the file cannot be read.
    pub(crate) fn read_file(
        &self,
        name: &str,
        beside: &str,
        bytes_max: usize,
    ) -> Result<(String, String), String> {
        let own = Path::new(beside).parent().unwrap_or(Path::new(""));
        match self {
            SpecificationFiles::Memory(files) => {
                let paths = [own.join(name), PathBuf::from(name)];
                let mut paths = paths.iter().map(|path| path.to_string_lossy());
                let found = paths.find_map(|path| files.get_key_value(path.as_ref()));
                let found = found.map(|(path, content)| (path.clone(), content.clone()));
                found.ok_or_else(|| "no such file".to_owned())
            }
            SpecificationFiles::FileSystem { search } => {
                let folders = std::iter::once(own).chain(search.iter().map(PathBuf::as_path));
                let paths = folders.map(|folder| folder.join(name));
                let found = paths.into_iter().find(|path| path.exists());
                let path = found.ok_or_else(|| "no such file".to_owned())?;
                let content = read_text(&path, bytes_max)?;
                Ok((path.to_string_lossy().into_owned(), content))
            }
        }
    }
}

fn read_text(path: &Path, bytes_max: usize) -> Result<String, String> {
    let file = diskperf_diagnostics::input::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    let mut file = file.take(bytes_max as u64 + 1);
    file.read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    // Comments may be in any encoding.
    Ok(match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}
