//! Conversion of a block trace to the job that replays it.

use crate::error::LaboratoryError;
use crate::files::Files;
use crate::model::computer::ModelComputer;
use crate::rig::ONE_REPETITION;
use diskperf_battery::{Medium, Program, ReplayPlan, Suite, SuiteJob, open_loop_slots};
use diskperf_blocktrace::Form;
use diskperf_blocktrace::transform::AddressScaling;
use diskperf_timeline::units::{GIB, MIB, format_size};
use diskperf_timeline::{
    CacheMode, Experiment, Nanoseconds, ReplayAddresses, ReplayPace, Setting, SizeChoice,
    TraceFacts, TraceReplay,
};
use std::collections::BTreeMap;

/// Target that a trace is replayed on, with its space for addresses.
pub struct ReplayStorage<'a> {
    /// Space for addresses in bytes, with the name of the target that has it; `None` if unknown.
    capacity_and_name: Option<(u64, String)>,
    scaled_bytes: u64,
    storage_kind: ReplayStorageKind<'a>,
}

/// Function that returns the obstacle to O_DIRECT for calls of a given size in bytes; `None` if
/// there is none.
type DirectObstacle<'a> = &'a dyn Fn(u64) -> Option<String>;

/// Minimum size of a filled file that a note mentions, in bytes. A smaller file is written in a
/// moment.
const FILL_BYTES_NOTED_MIN: u64 = 256 * MIB;

enum ReplayStorageKind<'a> {
    Host {
        medium: Medium,
        directories: Vec<String>,
        direct_obstacle: DirectObstacle<'a>,
    },
    Model(Medium),
}

impl<'a> ReplayStorage<'a> {
    /// Creates the target for real storage, from the kind of the targets and the names of those
    /// that are directories; the size of the smallest target and its name; the bytes that addresses
    /// are scaled to; and the obstacle to O_DIRECT.
    pub fn for_host(
        (medium, directories): (Medium, Vec<String>),
        (room, scaled_bytes): (Option<(u64, String)>, u64),
        direct_obstacle: DirectObstacle<'a>,
    ) -> Self {
        Self {
            capacity_and_name: room,
            scaled_bytes,
            storage_kind: ReplayStorageKind::Host {
                medium,
                directories,
                direct_obstacle,
            },
        }
    }

    /// Creates the target for a replay on a modelled computer.
    pub fn for_computer(computer: &ModelComputer) -> Self {
        let room_bytes = computer.free_bytes(0);
        Self {
            capacity_and_name: Some((room_bytes, computer.name.clone())),
            scaled_bytes: match computer.medium() {
                Medium::Directory => room_bytes / 2,
                Medium::Device | Medium::File => room_bytes,
            },
            storage_kind: ReplayStorageKind::Model(computer.medium()),
        }
    }

    /// Creates the target for a replay on an unspecified computer.
    pub fn for_any_storage() -> Self {
        Self {
            capacity_and_name: None,
            scaled_bytes: GIB,
            storage_kind: ReplayStorageKind::Model(Medium::Device),
        }
    }

    /// Returns a note on a file that is written before the replay so that reads find data, if this
    /// takes long. The file covers all addresses.
    fn describe_fill(&self, space_bytes: u64, held: &TraceFacts) -> Option<String> {
        let ReplayStorageKind::Host { directories, .. } = &self.storage_kind else {
            return None;
        };
        if directories.is_empty() || space_bytes < FILL_BYTES_NOTED_MIN {
            return None;
        }
        let smaller = match space_bytes > GIB && held.transfer_bytes_max <= GIB {
            true => "; --scale-addresses=1G makes it 1 GiB, and changes how far requests are apart",
            false => "",
        };
        Some(format!(
            "a file of {} is written in {} before the replay, since its addresses go that far, and is removed at the end{smaller}",
            format_size(space_bytes),
            directories.join(" and ")
        ))
    }

