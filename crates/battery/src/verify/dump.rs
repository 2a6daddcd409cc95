//! Blocks that differ, written to files beside what was expected: fio's `verify_dump`.

use diskperf_system::write_new_file;

/// Files that the blocks of a worker are dumped to.
pub(crate) struct Dump {
    /// Last component of the name of each file of the worker.
    pub(crate) names: Vec<String>,
}

impl Dump {
    /// Writes each part of an I/O that differs, and says where. A file that is there stays.
    pub(super) fn write(
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
            let path = |kind: &str| format!("{}.{offset_bytes}.{kind}", self.names[file]);
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
