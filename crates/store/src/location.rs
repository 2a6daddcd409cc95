//! Default location of a user's store.

use crate::error::{StoreError, StoreErrorKind};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Environment variable for the user's data, and the directory below it.
const HOME_VARIABLES: (&str, &str) = if cfg!(windows) {
    ("LOCALAPPDATA", "")
} else if cfg!(target_os = "macos") {
    ("HOME", "Library/Application Support")
} else {
    ("HOME", ".local/share")
};

/// Returns the default path of the store for an environment. A relative path in a variable is
/// ignored, as the XDG specification demands, because the store would otherwise move with the
/// working directory.
pub(crate) fn default_path(
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<PathBuf, StoreError> {
    let absolute = |name| {
        variable(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let store = Path::new("diskperf").join("runs.sqlite");
    let (home, below) = HOME_VARIABLES;
    match absolute("XDG_DATA_HOME").or_else(|| absolute(home).map(|path| path.join(below))) {
        Some(data) => Ok(data.join(store)),
        None => Err(StoreError {
            path: store,
            kind: StoreErrorKind::NoDataDirectory { variable: home },
        }),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_the_default_path() {
        for (xdg, home, expected) in [
            (Some("/x"), Some("/h"), Some("/x/diskperf/runs.sqlite")),
            (
                None,
                Some("/h"),
                Some("/h/.local/share/diskperf/runs.sqlite"),
            ),
            (
                Some(""),
                Some("/h"),
                Some("/h/.local/share/diskperf/runs.sqlite"),
            ),
            (
                Some("x"),
                Some("/h"),
                Some("/h/.local/share/diskperf/runs.sqlite"),
            ),
            (Some("/x"), None, Some("/x/diskperf/runs.sqlite")),
            (None, Some("h"), None),
            (None, None, None),
        ] {
            let path = default_path(|name| {
                match name {
                    "XDG_DATA_HOME" => xdg,
                    "HOME" => home,
                    other => panic!("{other} was asked for"),
                }
                .map(OsString::from)
            });
            assert_eq!(path.ok(), expected.map(PathBuf::from), "{xdg:?} {home:?}");
        }
    }
}
