//! Reader of flash-drive specifications from the catalogue.

use crate::flash::specification::{
    ArrayTimes, BufferSpecification, ChannelSpecification, FlashError, FlashFlushOrder,
    FlashGeometry, FlashLinkSpecification, FlashSpecification, InterfaceSpecification,
    JournalSpecification, SlcCacheSpecification, SuspensionSpecification, TranslationSpecification,
    UNIT_BYTES,
};
use diskperf_catalogue::Reader;
use diskperf_ftl::{ImpossibleSpecification, PreconditionState, VictimPolicy};
use diskperf_sim::Time;

/// Number of blocks per plane below which an error names that number as the cause. Real planes have
/// more blocks.
const BLOCK_COUNT_FEW: u32 = 64;

/// Maximum duration of any flash operation in the model, in microseconds.
const TIME_US_MAX: f64 = 1e6;

/// Data rate of a PCIe lane after the physical layer, in bytes per second, from the third
/// generation on: 8, 16 and 32 GT/s less 128b/130b (PCI Express base specification).
const LANE_BYTES_PER_S: [f64; 3] = [0.984_615e9, 1.969_231e9, 3.938_462e9];

/// Overhead of a PCIe packet besides its payload, in bytes: header, framing and check bytes (PCI
/// Express base specification).
const PACKET_BYTES: f64 = 24.0;

/// Reads the specification of a flash drive from an entry of the catalogue.
pub(super) fn read(reader: &mut Reader<'_>) -> FlashSpecification {
    let geometry = read_geometry(reader);
    let times = read_times(reader);
    let mut flag = |key, doc| reader.flag(key, doc);
    let independent_planes = flag(
        "independent_planes",
        "whether each plane of a die senses pages independently; if not, all planes sense the same page at once",
    );
    let cache_read = flag(
        "cache_read",
        "whether a plane senses its next page while the previous page crosses the channel (cache read)",
    );
    let cache_program = flag(
        "cache_program",
        "whether a die accepts the data of the next program while it still programs (cache program)",
    );
    let reads_during_data_in = flag(
        "reads_during_data_in",
        "whether a die senses pages while it receives the data of a program; if not, reads wait for the end of the transfer",
    );
    let in_place = flag(
        "in_place",
        "whether the drive overwrites data in place without erases, as 3D XPoint does",
    );
    let specification = FlashSpecification {
        geometry,
        writes_in_place: in_place,
        times,
        slc_cache: read_cache(reader, &geometry),
        has_independent_planes: independent_planes,
        has_cache_read: cache_read,
        has_cache_program: cache_program,
        allows_reads_during_data_in: reads_during_data_in,
        suspension: read_suspension(reader),
        channel: ChannelSpecification {
            bytes_per_s: reader.integer(
                "channel_bytes_per_s",
                1_000_000..=1_000_000_000_000,
                "data rate of a channel between controller and dies",
            ) as f64,
            command_time: read_time(
                reader,
                "channel_command_us",
                "channel time for the command and address of an operation",
            ),
        },
        decode_time: read_time(
            reader,
            "decode_us",
            "time to decode (error-correct) data read from a die",
        ),
        retry_share: reader.number(
            "read_retry_share",
            0.0..=0.9,
            "share of page reads that need a read retry",
        ),
        buffer: read_buffer(reader),
        journal: read_journal(reader),
        map_cache_pages: read_map_cache(reader),
        map_lookup_time: read_map_lookup(reader),
        trim_page_time: read_time(reader, "trim_us", "time to trim the map entries of 4 MiB"),
        translation: read_layer(reader, &geometry),
        interface: read_interface(reader),
    };
    if let Err(error) = specification.validate() {
        let key = key_of_error(&specification, &error);
        let message = format!("{error}{}", describe_remedy(key, &error));
        let cause = describe_cause(reader, (key, &error));
        reader.fail(cause, &message);
    }
    specification
}

/// Keys that determine the capacity of a drive and its over-provisioning.
const CAPACITY_KEYS: [&str; 12] = [
    "channels",
    "dies_per_channel",
    "planes",
    "blocks_per_plane",
    "word_lines_per_block",
    "pages_per_word_line",
    "page_bytes",
    "slc_fixed_bytes",
    "slc_dynamic_bytes",
    "spare_share",
    "soft_free_superblocks",
    "hard_free_superblocks",
];

