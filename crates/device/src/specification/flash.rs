//! Reader of flash-drive specifications from the catalogue.

use crate::flash::specification::{
    ArrayTimes, BufferSpecification, CacheSpecification, ChannelSpecification, FlashError,
    FlashGeometry, FlashSpecification, FlushOrder, InterfaceSpecification, JournalSpecification,
    LayerSpecification, LinkSpecification, Suspension, UNIT_BYTES,
};
use diskperf_catalogue::Reader;
use diskperf_ftl::{Impossible, Past, Policy};
use diskperf_sim::Time;

/// Number of blocks per plane below which an error names that number as the cause. Real planes have
/// more blocks.
const FEW_BLOCKS: u32 = 64;

/// Maximum duration of any flash operation in the model, in microseconds.
const LONGEST_US: f64 = 1e6;

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
        "whether each plane of a die senses by itself; else all sense the same page at once",
    );
    let cache_read = flag(
        "cache_read",
        "whether a plane senses the next page while the last one is on the channel",
    );
    let cache_program = flag(
        "cache_program",
        "whether a die takes the data of a program while it works on the one before",
    );
    let reads_during_data_in = flag(
        "reads_during_data_in",
        "whether a die senses while the data of a program come to it; else reads wait for its end",
    );
    let in_place = flag(
        "in_place",
        "whether units are written where they are and nothing is erased, as in 3D XPoint",
    );
    let specification = FlashSpecification {
        geometry,
        in_place,
        times,
        cache: read_cache(reader, &geometry),
        independent_planes,
        cache_read,
        cache_program,
        reads_during_data_in,
        suspension: read_suspension(reader),
        channel: ChannelSpecification {
            bytes_per_s: reader.integer(
                "channel_bytes_per_s",
                1_000_000..=1_000_000_000_000,
                "what a channel between controller and dies carries",
            ) as f64,
            command: time(
                reader,
                "channel_command_us",
                "command and address of an operation",
            ),
        },
        decode: time(reader, "decode_us", "correcting errors of what was read"),
        retry_share: reader.number(
            "read_retry_share",
            0.0..=0.9,
            "share of the page reads that have to be done again",
        ),
        buffer: read_buffer(reader),
        journal: read_journal(reader),
        map_cache_pages: read_map_cache(reader),
        map_lookup: read_map_lookup(reader),
        trim_page: time(reader, "trim_us", "forgetting the map of 4 MiB"),
        layer: read_layer(reader, &geometry),
        interface: read_interface(reader),
    };
    if let Err(error) = specification.check() {
        let key = blamed(&specification, &error);
        let message = format!("{error}{}", remedy(key, &error));
        let cause = cause(reader, (key, &error));
        reader.fail(cause, &message);
    }
    specification
}

/// Keys that determine the capacity of a drive and its over-provisioning.
const CAPACITY: [&str; 12] = [
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
fn cause(reader: &Reader<'_>, (key, error): (&'static str, &FlashError)) -> &'static str {
    let is_of_room = matches!(error, FlashError::Layer(Impossible::Deadlock { .. }));
    if !is_of_room || reader.is_set(key) {
        return key;
    }
    let set = CAPACITY.into_iter().find(|key| reader.is_set(key));
    set.unwrap_or(key)
}

/// Returns a hint which parameters add space for garbage collection, if that is the error.
fn remedy(key: &str, error: &FlashError) -> String {
    if !matches!(error, FlashError::Layer(Impossible::Deadlock { .. })) {
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

/// Returns the key that an error is primarily about.
fn blamed(specification: &FlashSpecification, error: &FlashError) -> &'static str {
    match error {
        FlashError::Layer(error) => blamed_of_layer(specification, error),
        FlashError::Zero(key) => key,
        FlashError::Page(_) => "page_bytes",
        FlashError::Times { .. } => "read_ns",
        FlashError::InPlace(_) | FlashError::PowerCutsInPlace => "in_place",
        FlashError::Buffer { .. } => "write_buffer_bytes",
        FlashError::Large(_) => "blocks_per_plane",
    }
}

/// Returns the key that an error of the translation layer is primarily about.
fn blamed_of_layer(specification: &FlashSpecification, error: &Impossible) -> &'static str {
    match error {
        Impossible::SoftBelowHard { .. } => "soft_free_superblocks",
        Impossible::HardTooLow { .. } => "hard_free_superblocks",
        Impossible::FewBits(_) | Impossible::UnevenCache { .. } => "slc_fixed_bytes",
        Impossible::Overfilled { .. } | Impossible::NoShare => "past_fill_share",
        Impossible::UnevenParity { .. } => "dies_per_channel",
        Impossible::Deadlock { free, .. } => {
            let blocks = specification.geometry.blocks;
            let cache = specification
                .cache
                .map_or(0, |cache| cache.fixed_superblocks);
            let logical = specification.layer.logical_units;
            let superblock = specification.layer_superblock_units();
            // Whatever takes more than all that is spare cannot be right whatever the rest is.
            let spare = blocks.saturating_sub(logical / superblock.max(1));
            match () {
                () if cache >= spare => "slc_fixed_bytes",
                () if *free >= spare && blocks < FEW_BLOCKS => "blocks_per_plane",
                () if *free >= spare => "soft_free_superblocks",
                () => "spare_share",
            }
        }
        Impossible::Zero(_) | Impossible::TooLarge(_) | Impossible::NoSpare { .. } => "spare_share",
    }
}

