//! Where parameter files are.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Where the files are that a parameter file names.
#[derive(Clone, Debug)]
pub enum Files {
    /// In the file system: beside the file that names them, then in these folders.
    Disk {
        /// The folders, in the order in which they are searched.
        search: Vec<PathBuf>,
    },
    /// Path and content, looked for beside the file that names them, then by name.
    Memory(BTreeMap<String, String>),
}

impl Files {
    /// The path and the text of a file, at most `most_bytes` of it and one byte more.
    ///
    /// # Errors
    ///
    /// Why it cannot be read, in words.
    pub(crate) fn open(
        &self,
        name: &str,
        beside: &str,
        most_bytes: usize,
    ) -> Result<(String, String), String> {
        let own = Path::new(beside).parent().unwrap_or(Path::new(""));
        match self {
            Files::Memory(files) => {
                let paths = [own.join(name), PathBuf::from(name)];
                let mut paths = paths.iter().map(|path| path.to_string_lossy());
                let found = paths.find_map(|path| files.get_key_value(path.as_ref()));
                let found = found.map(|(path, content)| (path.clone(), content.clone()));
                found.ok_or_else(|| "no such file".to_owned())
            }
            Files::Disk { search } => {
                let folders = std::iter::once(own).chain(search.iter().map(PathBuf::as_path));
                let paths = folders.map(|folder| folder.join(name));
                let found = paths.into_iter().find(|path| path.exists());
                let path = found.ok_or_else(|| "no such file".to_owned())?;
                let content = read(&path, most_bytes)?;
                Ok((path.to_string_lossy().into_owned(), content))
            }
        }
    }
}

fn read(path: &Path, most_bytes: usize) -> Result<String, String> {
    let file = diskperf_diagnostics::input::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    let mut file = file.take(most_bytes as u64 + 1);
    file.read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    // Comments may be in any encoding.
    Ok(match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}
