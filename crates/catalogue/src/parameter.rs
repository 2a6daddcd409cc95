//! Parameter of a run: its path, value, unit, range and source.

/// Parameter of a resolved system, as `list parameters` shows it and `--set` may change it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Path for `--set`, such as `drive.seek_average_ms`, or `drive.2.seek_average_ms` if the
    /// second drive has a value of its own.
    pub path: String,
    /// Value of the parameter as text, such as `18`.
    pub value: String,
    /// Unit from the key's name, such as `ms`. Empty for text, flags and choices.
    pub unit: &'static str,
    /// Allowed values, such as `0 to 1000` or `arrival | nearest_names`.
    pub range: String,
    /// Source of the value as text; empty if its file does not state one.
    pub source: String,
    /// Name of the file that contains the value; `--set` for a setting.
    pub file: String,
    /// Line number in that file, from 1.
    pub line: usize,
    /// Description of the parameter.
    pub doc: String,
}

/// Origin of a parameter value: documented, calibrated or assumed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueOrigin {
    /// Document, source file, or arithmetic on such values.
    Documented,
    /// Free parameter, chosen to reproduce a set of published measurements.
    Calibrated {
        /// Name of the calibration set in `published/calibration.toml`.
        set: String,
        /// Method by which the value was chosen.
        by: CalibrationMethod,
    },
    /// Recollection or plausible value, which no published measurement requires.
    Assumed,
}

/// Method by which a calibrated value was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CalibrationMethod {
    /// Least-squares fit, which `tools/calibrate` repeats.
    AutomaticFit,
    /// Manual choice with knowledge of the measurements. Either a fit to the same measurements does
    /// not determine the value, or the value is a rule and not a number.
    ByHand,
}

const CALIBRATED_PREFIX: &str = "calibrated on:";
/// Prefix of the source text of a value that was calibrated manually.
const BY_HAND_PREFIX: &str = "calibrated by hand on:";
const ASSUMED_PREFIX: &str = "assumed:";
/// Prefix of the source text of a value fitted to a user's own observations. The catalogue does not
/// know these observations, so the value counts as assumed.
const FITTED_PREFIX: &str = "fitted:";

impl Parameter {
    /// Returns the origin of the value: documented, calibrated or assumed.
    pub fn origin(&self) -> ValueOrigin {
        ValueOrigin::from_source(&self.source)
    }
}

impl ValueOrigin {
    /// Returns the origin that a `source` text states: `calibrated on: SET; REMARK`, `calibrated by
    /// hand on: SET; REMARK`, `assumed: REASON` or `fitted: WHAT`. Any other text refers to a
    /// document.
    pub fn from_source(source: &str) -> ValueOrigin {
        let calibrated = |set: &str, by| {
            let set = set.split(';').next().unwrap_or(set);
            let set = set.trim().to_string();
            ValueOrigin::Calibrated { set, by }
        };
        if let Some(set) = source.strip_prefix(CALIBRATED_PREFIX) {
            calibrated(set, CalibrationMethod::AutomaticFit)
        } else if let Some(set) = source.strip_prefix(BY_HAND_PREFIX) {
            calibrated(set, CalibrationMethod::ByHand)
        } else if source.starts_with(ASSUMED_PREFIX) || source.starts_with(FITTED_PREFIX) {
            ValueOrigin::Assumed
        } else {
            ValueOrigin::Documented
        }
    }
}

/// Key suffixes with their units. A suffix that ends in another one precedes it.
const UNIT_SUFFIXES: &[(&str, &str)] = &[
    ("_ms_per_kb", "ms per KB"),
    ("_us_per_kb", "us per KB"),
    ("bytes_per_s_per_gib", "bytes/s per GiB"),
    ("bytes_per_s_per_iops", "bytes per request"),
    ("bytes_per_s_limit_per_iops", "bytes per request"),
    ("bytes_per_s_min", "bytes/s"),
    ("bytes_per_s_max", "bytes/s"),
    ("bytes_per_s_limit", "bytes/s"),
    ("bytes_per_s_included", "bytes/s"),
    ("_bytes_per_s", "bytes/s"),
    ("iops_per_gib", "requests/s per GiB"),
    ("iops_limit_per_gib", "requests/s per GiB"),
    ("iops_min", "requests/s"),
    ("iops_max", "requests/s"),
    ("iops_limit", "requests/s"),
    ("iops_included", "requests/s"),
    ("iops", "requests/s"),
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

/// Keys with a unit that is not a suffix: the whole name is the unit, or the key is a count or a
/// ratio.
const KEY_UNITS: &[(&str, &str)] = &[
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
    ("size_gib", "GiB"),
    ("size_gib_min", "GiB"),
    ("size_gib_max", "GiB"),
    ("small_gib", "GiB"),
    ("merge_streams", "streams"),
    ("service_shares_ppm", "millionths"),
    ("burst_requests", "requests"),
    ("burst_bytes_per_gib", "bytes per GiB"),
];

/// Returns the unit in a key's name; empty if there is none.
pub(crate) fn key_unit(key: &str) -> &'static str {
    let whole = KEY_UNITS.iter().find(|(name, _)| *name == key);
    let suffix = || {
        UNIT_SUFFIXES
            .iter()
            .find(|(suffix, _)| key.ends_with(suffix))
    };
    whole.or_else(suffix).map_or("", |(_, unit)| unit)
}

/// Returns the key without its unit suffix.
pub(crate) fn key_without_unit(key: &str) -> &str {
    let stem = UNIT_SUFFIXES
        .iter()
        .find_map(|(suffix, _)| key.strip_suffix(suffix));
    stem.unwrap_or(key)
}

/// Returns the ratio between two time units, or `None` if one is not a time unit.
pub(crate) fn time_unit_ratio(from: &str, to: &str) -> Option<f64> {
    let nanoseconds = |unit: &str| match unit {
        "s" => Some(1e9),
        "ms" => Some(1e6),
        "us" => Some(1e3),
        "ns" => Some(1.0),
        _ => None,
    };
    Some(nanoseconds(from)? / nanoseconds(to)?)
}
