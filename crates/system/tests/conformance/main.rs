//! What a program may rely on, whichever world it runs on: the same return
//! values, the same error numbers, the same bytes read back.
//!
//! `cases` holds one body per case and knows nothing of worlds; each world has
//! a runner that turns the table of cases into tests of its own.

#[macro_use]
mod cases;
#[cfg(target_os = "linux")]
mod host;
mod model;
#[path = "../modelled/mod.rs"]
mod modelled;
#[path = "../requests/mod.rs"]
mod requests;
#[cfg(target_os = "linux")]
#[path = "../support/mod.rs"]
mod support;