    /// Returns the cache mode of the replay, and the reason if it is not the wanted one.
    fn choose_cache_mode(&self, wanted: CacheMode, unit_bytes: u64) -> (CacheMode, Option<String>) {
        match self.storage_kind {
            ReplayStorageKind::Model(Medium::Device | Medium::File) => (CacheMode::Direct, None),
            ReplayStorageKind::Model(Medium::Directory) if wanted == CacheMode::Direct => {
                let why = "its kernel cannot bypass its buffer cache, so all goes through that";
                (CacheMode::Cold, Some(why.to_owned()))
            }
            ReplayStorageKind::Host {
                direct_obstacle, ..
            } if wanted == CacheMode::Direct => match direct_obstacle(unit_bytes) {
                None => (CacheMode::Direct, None),
                Some(why) => (
                    CacheMode::Cold,
                    Some(format!(
                        "{why}: all goes through the page cache, which is dropped before each repetition"
                    )),
                ),
            },
            ReplayStorageKind::Host { .. } | ReplayStorageKind::Model(_) => (wanted, None),
        }
    }

    /// Reports whether writes can be durable on completion. They cannot on a modelled file system,
    /// whose kernel has no O_DSYNC.
    fn has_durable_writes(&self) -> bool {
        !matches!(
            self.storage_kind,
            ReplayStorageKind::Model(Medium::Directory)
        )
    }

    fn supports_discard(&self) -> bool {
        matches!(self.storage_kind, ReplayStorageKind::Host { .. })
    }
}

/// Verifies that no option of the run sets something that the trace determines.
pub fn check_options(experiment: &Experiment) -> Result<(), LaboratoryError> {
    if experiment.size_choice != SizeChoice::AutomaticSize {
        return Err(LaboratoryError::request(
            "--size: a trace defines how much it transfers; --window replays a part of it, and --scale-addresses maps it to a smaller range",
        ));
    }
    if experiment.steady_rule.is_some() {
        return Err(LaboratoryError::request(
            "--until-steady: a trace is not a steady load, and each replay runs all of it; --runs repeats it",
        ));
    }
    let mut settings = experiment.settings.iter();
    match settings.find_map(Setting::program_parameter_name) {
        None => Ok(()),
        Some(name) => Err(LaboratoryError::Request(format!(
            "--set program.{name}: a replay does what its trace says; --speed, --depth and --think change when"
        ))),
    }
}

