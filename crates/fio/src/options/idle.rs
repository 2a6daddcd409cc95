//! Options that fio takes and does nothing for, and those that it has given up.

use super::{Key, harmless, refused};

/// fio knows the options of its profiles in every job, and reads them under `profile=`
/// alone.
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
