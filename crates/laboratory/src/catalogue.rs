//! Queries of the catalogue: lists of entries, and their parameters with units, sources and derived
//! figures.

use diskperf_analysis::interleave::TrackFormat;
use diskperf_battery::program::nearest_name;
use diskperf_catalogue::{Catalogue, Component, Parameter, Setting};
use diskperf_device::disk::device::{Disk, DiskSpecification};
use diskperf_device::disk::layout::{Layout, ZoneSpecification};
use diskperf_device::disk::spindle::RotationAngle;
use diskperf_machine::specification::MechanismSpecification;
use diskperf_models::LaboratoryError;
use diskperf_models::model::computer::ModelComputer;
use serde::Serialize;

/// Lists all catalogue entries of one kind, each with its description.
///
/// The description is empty if the file of the entry does not parse; the error appears when the
/// entry is used.
pub fn list_components(catalogue: &Catalogue, component: Component) -> Vec<(String, String)> {
    let names = catalogue.component_names(component).into_iter();
    names
        .map(|name| {
            let description = catalogue.description(component, &name);
            (name, description.unwrap_or_default())
        })
        .collect()
}

/// Lists all systems and variants of the catalogue, each with its description.
pub fn list_systems(catalogue: &Catalogue) -> Vec<(String, String)> {
    let names = catalogue.system_names().into_iter();
    names
        .map(|name| {
            let description = catalogue.system_description(&name);
            (name, description.unwrap_or_default())
        })
        .collect()
}

/// A document with published results that the catalogue quotes.
pub struct PublishedDocument {
    /// Name of the document, such as `kridle-mckusick-1983`.
    pub name: String,
    /// Number of table cells of the document that have an id.
    pub cell_count: usize,
    /// Number of table cells of the document that are scored.
    pub scored_count: usize,
    /// Whether the catalogue has a system for at least one result of the document.
    pub is_modelled: bool,
}

/// Lists all documents with published results.
///
/// # Errors
///
/// Returns the error of a faulty file in `published/`.
pub fn list_documents(catalogue: &Catalogue) -> Result<Vec<PublishedDocument>, LaboratoryError> {
    let published = crate::reproduce::read_published(catalogue)?;
    let systems = catalogue.system_names();
    let document = |name: &str| {
        let cells = published.cells_of_document(name).unwrap_or_default();
        PublishedDocument {
            name: name.to_owned(),
            cell_count: cells.len(),
            scored_count: cells.iter().filter(|cell| cell.is_scored).count(),
            is_modelled: cells
                .iter()
                .filter_map(|cell| cell.full_target())
                .any(|target| systems.contains(&target)),
        }
    };
    Ok(published
        .document_names()
        .into_iter()
        .map(document)
        .collect())
}

/// A catalogue system with all its parameters.
pub struct SystemEntry {
    /// Name of the system, as the caller gave it.
    pub name: String,
    /// Description of the catalogue system, for users.
    pub description: String,
    /// Components and drives of the system, each with its name in the catalogue.
    pub components: Vec<(String, String)>,
    /// All parameters of the system, with value, unit and source.
    pub parameters: Vec<Parameter>,
}

/// Returns a system of the catalogue with all its parameters.
///
/// # Errors
///
/// Returns the faults of the system or of the settings.
pub fn describe_system(
    catalogue: &Catalogue,
    name: &str,
    settings: &[Setting],
) -> Result<SystemEntry, LaboratoryError> {
    let computer = ModelComputer::read_catalogue(catalogue, name, settings)?;
    let of_all = computer
        .component_names
        .iter()
        .filter(|(component, _)| **component != Component::Drive)
        .map(|(component, name)| (component.name().to_owned(), name.clone()));
    let drives = computer
        .drive_names
        .iter()
        .enumerate()
        .map(|(number, name)| (format!("drive {}", number + 1), name.clone()));
    Ok(SystemEntry {
        components: of_all.chain(drives).collect(),
        name: computer.name,
        description: computer.description,
        parameters: computer.parameters,
    })
}

