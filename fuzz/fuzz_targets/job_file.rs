#![no_main]

diskperf_fuzz::target!("job_file");
