//! Reports, as a browser shows them.

#[path = "../support/mod.rs"]
mod support;

mod browser;
mod errors;
mod pages;
