//! One case for each option: the values that fio prints are those of the typed job.

use diskperf_fio::job::{
    Amount, ArrivalProcess, DirectionReporting, EndedJobs, FileAllocation, FileServiceOrder,
    IoEngine, OffsetDistribution, OffsetSequencer, RandomGenerator, ReadWriteMode, SteadyLimit,
    SubmitMode, SyncFlag, ThinkEvent, Verification, ZoneMode,
};
use diskperf_fio::verify::Checksum;
use diskperf_fio::{JobDefinition, JobFile, PerDirection};

use crate::{Fio, ours};

/// What a case gives, to be compared with fio's `out=`, or true or false where fio prints
/// nothing of it.
enum Given {
    Values(Vec<i128>),
    Is(bool),
}

/// What stands above the option, the option, fio's name of it, and what of the job to
/// compare.
type Case = (
    &'static str,
    &'static str,
    &'static str,
    fn(&JobDefinition) -> Given,
);

fn one(value: impl Into<i128>) -> Given {
    Given::Values(vec![value.into()])
}

/// fio prints as many as were written.
fn some<T: Into<i128> + Copy>(each: &PerDirection<T>, count: usize) -> Given {
    let all = [each.read, each.write, each.trim];
    Given::Values(all.into_iter().take(count).map(Into::into).collect())
}

fn bytes(amount: Option<Amount>) -> Given {
    one(amount.and_then(Amount::bytes).expect("bytes"))
}

/// Zones that are written in order.
const ZONES: &str = "zonemode=zbd\nzonesize=8k\n";

