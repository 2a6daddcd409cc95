//! Detection of queue settings that changed since the run began.

use diskperf_timeline::{Device, Interference};

fn setting_values(device: &Device) -> [(&'static str, String); 5] {
    let number = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    [
        ("read_ahead_kb", number(device.read_ahead_kib)),
        ("scheduler", text(&device.io_scheduler)),
        ("nr_requests", number(device.queue_request_count_max)),
        ("max_sectors_kb", number(device.request_kib_max)),
        ("write_cache", text(&device.write_cache_mode)),
    ]
}

pub(super) fn detect_setting_changes(before: &[Device], now: &[Device]) -> Vec<Interference> {
    let mut found = Vec::new();
    for (before, after) in before.iter().zip(now) {
        for ((setting, was), (_, is)) in setting_values(before)
            .into_iter()
            .zip(setting_values(after))
        {
            if was != is {
                found.push(Interference::SettingChanged {
                    device: after.name.clone(),
                    setting: setting.to_owned(),
                    was,
                    is,
                });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_that_changed_is_named() {
        let noted = Device {
            name: "vda".to_owned(),
            io_scheduler: Some("none".to_owned()),
            read_ahead_kib: Some(128),
            ..Device::default()
        };
        let now = Device {
            io_scheduler: Some("bfq".to_owned()),
            read_ahead_kib: Some(0),
            ..noted.clone()
        };
        let noted = std::slice::from_ref(&noted);
        assert_eq!(detect_setting_changes(noted, noted), []);
        let named: Vec<String> = detect_setting_changes(noted, &[now])
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            named,
            [
                "read_ahead_kb of vda is 0, and was 128 when the run began",
                "scheduler of vda is bfq, and was none when the run began",
            ]
        );
    }
}
