//! Options without effect in fio, and options that fio has removed.

use super::{Key, harmless, refused};

/// Reason for ignoring options of fio's profiles: fio parses them in every job, but uses them only
/// with `profile=`.
const ACT: &str = "fio too does nothing for it: it is of fio's profile act";
const TIOBENCH: &str = "fio too does nothing for it: it is of fio's profile tiobench";
const OLD: &str = "fio too does nothing for it any more";
const GIVEN_UP: &str = "fio has given it up, and drops the job";

pub(super) const KEYS: &[Key] = &[
    harmless(
        "block",
        "fio too does nothing for it: it is of fio's profile tiobench, and the size of a block is bs",
    ),
    harmless(
        "dir",
        "fio too does nothing for it: it is of fio's profile tiobench, and the directory is directory",
    ),
    harmless("numruns", TIOBENCH),
    harmless(
        "threads",
        "fio too does nothing for it: it is of fio's profile tiobench, and the number of jobs is numjobs",
    ),
    harmless("device-names", ACT),
    harmless("large-block-op-kbytes", ACT),
    harmless("load", ACT),
    harmless("prep", ACT),
    harmless("read-req-num-512-blocks", ACT),
    harmless("test-duration", ACT),
    harmless("threads-per-queue", ACT),
    harmless("flow_watermark", OLD),
    harmless("verifysort", OLD),
    harmless("verifysort_nr", OLD),
    refused(
        "percentage_sequential",
        GIVEN_UP,
        "use `percentage_random=`",
    ),
    refused("rwmixcycle", GIVEN_UP, "remove it"),
];
