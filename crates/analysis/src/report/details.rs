//! Detailed report on one run: origin, latencies, caches and repetitions.

use super::document::{Column, ColumnGroup, DocumentBlock, Grid};
use super::figures;
use super::formatting::quote_shell_word;
use super::load_table;
use super::run_table::{build_heading, build_remarks, build_tables};
use super::series;
use super::view::{ResultRow, RunView};
use crate::cache::device_share;
use crate::quantity::Quantity;
use crate::summary::LatencyPercentiles;
use diskperf_timeline::units::{format_nanoseconds, format_size, format_utc};
use diskperf_timeline::{
    ControllerCache, Device, DeviceHealth, Environment, Filesystem, FlashTraffic, MediaCache,
    Nanoseconds, Repetition, Run,
};

pub(super) fn build_blocks(views: &[RunView]) -> Vec<DocumentBlock> {
    let mut blocks = Vec::new();
    for view in views {
        blocks.extend(build_heading(view));
        blocks.push(DocumentBlock::List(describe_origin(view.run)));
        blocks.push(DocumentBlock::Section("Environment".to_owned()));
        blocks.push(DocumentBlock::List(describe_environment(
            &view.run.environment,
        )));
    }
    blocks.extend(build_tables(views));
    blocks.extend(build_remarks(views));
    for view in views {
        blocks.extend(build_latency_blocks(view));
        blocks.extend(build_load_blocks(view));
        blocks.extend(build_controller_cache_blocks(view));
        blocks.extend(build_media_cache_blocks(view));
        blocks.extend(build_flash_blocks(view));
        blocks.extend(build_repetition_blocks(view));
    }
    blocks
}

/// Describes how the run was made: start time, command line, version, seed and call overhead.
pub(super) fn describe_origin(run: &Run) -> Vec<String> {
    let mut lines = vec![
        format!("started {} UTC", format_utc(run.started_unix_ms)),
        format!("diskperf {}, seed {}", run.program_version, run.seed),
    ];
    if !run.command_line.is_empty() {
        let words: Vec<String> = run
            .command_line
            .iter()
            .map(|word| quote_shell_word(word))
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

pub(super) fn describe_environment(machine: &Environment) -> Vec<String> {
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
        lines.extend(place.filesystem.as_ref().map(describe_filesystem));
        lines.extend(place.devices.iter().map(describe_device));
    }
    lines
}

pub(super) fn describe_filesystem(filesystem: &Filesystem) -> String {
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

pub(super) fn describe_device(device: &Device) -> String {
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
            .map(|celsius| format!("{} °C at the start", figures::format_by_magnitude(celsius))),
        health.wear_percent.map(|percent| {
            format!(
                "{} % of its endurance used",
                figures::format_by_magnitude(percent)
            )
        }),
        health.media_error_count.map(errors),
    ];
    facts.into_iter().flatten().collect()
}

/// Tabulates call latencies, one row per program and kind of call.
pub(super) fn build_latency_blocks(view: &RunView) -> Vec<DocumentBlock> {
    let mut titles = Vec::new();
    let mut found: Vec<LatencyPercentiles> = Vec::new();
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
    let column = |heading: &str, of: fn(&LatencyPercentiles) -> Option<u64>| {
        let told = |ns: u64| format_nanoseconds(Nanoseconds(ns));
        let cell = |one: &LatencyPercentiles| of(one).map_or_else(|| "-".to_owned(), told);
        ColumnGroup::new(
            "",
            vec![Column::right_aligned(
                heading,
                found.iter().map(cell).collect(),
            )],
        )
    };
    let calls = found.iter().map(|one| one.call_count.to_string()).collect();
    let grid = Grid {
        key_column: Column::left_aligned("program, call", titles),
        groups: vec![
            ColumnGroup::new("", vec![Column::right_aligned("calls", calls)]),
            column("50 %", |one| one.p50_ns),
            column("90 %", |one| one.p90_ns),
            column("99 %", |one| one.p99_ns),
            column("99.9 %", |one| one.p99_9_ns),
            column("99.99 %", |one| one.p99_99_ns),
            column("longest", |one| Some(one.max_ns)),
        ],
    };
    vec![
        DocumentBlock::Section("Latency per call, over all kept repetitions".to_owned()),
        DocumentBlock::Grid(grid),
    ]
}

/// Tabulates the response times of programs with several requests in flight, with their series over
/// time.
pub(super) fn build_load_blocks(view: &RunView) -> Vec<DocumentBlock> {
    let mut blocks = load_table::build_latency_blocks(view);
    let how = |row: &ResultRow| {
        let load = row.summary.load.as_ref()?;
        Some(format!(
            "{}: {}",
            row.title,
            load_table::describe_load(load)
        ))
    };
    let how: Vec<String> = view.rows.iter().filter_map(how).collect();
    if !how.is_empty() {
        blocks.push(DocumentBlock::List(how));
    }
    let strips = series::build_strips(view);
    if !strips.is_empty() {
        let heading = "IOPS over time, scaled from min to max; `diskperf show --series` has them";
        blocks.push(DocumentBlock::Section(heading.to_owned()));
        blocks.push(DocumentBlock::List(strips));
    }
    blocks
}

/// Tabulates the caches of controllers, one row per program, controller and class of accesses;
/// empty where no controller reports.
pub(super) fn build_controller_cache_blocks(view: &RunView) -> Vec<DocumentBlock> {
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
        Column::right_aligned(heading, found.iter().map(of).collect())
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
        DocumentBlock::Section(heading.to_owned()),
        DocumentBlock::Grid(Grid {
            key_column: Column::left_aligned("program, controller, class of accesses", titles),
            groups: vec![ColumnGroup::new("", columns)],
        }),
    ]
}