/// Returns the key that an error message should name. If a drive lacks space for garbage
/// collection, that is a key that the user set, in place of the short one.
fn describe_cause(reader: &Reader<'_>, (key, error): (&'static str, &FlashError)) -> &'static str {
    let is_of_room = matches!(
        error,
        FlashError::TranslationLayer(ImpossibleSpecification::Deadlock { .. })
    );
    if !is_of_room || reader.is_set(key) {
        return key;
    }
    let set = CAPACITY_KEYS.into_iter().find(|key| reader.is_set(key));
    set.unwrap_or(key)
}

/// Returns a hint which parameters add space for garbage collection, if that is the error.
fn describe_remedy(key: &str, error: &FlashError) -> String {
    if !matches!(
        error,
        FlashError::TranslationLayer(ImpossibleSpecification::Deadlock { .. })
    ) {
        return String::new();
    }
    match key {
        "slc_fixed_bytes" => {
            "; give a smaller drive.slc_fixed_bytes, or a larger drive.spare_share".to_owned()
        }
        "blocks_per_plane" => {
            "; give a larger drive.blocks_per_plane, or a larger drive.spare_share".to_owned()
        }
        _ => {
            "; give a smaller drive.soft_free_superblocks, or a larger drive.spare_share".to_owned()
        }
    }
}

fn key_of_error(specification: &FlashSpecification, error: &FlashError) -> &'static str {
    match error {
        FlashError::TranslationLayer(error) => key_of_translation_error(specification, error),
        FlashError::ZeroValue(key) => key,
        FlashError::PageSize(_) => "page_bytes",
        FlashError::SensingTimeCount { .. } => "read_ns",
        FlashError::InPlaceUnsupported(_) | FlashError::PowerCutsInPlace => "in_place",
        FlashError::BufferTooSmall { .. } => "write_buffer_bytes",
        FlashError::TooLarge(_) => "blocks_per_plane",
    }
}

fn key_of_translation_error(
    specification: &FlashSpecification,
    error: &ImpossibleSpecification,
) -> &'static str {
    match error {
        ImpossibleSpecification::SoftThresholdBelowHard { .. } => "soft_free_superblocks",
        ImpossibleSpecification::HardThresholdTooLow { .. } => "hard_free_superblocks",
        ImpossibleSpecification::TooFewBitsPerCell(_)
        | ImpossibleSpecification::UnevenCache { .. } => "slc_fixed_bytes",
        ImpossibleSpecification::OverfilledPrecondition { .. }
        | ImpossibleSpecification::InvalidShare => "past_fill_share",
        ImpossibleSpecification::UnevenParity { .. } => "dies_per_channel",
        ImpossibleSpecification::Deadlock { free, .. } => {
            let blocks = specification.geometry.blocks_per_plane;
            let cache = specification
                .slc_cache
                .map_or(0, |cache| cache.fixed_superblocks);
            let logical = specification.translation.logical_units;
            let superblock = specification.superblock_units();
            // Whatever takes more than all that is spare cannot be right whatever the rest is.
            let spare = blocks.saturating_sub(logical / superblock.max(1));
            match () {
                () if cache >= spare => "slc_fixed_bytes",
                () if *free >= spare && blocks < BLOCK_COUNT_FEW => "blocks_per_plane",
                () if *free >= spare => "soft_free_superblocks",
                () => "spare_share",
            }
        }
        ImpossibleSpecification::ZeroParameter(_)
        | ImpossibleSpecification::TooManyUnits(_)
        | ImpossibleSpecification::NoOverProvisioning { .. } => "spare_share",
    }
}

fn read_time(reader: &mut Reader<'_>, key: &str, doc: &str) -> Time {
    Time(reader.microseconds(key, 0.0..=TIME_US_MAX, doc))
}

fn read_geometry(reader: &mut Reader<'_>) -> FlashGeometry {
    let mut count = |key, most, doc| reader.integer(key, 1..=most, doc) as u32;
    FlashGeometry {
        channel_count: count("channels", 64, "flash channels"),
        dies_per_channel: count("dies_per_channel", 64, "dies per channel"),
        planes_per_die: count("planes", 16, "planes per die"),
        blocks_per_plane: count("blocks_per_plane", 1_000_000, "usable blocks per plane"),
        word_lines_per_block: count(
            "word_lines_per_block",
            65_536,
            "word lines per block; a program writes a whole word line",
        ),
        pages_per_word_line: count(
            "pages_per_word_line",
            5,
            "pages per word line: the number of bits per cell",
        ),
        page_bytes: count(
            "page_bytes",
            65_536,
            "data bytes of a page, without its ECC bytes",
        ),
        page_spare_bytes: reader.integer(
            "page_spare_bytes",
            0..=65_536,
            "ECC bytes of a page, which cross the channel with its data",
        ) as u32,
    }
}

