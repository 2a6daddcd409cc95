#![no_main]

diskperf_fuzz::target!("mounts");