fn time(reader: &mut Reader<'_>, key: &str, doc: &str) -> Time {
    Time(reader.microseconds(key, 0.0..=LONGEST_US, doc))
}

fn read_geometry(reader: &mut Reader<'_>) -> FlashGeometry {
    let mut count = |key, most, doc| reader.integer(key, 1..=most, doc) as u32;
    FlashGeometry {
        channels: count("channels", 64, "channels, each with dies of its own"),
        dies_per_channel: count("dies_per_channel", 64, "dies on each channel"),
        planes: count("planes", 16, "planes of a die"),
        blocks: count(
            "blocks_per_plane",
            1_000_000,
            "blocks of a plane that can be used",
        ),
        word_lines: count(
            "word_lines_per_block",
            65_536,
            "word lines of a block, each programmed at once",
        ),
        pages_per_word_line: count(
            "pages_per_word_line",
            5,
            "pages of a word line: bits of a cell",
        ),
        page_bytes: count("page_bytes", 65_536, "data of a page"),
        page_spare_bytes: reader.integer(
            "page_spare_bytes",
            0..=65_536,
            "check bytes of a page, which cross the channel with it",
        ) as u32,
    }
}

fn read_times(reader: &mut Reader<'_>) -> ArrayTimes {
    let read = reader.integers(
        "read_ns",
        0..=1_000_000_000,
        "sensing a page in nanoseconds, of each page of a word line",
    );
    ArrayTimes {
        read: read.into_iter().map(Time).collect(),
        program: time(
            reader,
            "program_us",
            "programming a word line of every plane",
        ),
        erase: time(reader, "erase_us", "erasing a block of every plane"),
    }
}

/// Reads the SLC cache, which the catalogue describes by its capacity.
fn read_cache(reader: &mut Reader<'_>, geometry: &FlashGeometry) -> Option<CacheSpecification> {
    let mut bytes = |key, doc| reader.integer(key, 0..=1 << 50, doc);
    let fixed = bytes(
        "slc_fixed_bytes",
        "what the cache of one bit a cell always holds; 0 and no slc_dynamic_bytes: there is none",
    );
    let dynamic = bytes(
        "slc_dynamic_bytes",
        "what it holds besides while the drive is empty",
    );
    if fixed == 0 && dynamic == 0 {
        // What is said of a cache that is left out means nothing.
        for key in ["slc_read_us", "slc_program_us", "slc_fold_idle_ms"] {
            reader.optional_number(key, 0.0..=1e9, "of a cache of one bit a cell");
        }
        return None;
    }
    let units = geometry.dies() * geometry.planes * geometry.page_units() * geometry.word_lines;
    let superblock_bytes = u64::from(units) * u64::from(UNIT_BYTES);
    let superblocks = |bytes: u64| (bytes / superblock_bytes.max(1)).min(1 << 20) as u32;
    Some(CacheSpecification {
        read: time(reader, "slc_read_us", "sensing a page of one bit a cell"),
        program: time(
            reader,
            "slc_program_us",
            "programming a page of one bit a cell in every plane",
        ),
        fixed_superblocks: superblocks(fixed),
        dynamic_superblocks: superblocks(dynamic),
        idle: Time(reader.milliseconds(
            "slc_fold_idle_ms",
            0.0..=1e9,
            "how long nothing is asked before the cache is folded into the rest",
        )),
    })
}

fn read_suspension(reader: &mut Reader<'_>) -> Option<Suspension> {
    let suspension = Suspension {
        program: time(
            reader,
            "suspend_program_us",
            "from a read's coming until a program stands still",
        ),
        erase: time(
            reader,
            "suspend_erase_us",
            "from a read's coming until an erase stands still",
        ),
        resume: time(reader, "resume_us", "what going on after that takes"),
        most: reader.integer(
            "suspends_most",
            0..=1_000_000,
            "how often a program or an erase stops for reads; 0: never",
        ) as u32,
    };
    Some(suspension).filter(|suspension| suspension.most > 0)
}

