//! The keys of DiskSim's blocks: type, range, and what comes of each. The reader, the checks,
//! the tests and `docs/reference/disksim-keys.md` go by these tables.
//!
//! Names, types and ranges are those that DiskSim 4.0 checks when it reads a file.

mod drive;
mod model;
mod run;

use std::fmt::Write;

pub(crate) use run::{LOAD, ONE_REQUEST, OTHER_CACHE, OUTPUT, SIMPLE, WHOLE_DRIVE};

/// A type of block, and its keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockKeys {
    /// Type of the block, as `disksim_disk`.
    pub kind: &'static str,
    /// What the reader does about a key that is missing and that it needs.
    pub missing: Missing,
    /// The keys that DiskSim has for it.
    pub keys: &'static [Key],
}

/// A key of a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Key {
    /// Name with one blank between its words.
    pub name: &'static str,
    /// The values that DiskSim accepts.
    pub legal: Legal,
    /// Whether DiskSim reports a block without it.
    pub is_required: bool,
    /// What comes of it.
    pub effect: Effect,
}

/// Values that DiskSim accepts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Legal {
    /// A whole number (I).
    Whole {
        /// Smallest value; any if absent.
        min: Option<i64>,
        /// Largest value.
        max: Max,
    },
    /// A number with or without a point (D).
    Number {
        /// Smallest value; any if absent.
        min: Option<f64>,
        /// Whether the smallest value itself is refused.
        is_above_min: bool,
        /// Largest value; any if absent.
        max: Option<f64>,
    },
    /// A word, as the name of a file (S).
    Word,
    /// A list, `[ .. ]` (L).
    List,
    /// A block, `type { .. }` (B).
    Block,
}

/// Largest value of a whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Max {
    /// Any.
    None,
    /// This value.
    Value(i64),
    /// The sectors of the disk.
    Sectors,
    /// The value of another key of the block; 1 if that is less.
    OfKey(&'static str),
}

/// What comes of a key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Effect {
    /// The modelled drive depends on its value.
    Used,
    /// Nothing, with the reason.
    None(&'static str),
    /// The modelled drive acts as with this value, whatever the file has, with the reason.
    ActsAs(f64, &'static str),
}

/// What is done about a key that is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// It is an error: there is no drive without it.
    Refuse,
    /// It is said, and 0 is taken, as DiskSim does.
    Zero,
    /// Nothing depends on it.
    Nothing,
}

/// The tables, in the order of the documentation.
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

    /// The table of a type of block, if it has one.
    pub fn find(kind: &str) -> Option<&'static BlockKeys> {
        BLOCKS.iter().find(|block| block.kind == kind)
    }

    /// The key of this name.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

impl Legal {
    /// Describes the legal values where `limit` is the value of a maximum that another value
    /// of the file gives.
    pub fn describe(&self, limit: Option<i64>) -> String {
        match *self {
            Legal::Whole { min, max } => {
                let largest = match max {
                    Max::None => None,
                    Max::Value(value) => Some(value.to_string()),
                    Max::Sectors => Some(of_file(limit, "the sectors of the disk")),
                    Max::OfKey(key) => Some(of_file(limit, &format!("`{key}`"))),
                };
                range("a whole number", min.map(|min| min.to_string()), largest)
            }
            Legal::Number {
                min: Some(min),
                is_above_min: true,
                ..
            } => format!("a number above {min}"),
            Legal::Number { min, max, .. } => range(
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

/// A maximum and where it comes from.
fn of_file(limit: Option<i64>, from: &str) -> String {
    match limit {
        Some(limit) => format!("{limit}, {from}"),
        None => from.to_owned(),
    }
}

fn range(what: &str, min: Option<String>, max: Option<String>) -> String {
    match (min, max) {
        (Some(min), Some(max)) => format!("{what} from {min} to {max}"),
        (Some(min), None) => format!("{what} of at least {min}"),
        (None, Some(max)) => format!("{what} of at most {max}"),
        (None, None) => what.to_owned(),
    }
}

/// The tables as a page of the documentation.
pub fn page() -> String {
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

/// A whole number up to what the file or the table says.
const fn whole(name: &'static str, min: i64, max: Max, effect: Effect) -> Key {
    let min = Some(min);
    key(name, Legal::Whole { min, max }, effect)
}

const fn between(name: &'static str, min: i64, max: i64, effect: Effect) -> Key {
    whole(name, min, Max::Value(max), effect)
}

const fn at_least(name: &'static str, min: i64, effect: Effect) -> Key {
    whole(name, min, Max::None, effect)
}

/// Any whole number.
const fn integer(name: &'static str, effect: Effect) -> Key {
    let (min, max) = (None, Max::None);
    key(name, Legal::Whole { min, max }, effect)
}

const fn flag(name: &'static str, effect: Effect) -> Key {
    between(name, 0, 1, effect)
}

/// Any number.
const fn number(name: &'static str, effect: Effect) -> Key {
    reals(name, None, None, effect)
}

/// A number that is not negative: times and scales.
const fn time(name: &'static str, effect: Effect) -> Key {
    reals(name, Some(0.0), None, effect)
}

/// A number from 0 to 1.
const fn share(name: &'static str, effect: Effect) -> Key {
    reals(name, Some(0.0), Some(1.0), effect)
}

const fn reals(name: &'static str, min: Option<f64>, max: Option<f64>, effect: Effect) -> Key {
    let is_above_min = false;
    let legal = Legal::Number {
        min,
        is_above_min,
        max,
    };
    key(name, legal, effect)
}

/// A number above 0.
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
