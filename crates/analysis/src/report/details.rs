//! Detailed report on one run: origin, latencies, caches and repetitions.

use super::document::{Block, Column, Grid, Group};
use super::figures;
use super::formatting::shell_word;
use super::load_table;
use super::run_table::{heading, remarks, tables};
use super::series;
use super::view::{Row, View};
use crate::cache::device_share;
use crate::quantity::Quantity;
use crate::summary::Percentiles;
use diskperf_timeline::units::{format_nanoseconds, format_size, format_utc};
use diskperf_timeline::{
    ControllerCache, Device, DeviceHealth, Environment, Filesystem, FlashTraffic, MediaCache,
    Nanoseconds, Repetition, Run,
};

pub(super) fn blocks(views: &[View]) -> Vec<Block> {
    let mut blocks = Vec::new();
    for view in views {
        blocks.extend(heading(view));
        blocks.push(Block::List(origin(view.run)));
        blocks.push(Block::Section("Environment".to_owned()));
        blocks.push(Block::List(environment(&view.run.environment)));
    }
    blocks.extend(tables(views));
    blocks.extend(remarks(views));
    for view in views {
        blocks.extend(latencies(view));
        blocks.extend(loads(view));
        blocks.extend(controller_caches(view));
        blocks.extend(media_caches(view));
        blocks.extend(flash(view));
        blocks.extend(repetitions(view));
    }
    blocks
}

/// Describes how the run was made: start time, command line, version, seed and call overhead.
pub(super) fn origin(run: &Run) -> Vec<String> {
    let mut lines = vec![
        format!("started {} UTC", format_utc(run.started_unix_ms)),
        format!("diskperf {}, seed {}", run.program_version, run.seed),
    ];
    if !run.command_line.is_empty() {
        let words: Vec<String> = run
            .command_line
            .iter()
            .map(|word| shell_word(word))
            .collect();
        lines.insert(1, format!("command line: {}", words.join(" ")));
    }
    if let Some(overhead) = run.overhead {
        lines.push(format!(
            "overhead: a read of /dev/null takes {:.0} ns, of which its timing {:.0} ns",
            overhead.null_call_ns, overhead.timing_ns
        ));
    }
    lines
}

pub(super) fn environment(machine: &Environment) -> Vec<String> {
    let unknown = |text: &str| {
        if text.is_empty() {
            "unknown".to_owned()
        } else {
            text.to_owned()
        }
    };
    let mut lines = vec![
        format!("kernel: {}", unknown(&machine.kernel_version)),
        format!(
            "CPU: {} x {}, {} of memory, load average {:.2} at the start",
            machine.cpu_count,
            unknown(&machine.cpu_model),
            format_size(machine.memory_bytes),
            machine.load_average
        ),
        format!("calls timed by: {}", unknown(&machine.call_clock)),
    ];
    for place in &machine.places {
        lines.push(format!("place: {}", place.path));
        lines.extend(place.filesystem.as_ref().map(filesystem));
        lines.extend(place.devices.iter().map(device));
    }
    lines
}

pub(super) fn filesystem(filesystem: &Filesystem) -> String {
    // A modelled one is mounted without any.
    let options = match filesystem.mount_options.as_str() {
        "" => String::new(),
        options => format!(" ({options})"),
    };
    format!(
        "file system: {} of {}-byte blocks on {}, mounted at {}{options}, {} of {} free",
        filesystem.filesystem_type,
        filesystem.block_bytes,
        filesystem.mount_source,
        filesystem.mount_point,
        format_size(filesystem.available_bytes),
        format_size(filesystem.total_bytes)
    )
}

pub(super) fn device(device: &Device) -> String {
    let mut facts = vec![format_size(device.size_bytes)];
    facts.extend(device.model.as_ref().map(|model| model.trim().to_owned()));
    facts.extend(
        device
            .is_rotational
            .map(|rotates| if rotates { "rotating" } else { "not rotating" }.to_owned()),
    );
    facts.extend(
        device
            .io_scheduler
            .as_ref()
            .map(|name| format!("scheduler {name}")),
    );
    facts.extend(
        device
            .read_ahead_kib
            .map(|kib| format!("read-ahead {kib} KiB")),
    );
    facts.extend(
        device
            .queue_request_count_max
            .map(|requests| format!("queue of {requests}")),
    );
    facts.extend(
        device
            .request_kib_max
            .map(|kib| format!("requests up to {kib} KiB")),
    );
    facts.extend(
        device
            .write_cache_mode
            .as_ref()
            .map(|cache| format!("cache: {cache}")),
    );
    if let (Some(logical), Some(physical)) =
        (device.logical_block_bytes, device.physical_block_bytes)
    {
        facts.push(format!("blocks of {logical} bytes, {physical} physically"));
    }
    facts.extend(describe_health(&device.health));
    format!("device: {}: {}", device.name, facts.join(", "))
}

