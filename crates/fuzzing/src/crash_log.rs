//! Fuzz target for logs of dm-log-writes, whose media are read as after a power cut.

use super::{FuzzBody, FuzzTarget};
use diskperf_crash::{CutPolicy, Instants, log_writes};

/// Cuts of a log that are made, and the requests of each medium that are read.
const CUTS_MAX: usize = 4;
const REQUESTS_MAX: usize = 16;

pub(crate) const CRASH_LOG: FuzzTarget = FuzzTarget {
    name: "crash_log",
    make_body: crash_log,
    make_seeds: || {
        let mark = entry([0, 0, 8, 9], b"durable 1");
        let flush = entry([0, 0, 1, 0], b"");
        let write = [entry([8, 1, 0, 0], b""), vec![7; 512]].concat();
        let forced = [entry([9, 1, 3, 0], b""), vec![8; 512]].concat();
        let discard = entry([0, 4096, 4, 0], b"");
        [
            vec![write.clone(), flush.clone(), mark.clone()],
            vec![discard, write, mark, forced, flush],
            Vec::new(),
        ]
        .map(|entries| {
            let header = [0x006a_7366_7773_6872, 1, entries.len() as u64, 512];
            [entry(header, b""), entries.concat()].concat()
        })
        .to_vec()
    },
    keywords: &["durable ", "begin", "mkfs"],
};

/// Sector with four numbers and a text.
fn entry(numbers: [u64; 4], text: &[u8]) -> Vec<u8> {
    let mut sector: Vec<u8> = numbers.into_iter().flat_map(u64::to_le_bytes).collect();
    sector.extend_from_slice(text);
    sector.resize(512, 0);
    sector
}

fn crash_log() -> FuzzBody {
    Box::new(|bytes| {
        let log = match log_writes::read(&mut &*bytes, None) {
            Ok(log) => log,
            Err(error) => return assert!(!error.to_string().is_empty()),
        };
        let positions = Instants::Count(CUTS_MAX).positions(&log, 1);
        for position in positions {
            for cut in CutPolicy::Each.cuts(&log, position, 1) {
                for request in log.requests.iter().take(REQUESTS_MAX) {
                    let _ = log.read(&cut, request.units.start);
                }
            }
        }
        let written = log_writes::write(&log, &mut std::io::sink());
        written.expect("a sink takes everything");
    })
}
