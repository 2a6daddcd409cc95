use super::histogram::{BIN_COUNT, bin_counts, bin_index, bin_value_ns, percentiles};
use super::*;
use crate::job::DirectionReporting;
use proptest::prelude::*;
use serde_json::Value;

#[test]
fn a_bin_is_that_of_its_value() {
    for number in 0..BIN_COUNT {
        assert_eq!(
            bin_index(bin_value_ns(number)),
            number,
            "{}",
            bin_value_ns(number)
        );
    }
    assert_eq!(bin_value_ns(BIN_COUNT - 1), 17_112_760_320);
    assert_eq!(bin_index(u64::MAX), BIN_COUNT - 1);
    for value in [65_024, 65_280, 65_535] {
        assert_eq!(bin_value_ns(bin_index(value)), 65_280);
    }
    assert_ne!(bin_value_ns(bin_index(65_536)), 65_280);
    assert_ne!(bin_value_ns(bin_index(65_023)), 65_280);
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(3),
        ..ProptestConfig::default()
    })]

    /// A bin is at most a 64th as wide as its values, and bins are in order.
    #[test]
    fn bins_are_narrow(value in 0u64..17_000_000_000, more in 0u64..1_000_000) {
        let middle = bin_value_ns(bin_index(value));
        prop_assert!(middle.abs_diff(value) <= value / 127 + 1, "{value} is in {middle}");
        prop_assert!(bin_index(value) <= bin_index(value + more));
    }
}

#[test]
fn percentiles_are_the_first_bin_that_reaches_them() {
    let bins = bin_counts(&[(10, 1), (20, 98), (1000, 1), (7, 0)]);
    assert_eq!(bins, [(10, 1), (20, 98), (1004, 1)]);
    let list = percentiles(&bins, &[0.0, 1.0, 1.1, 50.0, 99.0, 99.1, 100.0]);
    let values: Vec<u64> = list.into_iter().map(|(_, value)| value).collect();
    // The last one is beyond the largest value, as fio's may be.
    assert_eq!(values, [10, 10, 20, 20, 20, 1004, 1004]);
    assert_eq!(percentiles(&[], &[50.0]), [(50.0, 0)]);
}

#[test]
fn moments_are_those_of_the_sample() {
    let latency =
        LatencyDistribution::from_counts(vec![(2, 1), (4, 3), (5, 2), (7, 1), (9, 1), (100, 0)]);
    assert_eq!((latency.min_ns, latency.max_ns, latency.count()), (2, 9, 8));
    assert!((latency.mean_ns - 5.0).abs() < 1e-12);
    assert!((latency.deviation_ns - (32.0f64 / 7.0).sqrt()).abs() < 1e-12);
    assert_eq!(
        LatencyDistribution::from_counts(vec![(5, 1)]).deviation_ns,
        0.0
    );
    assert_eq!(LatencyDistribution::from_counts(Vec::new()).mean_ns, 0.0);
}

fn read(ios: u64, latency_ns: u64, runtime_ms: u64) -> JobResult {
    let completion = LatencyDistribution::from_counts(vec![(latency_ns, ios)]);
    let done = DirectionResult {
        bytes: ios * 4096,
        ios,
        io_time_ms: runtime_ms,
        total: completion.clone(),
        completion,
        bandwidth_samples_kib_per_s: vec![1000, 3000],
        iops_samples: vec![250, 750],
        ..DirectionResult::default()
    };
    JobResult {
        name: "x".to_owned(),
        directions: PerDirection {
            read: done,
            ..PerDirection::default()
        },
        depth_counts: vec![(1, ios)],
        submit_batch_counts: vec![(0, 1), (4, 3), (5, 4)],
        ..JobResult::default()
    }
}

fn json(results: &FioResults, format: JsonFormat) -> Value {
    serde_json::from_str(&results.render(format)).expect("JSON")
}

fn one(job: JobResult) -> FioResults {
    FioResults {
        version: "test".to_owned(),
        jobs: vec![job],
        ..FioResults::default()
    }
}

#[test]
fn rates_are_fios() {
    for (ios, runtime_ms) in [(256, 1), (1000, 333), (7, 1000), (123_456, 60_001), (5, 0)] {
        let json = json(&one(read(ios, 1500, runtime_ms)), JsonFormat::Json);
        let read = &json["jobs"][0]["read"];
        let number = |name: &str| read[name].as_u64().expect("an integer");
        let (bw, bytes) = (number("bw"), number("bw_bytes"));
        assert!(
            bw * 1024 <= bytes && bytes < (bw + 1) * 1024,
            "{bw} KiB/s, {bytes} bytes/s"
        );
        let ios_again = read["iops"].as_f64().expect("a number") * runtime_ms as f64 / 1000.0;
        if runtime_ms > 0 {
            assert!(
                (ios_again - ios as f64).abs() < 1e-3,
                "{ios_again} of {ios}"
            );
        }
        assert_eq!(number("io_kbytes"), ios * 4);
        assert_eq!(number("runtime"), runtime_ms);
    }
}

#[test]
fn a_latency_of_30_s_is_fios_last_bin() {
    let json = json(&one(read(4, 30_000_000_000, 120_000)), JsonFormat::JsonPlus);
    let clat = &json["jobs"][0]["read"]["clat_ns"];
    assert_eq!(clat["percentile"]["99.000000"], 17_112_760_320u64);
    assert_eq!(clat["bins"]["17112760320"], 4);
    assert_eq!(
        clat["max"], 30_000_000_000u64,
        "what was kept of the largest is whole"
    );
    assert_eq!(json["jobs"][0]["latency_ms"][">=2000"], 100.0);
}

