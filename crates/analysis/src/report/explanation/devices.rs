//! Requests of real block devices in an explanation.

use crate::explanation::{DeviceAccount, OperationAccount, Spread};
use crate::report::document::{Column, Grid, Group};
use diskperf_timeline::Nanoseconds;
use diskperf_timeline::units::{format_nanoseconds, format_size};

/// Tabulates queueing and service times of requests by device and operation.
pub(super) fn requests(devices: &[DeviceAccount]) -> Grid {
    let all = all_operations(devices);
    let column = |of: &dyn Fn(&DeviceAccount, &OperationAccount) -> String| {
        all.iter().map(|(device, one)| of(device, one)).collect()
    };
    let time = |ns: u64| format_nanoseconds(Nanoseconds(ns));
    let spread = |title: &str, of: fn(&OperationAccount) -> Spread| {
        let columns = vec![
            Column::figures("median", column(&|_, one| time(of(one).median))),
            Column::figures("99 %", column(&|_, one| time(of(one).p99))),
            Column::figures("most", column(&|_, one| time(of(one).max))),
        ];
        Group::of(title, columns)
    };
    let sizes = vec![
        Column::figures("requests", column(&|_, one| one.requests.to_string())),
        Column::figures("each", column(&|_, one| format_size(one.bytes_each.median))),
        Column::figures("together", column(&|_, one| format_size(one.bytes))),
    ];
    // Of a device as a whole, beside the first of its rows.
    let first = |device: &DeviceAccount, one: &OperationAccount| {
        device.operations.first().is_some_and(|first| first == one)
    };
    let at_once = |of: fn(&DeviceAccount) -> Option<f64>, digits: usize| {
        column(&|device, one| match of(device) {
            Some(count) if first(device, one) => format!("{count:.digits$}"),
            _ => String::new(),
        })
    };
    let counts = vec![
        Column::figures("in queue", at_once(|one| one.in_queue_mean, 2)),
        Column::figures("at device", at_once(|one| one.at_device_mean, 2)),
        Column::figures("most", at_once(|one| one.at_device_most.map(f64::from), 0)),
    ];
    Grid {
        key: Column::words(
            "requests",
            column(&|device, one| format!("{} {}", device.device, one.operation.name())),
        ),
        groups: vec![
            Group::of("", sizes),
            spread("in the queue", |one| one.queue_ns),
            spread("at the device", |one| one.device_ns),
            Group::of("in flight, on average", counts),
        ],
    }
}

fn all_operations(devices: &[DeviceAccount]) -> Vec<(&DeviceAccount, &OperationAccount)> {
    let mut all = Vec::new();
    for device in devices {
        all.extend(device.operations.iter().map(|one| (device, one)));
    }
    all
}

/// Lists device times as names and nanoseconds: `vda read: queue`, `median`.
pub(super) fn lines(devices: &[DeviceAccount]) -> Vec<(String, &'static str, u64)> {
    let mut lines = Vec::new();
    for (device, one) in all_operations(devices) {
        for (what, spread) in [("queue", one.queue_ns), ("device", one.device_ns)] {
            let name = format!("{} {}: {what}", device.device, one.operation.name());
            lines.push((name.clone(), "median", spread.median));
            lines.push((name.clone(), "p99", spread.p99));
            lines.push((name, "max", spread.max));
        }
    }
    lines
}
