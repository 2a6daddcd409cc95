//! Consistency checks between the options of a job and between the jobs of a file.

mod verify;

use crate::job::{
    Amount, DedupeMode, Direction, IoEngine, JobDefinition, OffsetDistribution, RandomGenerator,
    SteadyState, ZoneMode,
};
use diskperf_diagnostics::{Problem, SourceSpan};

/// Assigns jobs to reporting groups and checks each job.
pub(crate) fn check_jobs(
    jobs: &mut [JobDefinition],
    errors: &mut Vec<Problem>,
    warnings: &mut Vec<Problem>,
) {
    let (mut group, mut clones_before) = (0, 0);
    let exit_all = jobs.iter().any(|job| job.order.ends_others);
    // As written: what a job does not come to counts for fio too.
    let steady: Vec<SteadyState> = jobs.iter().map(|job| job.steady).collect();
    for at in 0..jobs.len() {
        let opens = jobs[at].order.waits_for_earlier_jobs || jobs[at].order.starts_group;
        group += u32::from(opens && at > 0);
        jobs[at].group = group;
        // As fio, which has one such switch for all of a file.
        jobs[at].order.ends_others = exit_all;
        match resolve_wait_for(&jobs[..=at]) {
            Ok(waits_for) => jobs[at].awaited_job = waits_for,
            Err(problem) => errors.push(problem),
        }
        apply_dependencies(&mut jobs[at], warnings);
        verify::apply_dependencies(&mut jobs[at], clones_before, warnings);
        clones_before += jobs[at].order.clone_count;
        report_contradictions(&jobs[at], errors);
        if jobs[at].engine.engine == IoEngine::Cpuio {
            check_cpu_job(&jobs[at], jobs, errors);
        }
        warn_of_surprises(&jobs[at], warnings);
    }
    errors.extend(find_mismatched_steady_state(jobs, &steady));
}

/// Returns an error if the steady-state options of a job differ from those of the first job of its
/// group.
fn find_mismatched_steady_state(jobs: &[JobDefinition], steady: &[SteadyState]) -> Option<Problem> {
    let first = |at: &usize| jobs.partition_point(|job| job.group < jobs[*at].group);
    let at = (0..jobs.len()).find(|at| steady[*at] != steady[first(at)])?;
    let (first, job) = (&jobs[first(&at)], &jobs[at]);
    let keys = [
        "steadystate",
        "steadystate_duration",
        "steadystate_ramp_time",
        "steadystate_check_interval",
    ];
    let says_one = |job: &&JobDefinition| keys.iter().any(|key| job.has_option(key));
    let says = [job, first].into_iter().find(says_one).unwrap_or(job);
    let key = keys.into_iter().find(|key| says.has_option(key));
    let title = format!(
        "[{}] and [{}] are in the same group but have different steady states",
        first.section, job.section
    );
    let problem = Problem::error(title)
        .at(
            says.option_place(key.unwrap_or("steadystate")),
            "fio runs no job of the file",
        )
        .help("use the same steady state, or set `new_group` in the second section");
    Some(problem)
}

/// Rejects jobs that write or trim when `--readonly` is given.
pub(crate) fn reject_writes(jobs: &[JobDefinition], place: &SourceSpan, errors: &mut Vec<Problem>) {
    let mut jobs = jobs.iter();
    let changes = |job: &&JobDefinition| job.pattern.access.directions() != [Direction::Read];
    if let Some(job) = jobs.find(changes) {
        let label = format!("[{}] writes", job.section);
        let problem = Problem::error("--readonly allows no writes").at(place, label);
        errors.push(problem.help("remove --readonly, or select other jobs with --section"));
    }
}

/// Returns the index of the job that the last job waits for, if it waits for one.
fn resolve_wait_for(jobs: &[JobDefinition]) -> Result<Option<usize>, Problem> {
    let (job, above) = jobs.split_last().expect("one at least");
    let Some(name) = &job.order.awaited_job else {
        return Ok(None);
    };
    let found = above.iter().rposition(|other| other.name == *name);
    found.map(Some).ok_or_else(|| {
        Problem::error(format!("no earlier job is called `{name}`"))
            .at(job.option_place("wait_for"), "fio runs no job of the file")
            .help("name a job above this one")
    })
}

