//! A file system that is a folder, slowed by an exact factor: what `bench/verdicts`
//! compares. Linux only; it mounts by FUSE, as root.
//!
//!     slowed FOLDER MOUNTPOINT FACTOR_FILE REQUEST_US MB_PER_S cached|direct
//!
//! A read, a write and an fsync take what they take beneath, and REQUEST_US and the time of
//! their bytes at MB_PER_S besides, all of it times the number in FACTOR_FILE, which is
//! read again for each request. So does what its client does between two requests: the
//! latter waits for that. `cached` lets the kernel keep pages, and keeps none of the
//! folder's, so that a cold read is one of the disk; with `direct` each call is a request.
//! It ends when it is unmounted.
//!
//! What a device takes, no other process can delay: run it by `chrt --fifo 50`, or
//! processor hogs disturb the slow-down itself.

#![cfg(target_os = "linux")]

mod filesystem;
mod nodes;

use filesystem::{Cache, Treated, Treatment};
use fuser::{Config, MountOption, SessionACL};
use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What is spun at the end of a wait: a timer wakes a thread some microseconds late.
const SPUN: Duration = Duration::from_micros(60);

/// Whoever asks for nothing for so long does something else.
const IDLE: Duration = Duration::from_millis(10);

/// Requests served at once.
const THREADS: usize = 4;

/// How long a request takes.
struct Delay {
    request: Duration,
    bytes_per_s: f64,
    /// Holds the factor in decimal digits.
    factor: File,
    /// When the last request ended.
    last: Mutex<Instant>,
}

impl Treatment for Delay {
    fn after(&self, begin: Instant, bytes: usize) {
        self.wait(begin, bytes);
    }
}

impl Delay {
    /// Waits until a request of so many bytes has taken its time.
    fn wait(&self, begin: Instant, bytes: usize) {
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let between = Some(begin.saturating_duration_since(last)).filter(|it| *it < IDLE);
        let between = between.unwrap_or_default();
        let bytes = Duration::from_secs_f64(bytes as f64 / self.bytes_per_s);
        let alone = between + begin.elapsed() + self.request + bytes;
        let end = begin + alone.mul_f64(self.factor()) - between;
        let left = end.saturating_duration_since(Instant::now());
        std::thread::sleep(left.saturating_sub(SPUN));
        while Instant::now() < end {
            std::hint::spin_loop();
        }
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// What the file says now.
    ///
    /// # Panics
    ///
    /// If that is no number: a factor of 1 would be measured as another.
    fn factor(&self) -> f64 {
        let mut text = [0; 32];
        let length = self.factor.read_at(&mut text, 0).expect("a factor");
        let text = String::from_utf8_lossy(&text[..length]);
        match text.trim().parse() {
            Ok(factor) => factor,
            Err(error) => panic!("the factor `{text}`: {error}"),
        }
    }
}

fn main() -> ExitCode {
    match serve(std::env::args().skip(1).collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("slowed: {error}");
            ExitCode::from(2)
        }
    }
}

fn serve(words: Vec<String>) -> io::Result<()> {
    let [folder, mountpoint, factor, request_us, mb_per_s, cache] = words.as_slice() else {
        let usage = "slowed FOLDER MOUNTPOINT FACTOR_FILE REQUEST_US MB_PER_S cached|direct";
        return Err(io::Error::other(usage));
    };
    let cache = match cache.as_str() {
        "cached" => Cache::Kept,
        "direct" => Cache::None,
        other => {
            return Err(io::Error::other(format!(
                "`{other}` is not cached or direct"
            )));
        }
    };
    let delay = Delay {
        request: Duration::from_secs_f64(number(request_us)? * 1e-6),
        bytes_per_s: number(mb_per_s)? * 1e6,
        factor: File::open(factor)?,
        last: Mutex::new(Instant::now()),
    };
    // The threads inherit it.
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
    let mut config = Config::default();
    config.mount_options = vec![MountOption::FSName("slowed".to_owned())];
    config.acl = SessionACL::All;
    config.n_threads = Some(THREADS);
    config.clone_fd = true;
    fuser::mount(Treated::new(folder, cache, delay)?, mountpoint, &config)
}

fn number(word: &str) -> io::Result<f64> {
    let number = word.parse::<f64>().ok().filter(|number| *number > 0.0);
    number.ok_or_else(|| io::Error::other(format!("`{word}` is not a number above 0")))
}
