//! Program `random_mix`: DEC's indirect approach (Kridle and McKusick 1983, section 3), which
//! replays the measured mix of a system's requests instead of running its programs.
//!
//! The mix that DEC measured under VMS is not printed. The default here is a stand-in of small
//! transfers with three reads to one write. A measured mix goes into `sizes` and `write_share`.
//! `local_share` adds what the paper finds missing: no real system spreads its requests over the
//! disk at random.

use crate::blocks::{ensure_file, pause, read_block, seek_to, write_block};
use crate::load::YesNo;
use crate::parameter::{Field, SizeMix, Value};
use crate::pattern::{Entry, Facts, Pattern, Place, Steps};
use crate::program::{Input, gcd};
use crate::random::Draws;
use crate::verify::calls::CallVerifier;
use crate::verify::verify_field;
use crate::worker::{Medium, Worker};
use diskperf_system::{Buffer, Open, System};
use diskperf_timeline::units::{GIB, MIB};
use diskperf_timeline::{Nanoseconds, WorkerMeasure};

pub(crate) const PROGRAMS: &[Entry] = &[Entry {
    name: "random_mix",
    does: "a measured mix of requests at random places (DEC's approach of 1983)",
    files: "mix",
    pattern: || Box::new(RandomMix::default()),
}];

#[derive(Clone, Debug)]
struct RandomMix {
    sizes: SizeMix,
    write_share: f64,
    local_share: f64,
    local_bytes: u64,
    area_bytes: u64,
    align_bytes: u64,
    verify: YesNo,
}

impl Default for RandomMix {
    fn default() -> Self {
        Self {
            sizes: SizeMix::new(&[(4096, 50), (8192, 30), (16384, 15), (65536, 5)]),
            write_share: 0.25,
            local_share: 0.0,
            local_bytes: MIB,
            area_bytes: 64 * MIB,
            align_bytes: 4096,
            verify: YesNo::No,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Request {
    offset_bytes: u64,
    bytes: u64,
    write: bool,
}

const REQUEST_STREAM: u128 = 2;

impl Pattern for RandomMix {
    fn fields(&mut self) -> Vec<Field<'_>> {
        vec![
            Field {
                name: "sizes",
                meaning: "distribution of request sizes, each with its weight",
                value: Value::Mix(&mut self.sizes),
            },
            Field {
                name: "write_share",
                meaning: "share of the requests that write",
                value: Value::Share(&mut self.write_share),
            },
            Field {
                name: "local_share",
                meaning: "share of the requests that fall near the one before; 0 is uniformly random",
                value: Value::Share(&mut self.local_share),
            },
            Field {
                name: "local_bytes",
                meaning: "how far from the one before a local request falls at most",
                value: Value::Bytes(&mut self.local_bytes, 4096, 1 << 50),
            },
            Field {
                name: "area_bytes",
                meaning: "the area that requests fall into",
                value: Value::Bytes(&mut self.area_bytes, MIB, 1024 * GIB),
            },
            Field {
                name: "align_bytes",
                meaning: "what every offset is a multiple of",
                value: Value::Bytes(&mut self.align_bytes, 512, MIB),
            },
            verify_field(&mut self.verify),
        ]
    }

    fn facts(&self) -> Facts {
        Facts {
            // One call's worth to read into, one to write from.
            buffer_calls: 2,
            takes_any_size: true,
            writes: self.write_share > 0.0,
            ..Facts::reading(self.sizes.largest())
        }
    }

    fn unit_bytes(&self, _size_bytes: u64) -> u64 {
        self.sizes.sizes().fold(self.align_bytes, gcd)
    }

    fn unfit(&self) -> Option<String> {
        let largest = self.sizes.largest();
        (largest > self.area_bytes).then(|| {
            format!(
                "a request of {largest} bytes does not fit in area_bytes={}",
                self.area_bytes
            )
        })
    }

    fn file_bytes(&self, _size_bytes: u64) -> u64 {
        self.area_bytes
    }

    fn inputs(&self, worker: &Worker) -> Vec<Input> {
        vec![Input::read(Self::input(worker), self.area_bytes)]
    }

    fn payload_bytes(&self, _worker: &Worker, measure: &WorkerMeasure) -> u64 {
        measure.read_bytes + measure.written_bytes
    }

    fn prepare<'a>(&'a self, system: &'a mut System, worker: &'a Worker) -> Steps<'a> {
        Box::pin(
            async move { ensure_file(system, worker, &Self::input(worker), self.area_bytes).await },
        )
    }