/// Tabulates the media caches of shingled disks, one row per program and drive; empty where there
/// is none.
pub(super) fn build_media_cache_blocks(view: &RunView) -> Vec<DocumentBlock> {
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
        Column::right_aligned(heading, found.iter().map(of).collect())
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
        DocumentBlock::Section(heading.to_owned()),
        DocumentBlock::Grid(Grid {
            key_column: Column::left_aligned("program, drive", titles),
            groups: vec![ColumnGroup::new("", columns)],
        }),
    ]
}

/// Tabulates the units that flash drives programmed per unit that the host wrote, by cause, one row
/// per program and drive; empty where no drive reports.
pub(super) fn build_flash_blocks(view: &RunView) -> Vec<DocumentBlock> {
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
        Column::right_aligned(heading, found.iter().map(of).collect())
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
        DocumentBlock::Section(heading.to_owned()),
        DocumentBlock::Grid(Grid {
            key_column: Column::left_aligned("program", titles),
            groups: vec![ColumnGroup::new("", columns)],
        }),
    ]
}

/// Repetition of a program, with the row of its result.
struct RepetitionRow<'v> {
    result_row: &'v ResultRow<'v>,
    /// Number of the repetition, from 1.
    number: usize,
    repetition: &'v Repetition,
}

/// Tabulates repetitions, one row for each, with the discarded ones in parentheses.
pub(super) fn build_repetition_blocks(view: &RunView) -> Vec<DocumentBlock> {
    let all: Vec<RepetitionRow> = view
        .rows
        .iter()
        .flat_map(|row| {
            let numbered = row.result.repetitions.iter().enumerate();
            numbered.map(move |(index, repetition)| RepetitionRow {
                result_row: row,
                number: index + 1,
                repetition,
            })
        })
        .collect();
    if all.is_empty() {
        return Vec::new();
    }
    let text = |of: &dyn Fn(&Repetition) -> String| -> Vec<String> {
        all.iter().map(|one| of(one.repetition)).collect()
    };
    let titles = all
        .iter()
        .map(|one| {
            let number = if one.repetition.is_discarded {
                format!("({})", one.number)
            } else {
                one.number.to_string()
            };
            format!("{} {number}", one.result_row.title)
        })
        .collect();
    let mut grid = Grid {
        key_column: Column::left_aligned("program", titles),
        groups: vec![
            ColumnGroup::new("", build_speed_columns(&all, &text)),
            ColumnGroup::new("", build_processor_columns(&text)),
            ColumnGroup::new("", build_storage_columns(&text)),
        ],
    };
    if all.iter().any(|one| one.repetition.is_disturbed()) {
        let disturbed = |one: &Repetition| {
            let by = one.interference.iter().map(ToString::to_string);
            by.collect::<Vec<_>>().join("; ")
        };
        let column = Column::left_aligned("disturbed", text(&disturbed));
        grid.groups.push(ColumnGroup::new("", vec![column]));
    }
    vec![
        DocumentBlock::Section("Repetitions, the discarded ones in parentheses".to_owned()),
        DocumentBlock::Grid(grid),
        DocumentBlock::List(build_strips(view)),
    ]
}

