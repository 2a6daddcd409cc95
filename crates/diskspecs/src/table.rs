//! Tables of the keys of DiskSim's blocks with type, range and effect. The reader, the checks, the
//! tests and `docs/reference/disksim-keys.md` are based on these tables.
//!
//! Names, types and ranges are those that DiskSim 4.0 checks when it reads a file.

mod drive;
mod model;
mod run;

use std::fmt::Write;

pub(crate) use run::{
    CONSTANT_TIMES, DISKSIM_OUTPUT, LOAD_FROM_TRACE, ONE_REQUEST_AT_A_TIME, SEPARATE_CACHE,
    SINGLE_DRIVE,
};

/// Type of block with its keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockKeys {
    /// Name of the block type, such as `disksim_disk`.
    pub kind: &'static str,
    /// Treatment of a missing key that the reader needs.
    pub missing: Missing,
    /// Keys that DiskSim has in this type of block.
    pub keys: &'static [Key],
}

/// Key of a DiskSim block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Key {
    /// Name of the key, with one blank between words.
    pub name: &'static str,
    /// Values that DiskSim accepts for the key.
    pub legal: Legal,
    /// Whether DiskSim complains about a block without the key.
    pub is_required: bool,
    /// Effect of the key on the modelled drive.
    pub effect: Effect,
}

/// Values that DiskSim accepts for a key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Legal {
    /// Whole number (DiskSim's type I).
    Whole {
        /// Minimum that DiskSim accepts; `None` means no minimum.
        min: Option<i64>,
        /// Maximum that DiskSim accepts.
        max: Max,
    },
    /// Number with or without a decimal point (DiskSim's type D).
    Number {
        /// Minimum that DiskSim accepts; `None` means no minimum.
        min: Option<f64>,
        /// Whether DiskSim rejects the minimum itself.
        is_above_min: bool,
        /// Maximum that DiskSim accepts; `None` means no maximum.
        max: Option<f64>,
    },
    /// Word, such as a file name (DiskSim's type S).
    Word,
    /// List, `[ .. ]` (DiskSim's type L).
    List,
    /// Nested block, `type { .. }` (DiskSim's type B).
    Block,
}

/// Maximum of a whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Max {
    /// No maximum of the whole number.
    None,
    /// Maximum that is the same for all files.
    Value(i64),
    /// Maximum equal to the number of sectors of the disk.
    Sectors,
    /// Maximum equal to the value of another key of the block, but at least 1.
    OfKey(&'static str),
}

/// Effect of a key on the modelled drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Effect {
    /// Value that the modelled drive uses.
    Used,
    /// No effect; the text is the reason.
    None(&'static str),
    /// Fixed behaviour: the modelled drive acts as with this value, whatever the file contains; the
    /// text is the reason.
    ActsAs(f64, &'static str),
}

/// Treatment of a missing key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Error, because a drive cannot be modelled without the key.
    Refuse,
    /// Warning, and the value 0 as in DiskSim.
    Zero,
    /// No reaction, because no result depends on the key.
    Nothing,
}

/// Key tables, in the order of the documentation.
pub const BLOCKS: &[BlockKeys] = &[
    BlockKeys::new("disksim_disk", Missing::Zero, drive::DISK),
    BlockKeys::new("disksim_ioqueue", Missing::Zero, drive::QUEUE),
    BlockKeys::new("dm_disk", Missing::Refuse, model::DISK),
    BlockKeys::new("dm_mech_g1", Missing::Refuse, model::MECHANICS),
    BlockKeys::new("dm_layout_g1", Missing::Refuse, model::ZONED),
    BlockKeys::new("dm_layout_g1_zone", Missing::Refuse, model::ZONE),
    BlockKeys::new("dm_layout_g2", Missing::Refuse, model::MAPPED),
    BlockKeys::new("dm_layout_g2_zone", Missing::Refuse, model::MAPPED_ZONE),
    BlockKeys::new("dm_layout_g4", Missing::Refuse, model::INDEXED),
    BlockKeys::new("disksim_bus", Missing::Zero, run::BUS),
    BlockKeys::new("disksim_ctlr", Missing::Zero, run::CONTROLLER),
    BlockKeys::new("disksim_iodriver", Missing::Nothing, run::DRIVER),
    BlockKeys::new("disksim_logorg", Missing::Nothing, run::LOGORG),
    BlockKeys::new("disksim_synthgen", Missing::Nothing, run::SYNTHGEN),
    BlockKeys::new("disksim_synthio", Missing::Nothing, run::SYNTHIO),
    BlockKeys::new("disksim_pf", Missing::Nothing, run::PROCESS_FLOW),
    BlockKeys::new("disksim_simpledisk", Missing::Nothing, run::SIMPLE_DISK),
    BlockKeys::new("disksim_cachemem", Missing::Nothing, run::CACHE_MEMORY),
    BlockKeys::new("disksim_iosim", Missing::Nothing, run::IOSIM),
    BlockKeys::new("disksim_global", Missing::Nothing, run::GLOBAL),
];

impl BlockKeys {
    const fn new(kind: &'static str, missing: Missing, keys: &'static [Key]) -> BlockKeys {
        BlockKeys {
            kind,
            missing,
            keys,
        }
    }

