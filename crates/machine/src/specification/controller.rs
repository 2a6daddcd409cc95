//! A controller, as the catalogue describes it.

use crate::catalogue::Reader;
use crate::hardware::Hint;
use crate::hardware::controller::acsi::AcsiConfig;
use crate::hardware::controller::massbus::{Attention, MassbusConfig};
use crate::hardware::controller::uda50::{Order, Uda50Config};
use crate::hardware::controller::vme::{
    Caching, MOST_AHEAD_SECTORS, Maintenance, Policy, VerifyPass, VmeConfig,
};
use crate::hardware::controller::wd1003::Wd1003Config;
use diskperf_sim::Time;

/// A controller.
#[derive(Clone, Debug)]
pub enum ControllerSpecification {
    /// A MASSBUS adaptor, or what looks like one; one for all drives, or one
    /// for each.
    Massbus {
        /// How it is built.
        config: MassbusConfig,
        /// Whether each drive has one for itself.
        separate: bool,
    },
    /// A UDA50.
    Uda50(Uda50Config),
    /// A controller of the PC-AT's kind.
    Wd1003(Wd1003Config),
    /// A controller for the VMEbus.
    Vme(VmeConfig),
    /// A disk on the DMA port of an Atari ST.
    Acsi(AcsiConfig),
}

#[derive(Clone, Copy)]
enum Kind {
    Massbus,
    Uda50,
    Wd1003,
    Vme,
    Unpublished,
    Acsi,
}

impl ControllerSpecification {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let kinds = [
            ("massbus", Kind::Massbus),
            ("uda50", Kind::Uda50),
            ("wd1003", Kind::Wd1003),
            ("vme", Kind::Vme),
            ("unpublished", Kind::Unpublished),
            ("acsi", Kind::Acsi),
        ];
        let kind = reader.choice("kind", &kinds, "what it is to the software");
        let buffer = reader.integer("buffer_sectors", 1..=1_000_000, "sectors that it buffers");
        match kind {
            Kind::Massbus => Self::read_massbus(reader),
            Kind::Uda50 => Self::Uda50(read_uda50(reader, buffer as u32)),
            Kind::Wd1003 => Self::Wd1003(read_wd1003(reader, buffer as u32)),
            Kind::Vme => Self::Vme(read_vme(reader, buffer as u32)),
            Kind::Unpublished => {
                reader.fail_allowing(
                    "kind",
                    "no document of the catalogue prints a number of this controller, so that a model of it would be invented",
                    "a kind that is known; copy the file of a controller like it and say what you assume",
                );
                Self::Vme(VmeConfig::unknown())
            }
            Kind::Acsi => Self::Acsi(read_acsi(reader)),
        }
    }

    fn read_massbus(reader: &mut Reader<'_>) -> Self {
        let separate = reader.flag("separate_adaptors", "each drive on an adaptor of its own");
        let attention = reader.choice(
            "attention",
            &[
                ("while-transferring", Attention::WhileTransferring),
                ("when-idle", Attention::WhenIdle),
            ],
            "when a drive may say that it has found its sector",
        );
        let reads_whole_sectors = reader.flag(
            "reads_whole_sectors",
            "whether a sector that is read goes on to memory only when all of it has come and was checked",
        );
        let mut time = |key, doc| Time(reader.milliseconds(key, 0.0..=1000.0, doc));
        let search_poll_per_drive = time(
            "search_poll_per_drive_ms",
            "how long each drive on it makes its round of looking for commands to search; 0 where searching is wired",
        );
        let search_command = time(
            "search_command_ms",
            "how long it then takes to act on it; 0 where searching is wired",
        );
        let command = time("command_ms", "from a command to something acting on it");
        let mut share = |key, doc| reader.number(key, 0.0..=1.0, doc);
        let config = MassbusConfig {
            attention,
            search_poll_per_drive,
            search_command,
            command,
            reads_whole_sectors,
            data_late: share(
                "data_late_per_sector",
                "probability that a sector is late while the processor works",
            ),
            data_late_idle_share: share(
                "data_late_idle_share",
                "share of that probability while the processor idles",
            ),
            fails_again: true,
        };
        Self::Massbus { config, separate }
    }
}

fn read_wd1003(reader: &mut Reader<'_>, buffer_sectors: u32) -> Wd1003Config {
    let mut time = |key, doc| Time(reader.milliseconds(key, 0.0..=1000.0, doc));
    Wd1003Config {
        buffer_sectors,
        command: time("command_ms", "from a command to looking for its sector"),
        command_poll: time(
            "command_poll_ms",
            "how often its processor looks for a command; 0 where that is wired",
        ),
    }
}

fn read_acsi(reader: &mut Reader<'_>) -> AcsiConfig {
    let mut time = |key, doc| Time(reader.milliseconds(key, 0.0..=1000.0, doc));
    AcsiConfig {
        command: time("command_ms", "from a command to looking for its sector"),
        command_poll: time(
            "command_poll_ms",
            "how often its processor looks for a command; 0 where that is wired",
        ),
    }
}