fn read_buffer(reader: &mut Reader<'_>) -> Option<BufferSpecification> {
    let bytes = reader.integer(
        "write_buffer_bytes",
        0..=1 << 40,
        "the buffer that takes writes; 0: a write is done when it is programmed",
    );
    let protected = reader.flag(
        "power_loss_protection",
        "whether the buffer survives a power cut, so that a flush has nothing to do",
    );
    let units = (bytes / u64::from(UNIT_BYTES)).min(u64::from(u32::MAX)) as u32;
    // Less than a unit is no buffer, and is refused as one that is too small.
    (bytes > 0).then_some(BufferSpecification { units, protected })
}

/// Reads the number of 4 KiB map pages that memory holds; `None` if it holds all.
fn read_map_cache(reader: &mut Reader<'_>) -> Option<u32> {
    let bytes = reader.optional_integer(
        "map_cache_bytes",
        u64::from(UNIT_BYTES)..=1 << 40,
        "memory for pages of the map; all of it is in memory if absent",
    )?;
    Some((bytes / u64::from(UNIT_BYTES)) as u32)
}

/// Reads the time of a map lookup for each read, where the map is in host memory.
fn read_map_lookup(reader: &mut Reader<'_>) -> Time {
    let ns = reader.optional_integer(
        "map_lookup_ns",
        0..=1_000_000_000,
        "looking an entry of the map up before a read, where its memory is the host's; no time if absent",
    );
    Time(ns.unwrap_or(0))
}

fn read_journal(reader: &mut Reader<'_>) -> JournalSpecification {
    JournalSpecification {
        pages: reader.integer(
            "journal_pages",
            1..=1_000_000,
            "pages of 4 KiB that changes of the map are written to in turn",
        ) as u32,
        changes_per_page: reader.integer(
            "journal_changes_per_page",
            1..=1_000_000,
            "changes that one of them holds",
        ) as u32,
        program: time(
            reader,
            "journal_program_us",
            "programming a word line of the journal's blocks, which may have fewer bits a cell",
        ),
        programs: reader.integer(
            "journal_programs",
            1..=16,
            "programs, one after the other, that make changes durable at a flush",
        ) as u32,
    }
}

fn read_layer(reader: &mut Reader<'_>, geometry: &FlashGeometry) -> LayerSpecification {
    let spare = reader.number(
        "spare_share",
        0.0..=1.0,
        "share of the physical units that hosts see no sector of",
    );
    let physical = f64::from(geometry.dies())
        * f64::from(geometry.program_units())
        * f64::from(geometry.word_lines)
        * f64::from(geometry.blocks);
    let logical = (physical * (1.0 - spare)).clamp(0.0, f64::from(u32::MAX)) as u32;
    let policies = [
        ("greedy", Policy::Greedy),
        ("fifo", Policy::Fifo),
        ("best_of_two", Policy::Choices(2)),
        ("best_of_ten", Policy::Choices(10)),
        ("cost_benefit", Policy::CostBenefit),
    ];
    let policy = reader.choice(
        "collection_policy",
        &policies,
        "which superblock is collected next",
    );
    let mut count = |key, doc| reader.integer(key, 1..=1_000_000, doc) as u32;
    let soft_free = count(
        "soft_free_superblocks",
        "below this many free superblocks, collection begins",
    );
    let hard_free = count(
        "hard_free_superblocks",
        "below this many free superblocks, writes wait for collection",
    );
    let dies_erasing = count("dies_erasing", "dies that erase at the same time");
    let past = read_past(reader);
    let fill = reader.number(
        "past_fill_share",
        0.0..=1.0,
        "share of the drive, from its start, that was written then",
    );
    LayerSpecification {
        logical_units: logical,
        policy,
        soft_free,
        hard_free,
        wear_threshold: reader
            .optional_integer(
                "wear_levelling_erases",
                1..=1_000_000,
                "difference of erases from which cold data are moved; none if absent",
            )
            .map(|erases| erases as u32),
        dies_erasing,
        past,
        filled: (f64::from(logical) * fill) as u32,
        power_cuts: false,
    }
}