const CASES: &[Case] = &[
    // Where and how much.
    ("", "size=64k", "size", |job| bytes(job.target.size)),
    ("", "size=1G", "size", |job| bytes(job.target.size)),
    ("bs=1k\n", "size=4KiB", "size", |job| bytes(job.target.size)),
    ("bs=1\n", "size=0x10", "size", |job| bytes(job.target.size)),
    ("kb_base=1000\n", "size=4KiB", "size", |job| {
        bytes(job.target.size)
    }),
    ("kb_base=1000\n", "size=5k", "size", |job| {
        bytes(job.target.size)
    }),
    ("", "size=16Mib", "size", |job| bytes(job.target.size)),
    ("", "size=2ti", "size", |job| bytes(job.target.size)),
    ("", "size=1pb", "size", |job| bytes(job.target.size)),
    ("", "io_size=96k", "io_size", |job| {
        bytes(job.target.io_size)
    }),
    ("", "io_limit=96k", "io_size", |job| {
        bytes(job.target.io_size)
    }),
    ("", "filesize=4m", "filesize", |job| {
        one(job.files.size_bytes.unwrap().0)
    }),
    ("", "filesize=4k-1m", "filesize", |job| {
        let (low, high) = job.files.size_bytes.unwrap();
        Given::Values(vec![low.into(), high.into()])
    }),
    ("", "number_ios=1k", "number_ios", |job| {
        one(job.target.ios_max.unwrap())
    }),
    ("", "loops=3", "loops", |job| one(job.target.loops)),
    ("", "offset=1m", "offset", |job| {
        bytes(Some(job.target.offset))
    }),
    ("", "offset_align=8k", "offset_align", |job| {
        one(job.target.offset_align_bytes)
    }),
    ("", "offset_increment=2m", "offset_increment", |job| {
        bytes(Some(job.target.offset_increment))
    }),
    ("", "filename=a:b\\:c", "filename", |job| {
        Given::Is(*job.files.names == ["a", "b:c"])
    }),
    ("", "directory=/tmp", "directory", |job| {
        Given::Is(*job.files.directories == ["/tmp"])
    }),
    ("", "filename_format=f.$jobnum", "filename_format", |job| {
        Given::Is(job.files.name_format == "f.$jobnum")
    }),
    ("", "nrfiles=3", "nrfiles", |job| one(job.files.count)),
    ("", "nr_files=3", "nrfiles", |job| one(job.files.count)),
    ("nrfiles=4\n", "openfiles=2", "openfiles", |job| {
        one(job.files.open_files_max.unwrap())
    }),
    (
        "",
        "file_service_type=roundrobin:4",
        "file_service_type",
        |job| Given::Is(job.files.service.ios_per_file == 4),
    ),
    (
        "",
        "file_service_type=zipf:1.2",
        "file_service_type",
        |job| Given::Is(job.files.service.order == FileServiceOrder::Zipf { theta: 1.2 }),
    ),
    ("", "numjobs=4", "numjobs", |job| one(job.order.clone_count)),
    ("", "thread", "thread", |job| one(job.order.uses_threads)),
    ("", "thread=0", "thread", |job| one(job.order.uses_threads)),
    ("", "bs=4k,,8k", "bs", |job| {
        let bytes = &job.blocks.fixed_bytes;
        assert_eq!(bytes.write, 4096, "an empty field keeps the default");
        Given::Values(vec![bytes.read.into(), bytes.trim.into()])
    }),
    ("", "bs=8k,16k", "bs", |job| {
        assert_eq!(job.blocks.fixed_bytes.trim, 16384, "the last is repeated");
        some(&job.blocks.fixed_bytes, 2)
    }),
    ("", "bs=8k,", "bs", |job| {
        assert_eq!(
            job.blocks.fixed_bytes.write, 4096,
            "an empty tail keeps the default"
        );
        some(&job.blocks.fixed_bytes, 1)
    }),
    ("", "blocksize=512b", "bs", |job| {
        some(&job.blocks.fixed_bytes, 1)
    }),
    ("", "blockalign=4k,8k", "ba", |job| {
        some(&job.blocks.offset_align_bytes, 2)
    }),
    ("", "bsrange=8k-4k,1k:2k", "bsrange", |job| {
        let range = &job.blocks.range_bytes;
        Given::Is(range.read == Some((4096, 8192)) && range.trim == Some((1024, 2048)))
    }),
    ("", "bssplit=4k/50:8k/:16k", "bssplit", |job| {
        let split = job.blocks.weighted_sizes.read.as_ref().expect("a split");
        Given::Is(split.iter().map(|part| part.percent).eq([50, 25, 25]))
    }),
    ("bsrange=4k-8k\n", "bs_unaligned", "bs_unaligned", |job| {
        one(job.blocks.allows_unaligned)
    }),
    ("", "bs_is_seq_rand=1", "bs_is_seq_rand", |job| {
        one(job.blocks.is_by_sequence)
    }),
    ("", "rw=randrw:8", "rw", |job| {
        Given::Is(
            job.pattern.access == ReadWriteMode::RandomMixed && job.pattern.sequence_length == 8,
        )
    }),
    ("", "readwrite=write:-8k", "rw", |job| {
        Given::Is(job.pattern.access == ReadWriteMode::Write && job.pattern.skip_bytes == -8192)
    }),
    ("", "rw_sequencer=identical", "rw_sequencer", |job| {
        Given::Is(job.pattern.offset_sequencer == OffsetSequencer::Identical)
    }),
    ("", "rwmixread=70", "rwmixread", |job| {
        one(job.pattern.read_percent)
    }),
    ("", "rwmixwrite=70", "rwmixwrite", |job| {
        one(100 - job.pattern.read_percent)
    }),
    ("", "percentage_random=50,20", "percentage_random", |job| {
        some(&job.random.random_percent, 2)
    }),
    ("", "norandommap", "norandommap", |job| {
        one(job.random.has_no_map)
    }),
    ("", "softrandommap=1", "softrandommap", |job| {
        one(job.random.may_drop_map)
    }),
    ("", "random_generator=lfsr", "random_generator", |job| {
        Given::Is(job.random.generator == RandomGenerator::Lfsr)
    }),
    (
        "",
        "random_distribution=zipf:1.2",
        "random_distribution",
        |job| {
            let zipf = OffsetDistribution::Zipf {
                theta: 1.2,
                center: None,
            };
            Given::Is(job.random.distribution.write == zipf)
        },
    ),
    (
        "",
        "random_distribution=zipf:1.2:0.25",
        "random_distribution",
        |job| {
            let zipf = OffsetDistribution::Zipf {
                theta: 1.2,
                center: Some(0.25),
            };
            Given::Is(job.random.distribution.write == zipf)
        },
    ),
    (
        "",
        "random_distribution=pareto",
        "random_distribution",
        |job| {
            let pareto = OffsetDistribution::Pareto {
                h: 0.2,
                center: None,
            };
            Given::Is(job.random.distribution.read == pareto)
        },
    ),
    (
        "",
        "random_distribution=normal:20",
        "random_distribution",
        |job| {
            let normal = OffsetDistribution::Normal {
                deviation: 20.0,
                center: None,
            };
            Given::Is(job.random.distribution.read == normal)
        },
    ),
    (
        "",
        "random_distribution=zoned:30/10:70/50",
        "random_distribution",
        |job| {
            let OffsetDistribution::Zoned(zones) = &job.random.distribution.write else {
                return Given::Is(false);
            };
            Given::Is(zones[1].area_extent == 50 && zones[1].access_percent == 70)
        },
    ),
    // A zone without a range has its share of what is left.
    (
        "",
        "random_distribution=zoned:40/10:20/:20/:20",
        "random_distribution",
        |job| {
            let OffsetDistribution::Zoned(zones) = &job.random.distribution.write else {
                return Given::Is(false);
            };
            let extents: Vec<u64> = zones.iter().map(|zone| zone.area_extent).collect();
            Given::Is(extents == [10, 30, 30, 30])
        },
    ),
    (
        "",
        "random_distribution=zoned_abs:50/10m:50/1g",
        "random_distribution",
        |job| {
            let OffsetDistribution::ZonedBytes(zones) = &job.random.distribution.trim else {
                return Given::Is(false);
            };
            Given::Is(zones[0].area_extent == 10 << 20 && zones[1].area_extent == 1 << 30)
        },
    ),
    ("", "randseed=0x1f", "randseed", |job| one(job.random.seed)),
    ("", "randrepeat=0", "randrepeat", |job| {
        one(job.random.is_repeatable)
    }),
    ("", "allrandrepeat=1", "allrandrepeat", |job| {
        one(job.random.is_repeatable_for_all)
    }),
    ("zonesize=8k\n", "zonemode=strided", "zonemode", |job| {
        Given::Is(job.zones.mode == ZoneMode::Strided)
    }),
    ("zonemode=strided\n", "zonesize=8k", "zonesize", |job| {
        one(job.zones.size_bytes)
    }),
    (
        "zonemode=strided\nzonesize=8k\n",
        "zonerange=16k",
        "zonerange",
        |job| one(job.zones.range_bytes),
    ),
    (
        "zonemode=strided\nzonesize=8k\n",
        "zoneskip=4k",
        "zoneskip",
        |job| one(job.zones.skip_bytes),
    ),
    (ZONES, "zonecapacity=4k", "zonecapacity", |job| {
        one(job.write_pointers.capacity_bytes)
    }),
    (ZONES, "read_beyond_wp=1", "read_beyond_wp", |job| {
        one(job.write_pointers.may_read_beyond)
    }),
    (ZONES, "max_open_zones=4", "max_open_zones", |job| {
        one(job.write_pointers.open_zones_max)
    }),
    (
        "zonemode=zbd\nzonesize=8k\nmax_open_zones=4\n",
        "job_max_open_zones=2",
        "job_max_open_zones",
        |job| one(job.write_pointers.job_open_zones_max),
    ),
    // When and how.
    ("", "ioengine=io_uring", "ioengine", |job| {
        Given::Is(job.engine.engine == IoEngine::IoUring)
    }),
    ("ioengine=io_uring\n", "fixedbufs", "fixedbufs", |job| {
        one(job.engine.has_fixed_buffers)
    }),
    (
        "ioengine=io_uring\n",
        "registerfiles",
        "registerfiles",
        |job| one(job.engine.has_registered_files),
    ),
    ("ioengine=io_uring\n", "hipri=1", "hipri", |job| {
        one(job.engine.is_polled)
    }),
    (
        "ioengine=io_uring\n",
        "sqthread_poll",
        "sqthread_poll",
        |job| one(job.engine.has_kernel_polling),
    ),
    ("ioengine=libaio\n", "iodepth=32", "iodepth", |job| {
        one(job.engine.depth)
    }),
    ("iodepth=32\n", "iodepth_batch=8", "iodepth_batch", |job| {
        one(job.engine.submit_batch)
    }),
    (
        "iodepth=32\n",
        "iodepth_batch_complete=8",
        "iodepth_batch_complete_min",
        |job| one(job.engine.completions_min),
    ),
    (
        "iodepth=32\n",
        "iodepth_batch_complete_max=16",
        "iodepth_batch_complete_max",
        |job| one(job.engine.completions_max.unwrap()),
    ),
    ("iodepth=32\n", "iodepth_low=4", "iodepth_low", |job| {
        one(job.engine.depth_low.unwrap())
    }),
    ("", "io_submit_mode=offload", "io_submit_mode", |job| {
        Given::Is(job.engine.submit == SubmitMode::Offload)
    }),
    ("", "direct=1", "direct", |job| one(job.engine.is_direct)),
    ("", "buffered=0", "buffered", |job| {
        one(!job.engine.is_direct)
    }),
    ("", "invalidate=0", "invalidate", |job| {
        one(job.files.invalidates_cache)
    }),
    ("", "sync=dsync", "sync", |job| {
        Given::Is(job.sync.open_flag == SyncFlag::Dsync)
    }),
    ("", "sync=1", "sync", |job| {
        Given::Is(job.sync.open_flag == SyncFlag::Sync)
    }),
    ("", "fsync=8", "fsync", |job| one(job.sync.writes_per_fsync)),
    ("", "fdatasync=1k", "fdatasync", |job| {
        one(job.sync.writes_per_fdatasync)
    }),
    ("", "end_fsync=1", "end_fsync", |job| {
        one(job.sync.syncs_at_end)
    }),
    ("", "fsync_on_close=1", "fsync_on_close", |job| {
        one(job.sync.syncs_on_close)
    }),
    ("", "sync_file_range=write:8", "sync_file_range", |job| {
        Given::Is(job.sync.range_sync.starts_write && job.sync.range_sync.writes_per_sync == 8)
    }),
    ("", "overwrite=1", "overwrite", |job| {
        one(job.files.is_overwritten)
    }),
    ("", "fallocate=keep", "fallocate", |job| {
        Given::Is(job.files.allocation == FileAllocation::KeepSize)
    }),
    ("", "create_on_open=1", "create_on_open", |job| {
        one(job.files.creates_on_open)
    }),
    ("", "create_fsync=0", "create_fsync", |job| {
        one(job.files.syncs_on_create)
    }),
    ("", "allow_file_create=0", "allow_file_create", |job| {
        one(job.files.may_create)
    }),
    ("", "pre_read=1", "pre_read", |job| {
        one(job.files.is_pre_read)
    }),
    ("", "unlink=1", "unlink", |job| {
        one(job.files.unlinks_at_end)
    }),
    ("", "unlink_each_loop=1", "unlink_each_loop", |job| {
        one(job.files.unlinks_each_loop)
    }),
    ("", "runtime=5m", "runtime", |job| {
        one(job.durations.runtime_us)
    }),
    ("", "timeout=2h", "runtime", |job| {
        one(job.durations.runtime_us)
    }),
    ("", "runtime=250ms", "runtime", |job| {
        one(job.durations.runtime_us)
    }),
    ("runtime=1\n", "time_based", "time_based", |job| {
        one(job.durations.is_time_based)
    }),
    ("", "ramp_time=2", "ramp_time", |job| {
        one(job.durations.ramp_us)
    }),
    ("", "startdelay=1-3", "startdelay", |job| {
        let (low, high) = job.durations.start_delay_us;
        Given::Values(vec![low.into(), high.into()])
    }),
    ("", "stonewall", "stonewall", |job| {
        one(job.order.waits_for_earlier_jobs)
    }),
    ("", "wait_for_previous=1", "stonewall", |job| {
        one(job.order.waits_for_earlier_jobs)
    }),
    ("", "new_group", "new_group", |job| {
        one(job.order.starts_group)
    }),
    ("", "rate=1m,2m", "rate", |job| {
        Given::Values(vec![
            job.rate.bytes_per_s.read.unwrap().into(),
            job.rate.bytes_per_s.trim.unwrap().into(),
        ])
    }),
    ("", "rate=,1m", "rate", |job| {
        assert_eq!(job.rate.bytes_per_s.read, None);
        one(job.rate.bytes_per_s.write.unwrap())
    }),
    ("", "rate_iops=1k", "rate_iops", |job| {
        one(job.rate.iops.write.unwrap())
    }),
    ("", "rate_min=1m", "rate_min", |job| {
        one(job.rate.bytes_per_s_min.read.unwrap())
    }),
    ("", "rate_iops_min=10", "rate_iops_min", |job| {
        one(job.rate.iops_min.read.unwrap())
    }),
    ("", "rate_process=poisson", "rate_process", |job| {
        Given::Is(job.rate.arrival_process == ArrivalProcess::Poisson)
    }),
    ("", "rate_cycle=500", "rate_cycle", |job| {
        one(job.rate.cycle_ms)
    }),
    (
        "",
        "rate_ignore_thinktime=1",
        "rate_ignore_thinktime",
        |job| one(job.rate.ignores_think_time),
    ),
    ("", "serialize_overlap=1", "serialize_overlap", |job| {
        one(job.engine.serializes_overlap)
    }),
    ("", "thinktime=5", "thinktime", |job| {
        one(job.think.pause_us)
    }),
    ("", "thinktime=5ms", "thinktime", |job| {
        one(job.think.pause_us)
    }),
    (
        "thinktime=9\n",
        "thinktime_spin=5",
        "thinktime_spin",
        |job| one(job.think.busy_us),
    ),
    ("", "thinktime_blocks=4", "thinktime_blocks", |job| {
        one(job.think.ios_between)
    }),
    (
        "",
        "thinktime_blocks_type=issue",
        "thinktime_blocks_type",
        |job| Given::Is(job.think.counted_event == ThinkEvent::Issue),
    ),
    ("", "thinktime_iotime=2", "thinktime_iotime", |job| {
        one(job.think.interval_us)
    }),
    ("", "latency_target=5", "latency_target", |job| {
        one(job.latency.target_us)
    }),
    ("", "latency_window=2s", "latency_window", |job| {
        one(job.latency.window_us)
    }),
    ("", "latency_percentile=99.9", "latency_percentile", |job| {
        one((job.latency.percentile * 1e6) as u64)
    }),
    ("", "latency_run=1", "latency_run", |job| {
        one(job.latency.keep_running)
    }),
    ("", "max_latency=10ms", "max_latency", |job| {
        one(job.latency.limit_us)
    }),
    ("ss_dur=5\n", "ss=iops:0.3%", "steadystate", |job| {
        Given::Is(job.steady.is_enabled && job.steady.limit == SteadyLimit::Percent(0.3))
    }),
    (
        "ss_dur=5\n",
        "steadystate=bw_slope:10m",
        "steadystate",
        |job| {
            let limit = SteadyLimit::Absolute((10 << 20) as f64);
            Given::Is(job.steady.uses_slope && job.steady.limit == limit)
        },
    ),
    ("ss=iops:1%\n", "ss_dur=5", "steadystate_duration", |job| {
        one(job.steady.window_us)
    }),
    (
        "ss=iops:1%\n",
        "ss_ramp=1m",
        "steadystate_ramp_time",
        |job| one(job.steady.ramp_us),
    ),
    ("", "verify=crc32c", "verify", |job| {
        Given::Is(job.verify.kind == Verification::Checksum(Checksum::Crc32c))
    }),
    ("", "do_verify=0", "do_verify", |job| {
        one(job.verify.reads_back)
    }),
    ("", "verify_only", "verify_only", |job| {
        one(job.verify.only_verifies)
    }),
    ("", "verify_fatal=1", "verify_fatal", |job| {
        one(job.verify.ends_on_mismatch)
    }),
    ("", "verify_interval=4k", "verify_interval", |job| {
        one(job.verify.interval_bytes)
    }),
    ("", "verify_offset=64", "verify_offset", |job| {
        one(job.verify.offset_bytes)
    }),
    ("", "verify_backlog=16", "verify_backlog", |job| {
        one(job.verify.backlog)
    }),
    (
        "",
        "verify_backlog_batch=4",
        "verify_backlog_batch",
        |job| one(job.verify.backlog_batch.unwrap()),
    ),
    ("", "flow=5", "flow", |job| one(job.order.flow_weight)),
    ("", "flow_id=3", "flow_id", |job| one(job.order.flow_id)),
    ("", "flow_sleep=100", "flow_sleep", |job| {
        one(job.order.flow_sleep_us)
    }),
    ("", "exitall", "exitall", |job| one(job.order.ends_others)),
    ("", "exit_what=stonewall", "exit_what", |job| {
        Given::Is(job.order.ended_jobs == EndedJobs::Stonewall)
    }),
    ("", "exitall_on_error", "exitall_on_error", |job| {
        one(job.order.ends_others_on_error)
    }),
    ("", "continue_on_error=io", "continue_on_error", |job| {
        Given::Is(
            job.errors.ignores_read_errors
                && job.errors.ignores_write_errors
                && !job.errors.ignores_verify_errors,
        )
    }),
    ("", "allow_mounted_write=1", "allow_mounted_write", |job| {
        one(job.files.allows_mounted_write)
    }),
    ("", "zero_buffers", "zero_buffers", |job| {
        one(job.data.is_zeroed)
    }),
    ("", "refill_buffers", "refill_buffers", |job| {
        one(job.data.is_refilled)
    }),
    ("", "scramble_buffers=0", "scramble_buffers", |job| {
        one(job.data.is_scrambled)
    }),
    (
        "",
        "buffer_compress_percentage=40",
        "buffer_compress_percentage",
        |job| one(job.data.compressible_percent),
    ),
    (
        "",
        "buffer_compress_chunk=4k",
        "buffer_compress_chunk",
        |job| one(job.data.compress_chunk_bytes),
    ),
    ("", "group_reporting", "group_reporting", |job| {
        one(job.report.is_grouped)
    }),
    (
        "",
        "unified_rw_reporting=both",
        "unified_rw_reporting",
        |job| Given::Is(job.report.direction_reporting == DirectionReporting::SeparateAndMixed),
    ),
    ("", "percentile_list=50:99:99.9", "percentile_list", |job| {
        let list = job.report.percentiles.iter();
        Given::Values(
            list.map(|percent| (percent * 1e6).round() as i128)
                .collect(),
        )
    }),
    ("", "lat_percentiles=1", "lat_percentiles", |job| {
        one(job.report.reports_total)
    }),
    ("", "clat_percentiles=0", "clat_percentiles", |job| {
        one(job.report.reports_completion)
    }),
    ("", "slat_percentiles=1", "slat_percentiles", |job| {
        one(job.report.reports_submission)
    }),
    ("", "stats=0", "stats", |job| one(job.report.is_reported)),
    ("", "name=other", "name", |job| {
        Given::Is(job.name == "other" && job.section == "x")
    }),
    ("", "description=some words", "description", |job| {
        Given::Is(job.description.as_deref() == Some("some words"))
    }),
];