fn read_uda50(reader: &mut Reader<'_>, buffer_sectors: u32) -> Uda50Config {
    let credits = reader.integer(
        "credits",
        2..=64,
        "commands that the host may have under way",
    );
    let mut time = |key, doc| Time(reader.milliseconds(key, 0.0..=1000.0, doc));
    let decode = time(
        "decode_ms",
        "its processor, for each command before anything moves",
    );
    let finish = time(
        "finish_ms",
        "its processor, for each command when all has moved",
    );
    let finish_per_sector = time("finish_per_sector_ms", "the same, for each sector of it");
    Uda50Config {
        buffer_sectors,
        credits: credits as u32,
        decode,
        finish,
        finish_per_sector,
        spread: reader.number(
            "finish_spread",
            0.0..=1.0,
            "how far the three may be off their mean, as a share of it",
        ),
        order: reader.choice(
            "order",
            &[("arrival", Order::Arrival), ("nearest", Order::Nearest)],
            "which of a drive's commands is next",
        ),
        overlap_decode: reader.flag(
            "overlap_decode",
            "whether a drive's next command is decoded while one is carried out",
        ),
    }
}

/// What a controller for the VMEbus keeps of what it reads.
#[derive(Clone, Copy)]
enum Keeps {
    Nothing,
    Tracks,
    Sectors,
}

fn read_vme(reader: &mut Reader<'_>, capacity_sectors: u32) -> VmeConfig {
    let mut time = |key, doc| Time(reader.milliseconds(key, 0.0..=1000.0, doc));
    let command = time("command_ms", "its processor, for each command");
    let command_poll = time(
        "command_poll_ms",
        "how often its processor looks for a command; 0 where that is wired",
    );
    let move_per_sector = time(
        "move_sector_ms",
        "its processor, for each sector that goes between its memory and the host's",
    );
    let write_lead = reader.integer(
        "write_lead_sectors",
        1..=1000,
        "sectors of a write that it fetches before it starts the drive; all, of a shorter one",
    );
    let kinds = [
        ("none", Keeps::Nothing),
        ("tracks", Keeps::Tracks),
        ("sectors", Keeps::Sectors),
    ];
    let keeps = reader.choice("cache", &kinds, "what it keeps of what it reads");
    let caching = match keeps {
        Keeps::Nothing => Caching::None,
        Keeps::Tracks => Caching::Tracks {
            capacity_sectors,
            flushed_by_writes: reader
                .flag("flushed_by_writes", "whether any write empties the cache"),
        },
        Keeps::Sectors => Caching::Sectors {
            capacity_sectors,
            policies: read_policies(reader),
            adaptive: reader.flag(
                "adaptive",
                "whether it chooses bits and read-ahead by itself, from what is asked; those that are given mean nothing then",
            ),
        },
    };
    VmeConfig {
        command,
        command_poll,
        move_per_sector,
        write_lead_sectors: write_lead as u32,
        maintenance: read_maintenance(reader),
        caching,
    }
}

/// How it formats; nothing where its file does not say.
fn read_maintenance(reader: &mut Reader<'_>) -> Option<Maintenance> {
    let track_command = reader.optional_milliseconds(
        "maintenance_track_ms",
        0.0..=1000.0,
        "between two operations on tracks, when it formats or verifies; nothing is known of that if absent",
    )?;
    let kinds = [("read", VerifyPass::Read), ("pattern", VerifyPass::Pattern)];
    Some(Maintenance {
        track_command: Time(track_command),
        format_check: reader.flag("format_check", "whether each track is read after it has been formatted"),
        verify: reader.choice("verify_pass", &kinds, "what a verify pass does: the board reads, or the host has a pattern written and compares it"),
    })
}

/// What is done for each class of accesses; the same for all, where that is
/// said.
fn read_policies(reader: &mut Reader<'_>) -> [Policy; 3] {
    let own = Hint::ALL.map(|class| read_policy(reader, class));
    let bits = reader.optional_text(
        "cache_bits",
        "cache bits of all accesses, in place of those of the three kinds",
    );
    let ahead = reader.optional_integer(
        "read_ahead_sectors",
        0..=u64::from(MOST_AHEAD_SECTORS),
        "sectors read ahead of all accesses, in place of those of the three kinds",
    );
    own.map(|own| {
        let of_all = bits
            .as_ref()
            .map(|bits| Policy::parse(bits, own.ahead_sectors));
        let policy = of_all.unwrap_or(Ok(own)).unwrap_or_else(|why| {
            reader.fail("cache_bits", &why);
            own
        });
        Policy {
            ahead_sectors: ahead.map_or(policy.ahead_sectors, |ahead| ahead as u32),
            ..policy
        }
    })
}

fn read_policy(reader: &mut Reader<'_>, class: Hint) -> Policy {
    let of = match class {
        Hint::Raw => "accesses past the file system",
        Hint::FileWhole => "the file system's accesses in multiples of 4 KB",
        Hint::FilePart => "the file system's other accesses",
    };
    let key = format!("{}_cache_bits", class.name());
    let doc = format!(
        "cache bits of {of}: SEA, CRD, RAP, CWT, SRD, SWT, XHD, XCY, joined by |; 0 for none"
    );
    let bits = reader.text(&key, &doc);
    let ahead = reader.integer(
        &format!("{}_read_ahead_sectors", class.name()),
        0..=u64::from(MOST_AHEAD_SECTORS),
        &format!("sectors read ahead of {of}"),
    );
    match Policy::parse(&bits, ahead as u32) {
        Ok(policy) => policy,
        Err(why) => {
            reader.fail(&key, &why);
            Policy::default()
        }
    }
}
