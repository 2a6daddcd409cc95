//! Options that are never obeyed, and those of what diskperf has another command for.

use super::{Key, refused};

const COMMANDS: &str = "a job file must not run commands";
const BY_HAND: &str = "run the command yourself, before or after diskperf";
const SYSTEM: &str = "a job file must not change the system";
const REPLAY: &str = "a job does not replay a trace";
const USE_REPLAY: &str = "use `diskperf replay FILE`";

pub(super) const KEYS: &[Key] = &[
    refused("exec_prerun", COMMANDS, BY_HAND),
    refused("exec_postrun", COMMANDS, BY_HAND),
    refused(
        "ioscheduler",
        SYSTEM,
        "set the scheduler in /sys/block/DEVICE/queue/scheduler",
    ),
    refused("cgroup", SYSTEM, "start diskperf inside the control group"),
    refused(
        "cgroup_weight",
        SYSTEM,
        "start diskperf inside the control group",
    ),
    refused(
        "cgroup_nodelete",
        SYSTEM,
        "start diskperf inside the control group",
    ),
    refused("uid", SYSTEM, "start diskperf as that user"),
    refused("gid", SYSTEM, "start diskperf in that group"),
    refused("read_iolog", REPLAY, USE_REPLAY),
    refused("read_iolog_chunked", REPLAY, USE_REPLAY),
    refused("replay_no_stall", REPLAY, USE_REPLAY),
    refused("replay_redirect", REPLAY, USE_REPLAY),
    refused("replay_scale", REPLAY, USE_REPLAY),
    refused("replay_align", REPLAY, USE_REPLAY),
    refused("replay_time_scale", REPLAY, USE_REPLAY),
    refused("replay_skip", REPLAY, USE_REPLAY),
    refused("merge_blktrace_file", REPLAY, USE_REPLAY),
    refused("merge_blktrace_scalars", REPLAY, USE_REPLAY),
    refused("merge_blktrace_iters", REPLAY, USE_REPLAY),
    refused(
        "write_iolog",
        "a job does not record a trace",
        "use `diskperf record DEVICE`",
    ),
    refused(
        "trim_percentage",
        "trims between writes are not supported",
        "use `rw=trimwrite`",
    ),
    refused(
        "trim_verify_zero",
        "trimmed blocks are not compared",
        "remove it",
    ),
    refused(
        "trim_backlog",
        "trims between writes are not supported",
        "use `rw=trimwrite`",
    ),
    refused(
        "trim_backlog_batch",
        "trims between writes are not supported",
        "use `rw=trimwrite`",
    ),
    refused(
        "profile",
        "fio's profiles are not supported",
        "write the job out",
    ),
];
