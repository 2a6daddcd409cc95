#![no_main]

diskperf_fuzz::target!("crash_log");
