//! Standard output, and standard error: what is written to them is text, whatever
//! it was made of.

use diskperf_laboratory::timeline::printable;
use std::io::{ErrorKind, Write};

/// Prints text, which a reader may stop reading in the middle (`| head`).
pub(crate) fn print(text: &str) {
    let text = printable(text);
    let mut out = std::io::stdout().lock();
    let end = if text.ends_with('\n') { "" } else { "\n" };
    match out
        .write_all(text.as_bytes())
        .and_then(|()| out.write_all(end.as_bytes()))
    {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            say(&format!("cannot write to standard output: {error}"));
        }
        Ok(()) | Err(_) => {}
    }
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
