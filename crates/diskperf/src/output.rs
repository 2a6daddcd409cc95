//! Output of text to standard output and standard error, with control characters made escape_unprintable.

use diskperf_laboratory::{LaboratoryError, Output};
use diskperf_timeline::escape_unprintable;
use std::io::Write;

/// Prints text to standard output. A reader may close the pipe early, as `| head` does.
pub(crate) fn print(text: &str) -> Result<(), LaboratoryError> {
    let text = escape_unprintable(text);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    Output::StandardOutput.write(format!("{text}{end}").as_bytes())
}

/// Prints a message to standard error and ignores errors.
pub(crate) fn print_message(text: &str) {
    // What cannot be said cannot be said to have failed either.
    let _ = writeln!(
        std::io::stderr().lock(),
        "diskperf: {}",
        escape_unprintable(text)
    );
}

/// Returns the width of the terminal in columns; without a terminal, that of a wide one.
pub(crate) fn width() -> u16 {
    terminal_size::terminal_size().map_or(120, |(width, _)| width.0)
}
