//! Jobs with a time limit end in time, whatever they wait for: each pacing option with each
//! engine at several depths, in virtual time.

use super::{SEED, on_model};
use diskperf_timeline::{LoadMeasure, Nanoseconds};

/// Length of the timed part of each job.
const RUNTIME: Nanoseconds = Nanoseconds::from_millis(100);

/// Engines, each with what it needs for several I/Os in flight.
const ENGINES: &[&str] = &[
    "io_uring",
    "libaio",
    "posixaio",
    "sync",
    "psync",
    "vsync",
    "pvsync",
    "pvsync2",
    "psync io_submit_mode=offload",
];

const DEPTHS: [u32; 3] = [1, 2, 8];

/// Options that have a job wait for something.
const PACINGS: &[&str] = &[
    "rw=randread",
    "rw=randread thinktime=1000",
    "rw=randread thinktime=1ms thinktime_blocks=3",
    "rw=randread thinktime=1ms thinktime_blocks=100 thinktime_blocks_type=issue",
    "rw=randread thinktime=2ms thinktime_spin=1ms",
    "rw=randread thinktime=70m",
    "rw=randread thinktime=70m thinktime_spin=70m",
    "rw=randread rate_iops=200",
    "rw=randread rate_iops=1",
    "rw=randread rate=4k",
    "rw=randrw rate_iops=300,1 rate_process=poisson",
    "rw=randread rate_iops=1 rate_process=poisson",
    "rw=randread rate_iops=200 thinktime=3ms",
    "rw=randread thinktime=20ms thinktime_iotime=10ms",
    "rw=randread thinktime=70m thinktime_iotime=10ms thinktime_blocks=5",
    "rw=randread rate_iops=100 thinktime=5ms rate_ignore_thinktime=1",
    "rw=randread rate_iops=100 rate_process=poisson thinktime=5ms rate_ignore_thinktime=1",
    "rw=randread flow=3",
    "rw=randread flow=3 flow_sleep=100000000",
    "rw=randread latency_target=1s latency_window=70m",
    "rw=randread latency_target=1 latency_window=10ms latency_percentile=50",
    "rw=randread latency_target=3ms latency_window=10ms latency_run=1",
    "rw=randrw norandommap serialize_overlap=1",
    "rw=randread steadystate=iops:0.001% ss_dur=100 group_reporting",
    "rw=randread startdelay=300ms",
    "rw=randread startdelay=100ms-300ms thinktime=1ms",
    "rw=randread ramp_time=200ms",
    "rw=randread ramp_time=200ms thinktime=70m",
    "rw=randread ramp_time=150ms rate_iops=1",
    "rw=write fsync=1",
    "rw=write fdatasync=3",
    "rw=randrw fsync=1 thinktime=1ms end_fsync=1",
    "rw=write fsync_on_close=1 unlink_each_loop=1",
    "rw=randread loops=4294967295",
    "rw=randread bssplit=4k/50:64k/50 norandommap thinktime=1ms",
    "rw=read offset=512k zonemode=strided zonesize=8k zoneskip=8k thinktime=1ms",
    "rw=randread iodepth_batch=4 iodepth_batch_complete_min=2 iodepth_low=1",
    "rw=randread steadystate=iops:0.001% ss_dur=100",
    "rw=randread steadystate=iops:0.001% ss_dur=100 ss_ramp=50 thinktime=70m",
    "rw=randread max_latency=70m rate_iops_min=1",
    "rw=randread lockfile=exclusive",
    "rw=randrw lockfile=readwrite thinktime=1ms",
];

#[test]
fn a_job_with_a_runtime_ends_in_time_whatever_it_waits_for() {
    for engine in ENGINES {
        for depth in DEPTHS {
            for pacing in PACINGS {
                let options = format!(
                    "size=1m time_based=1 runtime=100ms ioengine={engine} iodepth={depth} {pacing}"
                );
                let measure = on_model(&options);
                let load = measure.load_measure.as_ref().expect("it has a ring");
                let last = RUNTIME + longest(load);
                // A search may be over before.
                let first = match pacing.contains("latency_target") {
                    true => Nanoseconds::ZERO,
                    false => RUNTIME,
                };
                assert!(
                    measure.elapsed_time >= first && measure.elapsed_time <= last,
                    "seed {SEED}, {options}: {:?}, not {RUNTIME:?} to {last:?}",
                    measure.elapsed_time
                );
            }
        }
    }
}

/// Longest response of a request of any kind.
fn longest(load: &LoadMeasure) -> Nanoseconds {
    let operations = [&load.read, &load.write, &load.sync, &load.discard];
    let longest = operations.map(|operation| operation.response_times.latency_max());
    longest.into_iter().max().unwrap_or_default()
}
