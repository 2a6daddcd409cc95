//! Options without effect in fio, and options that fio has removed.

use super::{OptionKey, harmless, refused};

/// Reason for ignoring options of fio's profiles: fio parses them in every job, but uses them only
/// with `profile=`.
const NOTHING_FOR_ACT: &str = "fio too does nothing for it: it is of fio's profile act";
const NOTHING_FOR_TIOBENCH: &str = "fio too does nothing for it: it is of fio's profile tiobench";
const OBSOLETE: &str = "fio too does nothing for it any more";
const REMOVED: &str = "fio has given it up, and drops the job";

pub(super) const OPTIONS: &[OptionKey] = &[
    harmless(
        "block",
        "fio too does nothing for it: it is of fio's profile tiobench, and the size of a block is bs",
    ),
    harmless(
        "dir",
        "fio too does nothing for it: it is of fio's profile tiobench, and the directory is directory",
    ),
    harmless("numruns", NOTHING_FOR_TIOBENCH),
    harmless(
        "threads",
        "fio too does nothing for it: it is of fio's profile tiobench, and the number of jobs is numjobs",
    ),
    harmless("device-names", NOTHING_FOR_ACT),
    harmless("large-block-op-kbytes", NOTHING_FOR_ACT),
    harmless("load", NOTHING_FOR_ACT),
    harmless("prep", NOTHING_FOR_ACT),
    harmless("read-req-num-512-blocks", NOTHING_FOR_ACT),
    harmless("test-duration", NOTHING_FOR_ACT),
    harmless("threads-per-queue", NOTHING_FOR_ACT),
    harmless("flow_watermark", OBSOLETE),
    harmless("verifysort", OBSOLETE),
    harmless("verifysort_nr", OBSOLETE),
    refused("percentage_sequential", REMOVED, "use `percentage_random=`"),
    refused("rwmixcycle", REMOVED, "remove it"),
];