fn read_times(reader: &mut Reader<'_>) -> ArrayTimes {
    let read = reader.integers(
        "read_ns",
        0..=1_000_000_000,
        "times to sense a page, in nanoseconds, one for each page of a word line",
    );
    ArrayTimes {
        read_time_by_page: read.into_iter().map(Time).collect(),
        program_time: read_time(
            reader,
            "program_us",
            "time to program one word line in every plane of a die",
        ),
        erase_time: read_time(
            reader,
            "erase_us",
            "time to erase one block in every plane of a die",
        ),
    }
}

fn read_cache(reader: &mut Reader<'_>, geometry: &FlashGeometry) -> Option<SlcCacheSpecification> {
    let mut bytes = |key, doc| reader.integer(key, 0..=1 << 50, doc);
    let fixed = bytes(
        "slc_fixed_bytes",
        "capacity that the SLC cache always has; 0 without slc_dynamic_bytes: no SLC cache",
    );
    let dynamic = bytes(
        "slc_dynamic_bytes",
        "additional SLC cache capacity while the drive is empty; shrinks as the drive fills",
    );
    if fixed == 0 && dynamic == 0 {
        // What is said of a cache that is left out means nothing.
        for key in ["slc_read_us", "slc_program_us", "slc_fold_idle_ms"] {
            reader.optional_number(
                key,
                0.0..=1e9,
                "parameter of the SLC cache; no effect, as this drive has none",
            );
        }
        return None;
    }
    let units = geometry.die_count()
        * geometry.planes_per_die
        * geometry.page_units()
        * geometry.word_lines_per_block;
    let superblock_bytes = u64::from(units) * u64::from(UNIT_BYTES);
    let superblocks = |bytes: u64| (bytes / superblock_bytes.max(1)).min(1 << 20) as u32;
    Some(SlcCacheSpecification {
        read_time: read_time(
            reader,
            "slc_read_us",
            "time to sense a page of the SLC cache",
        ),
        program_time: read_time(
            reader,
            "slc_program_us",
            "time to program a page of the SLC cache in every plane of a die",
        ),
        fixed_superblocks: superblocks(fixed),
        dynamic_superblocks: superblocks(dynamic),
        fold_idle_time: Time(reader.milliseconds(
            "slc_fold_idle_ms",
            0.0..=1e9,
            "idle time after which the drive folds the SLC cache into its other blocks",
        )),
    })
}

fn read_suspension(reader: &mut Reader<'_>) -> Option<SuspensionSpecification> {
    let suspension = SuspensionSpecification {
        program_suspend_time: read_time(
            reader,
            "suspend_program_us",
            "time from the arrival of a read until the die has suspended a program",
        ),
        erase_suspend_time: read_time(
            reader,
            "suspend_erase_us",
            "time from the arrival of a read until the die has suspended an erase",
        ),
        resume_time: read_time(
            reader,
            "resume_us",
            "time to resume a suspended program or erase",
        ),
        suspensions_max: reader.integer(
            "suspends_most",
            0..=1_000_000,
            "maximum number of times that reads suspend one program or erase; 0: never",
        ) as u32,
    };
    Some(suspension).filter(|suspension| suspension.suspensions_max > 0)
}

fn read_buffer(reader: &mut Reader<'_>) -> Option<BufferSpecification> {
    let bytes = reader.integer(
        "write_buffer_bytes",
        0..=1 << 40,
        "capacity of the write buffer; 0: no buffer, and a write completes once it is programmed",
    );
    let protected = reader.flag(
        "power_loss_protection",
        "whether the write buffer survives a power cut, so that a flush has nothing to do",
    );
    let units = (bytes / u64::from(UNIT_BYTES)).min(u64::from(u32::MAX)) as u32;
    // Less than a unit is no buffer, and is refused as one that is too small.
    (bytes > 0).then_some(BufferSpecification {
        unit_count: units,
        is_power_protected: protected,
    })
}

/// Reads the number of 4 KiB map pages that memory holds; `None` if it holds all.
fn read_map_cache(reader: &mut Reader<'_>) -> Option<u32> {
    let bytes = reader.optional_integer(
        "map_cache_bytes",
        u64::from(UNIT_BYTES)..=1 << 40,
        "controller memory that caches pages of the mapping table; the whole table is in memory if absent",
    )?;
    Some((bytes / u64::from(UNIT_BYTES)) as u32)
}

