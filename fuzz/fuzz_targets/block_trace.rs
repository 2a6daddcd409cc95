#![no_main]

diskperf_fuzz::target!("block_trace");
