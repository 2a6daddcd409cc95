//! Modelled computers on the command line: runs, the catalogue, the accuracy
//! card, calculations, and all that can be wrong with them.

mod calculate;
mod catalogue;
mod cliffs;
mod errors;
mod explain;
mod flash;
mod import;
mod perfetto;
mod real_drives;
mod record;
mod replay;
mod reproduce;
mod runs;
#[path = "../support/mod.rs"]
mod support;
mod today;
mod trace;
mod trace_files;
mod tune;
mod volume;
