#![no_main]

diskperf_fuzz::target!("store_file");
