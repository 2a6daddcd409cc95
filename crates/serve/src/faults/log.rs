//! Log of the requests that faults struck.

use diskperf_device::faults::{FaultState, OperationKind, TakenStrikes};
use std::io::{self, Write};

/// Log of strikes: a line of JSON for each, in the order of arrivals and completions.
pub struct FaultLog {
    output: Box<dyn Write + Send>,
}

impl FaultLog {
    /// Creates a log that writes its lines to an output.
    pub fn new(output: Box<dyn Write + Send>) -> Self {
        Self { output }
    }

    /// Adds strikes. `faults` are those of the drive.
    ///
    /// # Errors
    ///
    /// The output cannot be written.
    pub fn add(&mut self, taken: &TakenStrikes, faults: &[FaultState]) -> io::Result<()> {
        for strike in &taken.strikes {
            // Names of faults, kinds, operations and effects need no escapes.
            writeln!(
                self.output,
                "{{\"time_s\": {}.{:09}, \"request\": {}, \"operation\": \"{}\", \"offset\": {}, \"bytes\": {}, \"fault\": \"{}\", \"effect\": \"{}\"}}",
                strike.time.0 / 1_000_000_000,
                strike.time.0 % 1_000_000_000,
                strike.request,
                OperationKind::from_operation(strike.of.operation).name(),
                strike.of.offset,
                strike.of.bytes,
                faults[strike.fault].name,
                strike.effect.name(),
            )?;
        }
        if taken.left_out > 0 {
            let left_out = taken.left_out;
            writeln!(self.output, "{{\"strikes_left_out\": {left_out}}}")?;
        }
        self.output.flush()
    }
}