/// Makes the suite of a replay, with a single step, and the remarks for readers.
pub fn build_suite(
    replay: &TraceReplay,
    (ground, files): (&ReplayStorage<'_>, &dyn Files),
    wanted: CacheMode,
) -> Result<(Suite, Vec<String>), LaboratoryError> {
    let held = replay.trace_facts.as_ref().ok_or_else(|| {
        LaboratoryError::request("a replay takes `run`, `ab` and `explain`, and no search or study")
    })?;
    check_pace(replay, held)?;
    let (space_bytes, scale) = choose_space_bytes(replay, held, ground)?;
    let unit_bytes = scale.map_or(held.unit_bytes, |scale| {
        held.unit_bytes.min(scale.align_bytes)
    });
    let (cache, why_not) = ground.choose_cache_mode(wanted, unit_bytes);
    let program = Program::from_replay(ReplayPlan {
        trace_start: None,
        replay_trace: files.open_trace((replay, held), scale)?,
        trace_facts: held.clone(),
        replay_pace: replay.replay_pace,
        slot_count: choose_slot_count(replay, held)?,
        address_space_bytes: space_bytes,
        unit_bytes,
        cache_mode: cache,
        issues_discards: ground.supports_discard(),
        keeps_durable_writes: held.fua_write_count > 0 && ground.has_durable_writes(),
    });
    let mut notes: Vec<String> = why_not.into_iter().collect();
    notes.extend(list_notes(replay, held, ground));
    notes.extend(ground.describe_fill(space_bytes, held));
    if let Some(scale) = scale {
        notes.push(format!(
            "addresses are scaled from {} to {}, which changes how far requests are apart",
            format_size(scale.from_bytes),
            format_size(scale.to_bytes)
        ));
    }
    let job = SuiteJob {
        size_bytes: program.default_size_bytes(),
        fio_options: list_options(replay, held),
        distinguishing_parameters: vec!["trace".to_owned(), "pace".to_owned()],
        ..SuiteJob::from_program(program)
    };
    let suite = Suite {
        name: replay.name().to_owned(),
        default_protocol: replay.protocol.unwrap_or(ONE_REPETITION),
        steps: vec![job.into()],
    };
    Ok((suite, notes))
}

fn list_options(replay: &TraceReplay, held: &TraceFacts) -> BTreeMap<String, String> {
    let hashes: Vec<&str> = held.files.iter().map(|file| &*file.sha256).collect();
    let mut options = BTreeMap::from([
        ("trace".to_owned(), replay.name().to_owned()),
        ("pace".to_owned(), format_pace(replay.replay_pace)),
        ("form".to_owned(), held.trace_format.clone()),
        ("sha256".to_owned(), hashes.join("+")),
    ]);
    let reading = &replay.trace_reading;
    let window = reading.window_ns.map(|(from, to)| format!("{from}..{to}"));
    let scaled = match replay.replay_addresses {
        ReplayAddresses::Unchanged => None,
        ReplayAddresses::ScaledToTarget => Some("target".to_owned()),
        ReplayAddresses::Scaled(bytes) => Some(bytes.to_string()),
    };
    let parts = [
        (
            "round_to_bytes",
            reading.round_to_bytes.map(|bytes| bytes.to_string()),
        ),
        ("window_ns", window),
        ("part", reading.part_index.map(|part| part.to_string())),
        ("device", reading.device_name.clone()),
        ("scale_addresses", scaled),
    ];
    for (name, value) in parts {
        options.extend(value.map(|value| (name.to_owned(), value)));
    }
    options
}

fn format_pace(pace: ReplayPace) -> String {
    match pace {
        ReplayPace::OpenLoop { speed: 1.0 } => "open".to_owned(),
        ReplayPace::OpenLoop { speed } => format!("open-{speed}x"),
        ReplayPace::ClosedLoop { depth } => format!("depth-{depth}"),
        ReplayPace::Dependent => "think".to_owned(),
    }
}

fn check_pace(replay: &TraceReplay, held: &TraceFacts) -> Result<(), LaboratoryError> {
    let name = replay.name();
    let form = &held.trace_format;
    match replay.replay_pace {
        ReplayPace::OpenLoop { .. } if !held.has_times => Err(LaboratoryError::Request(format!(
            "{name}: a trace of the form {form} has no issue times, so it cannot be replayed by time: give --depth N, which keeps N requests in flight"
        ))),
        ReplayPace::OpenLoop { speed } if !(1e-6..=1e6).contains(&speed) => {
            Err(LaboratoryError::Request(format!(
                "--speed {speed}: a trace is replayed from 0.000001 to 1000000 times as fast; 2 halves its gaps"
            )))
        }
        ReplayPace::OpenLoop { speed }
            if held.duration_ns as f64 / speed > DURATION_NS_MAX as f64 =>
        {
            Err(LaboratoryError::Request(format!(
                "--speed {speed}: the trace would last for more than 36 years; give a larger one"
            )))
        }
        ReplayPace::Dependent if held.completed_count == 0 => {
            Err(LaboratoryError::Request(format!(
                "{name}: --think replays the pause between a completion and the next issue, and this trace of the form {form} has no completions: replay it by its times (without --think), or give --depth N"
            )))
        }
        ReplayPace::OpenLoop { .. } | ReplayPace::ClosedLoop { .. } | ReplayPace::Dependent => {
            Ok(())
        }
    }
}

/// Maximum duration of a trace, in nanoseconds. Times below it can be added without overflow.
pub const DURATION_NS_MAX: u64 = 1 << 60;

/// Maximum number of requests in flight in any replay.
pub const SLOT_COUNT_MAX: u32 = 4096;
const BUFFER_BYTES_MAX: u64 = 4 * GIB;

fn choose_slot_count(replay: &TraceReplay, held: &TraceFacts) -> Result<u32, LaboratoryError> {
    let largest = held.transfer_bytes_max.max(512);
    let asked = match replay.replay_pace {
        ReplayPace::ClosedLoop { depth } => Some(depth),
        ReplayPace::OpenLoop { .. } | ReplayPace::Dependent => replay.slot_count,
    };
    let slots = asked.unwrap_or_else(|| open_loop_slots(largest) as u32);
    if !(1..=SLOT_COUNT_MAX).contains(&slots) {
        return Err(LaboratoryError::Request(format!(
            "{slots} requests in flight: a replay has from 1 to {SLOT_COUNT_MAX}"
        )));
    }
    if u64::from(slots).saturating_mul(largest) > BUFFER_BYTES_MAX {
        return Err(LaboratoryError::Request(format!(
            "{slots} requests in flight of up to {} need more than 4 GiB of buffers; give a smaller --depth",
            format_size(largest)
        )));
    }
    Ok(slots)
}

const FILE_UNIT_BYTES: u64 = 4096;

/// Returns the bytes of the address space, and the scale of addresses to it.
fn choose_space_bytes(
    replay: &TraceReplay,
    held: &TraceFacts,
    ground: &ReplayStorage<'_>,
) -> Result<(u64, Option<AddressScaling>), LaboratoryError> {
    let needed_bytes = held
        .end_offset_bytes_max
        .max(1)
        .next_multiple_of(FILE_UNIT_BYTES);
    let to_bytes = match replay.replay_addresses {
        ReplayAddresses::Unchanged => {
            check_room(replay, ground, needed_bytes, held.end_offset_bytes_max)?;
            return Ok((needed_bytes.min(ground.end_bytes()), None));
        }
        ReplayAddresses::ScaledToTarget => ground.scaled_bytes,
        ReplayAddresses::Scaled(bytes) => bytes,
    };
    let to_bytes = to_bytes / FILE_UNIT_BYTES * FILE_UNIT_BYTES;
    if to_bytes < held.transfer_bytes_max.max(FILE_UNIT_BYTES) {
        return Err(LaboratoryError::Request(format!(
            "--scale-addresses: {} is less than the longest request of {}, which has {}",
            format_size(to_bytes),
            replay.name(),
            format_size(held.transfer_bytes_max)
        )));
    }
    check_room(replay, ground, to_bytes, to_bytes)?;
    let scale = AddressScaling {
        from_bytes: held.end_offset_bytes_max.max(1),
        to_bytes,
        // What is aligned to pages stays so: a drive writes parts of pages at other costs.
        align_bytes: held.unit_bytes.clamp(512, 4096),
    };
    Ok((to_bytes, Some(scale)))
}

impl ReplayStorage<'_> {
    fn end_bytes(&self) -> u64 {
        let ends = match self.storage_kind {
            ReplayStorageKind::Host { medium, .. } => medium != Medium::Directory,
            ReplayStorageKind::Model(medium) => medium != Medium::Directory,
        };
        match &self.capacity_and_name {
            Some((bytes, _)) if ends => *bytes,
            _ => u64::MAX,
        }
    }
}

