//! Options that are always rejected, and options replaced by another diskperf command.

use super::{Key, harmless, honoured};

const OWNER: &str = "the I/O is the same, and files belong to the user who starts diskperf";
const CGROUP: &str = "no control group is made; to limit a job, start diskperf inside of one";

pub(super) const KEYS: &[Key] = &[
    honoured("exec_prerun", |job, w| {
        job.order.run_before = Some(w.value()?.text().to_owned());
        Ok(())
    }),
    honoured("exec_postrun", |job, w| {
        job.order.run_after = Some(w.value()?.text().to_owned());
        Ok(())
    }),
    harmless(
        "ioscheduler",
        "the scheduler of the device stays as it is; set it in /sys/block/DEVICE/queue/scheduler",
    ),
    harmless("cgroup", CGROUP),
    harmless("cgroup_weight", CGROUP),
    harmless("cgroup_nodelete", CGROUP),
    harmless("uid", OWNER),
    harmless("gid", OWNER),
    harmless("profile", "fio too does nothing for it in a job file"),
];
