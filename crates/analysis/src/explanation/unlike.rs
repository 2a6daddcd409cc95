//! Differences between two runs in their settings and in their machines.

use crate::comparison;
use diskperf_timeline::units::format_size;
use diskperf_timeline::{Device, Run};

/// Lists the differences between two runs, one per line: `kernels differ: A, B`.
pub fn list_run_differences(a: &Run, b: &Run) -> Vec<String> {
    let mut found = comparison::list_run_differences(a, b);
    for (what, of) in [
        (
            "seeds",
            (|run: &Run| run.seed.to_string()) as fn(&Run) -> String,
        ),
        ("targets", |run| run.target_label.clone()),
        ("numbers of CPUs", |run| {
            run.environment.cpu_count.to_string()
        }),
        ("memories", |run| format_size(run.environment.memory_bytes)),
        ("clocks of calls", |run| run.environment.call_clock.clone()),
        ("sizes of devices", |run| {
            describe_devices(run, |device| Some(format_size(device.size_bytes)))
        }),
        ("schedulers", |run| {
            describe_devices(run, |device| device.io_scheduler.clone())
        }),
        ("read-aheads of devices", |run| {
            describe_devices(run, |device| {
                device.read_ahead_kib.map(|kib| format!("{kib} KiB"))
            })
        }),
        ("queue lengths", |run| {
            describe_devices(run, |device| {
                device
                    .queue_request_count_max
                    .map(|count| count.to_string())
            })
        }),
        ("largest requests", |run| {
            describe_devices(run, |device| {
                device.request_kib_max.map(|kib| format!("{kib} KiB"))
            })
        }),
        ("write caches", |run| {
            describe_devices(run, |device| device.write_cache_mode.clone())
        }),
    ] {
        let (of_a, of_b) = (of(a), of(b));
        let shown = |text: &str| match text {
            "" => "none".to_owned(),
            text => text.to_owned(),
        };
        if of_a != of_b {
            found.push(format!("{what} differ: {}, {}", shown(&of_a), shown(&of_b)));
        }
    }
    found
}

fn describe_devices(run: &Run, figure_of: impl Fn(&Device) -> Option<String>) -> String {
    let devices = run
        .environment
        .places
        .iter()
        .flat_map(|place| &place.devices);
    let told: Vec<String> = devices.filter_map(figure_of).collect();
    told.join(" + ")
}

#[cfg(test)]
mod tests {
    use super::list_run_differences;
    use crate::fixtures::build_run;

    #[test]
    fn differences_show_both_values() {
        let a = build_run("a", "ffs83", "/var", Vec::new());
        let mut b = build_run("b", "ffs83", "/var", Vec::new());
        assert_eq!(list_run_differences(&a, &b), [""; 0]);
        assert!(!a.environment.places[0].devices.is_empty());
        b.environment.kernel_version = "Linux 7".to_owned();
        b.seed = 7;
        b.environment.places[0].devices[0].io_scheduler = Some("kyber".to_owned());
        let found = list_run_differences(&a, &b);
        assert_eq!(found.len(), 3, "{found:?}");
        for (what, value) in [
            ("kernels", "Linux 7"),
            ("seeds", "7"),
            ("schedulers", "kyber"),
        ] {
            let told = |line: &String| line.starts_with(what) && line.ends_with(value);
            assert!(found.iter().any(told), "{found:?}");
        }
    }
}