/// Reads the precondition state. By default, hot-cold preconditioning sends 80 % of the writes to
/// 20 % of the units, the usual example, and Zipf preconditioning has the exponent 1.1.
fn read_past(reader: &mut Reader<'_>) -> Past {
    let mut percent = |key, most, default, doc| {
        let given = reader.optional_integer(key, 1..=most, doc);
        given.map_or(default, |given| given as u8)
    };
    let hot_cold = Past::HotCold {
        writes_percent: percent(
            "past_hot_writes_percent",
            99,
            80,
            "percent of the writes of a past hot_cold that went to its hot part; 80 if absent",
        ),
        space_percent: percent(
            "past_hot_percent",
            99,
            20,
            "percent of what was written, from its start, that was hot; 20 if absent",
        ),
    };
    let zipf = Past::Zipf {
        theta_percent: percent(
            "past_zipf_percent",
            250,
            110,
            "hundredths of the exponent of a past zipf; 110 if absent",
        ),
    };
    let pasts = [
        ("fresh", Past::Fresh),
        ("sequential", Past::Sequential),
        ("random", Past::Random),
        ("hot_cold", hot_cold),
        ("zipf", zipf),
    ];
    reader.choice(
        "past",
        &pasts,
        "how the drive was written before: not at all, in order, or until its state no longer changed: at random, \
         more to a hot part, or to the k-th unit in proportion to a power of k",
    )
}

#[derive(Clone, Copy)]
enum Kind {
    Nvme,
    Sata,
}

fn read_interface(reader: &mut Reader<'_>) -> InterfaceSpecification {
    let kinds = [("nvme", Kind::Nvme), ("sata", Kind::Sata)];
    let kind = reader.choice("interface", &kinds, "how the drive is connected");
    let (link, flush) = match kind {
        Kind::Nvme => (read_pcie(reader), FlushOrder::Queues),
        Kind::Sata => (read_sata(reader), FlushOrder::Drains),
    };
    let queue_depth = reader.integer(
        "queue_depth",
        1..=65_536,
        "commands that it takes at once, in all its queues",
    ) as u32;
    let most_bytes = reader.integer(
        "command_bytes_most",
        4096..=1 << 30,
        "the most that one command moves: longer requests are several commands",
    );
    let submission = time(
        reader,
        "submission_us",
        "from the doorbell until the controller has the command",
    );
    let command = time(
        reader,
        "command_us",
        "what each command keeps the controller: it takes none faster",
    );
    let processing = time(
        reader,
        "processing_us",
        "how long a command takes through the controller, with others beside it",
    );
    let ended = time(
        reader,
        "completion_us",
        "from the last data until the completion is in the host's memory",
    );
    let polled = reader.choice(
        "completion",
        &[("interrupt", false), ("polled", true)],
        "how the host learns of it",
    );
    let interrupt = time(
        reader,
        "interrupt_us",
        "from then until the handler of its interrupt runs; nothing where it is polled",
    );
    InterfaceSpecification {
        queue_depth,
        submission,
        command,
        processing,
        most_units: (most_bytes / u64::from(UNIT_BYTES)) as u32,
        link,
        completion: match polled {
            true => ended,
            false => ended + interrupt,
        },
        flush,
    }
}

fn read_pcie(reader: &mut Reader<'_>) -> LinkSpecification {
    let generation = reader.integer("pcie_generation", 3..=5, "generation of PCIe");
    let lanes = reader.integer("pcie_lanes", 1..=16, "lanes of PCIe") as f64;
    let payload =
        reader.integer("pcie_payload_bytes", 64..=4096, "data of a packet of PCIe") as f64;
    let lane = LANE_BYTES_PER_S[generation as usize - 3];
    let acknowledged = reader.number(
        "pcie_acknowledge_share",
        0.0..=0.5,
        "share of the link that acknowledgements and credits take",
    );
    let bytes_per_s = lane * lanes * payload / (payload + PACKET_BYTES) * (1.0 - acknowledged);
    let mut most = |key, doc| {
        let most = reader.optional_integer(key, 1_000_000..=1_000_000_000_000, doc);
        most.map_or(bytes_per_s, |most| bytes_per_s.min(most as f64))
    };
    LinkSpecification {
        read_bytes_per_s: most(
            "read_bytes_per_s_most",
            "what the controller moves toward the host; as much as the link if absent",
        ),
        write_bytes_per_s: most(
            "write_bytes_per_s_most",
            "what the controller moves toward the dies; as much as the link if absent",
        ),
        full_duplex: true,
        command: Time::ZERO,
    }
}

fn read_sata(reader: &mut Reader<'_>) -> LinkSpecification {
    let bytes_per_s = reader.integer(
        "link_bytes_per_s",
        1_000_000..=1_000_000_000_000,
        "data that the link carries, with what frames take off",
    ) as f64;
    LinkSpecification {
        read_bytes_per_s: bytes_per_s,
        write_bytes_per_s: bytes_per_s,
        full_duplex: false,
        command: time(
            reader,
            "link_command_us",
            "what each command keeps the link besides its data",
        ),
    }
}