fn check_room(
    replay: &TraceReplay,
    ground: &ReplayStorage<'_>,
    file_bytes: u64,
    end_bytes: u64,
) -> Result<(), LaboratoryError> {
    let Some((room_bytes, name)) = &ground.capacity_and_name else {
        return Ok(());
    };
    let needed_bytes = match ground.end_bytes() {
        u64::MAX => file_bytes,
        _ => end_bytes,
    };
    if needed_bytes <= *room_bytes {
        return Ok(());
    }
    let room = format_size(*room_bytes);
    let remedy = match replay.replay_addresses {
        ReplayAddresses::Unchanged => {
            "add --scale-addresses, which scales them to what fits there, or --scale-addresses=SIZE"
                .to_owned()
        }
        ReplayAddresses::Scaled(_) => format!(
            "give --scale-addresses without a size, which takes what fits there, or a size below {room}"
        ),
        ReplayAddresses::ScaledToTarget => "give a target with more space".to_owned(),
    };
    Err(LaboratoryError::Request(format!(
        "{}: its addresses come to {}, and {name} has {room}: {remedy}",
        replay.name(),
        format_size(needed_bytes),
    )))
}

fn list_notes(replay: &TraceReplay, held: &TraceFacts, ground: &ReplayStorage<'_>) -> Vec<String> {
    let requests = held.request_count();
    let discards = match (held.discard.request_count, ground.supports_discard()) {
        (0, _) | (_, true) => None,
        (count, false) => Some(format!(
            "left out: {count} discards, which modelled kernels have no call for"
        )),
    };
    let some = |count: u64, what: &str| (count > 0).then(|| format!("{count} {what}"));
    let without = requests - held.completed_count;
    let notes = [
        discards,
        some(
            held.write_zeroes.request_count,
            "requests that write zeroes without data are left out, because no system call does that",
        ),
        some(held.empty_request_count, "requests of no bytes are left out"),
        match ground.has_durable_writes() {
            true => None,
            false => some(
                held.fua_write_count,
                "writes were durable when they completed (FUA); they are made as plain writes, since this kernel has no O_DSYNC for its files: a bare drive as the target makes them durable",
            ),
        },
        replay.trace_reading.round_to_bytes.map(|bytes| match held.rounded_request_count {
            0 => format!("all reads and writes were whole sectors of {bytes} bytes as they are"),
            _ => format!(
                "{} of {} reads and writes are larger than in the trace: whole sectors of {bytes} bytes were made of them",
                held.rounded_request_count,
                held.read.request_count + held.write.request_count
            ),
        }),
        some(
            held.failed_count,
            "requests failed in the trace, and are made like the others",
        ),
        some(
            held.out_of_order_count,
            "requests are out of order in the trace, and are issued as soon as the replay reaches them",
        ),
        match replay.replay_pace {
            ReplayPace::Dependent => some(
                without,
                "requests have no completion in the trace, so no other request waits for them",
            ),
            ReplayPace::OpenLoop { .. } | ReplayPace::ClosedLoop { .. } => None,
        },
        (held.trace_format == Form::Validate.name()).then(|| {
            "the pause on a line counts as the one after its request; --form validate-before counts it as the one before, as in most known traces of this form"
                .to_owned()
        }),
        held.is_truncated
            .then(|| "the trace is truncated, and was read up to its end".to_owned()),
    ];
    notes.into_iter().flatten().collect()
}

