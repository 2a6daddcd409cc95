#![no_main]

diskperf_fuzz::target!("nbd_session");