    /// Returns the key table of a type of block, if it has one.
    pub fn find(kind: &str) -> Option<&'static BlockKeys> {
        BLOCKS.iter().find(|block| block.kind == kind)
    }

    /// Returns the key with this name.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

impl Legal {
    /// Describes the legal values of a key. `limit` is a maximum that depends on another value of
    /// the file.
    pub fn describe(&self, limit: Option<i64>) -> String {
        match *self {
            Legal::Whole { min, max } => {
                let largest = match max {
                    Max::None => None,
                    Max::Value(value) => Some(value.to_string()),
                    Max::Sectors => Some(describe_file_limit(limit, "the sectors of the disk")),
                    Max::OfKey(key) => Some(describe_file_limit(limit, &format!("`{key}`"))),
                };
                describe_range("a whole number", min.map(|min| min.to_string()), largest)
            }
            Legal::Number {
                min: Some(min),
                is_above_min: true,
                ..
            } => format!("a number above {min}"),
            Legal::Number { min, max, .. } => describe_range(
                "a number",
                min.map(|min| min.to_string()),
                max.map(|max| max.to_string()),
            ),
            Legal::Word => "a word".to_owned(),
            Legal::List => "a list: `[ .. ]`".to_owned(),
            Legal::Block => "a block: `type { .. }`".to_owned(),
        }
    }
}

/// Formats a maximum with its origin.
fn describe_file_limit(limit: Option<i64>, from: &str) -> String {
    match limit {
        Some(limit) => format!("{limit}, {from}"),
        None => from.to_owned(),
    }
}

fn describe_range(what: &str, min: Option<String>, max: Option<String>) -> String {
    match (min, max) {
        (Some(min), Some(max)) => format!("{what} from {min} to {max}"),
        (Some(min), None) => format!("{what} of at least {min}"),
        (None, Some(max)) => format!("{what} of at most {max}"),
        (None, None) => what.to_owned(),
    }
}

/// Formats the tables as a page of the documentation.
pub fn render_page() -> String {
    let mut page = String::new();
    for BlockKeys { kind, keys, .. } in BLOCKS {
        write!(page, "\n## {kind}\n\n").expect("memory takes text");
        page.push_str("| key | values | effect |\n|---|---|---|\n");
        for key in *keys {
            let optional = if key.is_required { "" } else { "; optional" };
            let effect = match key.effect {
                Effect::Used => "used".to_owned(),
                Effect::None(why) => format!("none: {why}"),
                Effect::ActsAs(value, why) => format!("acts as {value}: {why}"),
            };
            let (name, legal) = (key.name, key.legal.describe(None));
            writeln!(page, "| `{name}` | {legal}{optional} | {effect} |")
                .expect("memory takes text");
        }
    }
    page
}

const fn key(name: &'static str, legal: Legal, effect: Effect) -> Key {
    Key {
        name,
        legal,
        is_required: true,
        effect,
    }
}

/// Creates a key for a whole number with a maximum from the file or the table.
const fn integer_range(name: &'static str, min: i64, max: Max, effect: Effect) -> Key {
    let min = Some(min);
    key(name, Legal::Whole { min, max }, effect)
}

const fn integer_between(name: &'static str, min: i64, max: i64, effect: Effect) -> Key {
    integer_range(name, min, Max::Value(max), effect)
}

const fn integer_at_least(name: &'static str, min: i64, effect: Effect) -> Key {
    integer_range(name, min, Max::None, effect)
}

const fn integer(name: &'static str, effect: Effect) -> Key {
    let (min, max) = (None, Max::None);
    key(name, Legal::Whole { min, max }, effect)
}

const fn flag(name: &'static str, effect: Effect) -> Key {
    integer_between(name, 0, 1, effect)
}

const fn number(name: &'static str, effect: Effect) -> Key {
    number_range(name, None, None, effect)
}

/// Creates a key for a number that is not negative, such as a time or a scale.
const fn time_ms(name: &'static str, effect: Effect) -> Key {
    number_range(name, Some(0.0), None, effect)
}

/// Creates a key for a number from 0 to 1.
const fn share(name: &'static str, effect: Effect) -> Key {
    number_range(name, Some(0.0), Some(1.0), effect)
}

const fn number_range(
    name: &'static str,
    min: Option<f64>,
    max: Option<f64>,
    effect: Effect,
) -> Key {
    let is_above_min = false;
    let legal = Legal::Number {
        min,
        is_above_min,
        max,
    };
    key(name, legal, effect)
}

/// Creates a key for a number above 0.
const fn positive(name: &'static str, effect: Effect) -> Key {
    let legal = Legal::Number {
        min: Some(0.0),
        is_above_min: true,
        max: None,
    };
    key(name, legal, effect)
}

const fn word(name: &'static str, effect: Effect) -> Key {
    key(name, Legal::Word, effect)
}

const fn list(name: &'static str, effect: Effect) -> Key {
    key(name, Legal::List, effect)
}

const fn block(name: &'static str, effect: Effect) -> Key {
    key(name, Legal::Block, effect)
}

const fn optional(mut key: Key) -> Key {
    key.is_required = false;
    key
}
