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
pub struct BlockKeyTable {
    /// Name of the block type, such as `disksim_disk`.
    pub kind: &'static str,
    /// Treatment of a missing key that the reader needs.
    pub missing_key_treatment: MissingKey,
    /// Keys that DiskSim has in this type of block.
    pub keys: &'static [SpecificationKey],
}

/// Key of a DiskSim block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpecificationKey {
    /// Name of the key, with one blank between words.
    pub name: &'static str,
    /// Values that DiskSim accepts for the key.
    pub legal_values: LegalValues,
    /// Whether DiskSim complains about a block without the key.
    pub is_required: bool,
    /// Effect of the key on the modelled drive.
    pub effect: KeyEffect,
}

/// Values that DiskSim accepts for a key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LegalValues {
    /// Whole number (DiskSim's type I).
    Integer {
        /// Minimum that DiskSim accepts; `None` means no minimum.
        min: Option<i64>,
        /// Maximum that DiskSim accepts.
        max: IntegerMax,
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
pub enum IntegerMax {
    /// No maximum of the whole number.
    None,
    /// Maximum that is the same for all files.
    Value(i64),
    /// Maximum equal to the number of sectors of the disk.
    DiskSectors,
    /// Maximum equal to the value of another key of the block, but at least 1.
    OtherKey(&'static str),
}

/// Effect of a key on the modelled drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KeyEffect {
    /// Value that the modelled drive uses.
    Used,
    /// No effect; the text is the reason.
    Ignored(&'static str),
    /// Fixed behaviour: the modelled drive acts as with this value, whatever the file contains; the
    /// text is the reason.
    Substituted(f64, &'static str),
}

/// Treatment of a missing key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingKey {
    /// Error, because a drive cannot be modelled without the key.
    Reject,
    /// Warning, and the value 0 as in DiskSim.
    UseZero,
    /// No reaction, because no result depends on the key.
    Accept,
}

/// Key tables, in the order of the documentation.
pub const BLOCK_TABLES: &[BlockKeyTable] = &[
    BlockKeyTable::new("disksim_disk", MissingKey::UseZero, drive::DISK),
    BlockKeyTable::new("disksim_ioqueue", MissingKey::UseZero, drive::QUEUE),
    BlockKeyTable::new("dm_disk", MissingKey::Reject, model::DISK),
    BlockKeyTable::new("dm_mech_g1", MissingKey::Reject, model::MECHANICS),
    BlockKeyTable::new("dm_layout_g1", MissingKey::Reject, model::ZONED),
    BlockKeyTable::new("dm_layout_g1_zone", MissingKey::Reject, model::ZONE),
    BlockKeyTable::new("dm_layout_g2", MissingKey::Reject, model::MAPPED),
    BlockKeyTable::new("dm_layout_g2_zone", MissingKey::Reject, model::MAPPED_ZONE),
    BlockKeyTable::new("dm_layout_g4", MissingKey::Reject, model::INDEXED),
    BlockKeyTable::new("disksim_bus", MissingKey::UseZero, run::BUS),
    BlockKeyTable::new("disksim_ctlr", MissingKey::UseZero, run::CONTROLLER),
    BlockKeyTable::new("disksim_iodriver", MissingKey::Accept, run::DRIVER),
    BlockKeyTable::new("disksim_logorg", MissingKey::Accept, run::LOGORG),
    BlockKeyTable::new("disksim_synthgen", MissingKey::Accept, run::SYNTHGEN),
    BlockKeyTable::new("disksim_synthio", MissingKey::Accept, run::SYNTHIO),
    BlockKeyTable::new("disksim_pf", MissingKey::Accept, run::PROCESS_FLOW),
    BlockKeyTable::new("disksim_simpledisk", MissingKey::Accept, run::SIMPLE_DISK),
    BlockKeyTable::new("disksim_cachemem", MissingKey::Accept, run::CACHE_MEMORY),
    BlockKeyTable::new("disksim_iosim", MissingKey::Accept, run::IOSIM),
    BlockKeyTable::new("disksim_global", MissingKey::Accept, run::GLOBAL),
];

impl BlockKeyTable {
    const fn new(
        kind: &'static str,
        missing: MissingKey,
        keys: &'static [SpecificationKey],
    ) -> BlockKeyTable {
        BlockKeyTable {
            kind,
            missing_key_treatment: missing,
            keys,
        }
    }

    /// Returns the key table of a type of block, if it has one.
    pub fn find(kind: &str) -> Option<&'static BlockKeyTable> {
        BLOCK_TABLES.iter().find(|block| block.kind == kind)
    }

    /// Returns the key with this name.
    pub fn find_key(&self, name: &str) -> Option<&'static SpecificationKey> {
        self.keys.iter().find(|key| key.name == name)
    }
}