/// A catalogue component with its parameters.
pub struct ComponentEntry {
    /// Name of the component in the catalogue.
    pub name: String,
    /// Kind of the catalogue component, such as a drive or a controller.
    pub component: Component,
    /// Description of the catalogue component, for users.
    pub description: String,
    /// Parameters of the component, with value, unit and source.
    pub parameters: Vec<Parameter>,
    /// Figures derived from the parameters of a drive; `None` for other components.
    pub drive: Option<DriveFigures>,
}

/// Figures derived from the parameters of a drive.
pub struct DriveFigures {
    /// Derived figures, in the order in which they are printed.
    pub figures: Vec<DriveFigure>,
    /// Seek curve: distance in cylinders and seek time in milliseconds.
    pub seek_curve: Vec<(u32, f64)>,
    /// Zones of a disk with firmware, outermost first; empty for other drives.
    pub zones: Vec<ZoneFigures>,
}

/// Figure of a drive, derived from its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DriveFigure {
    /// Name of the figure, for users.
    pub name: &'static str,
    /// Value of the figure in its unit.
    pub value: f64,
    /// Unit of the value. A count has what it counts as its unit.
    pub unit: &'static str,
}

impl DriveFigure {
    fn new(name: &'static str, value: f64, unit: &'static str) -> Self {
        Self { name, value, unit }
    }
}

/// Zone of a disk: neighbouring cylinders whose tracks have the same number of sectors.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ZoneFigures {
    /// Outermost cylinder of the zone.
    pub first_cylinder: u32,
    /// Innermost cylinder of the zone.
    pub last_cylinder: u32,
    /// Number of sectors of the medium on one track of the zone.
    pub sectors_per_track: u32,
    /// Sequential rate of the zone over consecutive tracks, including their skew, in MB/s.
    pub mb_per_s: f64,
    /// Capacity of the zone that hosts can use, in GB.
    #[serde(rename = "gb")]
    pub capacity_gb: f64,
    /// Angle at which the first track of the zone begins, in revolutions.
    pub origin_rev: f64,
    /// Skew between neighbouring tracks of the zone, in revolutions.
    pub track_skew_rev: f64,
    /// Skew between neighbouring cylinders of the zone, or at a change of the surface, in
    /// revolutions.
    pub cylinder_skew_rev: f64,
}

/// Returns the kinds of catalogue entries that have this name. A drive and a driver may share a
/// name.
pub fn find_components(catalogue: &Catalogue, name: &str) -> Vec<Component> {
    let has = |component: &Component| {
        let names = catalogue.component_names(*component);
        names.iter().any(|known| known == name)
    };
    Component::ALL.into_iter().filter(has).collect()
}

/// Returns a component with its parameters, as part of a system that accepts it.
///
/// # Errors
///
/// Returns the reason if no system of the catalogue accepts the component.
pub fn describe_component(
    catalogue: &Catalogue,
    component: Component,
    name: &str,
) -> Result<ComponentEntry, LaboratoryError> {
    let computer = find_in_systems(catalogue, component, name)?;
    let prefix = format!("{}.", component.name());
    let parameters = computer
        .parameters
        .iter()
        .filter(|parameter| parameter.path.starts_with(&prefix))
        .cloned();
    Ok(ComponentEntry {
        name: name.to_owned(),
        component,
        description: catalogue.description(component, name).unwrap_or_default(),
        parameters: parameters.collect(),
        drive: (component == Component::Drive)
            .then(|| find_drive_figures(&computer, name))
            .flatten(),
    })
}