/// Describes the replay of a trace for `--dry-run`.
pub fn describe_replay(replay: &TraceReplay) -> String {
    let Some(held) = &replay.trace_facts else {
        return String::new();
    };
    let kinds = held.named_operations();
    let kinds = kinds.iter().filter(|(_, kind)| kind.request_count > 0);
    let kinds: Vec<String> = kinds
        .map(|(name, kind)| match kind.bytes {
            0 => format!("{} {name}", kind.request_count),
            bytes => format!("{} {name} of {}", kind.request_count, format_size(bytes)),
        })
        .collect();
    let lasts = Nanoseconds(held.duration_ns).seconds();
    let pace = match replay.replay_pace {
        ReplayPace::OpenLoop { speed } => format!(
            "by its times, in {:.3} s ({speed} times as fast as the trace), whatever is under way",
            lasts / speed
        ),
        ReplayPace::ClosedLoop { depth } => {
            format!("{depth} in flight at once; the next is issued when one completes")
        }
        ReplayPace::Dependent => {
            "each as long after the completion that it followed as in the trace".to_owned()
        }
    };
    let mut text = String::new();
    for file in &held.files {
        text += &format!(
            "  trace {}: {}, {}, SHA-256 {}\n",
            file.path.display(),
            held.trace_format,
            format_size(file.size_bytes),
            file.sha256
        );
    }
    text += &format!(
        "  {}, over {lasts:.3} s; addresses up to {}\n  {pace}\n",
        kinds.join(", "),
        format_size(held.end_offset_bytes_max)
    );
    text
}
