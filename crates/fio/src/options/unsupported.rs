//! Options that are never obeyed, and those of what diskperf has another command for.

use super::{Key, refused};

const COMMANDS: &str = "a job file must not run commands";
const BY_HAND: &str = "run the command yourself, before or after diskperf";
const SYSTEM: &str = "a job file must not change the system";

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
    refused(
        "trim_percentage",
        "trims between writes are not supported",
        "use `rw=trimwrite`",
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
