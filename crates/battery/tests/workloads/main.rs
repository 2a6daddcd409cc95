//! Programs of the battery at work, on modelled computers and in directories.

mod bench;
mod metadata;
mod open_loop;
mod trees;
