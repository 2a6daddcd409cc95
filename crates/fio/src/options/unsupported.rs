//! Options that are never obeyed, and those of what diskperf has another command for.

use super::{Key, harmless, refused};

const COMMANDS: &str = "a job file must not run commands";
const BY_HAND: &str = "run the command yourself, before or after diskperf";
const SYSTEM: &str = "a job file must not change the system";
const CGROUP: &str = "no control group is made; to limit a job, start diskperf inside of one";

pub(super) const KEYS: &[Key] = &[
    refused("exec_prerun", COMMANDS, BY_HAND),
    refused("exec_postrun", COMMANDS, BY_HAND),
    harmless(
        "ioscheduler",
        "the scheduler of the device stays as it is; set it in /sys/block/DEVICE/queue/scheduler",
    ),
    harmless("cgroup", CGROUP),
    harmless("cgroup_weight", CGROUP),
    harmless("cgroup_nodelete", CGROUP),
    refused("uid", SYSTEM, "start diskperf as that user"),
    refused("gid", SYSTEM, "start diskperf in that group"),
    refused(
        "profile",
        "fio's profiles are not supported",
        "write the job out",
    ),
];
