//! Whether there is a fio to compare with: of the tests of each crate that does so.

use std::process::Command;

/// The version that the tests were written against: another one may differ.
const VERSION: &str = "fio-3.33";

/// Whether fio is installed. If it is not, and if it is another version, this says so
/// loudly.
pub(crate) fn is_fio_installed() -> bool {
    let version = Command::new("fio").arg("--version").output();
    let Ok(version) = version else {
        eprintln!("SKIPPED: fio is not installed, so nothing is compared with it");
        return false;
    };
    let version = String::from_utf8_lossy(&version.stdout).trim().to_owned();
    if version != VERSION {
        eprintln!("{version} is compared, and not {VERSION}: known differences may fail");
    }
    true
}
