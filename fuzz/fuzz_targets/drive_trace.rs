#![no_main]

diskperf_fuzz::target!("drive_trace");
