//! Options without effect in fio, and options that fio has removed.

use super::{OptionKey, ineffective_option, rejected_option};

/// Reason for ignoring options of fio's profiles: fio parses them in every job, but uses them only
/// with `profile=`.
const ONLY_IN_ACT_PROFILE: &str = "fio too does nothing for it: it is of fio's profile act";
const ONLY_IN_TIOBENCH_PROFILE: &str =
    "fio too does nothing for it: it is of fio's profile tiobench";
const NO_EFFECT_IN_FIO: &str = "fio too does nothing for it any more";
const REMOVED_FROM_FIO: &str = "fio has given it up, and drops the job";

pub(super) const OPTIONS: &[OptionKey] = &[
    ineffective_option(
        "block",
        "fio too does nothing for it: it is of fio's profile tiobench, and the size of a block is bs",
    ),
    ineffective_option(
        "dir",
        "fio too does nothing for it: it is of fio's profile tiobench, and the directory is directory",
    ),
    ineffective_option("numruns", ONLY_IN_TIOBENCH_PROFILE),
    ineffective_option(
        "threads",
        "fio too does nothing for it: it is of fio's profile tiobench, and the number of jobs is numjobs",
    ),
    ineffective_option("device-names", ONLY_IN_ACT_PROFILE),
    ineffective_option("large-block-op-kbytes", ONLY_IN_ACT_PROFILE),
    ineffective_option("load", ONLY_IN_ACT_PROFILE),
    ineffective_option("prep", ONLY_IN_ACT_PROFILE),
    ineffective_option("read-req-num-512-blocks", ONLY_IN_ACT_PROFILE),
    ineffective_option("test-duration", ONLY_IN_ACT_PROFILE),
    ineffective_option("threads-per-queue", ONLY_IN_ACT_PROFILE),
    ineffective_option("flow_watermark", NO_EFFECT_IN_FIO),
    ineffective_option("verifysort", NO_EFFECT_IN_FIO),
    ineffective_option("verifysort_nr", NO_EFFECT_IN_FIO),
    rejected_option(
        "percentage_sequential",
        REMOVED_FROM_FIO,
        "use `percentage_random=`",
    ),
    rejected_option("rwmixcycle", REMOVED_FROM_FIO, "remove it"),
];
