//! Sector layout derived from the values in a data sheet.

use super::specification::{
    HeadDirection, LayoutSpecification, Sparing, TrackOrder, ZoneSpecification,
};
use super::{CYLINDERS_MAX, SECTORS_PER_TRACK_MAX};

/// Data-sheet values of a disk since about 2000, printed or derived: enough for zones, tracks and
/// skews. The track density is constant, so the data rate falls linearly from the outermost to the
/// innermost track.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct DataSheet {
    /// Capacity of the disk that hosts see, in bytes.
    pub capacity_bytes: u64,
    /// Size of a medium sector, in bytes.
    pub sector_bytes: u32,
    /// Number of heads, and of surfaces with data.
    #[cfg_attr(feature = "serde", serde(rename = "heads"))]
    pub head_count: u32,
    /// Capacity of the outermost track, in bytes.
    pub outer_track_bytes: f64,
    /// Data rate of the innermost track divided by that of the outermost track, above 0 and at most
    /// 1.
    #[cfg_attr(feature = "serde", serde(rename = "inner_to_outer"))]
    pub inner_to_outer_ratio: f64,
    /// Number of zones, all with the same number of tracks.
    #[cfg_attr(feature = "serde", serde(rename = "zones"))]
    pub zone_count: u32,
    /// Adjacent tracks of one surface that are filled before the head switches.
    pub tracks_per_band: u32,
    /// Angle by which each track starts later than the previous one (track skew), in revolutions.
    pub track_skew_rev: f64,
    /// Angle by which a track starts later than the previous one after a head switch (head skew),
    /// in revolutions.
    pub head_skew_rev: f64,
}

/// Reason why data-sheet values are invalid.
#[derive(Clone, Debug, PartialEq)]
pub enum DataSheetError {
    /// A data-sheet value is out of range.
    OutOfRange {
        /// Key of the data-sheet value that is out of range.
        key: &'static str,
        /// Value that is out of range.
        value: f64,
        /// Valid range of the value, for the message.
        must: &'static str,
    },
}

impl std::fmt::Display for DataSheetError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::OutOfRange { key, value, must } => {
                write!(formatter, "`{key}` is {value}, and must be {must}")
            }
        }
    }
}

impl std::error::Error for DataSheetError {}

impl DataSheet {
    /// Returns the layout with the fewest cylinders that hold the capacity.
    ///
    /// # Errors
    ///
    /// [`DataSheetError`] when a value is out of range or the disk needs too many cylinders.
    pub fn build_layout(&self) -> Result<LayoutSpecification, DataSheetError> {
        self.validate()?;
        let sectors = self.capacity_bytes.div_ceil(u64::from(self.sector_bytes));
        let mean_track_bytes = self.outer_track_bytes * (1.0 + self.inner_to_outer_ratio) / 2.0;
        let tracks = self.capacity_bytes as f64 / (mean_track_bytes * f64::from(self.head_count));
        let of_zone = |cylinders: u64| cylinders * u64::from(self.head_count);
        let per_track: Vec<u32> = (0..self.zone_count)
            .map(|zone| self.sectors_per_track(zone))
            .collect();
        let over_zones: u64 = per_track.iter().map(|of| u64::from(*of)).sum();
        // The division into zones and whole sectors takes some of the estimate away.
        let mut cylinders = ((tracks / f64::from(self.zone_count)) as u64).max(1);
        let short = |cylinders| of_zone(cylinders) * over_zones < sectors;
        while short(cylinders) {
            cylinders += (sectors - of_zone(cylinders) * over_zones)
                .div_ceil(u64::from(self.head_count) * over_zones)
                .max(1);
        }
        let all = cylinders * u64::from(self.zone_count);
        if all > u64::from(CYLINDERS_MAX) {
            return Err(out_of_range(
                "capacity_bytes",
                self.capacity_bytes as f64,
                CYLINDER_REQUIREMENT,
            ));
        }
        let zone = |(zone, sectors_per_track): (u32, u32)| {
            let first_cylinder = zone * cylinders as u32;
            ZoneSpecification {
                first_cylinder,
                last_cylinder: first_cylinder + cylinders as u32 - 1,
                sectors_per_track,
                track_skew_rev: self.track_skew_rev,
                cylinder_skew_rev: self.head_skew_rev,
                ..ZoneSpecification::default()
            }
        };
        Ok(LayoutSpecification {
            surface_count: self.head_count,
            cylinder_count: all as u32,
            track_order: TrackOrder::SeekFirst {
                tracks: self.tracks_per_band,
                inside: HeadDirection::Alternating,
                surfaces: HeadDirection::Alternating,
            },
            sparing: Sparing::None,
            zones: (0..self.zone_count).zip(per_track).map(zone).collect(),
            extents: Vec::new(),
            sector_count: Some(sectors),
        })
    }

    /// Returns the sectors per track of a zone, as on the track in its middle.
    fn sectors_per_track(&self, zone: u32) -> u32 {
        let middle = (f64::from(zone) + 0.5) / f64::from(self.zone_count);
        let bytes = self.outer_track_bytes * (1.0 - (1.0 - self.inner_to_outer_ratio) * middle);
        ((bytes / f64::from(self.sector_bytes) + 0.5) as u32).max(1)
    }

    fn validate(&self) -> Result<(), DataSheetError> {
        let positive = "at least 1";
        for (key, value) in [
            ("capacity_bytes", self.capacity_bytes as f64),
            ("sector_bytes", f64::from(self.sector_bytes)),
            ("heads", f64::from(self.head_count)),
            ("zones", f64::from(self.zone_count)),
            ("tracks_per_band", f64::from(self.tracks_per_band)),
        ] {
            if value < 1.0 {
                return Err(out_of_range(key, value, positive));
            }
        }
        if !(self.inner_to_outer_ratio > 0.0 && self.inner_to_outer_ratio <= 1.0) {
            let must = "above 0 and at most 1";
            return Err(out_of_range(
                "inner_to_outer",
                self.inner_to_outer_ratio,
                must,
            ));
        }
        let most = f64::from(SECTORS_PER_TRACK_MAX) * f64::from(self.sector_bytes);
        let least = f64::from(self.sector_bytes);
        if !(least..=most).contains(&self.outer_track_bytes) {
            let must = "from one sector to 2^20 sectors";
            return Err(out_of_range(
                "outer_track_bytes",
                self.outer_track_bytes,
                must,
            ));
        }
        for (key, skew) in [
            ("track_skew_rev", self.track_skew_rev),
            ("head_skew_rev", self.head_skew_rev),
        ] {
            if !(0.0..1.0).contains(&skew) {
                return Err(out_of_range(key, skew, "at least 0 and below 1"));
            }
        }
        Ok(())
    }
}

const CYLINDER_REQUIREMENT: &str = "small enough for 2^24 cylinders";

fn out_of_range(key: &'static str, value: f64, must: &'static str) -> DataSheetError {
    DataSheetError::OutOfRange { key, value, must }
}