fn describe_health(health: &DeviceHealth) -> Vec<String> {
    let errors = |count: u64| match count {
        1 => "1 media error".to_owned(),
        count => format!("{count} media errors"),
    };
    let facts = [
        health
            .firmware
            .as_ref()
            .map(|version| format!("firmware {}", version.trim())),
        health
            .temperature_c
            .map(|celsius| format!("{} °C at the start", figures::decimals(celsius))),
        health
            .wear_percent
            .map(|percent| format!("{} % of its endurance used", figures::decimals(percent))),
        health.media_error_count.map(errors),
    ];
    facts.into_iter().flatten().collect()
}

/// Tabulates call latencies, one row per program and kind of call.
pub(super) fn latencies(view: &View) -> Vec<Block> {
    let mut titles = Vec::new();
    let mut found: Vec<Percentiles> = Vec::new();
    for row in &view.rows {
        for (kind, latency) in [
            ("read", row.summary.read_latency),
            ("write", row.summary.write_latency),
        ] {
            if let Some(latency) = latency {
                titles.push(format!("{}, {kind}", row.title));
                found.push(latency);
            }
        }
    }
    if found.is_empty() {
        return Vec::new();
    }
    let column = |heading: &str, of: fn(&Percentiles) -> Option<u64>| {
        let told = |ns: u64| format_nanoseconds(Nanoseconds(ns));
        let cell = |one: &Percentiles| of(one).map_or_else(|| "-".to_owned(), told);
        Group::new(
            "",
            vec![Column::figures(heading, found.iter().map(cell).collect())],
        )
    };
    let calls = found.iter().map(|one| one.count.to_string()).collect();
    let grid = Grid {
        key: Column::words("program, call", titles),
        groups: vec![
            Group::new("", vec![Column::figures("calls", calls)]),
            column("50 %", |one| one.p50_ns),
            column("90 %", |one| one.p90_ns),
            column("99 %", |one| one.p99_ns),
            column("99.9 %", |one| one.p99_9_ns),
            column("99.99 %", |one| one.p99_99_ns),
            column("longest", |one| Some(one.max_ns)),
        ],
    };
    vec![
        Block::Section("Latency per call, over all kept repetitions".to_owned()),
        Block::Grid(grid),
    ]
}

/// Tabulates the response times of programs with several requests in flight, with their series over
/// time.
pub(super) fn loads(view: &View) -> Vec<Block> {
    let mut blocks = load_table::latencies(view);
    let how = |row: &Row| {
        let load = row.summary.load.as_ref()?;
        Some(format!("{}: {}", row.title, load_table::words(load)))
    };
    let how: Vec<String> = view.rows.iter().filter_map(how).collect();
    if !how.is_empty() {
        blocks.push(Block::List(how));
    }
    let strips = series::strips(view);
    if !strips.is_empty() {
        let heading = "IOPS over time, scaled from min to max; `diskperf show --series` has them";
        blocks.push(Block::Section(heading.to_owned()));
        blocks.push(Block::List(strips));
    }
    blocks
}

/// Tabulates the caches of controllers, one row per program, controller and class of accesses;
/// empty where no controller reports.
pub(super) fn controller_caches(view: &View) -> Vec<Block> {
    let mut titles = Vec::new();
    let mut found = Vec::new();
    for row in &view.rows {
        for one in row.result.controller_caches() {
            titles.push(format!(
                "{}, controller {}, {}",
                row.title, one.controller_index, one.request_class
            ));
            found.push(one);
        }
    }
    if found.is_empty() {
        return Vec::new();
    }
    let column = |heading: &str, of: &dyn Fn(&ControllerCache) -> String| {
        Column::figures(heading, found.iter().map(of).collect())
    };
    let columns = vec![
        column("reads", &|one| one.read_count.to_string()),
        column("hits", &|one| format!("{:.2}%", one.hit_percent())),
        column("sectors", &|one| one.read_sectors.to_string()),
        column("held", &|one| {
            format!("{:.2}%", one.cached_sector_percent())
        }),
    ];
    let heading = "Controllers' caches, over all kept repetitions: reads without an access of the arm, and sectors in the cache when the command was decoded";
    vec![
        Block::Section(heading.to_owned()),
        Block::Grid(Grid {
            key: Column::words("program, controller, class of accesses", titles),
            groups: vec![Group::new("", columns)],
        }),
    ]
}

