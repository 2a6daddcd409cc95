//! Parsers, given any bytes.
//!
//! A target takes bytes, hands them to a parser of what users and others write, and
//! does with the result what diskperf does first. Nothing may come of it but a value
//! or an error: a panic, a hang, or memory without a bound is a bug. `fuzz/` has
//! libFuzzer make up the bytes (`make fuzz`); `tests/bounded.rs` does so for some
//! seconds with what a property test draws, and tries again what was found before.

mod block_traces;
mod catalogue;
mod diskspecs;
mod event_pages;
mod job_file;
mod kernel_text;
mod runs;
mod sizes;

/// A parser, and what it is given.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// That of its binary in `fuzz/`, and of its folder in `fuzz/found`.
    pub name: &'static str,
    /// Makes what all inputs share, and what gives the parser one of them.
    pub prepare: fn() -> Body,
    /// Inputs that are right, to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Words of its language.
    pub words: &'static [&'static str],
}

/// Gives a parser some bytes.
pub type Body = Box<dyn Fn(&[u8]) + Send + Sync>;

impl Target {
    /// The target of this name.
    pub fn named(name: &str) -> Option<Self> {
        TARGETS.into_iter().find(|target| target.name == name)
    }
}

/// All of them.
pub const TARGETS: [Target; 14] = [
    catalogue::ENTRY,
    catalogue::SETTING,
    sizes::SIZES,
    runs::DOCUMENT,
    runs::STORE_FILE,
    runs::STORE_ROW,
    kernel_text::EVENT_LINES,
    event_pages::EVENT_PAGES,
    kernel_text::MOUNTS,
    sizes::FRESH,
    job_file::JOB_FILE,
    diskspecs::DRIVE,
    diskspecs::TRACE,
    block_traces::BLOCK_TRACE,
];

/// Bytes as a text, as a parser is given one.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Texts as bytes.
fn bytes<'t>(texts: impl IntoIterator<Item = &'t str>) -> Vec<Vec<u8>> {
    let texts = texts.into_iter();
    texts.map(|text| text.as_bytes().to_vec()).collect()
}