/// Reads the time of a map lookup for each read, where the map is in host memory.
fn read_map_lookup(reader: &mut Reader<'_>) -> Time {
    let ns = reader.optional_integer(
        "map_lookup_ns",
        0..=1_000_000_000,
        "time to look up a map entry in host memory before a read; 0 if absent",
    );
    Time(ns.unwrap_or(0))
}

fn read_journal(reader: &mut Reader<'_>) -> JournalSpecification {
    JournalSpecification {
        page_count: reader.integer(
            "journal_pages",
            1..=1_000_000,
            "pages of 4 KiB in the journal, a ring that records map changes",
        ) as u32,
        changes_per_page: reader.integer(
            "journal_changes_per_page",
            1..=1_000_000,
            "map changes that one journal page holds",
        ) as u32,
        program_time: read_time(
            reader,
            "journal_program_us",
            "time to program a word line of the journal's blocks, which may store fewer bits per cell",
        ),
        programs_per_flush: reader.integer(
            "journal_programs",
            1..=16,
            "consecutive programs with which a flush makes map changes durable",
        ) as u32,
    }
}

fn read_layer(reader: &mut Reader<'_>, geometry: &FlashGeometry) -> TranslationSpecification {
    let spare = reader.number(
        "spare_share",
        0.0..=1.0,
        "over-provisioning: share of the physical capacity that hosts cannot address",
    );
    let physical = f64::from(geometry.die_count())
        * f64::from(geometry.program_units())
        * f64::from(geometry.word_lines_per_block)
        * f64::from(geometry.blocks_per_plane);
    let logical = (physical * (1.0 - spare)).clamp(0.0, f64::from(u32::MAX)) as u32;
    let policies = [
        ("greedy", VictimPolicy::Greedy),
        ("fifo", VictimPolicy::OldestFirst),
        ("best_of_two", VictimPolicy::RandomChoices(2)),
        ("best_of_ten", VictimPolicy::RandomChoices(10)),
        ("cost_benefit", VictimPolicy::CostBenefit),
    ];
    let policy = reader.choice(
        "collection_policy",
        &policies,
        "policy by which garbage collection selects its next victim superblock",
    );
    let mut count = |key, doc| reader.integer(key, 1..=1_000_000, doc) as u32;
    let soft_free = count(
        "soft_free_superblocks",
        "number of free superblocks below which garbage collection starts",
    );
    let hard_free = count(
        "hard_free_superblocks",
        "number of free superblocks below which writes wait for garbage collection",
    );
    let dies_erasing = count(
        "dies_erasing",
        "maximum number of dies that erase at the same time",
    );
    let past = read_past(reader);
    let fill = reader.number(
        "past_fill_share",
        0.0..=1.0,
        "share of the drive, from its start, that preconditioning wrote",
    );
    TranslationSpecification {
        logical_units: logical,
        policy,
        soft_free_superblocks: soft_free,
        hard_free_superblocks: hard_free,
        wear_threshold: reader
            .optional_integer(
                "wear_levelling_erases",
                1..=1_000_000,
                "difference in erase counts at which static wear levelling moves cold data; no wear levelling if absent",
            )
            .map(|erases| erases as u32),
        dies_erasing_max: dies_erasing,
        precondition: past,
        filled_share: (f64::from(logical) * fill) as u32,
        models_power_cuts: false,
    }
}

/// Reads the precondition state. By default, hot-cold preconditioning sends 80 % of the writes to
/// 20 % of the units, the usual example, and Zipf preconditioning has the exponent 1.1.
fn read_past(reader: &mut Reader<'_>) -> PreconditionState {
    let mut percent = |key, most, default, doc| {
        let given = reader.optional_integer(key, 1..=most, doc);
        given.map_or(default, |given| given as u8)
    };
    let hot_cold = PreconditionState::HotCold {
        writes_percent: percent(
            "past_hot_writes_percent",
            99,
            80,
            "percentage of the writes of hot_cold preconditioning that went to its hot part; 80 if absent",
        ),
        space_percent: percent(
            "past_hot_percent",
            99,
            20,
            "percentage of the preconditioned range, from its start, that was hot under hot_cold; 20 if absent",
        ),
    };
    let zipf = PreconditionState::Zipf {
        theta_percent: percent(
            "past_zipf_percent",
            250,
            110,
            "exponent of zipf preconditioning, in hundredths; 110 if absent",
        ),
    };
    let pasts = [
        ("fresh", PreconditionState::Fresh),
        ("sequential", PreconditionState::Sequential),
        ("random", PreconditionState::Random),
        ("hot_cold", hot_cold),
        ("zipf", zipf),
    ];
    reader.choice(
        "past",
        &pasts,
        "precondition state: never written (fresh), written once in order (sequential), or written until steady: \
         at random, more to a hot part (hot_cold), or to the k-th mapping unit in proportion to a power of k (zipf)",
    )
}