#[test]
fn every_option_has_fios_value() {
    let Some(fio) = Fio::installed() else { return };
    let texts = CASES
        .iter()
        .map(|(above, line, key, _)| (format!("{above}{line}"), *key));
    let texts: Vec<(String, &str)> = texts.collect();
    let all = fio.parse(&texts);
    for (((text, _), theirs), (.., given)) in texts.iter().zip(all).zip(CASES) {
        assert!(theirs.is_taken, "fio drops {text}");
        let file: JobFile = ours(&format!("[x]\n{text}\n")).unwrap_or_else(|e| panic!("{e}"));
        match given(&file.jobs[0]) {
            Given::Values(values) => assert_eq!(values, theirs.outs, "{text}"),
            Given::Is(is) => assert!(is, "{text}: {:?}", file.jobs[0]),
        }
    }
}

/// Percentages are numbers from the top in fio: 2^64 - 1 less the percentage.
#[test]
fn percentages_are_fios() {
    let Some(fio) = Fio::installed() else { return };
    let keys = ["size", "io_size", "offset", "offset_increment"];
    let texts = keys.map(|key| (format!("{key}=25%"), key));
    for ((text, _), theirs) in texts.iter().zip(fio.parse(&texts)) {
        assert_eq!(theirs.outs, [i128::from(u64::MAX) - 25], "{text}");
        let text = format!("[x]\n{text}\n");
        let job = &ours(&text).expect("a job").jobs[0];
        let target = &job.target;
        let all = [
            target.size,
            target.io_size,
            Some(target.offset),
            Some(target.offset_increment),
        ];
        assert!(
            all.contains(&Some(Amount::Percent(25))),
            "{text}: {target:?}"
        );
    }
}

