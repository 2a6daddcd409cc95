//! Block traces: which requests storage was asked for, and when.
//!
//! ```
//! use diskperf_blocktrace::{ReadOptions, Reader};
//!
//! let text = "128166400000000000,web,0,Write,8192,4096,1500\n\
//!             128166400000010000,web,0,Read,0,512,1500\n";
//! let mut reader = Reader::open("web.csv", Box::new(text.as_bytes()), &ReadOptions::default())?;
//! let first = reader.next().expect("two requests")?;
//! assert_eq!((first.offset_bytes, first.length_bytes), (8192, 4096));
//! assert_eq!(first.completed_ns, Some(150_000));
//! # Ok::<(), diskperf_blocktrace::ReadError>(())
//! ```
//!
//! - [`Reader`]: any of the forms of [`Form`], recognised by what is in it or told, plain or
//!   compressed with gzip or zstd, in constant memory. What is ambiguous is refused and never
//!   guessed; what is dropped or out of order is counted in [`Notices`].
//! - [`Writer`]: the forms that can be written.
//! - [`own`]: diskperf's own form, recorded while it happens.
//! - [`summary`]: what a trace holds, in one pass.
//! - [`transform`]: a part of a trace, or one with other addresses.
//!
//! Nothing here knows of replay, or of models.

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

pub use columns::Columns;
pub use error::ReadError;
pub use form::{Form, TimeUnit};
pub use forms::DEVICES_MAX;
pub use reader::{Lines, Notices, ReadOptions, Reader};
pub use record::{DeviceIndex, Operation, Record};
pub use writer::{FIXED_BYTES_MAX, REQUEST_BYTES_MAX, Writer};
