//! Health of a drive, from sysfs and, if it is installed and permitted, from smartctl.

use super::tool::ExternalTool;
use diskperf_timeline::DeviceHealth;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

const QUERY_TIME_MAX: Duration = Duration::from_secs(3);

pub(super) fn read_health(directory: &Path, node: &Path) -> DeviceHealth {
    let kernel = read_sysfs(directory);
    let drive = match rustix::process::geteuid().is_root() {
        true => query_drive(node).unwrap_or_default(),
        false => DeviceHealth::default(),
    };
    DeviceHealth {
        firmware: drive.firmware.or(kernel.firmware),
        temperature_c: drive.temperature_c.or(kernel.temperature_c),
        wear_percent: drive.wear_percent,
        media_error_count: drive.media_error_count,
    }
}

fn read_sysfs(directory: &Path) -> DeviceHealth {
    let text = |path: PathBuf| {
        let text = std::fs::read_to_string(path).ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    // The first of NVMe, the second of SCSI and SATA.
    let firmware = ["firmware_rev", "rev"].map(|name| text(directory.join(name)));
    let milli_c = find_sensors(directory)
        .into_iter()
        .find_map(|sensor| text(sensor.join("temp1_input"))?.parse::<f64>().ok());
    DeviceHealth {
        firmware: firmware.into_iter().flatten().next(),
        temperature_c: milli_c.map(|milli_c| milli_c / 1e3),
        ..DeviceHealth::default()
    }
}

/// Returns the sensor directories of a drive. NVMe has them below its controller, drivetemp in a
/// directory of their own.
fn find_sensors(directory: &Path) -> Vec<PathBuf> {
    let below = |directory: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let is_sensor = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default();
            let name = name.to_string_lossy();
            name.strip_prefix("hwmon")
                .is_some_and(|number| !number.is_empty())
        };
        entries
            .map(|entry| entry.path())
            .filter(is_sensor)
            .collect()
    };
    let mut found = below(directory);
    found.extend(below(&directory.join("hwmon")));
    found.sort();
    found
}

/// Queries the drive's health with smartctl; `None` if that is impossible. A sleeping drive is left
/// asleep.
fn query_drive(node: &Path) -> Option<DeviceHealth> {
    let node = node.to_str()?;
    let arguments = [
        "--json=c",
        "--nocheck=standby",
        "-i",
        "-A",
        "-l",
        "devstat",
        node,
    ];
    let report = ExternalTool::Smartctl.run_with_timeout(&arguments, QUERY_TIME_MAX)?;
    Some(parse_smartctl(&serde_json::from_str(&report).ok()?))
}

/// Page number of the ATA device statistics with the drive's used endurance.
const SOLID_STATE_PAGE: u64 = 7;
const GENERAL_ERRORS_PAGE: u64 = 4;

fn parse_smartctl(report: &Value) -> DeviceHealth {
    let nvme = &report["nvme_smart_health_information_log"];
    let wear = [
        nvme["percentage_used"].as_f64(),
        report["scsi_percentage_used_endurance_indicator"].as_f64(),
        ata_statistic(
            report,
            SOLID_STATE_PAGE,
            "Percentage Used Endurance Indicator",
        ),
    ];
    let uncorrected =
        |of: &str| report["scsi_error_counter_log"][of]["total_uncorrected_errors"].as_u64();
    let errors = [
        nvme["media_errors"].as_u64(),
        uncorrected("read").map(|read| read.saturating_add(uncorrected("write").unwrap_or(0))),
        ata_statistic(
            report,
            GENERAL_ERRORS_PAGE,
            "Number of Reported Uncorrectable Errors",
        )
        .map(|count| count as u64),
        ata_attribute(report, OFFLINE_UNCORRECTABLE_ID),
    ];
    let firmware = report["firmware_version"]
        .as_str()
        .or(report["scsi_revision"].as_str());
    DeviceHealth {
        firmware: firmware.map(|text| text.trim().to_owned()),
        temperature_c: report["temperature"]["current"].as_f64(),
        wear_percent: wear.into_iter().flatten().next(),
        media_error_count: errors.into_iter().flatten().next(),
    }
}

/// SMART attribute of sectors that could not be read. Its raw value is a count with all vendors.
const OFFLINE_UNCORRECTABLE_ID: u64 = 198;

fn ata_attribute(report: &Value, id: u64) -> Option<u64> {
    let table = report["ata_smart_attributes"]["table"].as_array()?;
    let attribute = table.iter().find(|one| one["id"] == id)?;
    attribute["raw"]["value"].as_u64()
}

fn ata_statistic(report: &Value, page: u64, name: &str) -> Option<f64> {
    let pages = report["ata_device_statistics"]["pages"].as_array()?;
    let page = pages.iter().find(|one| one["number"] == page)?;
    let table = page["table"].as_array()?;
    let one = table.iter().find(|one| one["name"] == name)?;
    one["value"].as_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn sensors_are_found_where_drivers_put_them() {
        for place in ["hwmon3", "hwmon/hwmon1"] {
            let device = tempfile::tempdir().unwrap();
            let sensor = device.path().join(place);
            std::fs::create_dir_all(&sensor).unwrap();
            std::fs::write(sensor.join("temp1_input"), "41850\n").unwrap();
            std::fs::write(device.path().join("firmware_rev"), "GDC5602Q \n").unwrap();
            let health = read_sysfs(device.path());
            assert_eq!(health.temperature_c, Some(41.85), "{place}");
            assert_eq!(health.firmware.as_deref(), Some("GDC5602Q"));
        }
        let nothing = tempfile::tempdir().unwrap();
        assert!(read_sysfs(nothing.path()).is_unknown());
    }

    /// The fields that smartctl 7.3 prints of each kind of drive.
    #[test]
    fn smartctl_is_understood_of_nvme_ata_and_scsi() {
        let nvme = parse_smartctl(&json!({
            "firmware_version": "GDC5602Q",
            "nvme_smart_health_information_log": { "percentage_used": 104, "media_errors": 2 },
            "temperature": { "current": 41 },
        }));
        assert_eq!(
            (nvme.wear_percent, nvme.media_error_count),
            (Some(104.0), Some(2))
        );
        assert_eq!(nvme.temperature_c, Some(41.0));
        let attribute =
            json!({ "id": 198, "name": "Offline_Uncorrectable", "raw": { "value": 8 } });
        let page = json!({ "number": 7, "table": [
            { "name": "Percentage Used Endurance Indicator", "value": 3 },
        ]});
        let ata = parse_smartctl(&json!({
            "ata_smart_attributes": { "table": [attribute] },
            "ata_device_statistics": { "pages": [page] },
        }));
        assert_eq!(
            (ata.wear_percent, ata.media_error_count),
            (Some(3.0), Some(8))
        );
        let scsi = parse_smartctl(&json!({
            "scsi_revision": "0003",
            "scsi_error_counter_log": {
                "read": { "total_uncorrected_errors": 1 },
                "write": { "total_uncorrected_errors": 4 },
            },
        }));
        assert_eq!((scsi.media_error_count, scsi.wear_percent), (Some(5), None));
        assert_eq!(scsi.firmware.as_deref(), Some("0003"));
        assert!(parse_smartctl(&json!({ "smartctl": { "exit_status": 2 } })).is_unknown());
    }
}
