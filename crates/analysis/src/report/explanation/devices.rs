//! Requests of real block devices in an explanation.

use crate::explanation::{DeviceAccount, OperationAccount, ValueQuantiles};
use crate::report::document::{Column, ColumnGroup, Grid};
use diskperf_timeline::Nanoseconds;
use diskperf_timeline::units::{format_nanoseconds, format_size};

/// Tabulates queueing and service times of requests by device and operation.
pub(super) fn build_request_grid(devices: &[DeviceAccount]) -> Grid {
    let all = list_operations(devices);
    let column = |of: &dyn Fn(&DeviceAccount, &OperationAccount) -> String| {
        all.iter().map(|(device, one)| of(device, one)).collect()
    };
    let time = |ns: u64| format_nanoseconds(Nanoseconds(ns));
    let spread = |title: &str, of: fn(&OperationAccount) -> ValueQuantiles| {
        let columns = vec![
            Column::right_aligned("median", column(&|_, one| time(of(one).median))),
            Column::right_aligned("99 %", column(&|_, one| time(of(one).p99))),
            Column::right_aligned("most", column(&|_, one| time(of(one).max))),
        ];
        ColumnGroup::new(title, columns)
    };
    let sizes = vec![
        Column::right_aligned("requests", column(&|_, one| one.request_count.to_string())),
        Column::right_aligned(
            "each",
            column(&|_, one| format_size(one.request_bytes.median)),
        ),
        Column::right_aligned("together", column(&|_, one| format_size(one.total_bytes))),
    ];
    // Of a device as a whole, beside the first of its rows.
    let first = |device: &DeviceAccount, one: &OperationAccount| {
        device
            .operation_accounts
            .first()
            .is_some_and(|first| first == one)
    };
    let at_once = |of: fn(&DeviceAccount) -> Option<f64>, digits: usize| {
        column(&|device, one| match of(device) {
            Some(count) if first(device, one) => format!("{count:.digits$}"),
            _ => String::new(),
        })
    };
    let counts = vec![
        Column::right_aligned("in queue", at_once(|one| one.in_queue_mean, 2)),
        Column::right_aligned("at device", at_once(|one| one.at_device_mean, 2)),
        Column::right_aligned("most", at_once(|one| one.at_device_max.map(f64::from), 0)),
    ];
    Grid {
        key_column: Column::left_aligned(
            "requests",
            column(&|device, one| format!("{} {}", device.device_name, one.operation.name())),
        ),
        groups: vec![
            ColumnGroup::new("", sizes),
            spread("in the queue", |one| one.queue_ns),
            spread("at the device", |one| one.device_ns),
            ColumnGroup::new("in flight, on average", counts),
        ],
    }
}

fn list_operations(devices: &[DeviceAccount]) -> Vec<(&DeviceAccount, &OperationAccount)> {
    let mut all = Vec::new();
    for device in devices {
        all.extend(device.operation_accounts.iter().map(|one| (device, one)));
    }
    all
}

/// Line of CSV with one device time, such as the median of `vda read: queue`.
pub(super) struct DeviceTimeLine {
    pub(super) name: String,
    pub(super) statistic: &'static str,
    pub(super) ns: u64,
}

pub(super) fn list_csv_lines(devices: &[DeviceAccount]) -> Vec<DeviceTimeLine> {
    let mut lines = Vec::new();
    for (device, one) in list_operations(devices) {
        for (what, spread) in [("queue", one.queue_ns), ("device", one.device_ns)] {
            let name = format!("{} {}: {what}", device.device_name, one.operation.name());
            let statistics = [
                ("median", spread.median),
                ("p99", spread.p99),
                ("max", spread.max),
            ];
            lines.extend(statistics.map(|(statistic, ns)| DeviceTimeLine {
                name: name.clone(),
                statistic,
                ns,
            }));
        }
    }
    lines
}