/// Tabulates the media caches of shingled disks, one row per program and drive; empty where there
/// is none.
pub(super) fn media_caches(view: &View) -> Vec<Block> {
    let mut titles = Vec::new();
    let mut found = Vec::new();
    for row in &view.rows {
        for one in row.result.media_caches() {
            titles.push(format!("{}, drive {}", row.title, one.drive_index));
            found.push(one);
        }
    }
    if found.is_empty() {
        return Vec::new();
    }
    let column = |heading: &str, of: &dyn Fn(&MediaCache) -> String| {
        Column::figures(heading, found.iter().map(of).collect())
    };
    let of_whole = |part: u64, whole: u64| format!("{part} of {whole}");
    let columns = vec![
        column("to the cache", &|one| format_size(one.cached_bytes)),
        column("to bands", &|one| format_size(one.streamed_bytes)),
        column("bands cleaned", &|one| one.cleaned_band_count.to_string()),
        column("cleaning s", &|one| {
            format!("{:.2}", one.cleaning_time.seconds())
        }),
        column("written per byte", &|one| {
            let times = one.write_amplification();
            times.map_or(String::new(), |times| format!("{times:.2}"))
        }),
        column("cache filled", &|one| {
            let share = one.used_bytes as f64 / one.capacity_bytes.max(1) as f64;
            format!("{:.2}%", 100.0 * share)
        }),
        column("extents", &|one| {
            of_whole(one.extent_count, one.extent_count_max)
        }),
    ];
    let heading = "Media caches of shingled disks, over all kept repetitions, and how full they were at the end";
    vec![
        Block::Section(heading.to_owned()),
        Block::Grid(Grid {
            key: Column::words("program, drive", titles),
            groups: vec![Group::new("", columns)],
        }),
    ]
}

/// Tabulates the units that flash drives programmed per unit that the host wrote, by cause, one row
/// per program and drive; empty where no drive reports.
pub(super) fn flash(view: &View) -> Vec<Block> {
    let mut titles = Vec::new();
    let mut found = Vec::new();
    for row in &view.rows {
        for one in row.result.flash() {
            titles.push(match row.result.drive_count {
                1 => row.title.clone(),
                _ => format!("{}, drive {}", row.title, u64::from(one.drive_index) + 1),
            });
            found.push(one);
        }
    }
    if found.is_empty() {
        return Vec::new();
    }
    let column = |heading: &str, of: &dyn Fn(&FlashTraffic) -> String| {
        Column::figures(heading, found.iter().map(of).collect())
    };
    let share = |of: fn(&FlashTraffic) -> u64| {
        move |one: &FlashTraffic| match one.host_units {
            0 => of(one).to_string(),
            host => format!("{:.3}", of(one) as f64 / host as f64),
        }
    };
    let columns = vec![
        column("host units", &|one| one.host_units.to_string()),
        column("programmed", &share(FlashTraffic::programmed_units)),
        column("collection", &share(|one| one.collection_units)),
        column("folding", &share(|one| one.folding_units)),
        column("levelling", &share(|one| one.wear_levelling_units)),
        column("map", &share(|one| one.map_units)),
        column("padding", &share(|one| one.padding_units)),
        column("erases", &|one| one.erase_count.to_string()),
        column("suspensions", &|one| one.suspension_count.to_string()),
    ];
    let heading = "Flash, over all kept repetitions: units of 4 KiB that the host wrote, and for each of them what was programmed, of that by cause; superblocks erased; programs and erases that stopped for reads";
    vec![
        Block::Section(heading.to_owned()),
        Block::Grid(Grid {
            key: Column::words("program", titles),
            groups: vec![Group::new("", columns)],
        }),
    ]
}

/// Tabulates repetitions, one row for each, with the discarded ones in parentheses.
pub(super) fn repetitions(view: &View) -> Vec<Block> {
    let all: Vec<(&Row, usize, &Repetition)> = view
        .rows
        .iter()
        .flat_map(|row| {
            let numbered = row.result.repetitions.iter().enumerate();
            numbered.map(move |(index, repetition)| (row, index + 1, repetition))
        })
        .collect();
    if all.is_empty() {
        return Vec::new();
    }
    let text = |of: &dyn Fn(&Repetition) -> String| -> Vec<String> {
        all.iter()
            .map(|(_, _, repetition)| of(repetition))
            .collect()
    };
    let titles = all
        .iter()
        .map(|(row, number, repetition)| {
            let number = if repetition.is_discarded {
                format!("({number})")
            } else {
                number.to_string()
            };
            format!("{} {number}", row.title)
        })
        .collect();
    let mut grid = Grid {
        key: Column::words("program", titles),
        groups: vec![
            Group::new("", speed_columns(&all, &text)),
            Group::new("", processor_columns(&text)),
            Group::new("", storage_columns(&text)),
        ],
    };
    if all.iter().any(|(_, _, one)| one.is_disturbed()) {
        let disturbed = |one: &Repetition| {
            let by = one.interference.iter().map(ToString::to_string);
            by.collect::<Vec<_>>().join("; ")
        };
        let column = Column::words("disturbed", text(&disturbed));
        grid.groups.push(Group::new("", vec![column]));
    }
    vec![
        Block::Section("Repetitions, the discarded ones in parentheses".to_owned()),
        Block::Grid(grid),
        Block::List(strips(view)),
    ]
}

