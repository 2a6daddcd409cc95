//! Options that are always rejected, and options replaced by another diskperf command.

use super::{OptionKey, harmless, honoured};

const SAME_IO_OTHER_OWNER: &str =
    "the I/O is the same, and files belong to the user who starts diskperf";
const NO_CONTROL_GROUP: &str =
    "no control group is made; to limit a job, start diskperf inside of one";

pub(super) const OPTIONS: &[OptionKey] = &[
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
    harmless("cgroup", NO_CONTROL_GROUP),
    harmless("cgroup_weight", NO_CONTROL_GROUP),
    harmless("cgroup_nodelete", NO_CONTROL_GROUP),
    harmless("uid", SAME_IO_OTHER_OWNER),
    harmless("gid", SAME_IO_OTHER_OWNER),
    harmless("profile", "fio too does nothing for it in a job file"),
];
