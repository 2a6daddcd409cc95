#![no_main]

diskperf_fuzz::target!("catalogue_entry");
