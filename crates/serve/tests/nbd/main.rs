//! The server over real sockets: every command, malformed input, several connections, the end
//! of serving, and time.

mod client;
mod ending;
mod hostile;
mod protocol;
mod timing;
