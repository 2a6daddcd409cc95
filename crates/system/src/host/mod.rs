//! The host arm: real storage, on Linux. The only folder that makes system
//! calls.

mod clock;
pub mod device;
pub mod environment;
pub mod fresh;
pub mod mounts;
mod names;
pub mod page_cache;
mod rendezvous;
pub mod safety;
mod usage;
mod worker;
pub mod workspace;

pub use clock::Clock;
pub use names::{DevicePort, Ports, open_directory};
pub use rendezvous::Rendezvous;
pub use worker::{Control, Host};