/// Adjusts inconsistent values as fio does, with or without a warning.
fn apply_dependencies(job: &mut JobDefinition, warnings: &mut Vec<Problem>) {
    let engine = &mut job.engine;
    engine.depth_low = engine.depth_low.filter(|&low| low <= engine.depth);
    engine.submit_batch = match engine.submit_batch {
        0 => engine.depth,
        batch => batch.min(engine.depth),
    };
    engine.completions_min = engine.completions_min.min(engine.depth);
    let least = engine.completions_min;
    engine.completions_max = engine.completions_max.map(|most| most.max(least));
    job.files.invalidates_cache &= !job.files.is_pre_read;
    job.files.open_files_max = job
        .files
        .open_files_max
        .filter(|&open| open < job.files.count);
    warnings.extend(reject_zone_units(job));
    resolve_zones(job);
    if job.zones.range_bytes == 0 {
        job.zones.range_bytes = job.zones.size_bytes;
    }
    if job.durations.is_time_based && job.durations.runtime_us == 0 {
        job.durations.is_time_based = false;
        let warning = Problem::warning("time_based has no effect without a runtime")
            .at(
                job.option_place("time_based"),
                "the job ends after one pass, as fio's does",
            )
            .help("add `runtime=`");
        warnings.push(warning);
    }
    if job.files.is_appended {
        // A pass ends at the end of the file, and fio begins no other.
        job.target.loops = 1;
        job.durations.is_time_based = false;
    }
    if job.steady.is_enabled && job.steady.window_us == 0 {
        job.steady.is_enabled = false;
        let warning = Problem::warning("steadystate has no effect without a duration")
            .at(job.option_place("steadystate"), "fio never looks")
            .help("add `ss_dur=`");
        warnings.push(warning);
    }
}

fn reject_zone_units(job: &JobDefinition) -> Vec<Problem> {
    let zoned_amounts = job.target.zoned_amounts;
    let counts = [
        ("size", zoned_amounts.size),
        ("io_size", zoned_amounts.io_size),
        ("offset", zoned_amounts.offset),
        ("offset_increment", zoned_amounts.offset_increment),
        ("zoneskip", zoned_amounts.skip),
    ];
    let is_lost = |&(_, count): &(&str, u64)| count > 0 && job.zones.size_bytes == 0;
    let warning = |(key, _)| {
        Problem::warning("a size in zones needs a zonesize")
            .at(job.option_place(key), "fio takes it for no value")
            .help("add `zonesize=`, or write the size in bytes")
    };
    counts.into_iter().filter(is_lost).map(warning).collect()
}

fn resolve_zones(job: &mut JobDefinition) {
    let zone_bytes = job.zones.size_bytes;
    let bytes =
        |count: u64| (zone_bytes > 0 && count > 0).then(|| count.saturating_mul(zone_bytes));
    let zoned_amounts = job.target.zoned_amounts;
    let target = &mut job.target;
    let amount = |count| bytes(count).map(Amount::Bytes);
    target.size = amount(zoned_amounts.size).or(target.size);
    target.io_size = amount(zoned_amounts.io_size).or(target.io_size);
    target.offset = amount(zoned_amounts.offset).unwrap_or(target.offset);
    let increment = amount(zoned_amounts.offset_increment);
    target.offset_increment = increment.unwrap_or(target.offset_increment);
    job.zones.skip_bytes = bytes(zoned_amounts.skip).unwrap_or(job.zones.skip_bytes);
}

fn report_contradictions(job: &JobDefinition, errors: &mut Vec<Problem>) {
    let mut refuse = |key: &str, title: &str, label: &str, help: &str| {
        let problem = Problem::error(title).at(job.option_place(key), label);
        errors.push(problem.help(help));
    };
    let rate = &job.rate;
    for (key, title, bytes_per_s, iops) in [
        (
            "rate_iops",
            "rate and rate_iops together",
            &rate.bytes_per_s,
            &rate.iops,
        ),
        (
            "rate_iops_min",
            "rate_min and rate_iops_min together",
            &rate.bytes_per_s_min,
            &rate.iops_min,
        ),
    ] {
        let both = |&direction: &Direction| {
            bytes_per_s.get(direction).is_some() && iops.get(direction).is_some()
        };
        if job.pattern.access.directions().iter().any(both) {
            let label = "fio drops the job";
            refuse(key, title, label, "keep one of them");
        }
    }
    verify::report_contradictions(job, &mut refuse);
    let data = &job.data;
    let is_of_working_set = data.dedupe_mode == DedupeMode::WorkingSet;
    if is_of_working_set && data.duplicate_percent + data.working_set_percent > 100 {
        let label = "the data that duplicates repeat is written once without duplicates";
        refuse(
            "dedupe_percentage",
            "dedupe_percentage and dedupe_working_set_percentage are more than 100",
            label,
            "lower one of them",
        );
    }
    if is_of_working_set && data.duplicate_percent > 0 && data.is_working_set_shared {
        let label = "each job duplicates only its own data";
        let title = "dedupe_global is not supported";
        refuse("dedupe_global", title, label, "remove it");
    }
    if job.random.generator == RandomGenerator::Lfsr && job.pattern.access.is_random() {
        check_lfsr(job, &mut refuse);
    }
    if job.zones.mode == ZoneMode::Strided && job.zones.size_bytes == 0 {
        let label = "the zones have no size";
        refuse(
            "zonemode",
            "zonemode=strided without a zonesize",
            label,
            "add `zonesize=`",
        );
    }
    if job.zones.mode == ZoneMode::WritePointers {
        crate::plan::zones::report_contradictions(job, &mut refuse);
    }
    if job.zones.mode == ZoneMode::None && job.zones.size_bytes > 0 {
        let label = "fio drops the job";
        refuse(
            "zonesize",
            "zonesize without a zonemode",
            label,
            "add `zonemode=strided`",
        );
    }
}

