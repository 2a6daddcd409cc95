//! A log that a program writes beside what it measures, under a name of the user's.

use super::output_file::OutputFile;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Begins a log, empty, in the place of an older one: a file that is there must begin with
/// these bytes.
///
/// # Errors
///
/// Why it cannot be written, in words.
pub fn begin(path: &Path, beginning: &[u8]) -> Result<File, String> {
    let output = OutputFile::open(path).map_err(|error| error.to_string())?;
    if output.is_there() {
        let mut found = vec![0; beginning.len()];
        let read = File::open(path).and_then(|mut file| file.read_exact(&mut found));
        if read.is_err() || found != beginning {
            let path = path.display();
            return Err(format!(
                "{path} is there and is no such log: name another file, or remove it"
            ));
        }
    }
    output.begin(true).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_log_is_replaced_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (name, text) in [
            ("log", "fio version 2 iolog\n"),
            ("mine", "fio"),
            ("empty", ""),
        ] {
            std::fs::write(at(name), text).unwrap();
        }
        for name in ["log", "new"] {
            begin(&at(name), b"fio version ").unwrap();
            assert_eq!(std::fs::read(at(name)).unwrap(), b"", "{name}");
        }
        for (name, text) in [("mine", "fio"), ("empty", "")] {
            let refused = begin(&at(name), b"fio version ").unwrap_err();
            assert!(
                refused.contains(name) && refused.contains("no such log"),
                "{refused}"
            );
            assert_eq!(std::fs::read(at(name)).unwrap(), text.as_bytes());
        }
        let nowhere = begin(&at("no/where"), b"").unwrap_err();
        assert!(nowhere.contains("no/where"), "{nowhere}");
    }
}