    fn run<'a>(&'a self, (system, worker): Place<'a>, buffer: &'a mut Buffer) -> Steps<'a> {
        Box::pin(async move {
            let access = if self.write_share > 0.0 {
                Open::READ_WRITE
            } else {
                Open::READ
            };
            let file = system
                .open(&Self::input(worker), access.direct(worker.direct))
                .await?;
            let area_bytes = match worker.medium {
                Medium::Directory => self.area_bytes,
                Medium::Device | Medium::File => self.area_bytes.min(system.length(file).await?),
            };
            let mut requests = Requests::new(self, area_bytes, worker.seed);
            let largest = self.sizes.largest();
            let mut verifier = CallVerifier::new(self.verify, (&*system, worker), largest);
            let index = verifier
                .as_mut()
                .map(|one| one.add_file(Self::input(worker)));
            let mut moved_bytes = 0;
            while moved_bytes < worker.size_bytes {
                let Request {
                    offset_bytes,
                    bytes,
                    write,
                } = requests.draw();
                // What is written must not be what was read.
                let (reading, writing) = buffer.split_at_mut(self.sizes.largest() as usize);
                seek_to(system, file, offset_bytes).await?;
                if let (true, Some(verifier), Some(index)) = (write, &mut verifier, index) {
                    let place = (index, offset_bytes);
                    let open = (&mut *system, file);
                    verifier
                        .write(open, place, bytes, Nanoseconds::ZERO)
                        .await?;
                } else if write {
                    write_block(system, file, &writing[..bytes as usize], Nanoseconds::ZERO)
                        .await?;
                } else {
                    let block = &mut reading[..bytes as usize];
                    read_block(system, file, block, Nanoseconds::ZERO).await?;
                }
                pause(system, worker.think).await?;
                moved_bytes += bytes;
            }
            match verifier {
                Some(verifier) => verifier.read_back((system, worker)).await,
                None => Ok(()),
            }
        })
    }
}

impl RandomMix {
    fn input(worker: &Worker) -> String {
        worker.file("mix")
    }
}

struct Requests<'a> {
    mix: &'a RandomMix,
    area_bytes: u64,
    random: Draws,
    last_offset_bytes: u64,
}

impl<'a> Requests<'a> {
    fn new(mix: &'a RandomMix, area_bytes: u64, seed: u64) -> Self {
        Self {
            mix,
            area_bytes,
            random: Draws::new(seed, REQUEST_STREAM),
            last_offset_bytes: area_bytes / 2,
        }
    }

    fn draw(&mut self) -> Request {
        let bytes = self
            .mix
            .sizes
            .at(self.random.below(self.mix.sizes.total_weight()));
        let write = self.random.happens(self.mix.write_share);
        let room = self.area_bytes.saturating_sub(bytes);
        let (low, high) = if self.random.happens(self.mix.local_share) {
            let reach = self.mix.local_bytes;
            let low = self.last_offset_bytes.saturating_sub(reach).min(room);
            (low, self.last_offset_bytes.saturating_add(reach).min(room))
        } else {
            (0, room)
        };
        let align = self.mix.align_bytes;
        let first = low.div_ceil(align);
        let slots = (high / align + 1).saturating_sub(first).max(1);
        let offset_bytes = (first + self.random.below(slots)) * align;
        let offset_bytes = offset_bytes.min(room / align * align);
        self.last_offset_bytes = offset_bytes;
        Request {
            offset_bytes,
            bytes,
            write,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(mix: &RandomMix, seed: u64, count: usize) -> Vec<Request> {
        let mut requests = Requests::new(mix, mix.area_bytes, seed);
        (0..count).map(|_| requests.draw()).collect()
    }

    /// The distances between neighbours, in requests' offsets.
    fn distances(requests: &[Request]) -> Vec<u64> {
        requests
            .windows(2)
            .map(|pair| pair[0].offset_bytes.abs_diff(pair[1].offset_bytes))
            .collect()
    }

    #[test]
    fn requests_keep_to_the_mix() {
        let mix = RandomMix::default();
        let requests = drawn(&mix, 7, 20_000);
        for request in &requests {
            assert!(
                request.offset_bytes + request.bytes <= mix.area_bytes,
                "{request:?}"
            );
            assert_eq!(request.offset_bytes % mix.align_bytes, 0, "{request:?}");
        }
        let share = |keep: &dyn Fn(&Request) -> bool| {
            requests.iter().filter(|request| keep(request)).count() as f64 / requests.len() as f64
        };
        assert!((share(&|request| request.write) - 0.25).abs() < 0.02);
        assert!((share(&|request| request.bytes == 4096) - 0.50).abs() < 0.02);
        assert!((share(&|request| request.bytes == 65536) - 0.05).abs() < 0.01);
        // Two independent uniform points are a third of the area apart.
        let mean = distances(&requests).iter().sum::<u64>() as f64 / requests.len() as f64;
        assert!(
            (mean / mix.area_bytes as f64 - 1.0 / 3.0).abs() < 0.02,
            "{mean}"
        );
    }

    #[test]
    fn local_requests_stay_near() {
        let mix = RandomMix {
            local_share: 1.0,
            ..RandomMix::default()
        };
        let far = distances(&drawn(&mix, 7, 20_000))
            .into_iter()
            .max()
            .unwrap();
        assert!(far <= mix.local_bytes, "{far}");
    }

    #[test]
    fn the_seed_decides() {
        let mix = RandomMix::default();
        assert_eq!(drawn(&mix, 1, 100), drawn(&mix, 1, 100));
        assert_ne!(drawn(&mix, 1, 100), drawn(&mix, 2, 100));
    }
}
