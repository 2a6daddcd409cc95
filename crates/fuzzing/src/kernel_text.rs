//! Fuzz targets for text that a kernel prints.

use crate::{FuzzTarget, to_byte_inputs};
use diskperf_system::host::block_events;
use diskperf_system::host::device::DeviceNumber;
use diskperf_system::host::mounts::Mounts;
use std::collections::BTreeMap;

/// Input for the event parser: trace lines with events of the block layer and the scheduler.
pub(crate) const EVENT_LINES: FuzzTarget = FuzzTarget {
    name: "event_lines",
    make_body: || Box::new(parse_event_lines),
    make_seeds: event_seeds,
    keywords: &[
        "block_bio_queue: ",
        "block_rq_issue: ",
        "block_rq_requeue: ",
        "block_rq_complete: ",
        "sched_switch: ",
        "sched_waking: ",
        "sched_stat_runtime: ",
        " runtime=",
        "prev_comm=dpio-1 prev_pid=",
        "next_comm=dpio-1 next_pid=",
        "comm=dpio-1 pid=",
        " + ",
        "254,0 ",
        "\n",
        "18446744073709551615",
        "[001]",
        "69938.051718:",
    ],
};

/// Input for the mount parser: contents of `/proc/self/mountinfo`.
pub(crate) const MOUNTS: FuzzTarget = FuzzTarget {
    name: "mounts",
    make_body: || Box::new(parse_mounts),
    make_seeds: mount_seeds,
    keywords: &[
        "\\040",
        "\\",
        " - ",
        " ",
        "\n",
        "4294967295:4294967295",
        "rw",
        "/",
    ],
};

fn parse_event_lines(bytes: &[u8]) {
    let number = |minor| DeviceNumber { major: 254, minor };
    let numbers = BTreeMap::from([(number(0), 0), (number(1), 0), (number(16), 1)]);
    if let Err(error) = block_events::parse_recorded_events(bytes, &numbers, "dpio-1") {
        assert!(!error.to_string().is_empty());
    }
}

fn event_seeds() -> Vec<Vec<u8>> {
    to_byte_inputs([
        "# tracer: nop\n\
         \x20         dpio-1-22660   [001] ..... 69938.051718: block_bio_queue: 254,0 WS 255159040 + 256 [dd]\n\
         \x20         dpio-1-22660   [001] ..... 69938.051818: block_rq_issue: 254,0 WS 131072 () 255159040 + 256 be,0,4 [dd]\n\
         \x20         dpio-1-22660   [001] ..... 69938.051918: block_rq_complete: 254,0 WS () 255159040 + 256 be,0,4 [0]\n",
        "          dpio-1-22660   [001] ..... 69938.051718: block_rq_issue: 254,0 FF 0 () 0 + 0 none,0,0 [kworker]\n\
         \x20         dpio-1-22660   [001] ..... 69938.052718: block_rq_requeue: 254,0 FF () 0 + 0 none,0,0 [0]\n",
        "          dpio-1-22660   [000] d..2. 69938.051718: sched_switch: prev_comm=dpio-1 prev_pid=22660 prev_prio=120 prev_state=D ==> next_comm=b next_pid=8 next_prio=120\n\
         \x20         <idle>-0       [000] d..2. 69938.061718: sched_waking: comm=dpio-1 pid=22660 prio=120 target_cpu=000\n\
         \x20         dpio-1-22660   [000] d..2. 69938.061818: sched_stat_runtime: comm=dpio-1 pid=22660 runtime=99580 [ns]\n",
    ])
}

fn parse_mounts(bytes: &[u8]) {
    match Mounts::parse_mounts(bytes) {
        Ok(mounts) => {
            for mount in mounts.iter() {
                let _ = mount.combined_options();
                assert!(mounts.mounts_inside(&mount.mount_point).count() > 0);
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn mount_seeds() -> Vec<Vec<u8>> {
    to_byte_inputs([
        "36 35 98:0 / /mnt rw,noatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro\n\
         37 36 0:33 / /mnt/a\\040b rw - tmpfs tmpfs rw,size=1024k\n",
        "1 0 254:1 / / rw - ext4 /dev/root rw\n",
    ])
}
