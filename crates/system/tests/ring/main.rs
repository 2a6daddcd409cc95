//! Several requests under way at once.
//!
//! `bodies` holds one body for each thing that a program may rely on, whichever world it
//! runs on; `model` runs them on modelled computers. `queueing` compares a device of which
//! everything is known with what queueing theory says of it.

mod bodies;
mod model;
#[path = "../modelled/mod.rs"]
mod modelled;
mod open_loop;
mod queueing;
#[path = "../requests/mod.rs"]
mod requests;
