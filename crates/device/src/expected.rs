//! What drives do of what is expected of them: the figures of `expected/` in the catalogue,
//! measured on a drive by itself.

use crate::{Drive, Operation};

pub mod disk;
pub mod flash;

/// Serves a request of an idle drive.
fn one(drive: &mut Drive, operation: Operation, sector: u64, sectors: u32) {
    let served = drive.serve(operation, sector, sectors);
    served.unwrap_or_else(|refusal| panic!("{operation:?} of {sectors} at {sector}: {refusal}"));
}
