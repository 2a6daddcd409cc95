//! Inputs of a job file from its environment: included files, environment variables and numbers of
//! the machine.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Files, variables and machine values that `include`, `${NAME}`, `$pagesize`, `$mb_memory` and
/// `$ncpus` refer to.
#[derive(Clone, Debug)]
pub struct JobEnvironment {
    /// Source of the files that a job file includes.
    pub file_source: FileSource,
    /// Values of environment variables for `${NAME}`. A missing variable has an empty value.
    pub variables: BTreeMap<String, String>,
    /// Page size for `$pagesize`, in bytes.
    pub page_bytes: u64,
    /// Memory of the machine for `$mb_memory`, in MiB.
    pub memory_mib: u64,
    /// Number of CPUs for `$ncpus`.
    pub processors: u64,
}

/// Value of the machine that a job file can refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Keyword {
    /// Page size (`$pagesize`), in bytes.
    PageSize,
    /// Memory of the machine (`$mb_memory`), in MiB.
    Memory,
    /// Number of CPUs (`$ncpus`).
    Processors,
}

impl Keyword {
    /// All machine values, in the order in which fio replaces them.
    pub(crate) const ALL: [Self; 3] = [Self::PageSize, Self::Memory, Self::Processors];

    /// Returns the word for this value in a job file.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::PageSize => "$pagesize",
            Self::Memory => "$mb_memory",
            Self::Processors => "$ncpus",
        }
    }
}

impl JobEnvironment {
    /// Returns the number that a keyword represents.
    pub fn keyword_value(&self, keyword: Keyword) -> u64 {
        match keyword {
            Keyword::PageSize => self.page_bytes,
            Keyword::Memory => self.memory_mib,
            Keyword::Processors => self.processors,
        }
    }
}

/// Source of files that a job file includes.
#[derive(Clone, Debug)]
pub enum FileSource {
    /// File system. A relative name is looked up in the working directory first, then in the
    /// directory of the including file.
    FileSystem {
        /// Directory in which relative names are looked up first.
        working_directory: PathBuf,
    },
    /// Previously read files: contents by path. Names are looked up like those in a file system.
    Memory(BTreeMap<String, String>),
}

impl FileSource {
    /// Returns the path and the text of an included file. It reads at most `bytes_max` bytes and
    /// one more, so that the caller can detect a longer file.
    ///
    /// # Errors
    ///
    /// A readable reason if the file cannot be read.
    pub(crate) fn read_included_file(
        &self,
        name: &str,
        beside: &str,
        bytes_max: u64,
    ) -> Result<(String, String), String> {
        let folder = Path::new(beside).parent().unwrap_or(Path::new(""));
        match self {
            FileSource::Memory(files) => {
                let paths = [PathBuf::from(name), folder.join(name)];
                let mut paths = paths.iter().map(|path| path.to_string_lossy());
                let found = paths.find_map(|path| files.get_key_value(path.as_ref()));
                let found = found.map(|(path, content)| (path.clone(), content.clone()));
                found.ok_or_else(|| "no such file".to_owned())
            }
            FileSource::FileSystem { working_directory } => {
                let path = match working_directory.join(name).exists() {
                    true => PathBuf::from(name),
                    false => folder.join(name),
                };
                let content = read(&working_directory.join(&path), bytes_max)?;
                Ok((path.to_string_lossy().into_owned(), content))
            }
        }
    }
}

impl FileSource {
    /// Returns the bytes of a pattern file as hexadecimal digits after `0x`, limited to `bytes_max`
    /// bytes. [`FileSource::Memory`] holds pattern files under their quoted names.
    ///
    /// # Errors
    ///
    /// A readable reason if the file cannot be read.
    pub(crate) fn read_pattern_file(&self, name: &str, bytes_max: u64) -> Result<String, String> {
        match self {
            FileSource::Memory(files) => {
                let digits = files.get(&format!("'{name}'")).cloned();
                digits.ok_or_else(|| "no such file".to_owned())
            }
            FileSource::FileSystem { working_directory } => {
                let bytes = read_bytes(&working_directory.join(name), bytes_max)?;
                if bytes.is_empty() {
                    return Err("it is empty".to_owned());
                }
                let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
                Ok(format!("0x{}", digits.collect::<String>()))
            }
        }
    }
}

fn read_bytes(path: &Path, bytes_max: u64) -> Result<Vec<u8>, String> {
    let file = diskperf_diagnostics::input::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    let mut file = file.take(bytes_max);
    file.read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    Ok(bytes)
}

fn read(path: &Path, bytes_max: u64) -> Result<String, String> {
    let bytes = read_bytes(path, bytes_max.saturating_add(1))?;
    String::from_utf8(bytes).map_err(|_| "not UTF-8 text".to_owned())
}

impl Default for JobEnvironment {
    /// Creates an environment without files or variables, with one CPU, 4 KiB pages and 1 GiB of
    /// memory. It does not depend on the machine.
    fn default() -> JobEnvironment {
        JobEnvironment {
            file_source: FileSource::Memory(BTreeMap::new()),
            variables: BTreeMap::new(),
            page_bytes: 4096,
            memory_mib: 1024,
            processors: 1,
        }
    }
}