/// Lists the kept repetitions of each program with several of them, as bars.
fn build_strips(view: &RunView) -> Vec<String> {
    let several = view.rows.iter().filter(|row| row.summary.kept_count > 1);
    let line = |row: &ResultRow| format!("{} {}", figures::render_strip(row.result), row.title);
    several.map(line).collect()
}

/// Function that formats one figure for every repetition.
type RepetitionFormatter<'t> = &'t dyn Fn(&dyn Fn(&Repetition) -> String) -> Vec<String>;

fn build_speed_columns(all: &[RepetitionRow], text: RepetitionFormatter) -> Vec<Column> {
    let pairs = all
        .iter()
        .map(|one| {
            (
                figures::format_kb_per_s(one.repetition.kb_per_s()),
                figures::format_cpu_percent(one.repetition.cpu_percent()),
            )
        })
        .collect();
    let durable = |one: &Repetition| {
        one.durable_kb_per_s()
            .map_or_else(String::new, figures::format_kb_per_s)
    };
    let iops = |one: &Repetition| one.iops().map_or_else(String::new, figures::format_iops);
    let p99 = |one: &Repetition| {
        let load = one.load_measures().next().is_some();
        let p99 = Quantity::ResponseP99Us
            .figure_of_repetition(one)
            .filter(|_| load);
        p99.map_or_else(String::new, figures::format_us)
    };
    vec![
        Column::right_aligned_pairs("KB/s (CPU)", pairs),
        Column::right_aligned("durable\nKB/s", text(&durable)),
        Column::right_aligned("IOPS", text(&iops)),
        Column::right_aligned("p99", text(&p99)),
        Column::right_aligned(
            "elapsed",
            text(&|one| figures::format_seconds(one.elapsed_time().seconds())),
        ),
    ]
}

fn build_processor_columns(text: RepetitionFormatter) -> Vec<Column> {
    let cpu = |ns: u64| figures::format_seconds(Nanoseconds(ns).seconds());
    vec![
        Column::right_aligned(
            "CPU",
            text(&|one| cpu(one.sum_over_workers(|worker| worker.cpu_time.0))),
        ),
        Column::right_aligned(
            "user\n(ticks)",
            text(&|one| cpu(one.sum_over_workers(|worker| worker.user_cpu_time.0))),
        ),
        Column::right_aligned(
            "system\n(ticks)",
            text(&|one| cpu(one.sum_over_workers(|worker| worker.system_cpu_time.0))),
        ),
        Column::right_aligned(
            "calls",
            text(&|one| one.sum_over_workers(|worker| worker.call_count).to_string()),
        ),
        Column::right_aligned(
            "waits",
            text(&|one| {
                one.sum_over_workers(|worker| worker.voluntary_switch_count)
                    .to_string()
            }),
        ),
        Column::right_aligned(
            "preempted",
            text(&|one| {
                one.sum_over_workers(|worker| worker.involuntary_switch_count)
                    .to_string()
            }),
        ),
        Column::right_aligned(
            "faults",
            text(&|one| {
                one.sum_over_workers(|worker| worker.minor_fault_count + worker.major_fault_count)
                    .to_string()
            }),
        ),
    ]
}

fn build_storage_columns(text: RepetitionFormatter) -> Vec<Column> {
    let resident = |bytes: fn(&diskperf_timeline::Residency) -> u64| {
        move |one: &Repetition| match &one.residency {
            Some(found) if found.file_bytes > 0 => {
                figures::format_share(bytes(found) as f64 / found.file_bytes as f64)
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
        Column::right_aligned(
            "from\ndevice",
            text(&|one| device_share(one).map_or_else(String::new, figures::format_share)),
        ),
        Column::right_aligned(
            "resident\nbefore",
            text(&resident(|found| found.resident_before_bytes)),
        ),
        Column::right_aligned(
            "resident\nafter",
            text(&resident(|found| found.resident_after_bytes)),
        ),
        Column::left_aligned("whole device meanwhile", text(&traffic)),
    ]
}
