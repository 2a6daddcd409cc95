//! Network block devices: fixed newstyle handshake, structured replies, several connections.
//!
//! The protocol is that of `doc/proto.md` of the NBD project. [`handshake`] and [`wire`] parse
//! and encode without touching a socket; [`Server`] has the sockets and the threads, two for
//! each connection: one reads requests, the other sends what a slow client did not take at
//! once. An answer is sent by the thread that finds it due.
//!
//! Memory is bounded: lengths are checked before anything is allocated, and a connection that
//! has [`REQUESTS_IN_FLIGHT_MAX`] requests or [`BYTES_IN_FLIGHT_MAX`] bytes in flight is not
//! read until an answer has been sent.

mod admission;
mod connection;
pub mod handshake;
mod output;
mod server;
mod socket;
pub mod wire;

pub use admission::{BYTES_IN_FLIGHT_MAX, REQUESTS_IN_FLIGHT_MAX};
pub use server::{Address, CONNECTIONS_MAX, Server};

/// Facts about the served drive that a client is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Export {
    /// Size of the drive, in bytes.
    pub size_bytes: u64,
    /// Length and alignment at which requests cost no more than they move.
    pub preferred_bytes: u32,
    /// Whether clients may only read.
    pub is_read_only: bool,
    /// Whether the drive has a rotating medium. Only others take trims, and make zeroes faster
    /// than they write.
    pub is_rotational: bool,
}
