//! Standard output, and standard error: what is written to them is text, whatever
//! it was made of.

use diskperf_laboratory::{LaboratoryError, Output};
use diskperf_timeline::printable;
use std::io::Write;

/// Prints text, which a reader may stop reading in the middle (`| head`).
pub(crate) fn print(text: &str) -> Result<(), LaboratoryError> {
    let text = printable(text);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    Output::Standard.write(format!("{text}{end}").as_bytes())
}

/// Says something beside the output. Nobody may be listening any more.
pub(crate) fn say(text: &str) {
    // What cannot be said cannot be said to have failed either.
    let _ = writeln!(std::io::stderr().lock(), "diskperf: {}", printable(text));
}

/// Columns of the terminal; without one, what a wide one has.
pub(crate) fn width() -> u16 {
    terminal_size::terminal_size().map_or(120, |(width, _)| width.0)
}
