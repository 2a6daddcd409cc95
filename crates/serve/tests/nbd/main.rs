//! The server over real sockets: every command, malformed input, several connections, the end
//! of serving, faults, and time.

mod client;
mod ending;
mod faults;
mod hostile;
mod protocol;
mod timing;