/// Finds a system for a component: one that lists it, else one that accepts it in place of its own
/// component.
fn find_in_systems(
    catalogue: &Catalogue,
    component: Component,
    name: &str,
) -> Result<ModelComputer, LaboratoryError> {
    let mut names = catalogue.system_names();
    // A variant differs from its system in numbers that are not the entry's.
    names.retain(|system| !system.contains(':'));
    let mut own: Vec<ModelComputer> = names
        .iter()
        .filter_map(|system| ModelComputer::read_catalogue(catalogue, system, &[]).ok())
        .filter(|computer| {
            computer
                .component_names
                .get(&component)
                .is_some_and(|own| own == name)
        })
        .collect();
    // Some systems say something of it that is not as its own file has it.
    let prefix = format!("{}.", component.name());
    own.sort_by_key(|computer| {
        let of_it = computer.parameters.iter();
        of_it
            .filter(|parameter| parameter.path.starts_with(&prefix))
            .filter(|parameter| parameter.file.contains("systems/"))
            .count()
    });
    if let Some(computer) = own.into_iter().next() {
        return Ok(computer);
    }
    let setting = [Setting {
        path: component.name().to_owned(),
        value_text: name.to_owned(),
    }];
    let mut refused = Vec::new();
    for system in &names {
        match ModelComputer::read_catalogue(catalogue, system, &setting) {
            Ok(computer) => return Ok(computer),
            Err(error) => refused.push(error),
        }
    }
    // Of several errors one of the entry's own file, and the shortest: the others are
    // about how ill the entry fits.
    let file = format!("/{name}.toml");
    let refused = refused.into_iter().min_by_key(|error| {
        let text = error.to_string();
        (!text.contains(&file), text.len())
    });
    Err(refused.unwrap_or_else(|| {
        LaboratoryError::Request("the catalogue has no system that contains this part".to_owned())
    }))
}

