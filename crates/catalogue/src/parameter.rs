//! A number that a run was made with: its path, value, unit, range and source.

/// One parameter of a resolved system, as `list parameters` shows it and as
/// `--set` may change it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The path for `--set`: `drive.seek_average_ms`; `drive.2.seek_average_ms`
    /// where the second drive has a value of its own.
    pub path: String,
    /// The value as it is written: `18`.
    pub value: String,
    /// The unit that the key carries: `ms`. Empty for text, flags and choices.
    pub unit: &'static str,
    /// What is allowed: `0 to 1000`, `arrival | nearest`.
    pub range: String,
    /// Where the value comes from, in words. Empty if its file does not say.
    pub source: String,
    /// The file that it stands in; `--set` for a setting.
    pub file: String,
    /// The line in that file, from one.
    pub line: usize,
    /// What the value means.
    pub doc: String,
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A document, a source file, or arithmetic on those.
    Documented,
    /// Chosen to make a set of published numbers come out: a free parameter.
    Calibrated {
        /// The set's name in `published/calibration.toml`.
        set: String,
        /// Who chose it.
        by: Chooser,
    },
    /// Neither: a recollection or a plausible value, and no cell needs it.
    Assumed,
}

/// Who chose a calibrated value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chooser {
    /// A search for the least squares, which `tools/calibrate` repeats.
    Fit,
    /// Somebody who had the cells in view. A fit to the same cells does not
    /// determine the value, or it is a rule and not a number.
    Hand,
}

/// How the source of a value starts that a fit chose.
const CALIBRATED: &str = "calibrated on:";
/// How the source of a value starts that somebody chose by the cells.
const BY_HAND: &str = "calibrated by hand on:";
/// How the source of an assumed value starts.
const ASSUMED: &str = "assumed:";
/// How the source starts that a fit of somebody's own observations writes: which
/// those were the catalogue does not know, so it is as free as what is assumed.
const FITTED: &str = "fitted:";

impl Parameter {
    /// Whether the value is documented, free, or assumed.
    pub fn origin(&self) -> Origin {
        Origin::of(&self.source)
    }
}

impl Origin {
    /// The origin that a `source` states: `calibrated on: SET; REMARK`,
    /// `calibrated by hand on: SET; REMARK`, `assumed: REASON` and
    /// `fitted: WHAT`; anything else is a document.
    pub fn of(source: &str) -> Origin {
        let calibrated = |set: &str, by| {
            let set = set.split(';').next().unwrap_or(set);
            let set = set.trim().to_string();
            Origin::Calibrated { set, by }
        };
        if let Some(set) = source.strip_prefix(CALIBRATED) {
            calibrated(set, Chooser::Fit)
        } else if let Some(set) = source.strip_prefix(BY_HAND) {
            calibrated(set, Chooser::Hand)
        } else if source.starts_with(ASSUMED) || source.starts_with(FITTED) {
            Origin::Assumed
        } else {
            Origin::Documented
        }
    }
}

/// The endings of keys that carry a unit, the longest first where one ends in
/// another.
const SUFFIXES: &[(&str, &str)] = &[
    ("_ms_per_kb", "ms per KB"),
    ("_us_per_kb", "us per KB"),
    ("_bytes_per_s", "bytes/s"),
    ("_per_drive_ms", "ms per drive"),
    ("_per_sector_ms", "ms per sector"),
    ("_sectors_per_track", "sectors per track"),
    ("_per_request", "blocks per request"),
    ("_ms", "ms"),
    ("_us", "us"),
    ("_ns", "ns"),
    ("_interval_s", "s"),
    ("_bytes", "bytes"),
    ("_kb", "KB"),
    ("_mb", "MB"),
    ("_sectors", "sectors"),
    ("_tracks", "tracks"),
    ("_cylinder", "cylinder number"),
    ("_cylinders", "cylinders"),
    ("_heads", "heads"),
    ("_blocks", "blocks"),
    ("_percent", "percent"),
    ("_share", "share"),
    ("_rpm", "rpm"),
    ("_hz", "Hz"),
    ("_s", "s"),
];

/// Keys whose name is the unit, or that count or compare.
const WHOLE_KEYS: &[(&str, &str)] = &[
    ("cylinders", "cylinders"),
    ("heads", "tracks per cylinder"),
    ("sectors_per_track", "sectors per track"),
    ("cylinders_per_group", "cylinders"),
    ("blocks_per_section", "blocks"),
    ("bytes_per_inode", "bytes"),
    ("bytes_per_s", "bytes/s"),
    ("maxcontig", "blocks"),
    ("interleave", "sectors apart"),
    ("zones", "[cylinder, sectors per track]"),
    ("credits", "commands"),
    ("data_late_per_sector", "events per sector"),
    ("finish_spread", "share"),
    ("speed", "times the machine that costs are given for"),
    ("drives", "drives"),
    ("sectors", "sectors"),
    ("servers", "requests"),
    ("queue_depth", "requests"),
    ("recording_zones", "zones"),
    ("tracks_per_band", "tracks"),
    ("cache_segments", "segments"),
    ("write_cache_extents", "extents"),
    ("media_cache_extents", "extents"),
    ("medium_sectors", "sectors"),
    ("channels", "channels"),
    ("dies_per_channel", "dies"),
    ("dies_erasing", "dies"),
    ("planes", "planes"),
    ("blocks_per_plane", "blocks"),
    ("word_lines_per_block", "word lines"),
    ("pages_per_word_line", "bits a cell"),
    ("suspends_most", "times"),
    ("journal_pages", "pages"),
    ("journal_programs", "programs"),
    ("journal_changes_per_page", "changes"),
    ("soft_free_superblocks", "superblocks"),
    ("hard_free_superblocks", "superblocks"),
    ("wear_levelling_erases", "erases"),
    ("pcie_generation", "generation"),
    ("pcie_lanes", "lanes"),
    ("read_bytes_per_s_most", "bytes/s"),
    ("write_bytes_per_s_most", "bytes/s"),
    ("command_bytes_most", "bytes"),
];

/// The unit that a key's name carries; empty if it carries none.
pub(crate) fn unit_of(key: &str) -> &'static str {
    let whole = WHOLE_KEYS.iter().find(|(name, _)| *name == key);
    let suffix = || SUFFIXES.iter().find(|(suffix, _)| key.ends_with(suffix));
    whole.or_else(suffix).map_or("", |(_, unit)| unit)
}

/// The key without the suffix that carries its unit.
pub(crate) fn stem_of(key: &str) -> &str {
    let stem = SUFFIXES
        .iter()
        .find_map(|(suffix, _)| key.strip_suffix(suffix));
    stem.unwrap_or(key)
}

/// What one of a time unit is in another, for keys whose units are times.
pub(crate) fn time_ratio(from: &str, to: &str) -> Option<f64> {
    let nanoseconds = |unit: &str| match unit {
        "s" => Some(1e9),
        "ms" => Some(1e6),
        "us" => Some(1e3),
        "ns" => Some(1.0),
        _ => None,
    };
    Some(nanoseconds(from)? / nanoseconds(to)?)
}
