//! Log files and other files that a program writes in addition to its measured I/O.

use super::output_file::OutputFile;
use rustix::fs::OFlags;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Starts an empty log file and replaces an older log. An existing file must begin with
/// `beginning`.
///
/// # Errors
///
/// Description of why the log cannot be written.
pub fn begin_log_file(path: &Path, beginning: &[u8]) -> Result<File, String> {
    let output = OutputFile::open_output(path).map_err(|error| error.to_string())?;
    if output.already_exists() {
        let mut found = vec![0; beginning.len()];
        let read = File::open(path).and_then(|mut file| file.read_exact(&mut found));
        if read.is_err() || found != beginning {
            let path = path.display();
            return Err(format!(
                "{path} exists and is not such a log: name another file, or remove it"
            ));
        }
    }
    output.begin_output(true).map_err(|error| error.to_string())
}

/// Writes a complete file under an unused name.
///
/// # Errors
///
/// Description of why the file cannot be written; for example, the name is in use, even as a
/// dangling link.
pub fn write_new_file(path: &Path, bytes: &[u8]) -> Result<(), String> {
    if path.symlink_metadata().is_ok() {
        return Err(format!("{} is there", path.display()));
    }
    let output = OutputFile::open_output(path).map_err(|error| error.to_string())?;
    let mut file = output
        .begin_output(false)
        .map_err(|error| error.to_string())?;
    let written = file.write_all(bytes);
    written.map_err(|error| format!("{}: {error}", path.display()))
}

/// Reads a regular file of at most `bytes_max` bytes; links are refused.
///
/// # Errors
///
/// Description of why the file cannot be read.
pub fn read_small_file(path: &Path, bytes_max: u64) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = File::options();
    let opened = options
        .read(true)
        .custom_flags(flags.bits() as i32)
        .open(path);
    let file = opened.map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(format!("{} is not a regular file", path.display()));
    }
    let mut bytes = Vec::new();
    file.take(bytes_max + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    match bytes.len() as u64 > bytes_max {
        true => Err(format!(
            "{} has more than {bytes_max} bytes",
            path.display()
        )),
        false => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_takes_no_place_and_a_small_one_is_read_whole() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("mine"), b"mine").unwrap();
        std::os::unix::fs::symlink(at("nowhere"), at("link")).unwrap();
        std::fs::create_dir(at("folder")).unwrap();
        for name in ["mine", "link", "folder"] {
            let refused = write_new_file(&at(name), b"block").unwrap_err();
            assert!(refused.contains("is there"), "{refused}");
        }
        assert_eq!(std::fs::read(at("mine")).unwrap(), b"mine");
        assert!(!at("nowhere").exists());
        write_new_file(&at("new"), b"block").unwrap();
        assert_eq!(read_small_file(&at("new"), 5).unwrap(), b"block");
        for (name, bytes_max) in [("new", 4), ("link", 9), ("folder", 9), ("absent", 9)] {
            let refused = read_small_file(&at(name), bytes_max).unwrap_err();
            assert!(refused.contains(name), "{refused}");
        }
    }

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
            begin_log_file(&at(name), b"fio version ").unwrap();
            assert_eq!(std::fs::read(at(name)).unwrap(), b"", "{name}");
        }
        for (name, text) in [("mine", "fio"), ("empty", "")] {
            let refused = begin_log_file(&at(name), b"fio version ").unwrap_err();
            assert!(
                refused.contains(name) && refused.contains("not such a log"),
                "{refused}"
            );
            assert_eq!(std::fs::read(at(name)).unwrap(), text.as_bytes());
        }
        let nowhere = begin_log_file(&at("no/where"), b"").unwrap_err();
        assert!(nowhere.contains("no/where"), "{nowhere}");
    }
}
