//! Catalogue file that is parsed on first use.

use std::sync::{Arc, OnceLock};

use super::value::{self, Table};
use diskperf_diagnostics::Problem;
use diskperf_diagnostics::Text;

/// Text of a catalogue file, and its parsed table from first use on. Thousands of systems may be
/// read from one catalogue.
#[derive(Debug)]
pub(crate) struct CatalogueFile {
    pub(crate) text: Arc<Text>,
    parsed_table: OnceLock<Result<Arc<Table>, Vec<Problem>>>,
}

impl CatalogueFile {
    pub(crate) fn new(name: String, content: String) -> CatalogueFile {
        CatalogueFile {
            text: Arc::new(Text::new(name, content)),
            parsed_table: OnceLock::new(),
        }
    }

    /// Returns the parsed table of the file.
    ///
    /// # Errors
    ///
    /// A text that is not TOML.
    pub(crate) fn table(&self) -> Result<Arc<Table>, Vec<Problem>> {
        let parse = || value::parse(&self.text).map(Arc::new);
        self.parsed_table.get_or_init(parse).clone()
    }
}
