//! What drives do of what is expected of them: the figures of `expected/` in the catalogue,
//! measured on a drive by itself.

pub mod disk;
pub mod flash;