/// Lists the kept repetitions of each program with several of them, as bars.
fn strips(view: &View) -> Vec<String> {
    let several = view.rows.iter().filter(|row| row.summary.kept > 1);
    let line = |row: &Row| format!("{} {}", figures::strip(row.result), row.title);
    several.map(line).collect()
}

/// Function that formats one figure for every repetition.
type RepetitionText<'t> = &'t dyn Fn(&dyn Fn(&Repetition) -> String) -> Vec<String>;

fn speed_columns(all: &[(&Row, usize, &Repetition)], text: RepetitionText) -> Vec<Column> {
    let pairs = all
        .iter()
        .map(|(_, _, one)| {
            (
                figures::speed(one.kb_per_s()),
                figures::cpu(one.cpu_percent()),
            )
        })
        .collect();
    let durable = |one: &Repetition| {
        one.durable_kb_per_s()
            .map_or_else(String::new, figures::speed)
    };
    let iops = |one: &Repetition| one.iops().map_or_else(String::new, figures::iops);
    let p99 = |one: &Repetition| {
        let load = one.load_measures().next().is_some();
        let p99 = Quantity::ResponseP99Us.figure(one).filter(|_| load);
        p99.map_or_else(String::new, figures::time_us)
    };
    vec![
        Column::pairs("KB/s (CPU)", pairs),
        Column::figures("durable\nKB/s", text(&durable)),
        Column::figures("IOPS", text(&iops)),
        Column::figures("p99", text(&p99)),
        Column::figures(
            "elapsed",
            text(&|one| figures::seconds(one.elapsed_time().seconds())),
        ),
    ]
}

fn processor_columns(text: RepetitionText) -> Vec<Column> {
    let cpu = |ns: u64| figures::seconds(Nanoseconds(ns).seconds());
    vec![
        Column::figures(
            "CPU",
            text(&|one| cpu(one.sum_over_workers(|worker| worker.cpu_time.0))),
        ),
        Column::figures(
            "user\n(ticks)",
            text(&|one| cpu(one.sum_over_workers(|worker| worker.user_cpu_time.0))),
        ),
        Column::figures(
            "system\n(ticks)",
            text(&|one| cpu(one.sum_over_workers(|worker| worker.system_cpu_time.0))),
        ),
        Column::figures(
            "calls",
            text(&|one| one.sum_over_workers(|worker| worker.call_count).to_string()),
        ),
        Column::figures(
            "waits",
            text(&|one| {
                one.sum_over_workers(|worker| worker.voluntary_switch_count)
                    .to_string()
            }),
        ),
        Column::figures(
            "preempted",
            text(&|one| {
                one.sum_over_workers(|worker| worker.involuntary_switch_count)
                    .to_string()
            }),
        ),
        Column::figures(
            "faults",
            text(&|one| {
                one.sum_over_workers(|worker| worker.minor_fault_count + worker.major_fault_count)
                    .to_string()
            }),
        ),
    ]
}

fn storage_columns(text: RepetitionText) -> Vec<Column> {
    let resident = |bytes: fn(&diskperf_timeline::Residency) -> u64| {
        move |one: &Repetition| match &one.residency {
            Some(found) if found.file_bytes > 0 => {
                figures::share(bytes(found) as f64 / found.file_bytes as f64)
            }
            _ => String::new(),
        }
    };
    let traffic = |one: &Repetition| {
        let device = |moved: &diskperf_timeline::DeviceTraffic| {
            format!(
                "{} read {}, wrote {}, busy {} ms",
                moved.device_name,
                format_size(moved.read_bytes),
                format_size(moved.written_bytes),
                moved.busy_ms
            )
        };
        one.devices
            .iter()
            .map(device)
            .collect::<Vec<_>>()
            .join("; ")
    };
    vec![
        Column::figures(
            "from\ndevice",
            text(&|one| device_share(one).map_or_else(String::new, figures::share)),
        ),
        Column::figures(
            "resident\nbefore",
            text(&resident(|found| found.resident_before_bytes)),
        ),
        Column::figures(
            "resident\nafter",
            text(&resident(|found| found.resident_after_bytes)),
        ),
        Column::words("whole device meanwhile", text(&traffic)),
    ]
}