/// fio's defaults, as `--cmdhelp` prints them.
#[test]
fn defaults_are_fios() {
    let Some(fio) = Fio::installed() else { return };
    let job = &ours("[x]\nfilename=f\n").expect("a job").jobs[0];
    let ours: [(&str, i128); 17] = [
        ("bs", job.blocks.fixed_bytes.read.into()),
        ("iodepth", job.engine.depth.into()),
        ("iodepth_batch", job.engine.submit_batch.into()),
        (
            "iodepth_batch_complete_min",
            job.engine.completions_min.into(),
        ),
        ("loops", job.target.loops.into()),
        ("numjobs", job.order.clone_count.into()),
        ("nrfiles", job.files.count.into()),
        ("rwmixread", job.pattern.read_percent.into()),
        ("thinktime_blocks", job.think.ios_between.into()),
        ("rate_cycle", job.rate.cycle_ms.into()),
        ("invalidate", job.files.invalidates_cache.into()),
        ("randrepeat", job.random.is_repeatable.into()),
        ("direct", job.engine.is_direct.into()),
        ("clat_percentiles", job.report.reports_completion.into()),
        ("lat_percentiles", job.report.reports_total.into()),
        ("scramble_buffers", job.data.is_scrambled.into()),
        (
            "buffer_compress_chunk",
            job.data.compress_chunk_bytes.into(),
        ),
    ];
    let flags = ours.map(|(key, _)| format!("--cmdhelp={key}"));
    for ((key, value), flag) in ours.iter().zip(&flags) {
        let (text, _) = fio.run("", &[flag]);
        assert!(
            text.contains(&format!("default: {value}\n")),
            "{key}={value}: {text}"
        );
    }
}

/// fio's manual has it, and 3.33 drops the job.
#[test]
fn zones_may_differ_by_direction() {
    let text = "[x]\nrandom_distribution=zoned:30/10:70/50,100/5\n";
    let file = ours(text).expect("a job");
    let each = &file.jobs[0].random.distribution;
    assert_ne!(each.read, each.write);
    assert_eq!(each.write, each.trim);
    assert!(file.warnings[0].title().contains("zones by direction"));
}
