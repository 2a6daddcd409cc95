//! What a job file may ask of the world: other files, the environment, the machine.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

/// What `include`, `${NAME}`, `$pagesize`, `$mb_memory` and `$ncpus` stand for.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// Where included files are.
    pub files: Files,
    /// What `${NAME}` gives; nothing if it is not here.
    pub variables: BTreeMap<String, String>,
    /// `$pagesize`, in bytes.
    pub page_bytes: u64,
    /// `$mb_memory`: the machine's memory, in MiB.
    pub memory_mib: u64,
    /// `$ncpus`.
    pub processors: u64,
}

/// A number of the machine that a value of a job file can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Keyword {
    /// `$pagesize`, in bytes.
    PageSize,
    /// `$mb_memory`, in MiB.
    Memory,
    /// `$ncpus`.
    Processors,
}

impl Keyword {
    /// All of them, in the order in which fio replaces them.
    pub(crate) const ALL: [Self; 3] = [Self::PageSize, Self::Memory, Self::Processors];

    /// The word in the job file.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::PageSize => "$pagesize",
            Self::Memory => "$mb_memory",
            Self::Processors => "$ncpus",
        }
    }
}

impl Surroundings {
    /// The number that a keyword stands for.
    pub fn number(&self, keyword: Keyword) -> u64 {
        match keyword {
            Keyword::PageSize => self.page_bytes,
            Keyword::Memory => self.memory_mib,
            Keyword::Processors => self.processors,
        }
    }
}

/// Where included files are.
#[derive(Clone, Debug)]
pub enum Files {
    /// In the file system; names that do not begin with `/` are looked for here first,
    /// then beside the including file.
    Disk {
        /// The working directory.
        working_directory: PathBuf,
    },
    /// Path and content, looked for in the same way: for a file that was read before.
    Memory(BTreeMap<String, String>),
}

impl Files {
    /// The name and the text of a file, at most `most_bytes` of it and one byte more.
    ///
    /// # Errors
    ///
    /// Why it cannot be read, in words.
    pub(crate) fn open(
        &self,
        name: &str,
        beside: &str,
        most_bytes: u64,
    ) -> Result<(String, String), String> {
        let folder = Path::new(beside).parent().unwrap_or(Path::new(""));
        match self {
            Files::Memory(files) => {
                let paths = [PathBuf::from(name), folder.join(name)];
                let mut paths = paths.iter().map(|path| path.to_string_lossy());
                let found = paths.find_map(|path| files.get_key_value(path.as_ref()));
                let found = found.map(|(path, content)| (path.clone(), content.clone()));
                found.ok_or_else(|| "no such file".to_owned())
            }
            Files::Disk { working_directory } => {
                let path = match working_directory.join(name).exists() {
                    true => PathBuf::from(name),
                    false => folder.join(name),
                };
                let content = read(&working_directory.join(&path), most_bytes)?;
                Ok((path.to_string_lossy().into_owned(), content))
            }
        }
    }
}

impl Files {
    /// The bytes of a file that a pattern names, at most so many of them, as digits after
    /// `0x`: what [`Files::Memory`] has under the name in quotes.
    ///
    /// # Errors
    ///
    /// Why it cannot be read, in words.
    pub(crate) fn pattern(&self, name: &str, bytes_max: u64) -> Result<String, String> {
        match self {
            Files::Memory(files) => {
                let digits = files.get(&format!("'{name}'")).cloned();
                digits.ok_or_else(|| "no such file".to_owned())
            }
            Files::Disk { working_directory } => {
                let bytes = read_bytes(&working_directory.join(name), bytes_max)?;
                if bytes.is_empty() {
                    return Err("it has no bytes".to_owned());
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

fn read(path: &Path, most_bytes: u64) -> Result<String, String> {
    let bytes = read_bytes(path, most_bytes.saturating_add(1))?;
    String::from_utf8(bytes).map_err(|_| "not UTF-8 text".to_owned())
}

impl Default for Surroundings {
    /// No files, no variables, one processor, 4 KiB pages and 1 GiB of memory: nothing
    /// that depends on the machine.
    fn default() -> Surroundings {
        Surroundings {
            files: Files::Memory(BTreeMap::new()),
            variables: BTreeMap::new(),
            page_bytes: 4096,
            memory_mib: 1024,
            processors: 1,
        }
    }
}
