//! Options that are always rejected, and options replaced by another diskperf command.

use super::{OptionKey, harmless, honoured};

const SAME_IO_OTHER_OWNER: &str =
    "the I/O does not change; files belong to the user who runs diskperf";
const NO_CONTROL_GROUP: &str =
    "diskperf creates no control group; to limit a job, run diskperf inside one";

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
        "diskperf does not change the device's scheduler; set it in /sys/block/DEVICE/queue/scheduler",
    ),
    harmless("cgroup", NO_CONTROL_GROUP),
    harmless("cgroup_weight", NO_CONTROL_GROUP),
    harmless("cgroup_nodelete", NO_CONTROL_GROUP),
    harmless("uid", SAME_IO_OTHER_OWNER),
    harmless("gid", SAME_IO_OTHER_OWNER),
    harmless("profile", "fio too does nothing for it in a job file"),
];
