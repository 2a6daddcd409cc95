#![no_main]

diskperf_fuzz::target!("event_pages");
