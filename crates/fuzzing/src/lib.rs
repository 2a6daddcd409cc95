//! Fuzz targets for the parsers of text and binary input.
//!
//! A target passes bytes to a parser of user or program files, and processes the result as diskperf
//! does first. The outcome must be a value or an error: a panic, a hang, or unlimited memory use is
//! a bug. In `fuzz/`, libFuzzer generates the bytes (`make fuzz`). `tests/bounded.rs` generates
//! them for some seconds with a property test, and repeats inputs found earlier.

mod block_traces;
mod catalogue;
mod crash_log;
mod diskspecs;
mod event_pages;
mod job_file;
mod kernel_text;
mod nbd;
mod runs;
mod sizes;

/// Fuzz target: a parser with its inputs.
#[derive(Clone, Copy, Debug)]
pub struct FuzzTarget {
    /// Name of the target, of its binary in `fuzz/` and of its folder in `fuzz/found`.
    pub name: &'static str,
    /// Prepares the data that all inputs share, and returns the function that passes one input to
    /// the parser.
    pub make_body: fn() -> FuzzBody,
    /// Returns valid inputs from which fuzzing starts.
    pub make_seeds: fn() -> Vec<Vec<u8>>,
    /// Keywords of the parsed language, for the dictionary.
    pub keywords: &'static [&'static str],
}

/// Function that passes bytes to a parser.
pub type FuzzBody = Box<dyn Fn(&[u8]) + Send + Sync>;

impl FuzzTarget {
    /// Returns the target with this name.
    pub fn find_by_name(name: &str) -> Option<Self> {
        TARGETS.into_iter().find(|target| target.name == name)
    }
}

/// All fuzz targets, one for each parser.
pub const TARGETS: [FuzzTarget; 16] = [
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
    crash_log::CRASH_LOG,
    nbd::NBD_SESSION,
];

fn to_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn to_byte_inputs<'t>(texts: impl IntoIterator<Item = &'t str>) -> Vec<Vec<u8>> {
    let texts = texts.into_iter();
    texts.map(|text| text.as_bytes().to_vec()).collect()
}
