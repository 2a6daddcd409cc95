//! Measurement of the catalogue's expected figures (`expected/`) on a single drive.

use crate::{Drive, Operation};

pub mod disk;
pub mod flash;

fn serve_one(drive: &mut Drive, operation: Operation, sector: u64, sectors: u32) {
    let served = drive.serve(operation, sector, sectors);
    served.unwrap_or_else(|refusal| panic!("{operation:?} of {sectors} at {sector}: {refusal}"));
}
