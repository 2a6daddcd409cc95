//! Block traces: readers, writers and summaries of the requests that storage received, with
//! their times.
//!
//! ```
//! use diskperf_blocktrace::{ReadOptions, TraceReader};
//!
//! let text = "128166400000000000,web,0,Write,8192,4096,1500\n\
//!             128166400000010000,web,0,Read,0,512,1500\n";
//! let mut reader = TraceReader::open("web.csv", Box::new(text.as_bytes()), &ReadOptions::default())?;
//! let first = reader.next().expect("two requests")?;
//! assert_eq!((first.offset_bytes, first.length_bytes), (8192, 4096));
//! assert_eq!(first.completed_ns, Some(150_000));
//! # Ok::<(), diskperf_blocktrace::ReadError>(())
//! ```
//!
//! - [`TraceReader`]: reads any format of [`Form`], detected from the contents or given by the user,
//!   plain or compressed with gzip or zstd, in constant memory. An ambiguous input is refused and
//!   never guessed. [`Notices`] counts what was dropped or out of order.
//! - [`TraceWriter`]: writes the formats that can be written.
//! - [`own`]: the native format of diskperf, recorded while requests happen.
//! - [`summary`]: statistics of a trace, in one pass.
//! - [`transform`]: selection of a part of a trace, and changes of its addresses.
//!
//! The crate knows nothing of replays or of models.

mod columns;
mod error;
mod form;
mod forms;
mod lines;
mod number;
mod order;
pub mod own;
mod reader;
mod record;
mod sniff;
mod source;
pub mod summary;
pub mod transform;
mod writer;

pub use columns::CsvColumns;
pub use error::ReadError;
pub use form::{Form, TimeUnit};
pub use forms::DEVICES_MAX;
pub use reader::{LineCounts, Notices, ReadOptions, TraceReader};
pub use record::{DeviceIndex, TraceRecord, TracedOperation};
pub use writer::{FIXED_BYTES_MAX, REQUEST_BYTES_MAX, TraceWriter};
