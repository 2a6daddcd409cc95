//! Options that are always rejected, and options replaced by another diskperf command.

use super::{OptionKey, applied_option, ineffective_option};

const BUFFER_OWNER_IRRELEVANT: &str =
    "the I/O does not change; files belong to the user who runs diskperf";
const NO_CONTROL_GROUP: &str =
    "diskperf creates no control group; to limit a job, run diskperf inside one";

pub(super) const OPTIONS: &[OptionKey] = &[
    applied_option("exec_prerun", |job, w| {
        job.order.command_before = Some(w.value()?.text().to_owned());
        Ok(())
    }),
    applied_option("exec_postrun", |job, w| {
        job.order.command_after = Some(w.value()?.text().to_owned());
        Ok(())
    }),
    ineffective_option(
        "ioscheduler",
        "diskperf does not change the device's scheduler; set it in /sys/block/DEVICE/queue/scheduler",
    ),
    ineffective_option("cgroup", NO_CONTROL_GROUP),
    ineffective_option("cgroup_weight", NO_CONTROL_GROUP),
    ineffective_option("cgroup_nodelete", NO_CONTROL_GROUP),
    ineffective_option("uid", BUFFER_OWNER_IRRELEVANT),
    ineffective_option("gid", BUFFER_OWNER_IRRELEVANT),
    ineffective_option("profile", "fio too does nothing for it in a job file"),
];