/// Rejects a cpuio job that has no load or never ends.
fn check_cpu_job(job: &JobDefinition, jobs: &[JobDefinition], errors: &mut Vec<Problem>) {
    if job.engine.cpu_load.load_percent == 0 {
        let problem = Problem::error("cpuio without a cpuload")
            .at(job.option_place("ioengine"), "the job has no CPU load");
        errors.push(problem.help("add `cpuload=`, from 1 to 100"));
    }
    let does_io = |other: &JobDefinition| other.engine.engine != IoEngine::Cpuio;
    let ends_with_others = job.order.ends_others || job.engine.cpu_load.exits_with_io;
    let has_end = job.durations.runtime_us > 0 || (ends_with_others && jobs.iter().any(does_io));
    if !has_end {
        let problem = Problem::error("cpuio without a runtime")
            .at(job.option_place("ioengine"), "the job has no end");
        errors.push(problem.help("add `runtime=`"));
    }
}

fn check_lfsr(job: &JobDefinition, refuse: &mut impl FnMut(&str, &str, &str, &str)) {
    let direction = job.pattern.access.first_direction();
    let sizes = |&direction: &Direction| job.blocks.choice(direction).single_bytes();
    let only = sizes(&direction);
    let same = job
        .pattern
        .access
        .directions()
        .iter()
        .all(|other| sizes(other) == only);
    let key = "random_generator";
    if only.is_none() || !same {
        let label = "the LFSR generator needs blocks of equal size";
        refuse(
            key,
            "lfsr needs one block size",
            label,
            "use `bs=` with one size",
        );
    }
    if *job.random.distribution.get(direction) != OffsetDistribution::Uniform {
        let label = "the LFSR generator uses each block once";
        refuse(
            key,
            "lfsr with a random_distribution",
            label,
            "remove one of them",
        );
    }
}

fn warn_of_surprises(job: &JobDefinition, warnings: &mut Vec<Problem>) {
    let mut warn = |key: &str, title: String, label: &str| {
        warnings.push(Problem::warning(title).at(job.option_place(key), label));
    };
    let engine = &job.engine;
    if engine.depth > 1 && engine.effective_depth() == 1 {
        let title = format!(
            "{} always has queue depth 1; iodepth has no effect",
            engine.engine.name()
        );
        warn(
            "iodepth",
            title,
            "use libaio or io_uring for a higher depth",
        );
    }
    if engine.engine == IoEngine::Libaio && !engine.is_direct && engine.depth > 1 {
        let title = "libaio waits for each I/O without direct=1".to_owned();
        warn(
            "ioengine",
            title,
            "though fio reports the depth that it was asked for",
        );
    }
    let access = job.pattern.access;
    let mixed = access.directions() == [Direction::Read, Direction::Write];
    let limited = |direction| {
        job.rate.iops.get(direction).is_some() || job.rate.bytes_per_s.get(direction).is_some()
    };
    if mixed && job.has_option("rwmixread") && limited(Direction::Read) && limited(Direction::Write)
    {
        let title = "rwmixread has no effect together with rate".to_owned();
        warn(
            "rwmixread",
            title,
            "reads and writes each have their own rate",
        );
    }
    let pointers = &job.write_pointers;
    let has_zones = job.zones.mode == ZoneMode::WritePointers;
    if has_zones && pointers.job_open_zones_max > 0 && pointers.open_zones_max == 0 {
        let title = "job_max_open_zones without max_open_zones".to_owned();
        let label = "fio takes this on a device with a limit of its own alone";
        warn("job_max_open_zones", title, label);
    }
    let mut directions = access.directions().iter();
    let is_smallest = |&direction: &Direction| {
        job.blocks.choice(direction).bounds_bytes().0 == job.map_unit_bytes()
    };
    if access.is_random() && job.has_random_map() && !directions.all(is_smallest) {
        let title = "the random map ends the job before all blocks are done".to_owned();
        let label = "the map counts blocks of the smallest size; use `norandommap` for all blocks";
        warn("bs", title, label);
    }
    let many = access
        .directions()
        .iter()
        .any(|&direction| job.blocks.choice(direction).single_bytes().is_none());
    if many && access.is_random() && job.has_random_map() {
        let title = "the random map changes the shares of block sizes".to_owned();
        let key = if job.has_option("bssplit") {
            "bssplit"
        } else {
            "bsrange"
        };
        warn(
            key,
            title,
            "the map cuts large blocks at used parts; use `norandommap` to keep them",
        );
    }
}