impl LegalValues {
    /// Describes the legal values of a key. `limit` is a maximum that depends on another value of
    /// the file.
    pub fn describe(&self, limit: Option<i64>) -> String {
        match *self {
            LegalValues::Integer { min, max } => {
                let largest = match max {
                    IntegerMax::None => None,
                    IntegerMax::Value(value) => Some(value.to_string()),
                    IntegerMax::DiskSectors => {
                        Some(describe_file_limit(limit, "the sectors of the disk"))
                    }
                    IntegerMax::OtherKey(key) => {
                        Some(describe_file_limit(limit, &format!("`{key}`")))
                    }
                };
                describe_range("a whole number", min.map(|min| min.to_string()), largest)
            }
            LegalValues::Number {
                min: Some(min),
                is_above_min: true,
                ..
            } => format!("a number above {min}"),
            LegalValues::Number { min, max, .. } => describe_range(
                "a number",
                min.map(|min| min.to_string()),
                max.map(|max| max.to_string()),
            ),
            LegalValues::Word => "a word".to_owned(),
            LegalValues::List => "a list: `[ .. ]`".to_owned(),
            LegalValues::Block => "a block: `type { .. }`".to_owned(),
        }
    }
}

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
    for BlockKeyTable { kind, keys, .. } in BLOCK_TABLES {
        write!(page, "\n## {kind}\n\n").expect("memory takes text");
        page.push_str("| key | values | effect |\n|---|---|---|\n");
        for key in *keys {
            let optional = if key.is_required { "" } else { "; optional" };
            let effect = match key.effect {
                KeyEffect::Used => "used".to_owned(),
                KeyEffect::Ignored(why) => format!("none: {why}"),
                KeyEffect::Substituted(value, why) => format!("acts as {value}: {why}"),
            };
            let (name, legal) = (key.name, key.legal_values.describe(None));
            writeln!(page, "| `{name}` | {legal}{optional} | {effect} |")
                .expect("memory takes text");
        }
    }
    page
}

const fn key(name: &'static str, legal: LegalValues, effect: KeyEffect) -> SpecificationKey {
    SpecificationKey {
        name,
        legal_values: legal,
        is_required: true,
        effect,
    }
}

/// Creates a key for a whole number with a maximum from the file or the table.
const fn integer_range(
    name: &'static str,
    min: i64,
    max: IntegerMax,
    effect: KeyEffect,
) -> SpecificationKey {
    let min = Some(min);
    key(name, LegalValues::Integer { min, max }, effect)
}

const fn integer_between(
    name: &'static str,
    min: i64,
    max: i64,
    effect: KeyEffect,
) -> SpecificationKey {
    integer_range(name, min, IntegerMax::Value(max), effect)
}

const fn integer_at_least(name: &'static str, min: i64, effect: KeyEffect) -> SpecificationKey {
    integer_range(name, min, IntegerMax::None, effect)
}

const fn integer(name: &'static str, effect: KeyEffect) -> SpecificationKey {
    let (min, max) = (None, IntegerMax::None);
    key(name, LegalValues::Integer { min, max }, effect)
}

const fn flag(name: &'static str, effect: KeyEffect) -> SpecificationKey {
    integer_between(name, 0, 1, effect)
}

const fn number(name: &'static str, effect: KeyEffect) -> SpecificationKey {
    number_range(name, None, None, effect)
}

/// Creates a key for a number that is not negative, such as a time or a scale.
const fn time_ms(name: &'static str, effect: KeyEffect) -> SpecificationKey {
    number_range(name, Some(0.0), None, effect)
}

/// Creates a key for a number from 0 to 1.
const fn share(name: &'static str, effect: KeyEffect) -> SpecificationKey {
    number_range(name, Some(0.0), Some(1.0), effect)
}

const fn number_range(
    name: &'static str,
    min: Option<f64>,
    max: Option<f64>,
    effect: KeyEffect,
) -> SpecificationKey {
    let is_above_min = false;
    let legal = LegalValues::Number {
        min,
        is_above_min,
        max,
    };
    key(name, legal, effect)
}

/// Creates a key for a number above 0.
const fn positive(name: &'static str, effect: KeyEffect) -> SpecificationKey {
    let legal = LegalValues::Number {
        min: Some(0.0),
        is_above_min: true,
        max: None,
    };
    key(name, legal, effect)
}

const fn word(name: &'static str, effect: KeyEffect) -> SpecificationKey {
    key(name, LegalValues::Word, effect)
}

const fn list(name: &'static str, effect: KeyEffect) -> SpecificationKey {
    key(name, LegalValues::List, effect)
}

const fn block(name: &'static str, effect: KeyEffect) -> SpecificationKey {
    key(name, LegalValues::Block, effect)
}

const fn optional(mut key: SpecificationKey) -> SpecificationKey {
    key.is_required = false;
    key
}