#[test]
fn samples_and_shares_are_in_their_bins() {
    let json = json(&one(read(100, 250_000, 1000)), JsonFormat::Json);
    let job = &json["jobs"][0];
    // 250 us is not below 250.
    assert_eq!(job["latency_us"]["500"], 100.0);
    assert_eq!(job["latency_us"]["250"], 0.0);
    assert_eq!(job["iodepth_level"]["1"], 100.0);
    assert_eq!(job["iodepth_submit"]["0"], 12.5);
    assert_eq!(job["iodepth_submit"]["4"], 37.5);
    assert_eq!(job["iodepth_submit"]["8"], 50.0);
    let read = &job["read"];
    assert_eq!(
        (&read["bw_min"], &read["bw_max"]),
        (&1000.into(), &3000.into())
    );
    assert_eq!(
        (&read["bw_mean"], &read["bw_samples"]),
        (&2000.0.into(), &2.into())
    );
    // 400 KiB in a second are less than the mean of the samples.
    assert_eq!(read["bw_agg"], 100.0);
    assert!(
        read["clat_ns"].get("bins").is_none(),
        "bins are of json+ only"
    );
}

#[test]
fn options_are_strings_and_bare_ones_empty() {
    let mut results = one(read(1, 1, 1));
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    results.global_options = vec![
        pair("rw", "randread"),
        pair("iodepth", "8"),
        pair("time_based", ""),
    ];
    results.jobs[0].options_as_written =
        vec![pair("bs", "4k"), pair("thread", ""), pair("bs", "8k")];
    let json = json(&results, JsonFormat::Json);
    assert_eq!(json["global options"]["time_based"], "");
    // fio-plot reads these of the job, wherever they stand.
    let options = &json["jobs"][0]["job options"];
    let expected = [
        ("rw", "randread"),
        ("iodepth", "8"),
        ("bs", "8k"),
        ("numjobs", "1"),
        ("thread", ""),
    ];
    for (key, value) in expected {
        assert_eq!(options[key], value, "{key}");
    }
}

/// The paths that fio-plot, fio_jsonplus_clat2csv and scripts of CI read.
#[test]
fn what_others_read_is_there() {
    let mut results = one(read(1000, 90_000, 500));
    results.jobs[0].sync_latency = LatencyDistribution::from_counts(vec![(1_000_000, 3)]);
    results.jobs[0].steady_state = Some(SteadyResult::default());
    let json = json(&results, JsonFormat::JsonPlus);
    let numbers = [
        "/jobs/0/read/iops",
        "/jobs/0/read/bw",
        "/jobs/0/read/bw_bytes",
        "/jobs/0/read/iops_stddev",
        "/jobs/0/write/iops",
        "/jobs/0/read/lat_ns/mean",
        "/jobs/0/read/lat_ns/stddev",
        "/jobs/0/latency_us/100",
        "/jobs/0/latency_ns/50",
        "/jobs/0/latency_ms/>=2000",
        "/jobs/0/usr_cpu",
        "/jobs/0/sys_cpu",
        "/jobs/0/steadystate/attained",
        "/jobs/0/read/clat_ns/percentile/99.000000",
        "/jobs/0/read/clat_ns/bins/89600",
        "/jobs/0/sync/lat_ns/N",
        "/jobs/0/sync/total_ios",
        "/jobs/0/job_runtime",
    ];
    for path in numbers {
        assert!(
            json.pointer(path).is_some_and(Value::is_number),
            "{path} of {json:#}"
        );
    }
    for path in ["rw", "bs", "iodepth", "numjobs"] {
        let path = format!("/jobs/0/job options/{path}");
        assert!(json.pointer(&path).is_some_and(Value::is_string), "{path}");
    }
    assert!(json.get("fio version").is_some() && json.get("jobs").is_some());
}

#[test]
fn directions_are_apart_or_mixed() {
    let mut job = read(10, 1000, 100);
    job.directions.write = read(20, 5000, 200).directions.read;
    job.direction_reporting = DirectionReporting::SeparateAndMixed;
    let json = json(&one(job.clone()), JsonFormat::Json);
    let mixed = &json["jobs"][0]["mixed"];
    assert_eq!(
        (&mixed["total_ios"], &mixed["runtime"]),
        (&30.into(), &200.into())
    );
    assert_eq!(
        (&mixed["clat_ns"]["min"], &mixed["clat_ns"]["max"]),
        (&1000.into(), &5000.into())
    );
    job.direction_reporting = DirectionReporting::Mixed;
    let json = super::tests::json(&one(job), JsonFormat::Json);
    assert!(json["jobs"][0].get("read").is_none() && json["jobs"][0].get("sync").is_none());
}

#[test]
fn a_group_is_one_row() {
    let mut first = read(10, 1000, 100);
    first.job_runtime_ms = 100;
    first.cpu_usage.user_percent = 10.0;
    let mut second = read(30, 3000, 150);
    second.job_runtime_ms = 300;
    second.cpu_usage.user_percent = 50.0;
    second.error = 5;
    first.merge(second);
    let read = &first.directions.read;
    assert_eq!(
        (read.ios, read.io_time_ms, read.completion.count()),
        (40, 150, 40)
    );
    assert_eq!(read.completion.mean_ns, 2500.0);
    assert_eq!((first.job_runtime_ms, first.error), (400, 5));
    assert!((first.cpu_usage.user_percent - 40.0).abs() < 1e-9);
}

#[test]
fn odd_names_and_numbers_are_still_json() {
    let mut job = read(1, 1, 1);
    job.name = "a\"b\\c\n\u{1}é".to_owned();
    job.latency_percentile = f64::NAN;
    let json = json(&one(job.clone()), JsonFormat::Json);
    assert_eq!(json["jobs"][0]["jobname"], job.name);
    assert_eq!(json["jobs"][0]["latency_percentile"], 0.0);
}