#[derive(Clone, Copy)]
enum InterfaceKind {
    Nvme,
    Sata,
}

fn read_interface(reader: &mut Reader<'_>) -> InterfaceSpecification {
    let kinds = [("nvme", InterfaceKind::Nvme), ("sata", InterfaceKind::Sata)];
    let kind = reader.choice("interface", &kinds, "host interface of the drive");
    let (link, flush) = match kind {
        InterfaceKind::Nvme => (read_pcie(reader), FlashFlushOrder::QueuesWrites),
        InterfaceKind::Sata => (read_sata(reader), FlashFlushOrder::DrainsQueue),
    };
    let queue_depth = reader.integer(
        "queue_depth",
        1..=65_536,
        "queue depth: commands that the drive accepts at once, over all its queues",
    ) as u32;
    let most_bytes = reader.integer(
        "command_bytes_most",
        4096..=1 << 30,
        "maximum transfer size of a command; longer requests are split",
    );
    let submission = read_time(
        reader,
        "submission_us",
        "time from the doorbell until the controller has the command",
    );
    let command = read_time(
        reader,
        "command_us",
        "time for which each command occupies the controller, which limits the command rate",
    );
    let processing = read_time(
        reader,
        "processing_us",
        "latency of a command in the controller, where commands overlap",
    );
    let ended = read_time(
        reader,
        "completion_us",
        "time from the end of the data transfer until the completion entry is in host memory",
    );
    let polled = reader.choice(
        "completion",
        &[("interrupt", false), ("polled", true)],
        "method by which the host learns of a completion",
    );
    let interrupt = read_time(
        reader,
        "interrupt_us",
        "time from the completion entry until its interrupt handler runs; no effect with completion=polled",
    );
    InterfaceSpecification {
        queue_depth,
        submission_time: submission,
        command_time: command,
        processing_time_per_unit: processing,
        request_units_max: (most_bytes / u64::from(UNIT_BYTES)) as u32,
        link,
        completion_time: match polled {
            true => ended,
            false => ended + interrupt,
        },
        flush_order: flush,
    }
}

fn read_pcie(reader: &mut Reader<'_>) -> FlashLinkSpecification {
    let generation = reader.integer("pcie_generation", 3..=5, "PCIe generation");
    let lanes = reader.integer("pcie_lanes", 1..=16, "PCIe lanes") as f64;
    let payload =
        reader.integer("pcie_payload_bytes", 64..=4096, "payload of a PCIe packet") as f64;
    let lane = LANE_BYTES_PER_S[generation as usize - 3];
    let acknowledged = reader.number(
        "pcie_acknowledge_share",
        0.0..=0.5,
        "share of the PCIe link that acknowledgements and flow-control credits take",
    );
    let bytes_per_s = lane * lanes * payload / (payload + PACKET_BYTES) * (1.0 - acknowledged);
    let mut most = |key, doc| {
        let most = reader.optional_integer(key, 1_000_000..=1_000_000_000_000, doc);
        most.map_or(bytes_per_s, |most| bytes_per_s.min(most as f64))
    };
    FlashLinkSpecification {
        read_bytes_per_s: most(
            "read_bytes_per_s_most",
            "limit of the controller's data rate toward the host; the link's rate if absent",
        ),
        write_bytes_per_s: most(
            "write_bytes_per_s_most",
            "limit of the controller's data rate toward the dies; the link's rate if absent",
        ),
        is_full_duplex: true,
        command_overhead: Time::ZERO,
    }
}

fn read_sata(reader: &mut Reader<'_>) -> FlashLinkSpecification {
    let bytes_per_s = reader.integer(
        "link_bytes_per_s",
        1_000_000..=1_000_000_000_000,
        "data rate of the link, after frame overhead",
    ) as f64;
    FlashLinkSpecification {
        read_bytes_per_s: bytes_per_s,
        write_bytes_per_s: bytes_per_s,
        is_full_duplex: false,
        command_overhead: read_time(
            reader,
            "link_command_us",
            "time for which each command occupies the link in addition to its data",
        ),
    }
}
