//! Dumps of differing blocks to files, together with the expected data, for `verify_dump` of fio.

use diskperf_system::write_new_file;

/// Files to which the differing blocks of a worker are dumped.
pub(crate) struct DumpFiles {
    /// Last path component of each file of the worker.
    pub(crate) base_names: Vec<String>,
}

impl DumpFiles {
    /// Writes each differing part of an I/O to files, and returns a text that names them. Existing
    /// files are not overwritten.
    pub(super) fn write_dump_files(
        &self,
        (file, offset_bytes): (usize, u64),
        step_bytes: usize,
        (expected, received): (&[u8], &[u8]),
    ) -> String {
        let mut text = String::new();
        let parts = expected.chunks(step_bytes).zip(received.chunks(step_bytes));
        for (number, (expected, received)) in parts.enumerate() {
            if expected == received {
                continue;
            }
            let offset_bytes = offset_bytes + (number * step_bytes) as u64;
            let path = |kind: &str| format!("{}.{offset_bytes}.{kind}", self.base_names[file]);
            for (kind, bytes) in [("received", received), ("expected", expected)] {
                let path = path(kind);
                text += &match write_new_file(&path, bytes) {
                    Ok(()) => format!("; {kind} data in {path}"),
                    Err(why) => format!("; {kind} data not dumped: {why}"),
                };
            }
        }
        text
    }
}