/// Returns the track of a drive on which its benchmarks start, for calculations.
///
/// # Errors
///
/// Returns an error if no drive has this name, or the faults of the drive.
pub fn find_track_format(
    catalogue: &Catalogue,
    name: &str,
) -> Result<TrackFormat, LaboratoryError> {
    let known = catalogue.component_names(Component::Drive);
    if !known.iter().any(|drive| drive == name) {
        let near = nearest_name(name, known.iter().map(String::as_str));
        let remedy = near.map_or_else(
            || "`diskperf list drives` shows what there is".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        return Err(LaboratoryError::Request(format!(
            "the catalogue has no drive `{name}`; {remedy}"
        )));
    }
    let computer = find_in_systems(catalogue, Component::Drive, name)?;
    let (drive, cylinder) = computer.measured_mechanism(name).ok_or_else(|| {
        LaboratoryError::Request(format!("the drive `{name}` has no tracks; name a disk"))
    })?;
    let geometry = &drive.mechanics.geometry;
    let sectors = geometry.sectors_per_track(cylinder);
    Ok(TrackFormat {
        rpm: drive.revolutions_per_minute,
        sectors_per_track: sectors,
        spare_sectors_per_track: geometry.slots_per_track(cylinder) - sectors,
        sector_bytes: geometry.sector_bytes(),
    })
}

const SEEK_POINT_COUNT: u32 = 61;

fn find_drive_figures(computer: &ModelComputer, name: &str) -> Option<DriveFigures> {
    let measured = computer.measured_mechanism(name).map(build_drive_figures);
    measured.or_else(|| computer.find_disk(name).map(build_disk_figures))
}

fn build_disk_figures(of: &DiskSpecification) -> DriveFigures {
    let disk = Disk::new(of, RotationAngle::ZERO).expect("the specification was checked");
    let (layout, seek) = (disk.mechanism().layout(), disk.mechanism().seek_curve());
    let revolution_ms = of.mechanism.period_ns / 1e6;
    let medium_bytes = of.medium_sector_bytes() as f64;
    let capacity = layout.sectors() as f64 * medium_bytes;
    let capacity = match capacity < 1e9 {
        true => DriveFigure::new("capacity", capacity / 1e6, "MB"),
        false => DriveFigure::new("capacity", capacity / 1e9, "GB"),
    };
    let zones = build_zone_figures(of, layout);
    // Sectors that were measured one by one have no skew.
    let rate = |zone: Option<&ZoneFigures>, sector: u64| {
        let on_track = f64::from(layout.position_of(sector).sectors_per_track);
        let alone = on_track * medium_bytes / revolution_ms / 1e3;
        let of_platter = zone.map_or(alone, |zone| zone.mb_per_s);
        of_platter.min(of.link.bytes_per_s / 1e6)
    };
    let tracks = layout.cylinder_count();
    DriveFigures {
        figures: vec![
            capacity,
            DriveFigure::new("revolution", revolution_ms, "ms"),
            DriveFigure::new("zones", layout.zone_count() as f64, "zones"),
            DriveFigure::new("tracks of a surface", f64::from(tracks), "tracks"),
            DriveFigure::new(
                "sequential rate, outermost zone",
                rate(zones.first(), 0),
                "MB/s",
            ),
            DriveFigure::new(
                "sequential rate, innermost zone",
                rate(zones.last(), layout.sectors() - 1),
                "MB/s",
            ),
            DriveFigure::new(
                "maximum rate of the link",
                of.link.bytes_per_s / 1e6,
                "MB/s",
            ),
            DriveFigure::new(
                "mean seek of the curve",
                seek.average_time().as_millis(),
                "ms",
            ),
            DriveFigure::new("mean rotational latency", revolution_ms / 2.0, "ms"),
        ],
        seek_curve: sample_seek_curve(tracks, |distance| seek.time_over(distance).as_millis()),
        zones,
    }
}

/// Lists the zones of a disk. The list is empty if each sector of the disk was measured separately.
fn build_zone_figures(of: &DiskSpecification, layout: &Layout) -> Vec<ZoneFigures> {
    let medium_bytes = of.medium_sector_bytes() as f64;
    let revolution_ms = of.mechanism.period_ns / 1e6;
    let zones = &of.mechanism.layout.zones;
    let first = |number: usize| match number < zones.len() {
        true => layout.first_sector_of_zone(number).min(layout.sectors()),
        false => layout.sectors(),
    };
    let zone = |(number, zone): (usize, &ZoneSpecification)| {
        let track_bytes = f64::from(zone.sectors_per_track) * medium_bytes;
        let sectors = first(number + 1) - first(number);
        ZoneFigures {
            first_cylinder: zone.first_cylinder,
            last_cylinder: zone.last_cylinder,
            sectors_per_track: zone.sectors_per_track,
            mb_per_s: track_bytes / (revolution_ms * (1.0 + zone.track_skew_rev)) / 1e3,
            capacity_gb: sectors as f64 * medium_bytes / 1e9,
            origin_rev: zone.origin_rev,
            track_skew_rev: zone.track_skew_rev,
            cylinder_skew_rev: zone.cylinder_skew_rev,
        }
    };
    zones.iter().enumerate().map(zone).collect()
}

fn sample_seek_curve(cylinders: u32, time_ms: impl Fn(u32) -> f64) -> Vec<(u32, f64)> {
    let longest = cylinders.saturating_sub(1);
    let steps = SEEK_POINT_COUNT - 1;
    let distance = |step: u32| (u64::from(step) * u64::from(longest) / u64::from(steps)) as u32;
    (0..=steps)
        .map(|step| (distance(step), time_ms(distance(step))))
        .collect()
}

fn build_drive_figures((drive, cylinder): (&MechanismSpecification, u32)) -> DriveFigures {
    let geometry = &drive.mechanics.geometry;
    let seek = &drive.mechanics.seek_curve;
    let rpm = drive.revolutions_per_minute;
    let revolution_ms = 60_000.0 / rpm;
    let sectors = geometry.sectors_per_track(cylinder);
    let track_bytes = f64::from(sectors) * f64::from(geometry.sector_bytes());
    let media_rate = track_bytes / (revolution_ms / 1e3);
    DriveFigures {
        figures: vec![
            DriveFigure::new("capacity", geometry.capacity_bytes() as f64 / 1e6, "MB"),
            DriveFigure::new("revolution", revolution_ms, "ms"),
            DriveFigure::new("track", track_bytes / 1024.0, "KB"),
            DriveFigure::new("media rate over a track", media_rate / 1e6, "MB/s"),
            DriveFigure::new(
                "mean seek of the curve",
                seek.average_time().as_millis(),
                "ms",
            ),
            DriveFigure::new("mean rotational latency", revolution_ms / 2.0, "ms"),
        ],
        seek_curve: sample_seek_curve(geometry.cylinders(), |distance| {
            seek.time_over(distance).as_millis()
        }),
        zones: Vec::new(),
    }
}
