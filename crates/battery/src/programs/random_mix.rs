//! Program `random_mix`: DEC's indirect approach (Kridle and McKusick 1983, section 3), which
//! replays the measured mix of a system's requests instead of running its programs.
//!
//! The mix that DEC measured under VMS is not printed. The default here is a stand-in of small
//! transfers with three reads to one write. A measured mix goes into `sizes` and `write_share`.
//! `local_share` adds what the paper finds missing: no real system spreads its requests over the
//! disk at random.

use crate::blocks::{ensure_file, pause_for_think_time, read_block, seek_to_offset, write_block};
use crate::load::YesNo;
use crate::parameter::{ParameterField, ParameterValue, SizeMix};
use crate::pattern::{
    AccessPattern, PhaseFuture, ProgramEntry, ProgramProperties, SystemAndWorker,
};
use crate::program::{InputFile, greatest_common_divisor};
use crate::random::RandomDraws;
use crate::verify::calls::CallVerifier;
use crate::verify::verify_field;
use crate::worker::{Medium, Worker};
use diskperf_system::{Buffer, OpenOptions, System};
use diskperf_timeline::units::{GIB, MIB};
use diskperf_timeline::{Nanoseconds, WorkerMeasure};

pub(crate) const PROGRAMS: &[ProgramEntry] = &[ProgramEntry {
    name: "random_mix",
    summary: "random requests in a measured mix of sizes and writes (DEC's method of 1983)",
    file_set_name: "mix",
    new_pattern: || Box::new(RandomMix::default()),
}];

#[derive(Clone, Debug)]
struct RandomMix {
    size_mix: SizeMix,
    write_share: f64,
    local_request_share: f64,
    local_range_bytes: u64,
    area_bytes: u64,
    align_bytes: u64,
    verify_writes: YesNo,
}

impl Default for RandomMix {
    fn default() -> Self {
        Self {
            size_mix: SizeMix::new(&[(4096, 50), (8192, 30), (16384, 15), (65536, 5)]),
            write_share: 0.25,
            local_request_share: 0.0,
            local_range_bytes: MIB,
            area_bytes: 64 * MIB,
            align_bytes: 4096,
            verify_writes: YesNo::No,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MixRequest {
    offset_bytes: u64,
    bytes: u64,
    is_write: bool,
}

const REQUEST_STREAM: u128 = 2;

impl AccessPattern for RandomMix {
    fn parameter_fields(&mut self) -> Vec<ParameterField<'_>> {
        vec![
            ParameterField {
                name: "sizes",
                description: "request sizes in bytes with their weights",
                value: ParameterValue::SizeMix(&mut self.size_mix),
            },
            ParameterField {
                name: "write_share",
                description: "share of writes among the requests",
                value: ParameterValue::Share(&mut self.write_share),
            },
            ParameterField {
                name: "local_share",
                description: "share of requests near the previous one; 0: uniformly random offsets",
                value: ParameterValue::Share(&mut self.local_request_share),
            },
            ParameterField {
                name: "local_bytes",
                description: "maximum distance of a local request from the previous request",
                value: ParameterValue::ByteCount(&mut self.local_range_bytes, 4096, 1 << 50),
            },
            ParameterField {
                name: "area_bytes",
                description: "size of the area that requests address",
                value: ParameterValue::ByteCount(&mut self.area_bytes, MIB, 1024 * GIB),
            },
            ParameterField {
                name: "align_bytes",
                description: "alignment of the offsets",
                value: ParameterValue::ByteCount(&mut self.align_bytes, 512, MIB),
            },
            verify_field(&mut self.verify_writes),
        ]
    }

    fn program_properties(&self) -> ProgramProperties {
        ProgramProperties {
            // One call's worth to read into, one to write from.
            buffer_call_count: 2,
            accepts_any_size: true,
            writes_target: self.write_share > 0.0,
            ..ProgramProperties::new_for_reads(self.size_mix.size_bytes_max())
        }
    }

    fn unit_bytes(&self, _size_bytes: u64) -> u64 {
        self.size_mix
            .size_bytes_values()
            .fold(self.align_bytes, greatest_common_divisor)
    }

    fn validation_error(&self) -> Option<String> {
        let largest = self.size_mix.size_bytes_max();
        (largest > self.area_bytes).then(|| {
            format!(
                "a request of {largest} bytes exceeds area_bytes={}; give a larger area_bytes or \
                 smaller requests",
                self.area_bytes
            )
        })
    }

    fn file_bytes(&self, _size_bytes: u64) -> u64 {
        self.area_bytes
    }

    fn input_files(&self, worker: &Worker) -> Vec<InputFile> {
        vec![InputFile::new_read(
            Self::input_path(worker),
            self.area_bytes,
        )]
    }

    fn payload_bytes(&self, _worker: &Worker, measure: &WorkerMeasure) -> u64 {
        measure.read_bytes + measure.written_bytes
    }

    fn prepare_target<'a>(&'a self, system: &'a mut System, worker: &'a Worker) -> PhaseFuture<'a> {
        Box::pin(async move {
            ensure_file(system, worker, &Self::input_path(worker), self.area_bytes).await
        })
    }

    fn run_timed_part<'a>(
        &'a self,
        (system, worker): SystemAndWorker<'a>,
        buffer: &'a mut Buffer,
    ) -> PhaseFuture<'a> {
        Box::pin(async move {
            let access = if self.write_share > 0.0 {
                OpenOptions::READ_WRITE
            } else {
                OpenOptions::READ
            };
            let file = system
                .open(
                    &Self::input_path(worker),
                    access.with_direct(worker.direct_io),
                )
                .await?;
            let area_bytes = match worker.medium {
                Medium::Directory => self.area_bytes,
                Medium::Device | Medium::File => {
                    self.area_bytes.min(system.file_length(file).await?)
                }
            };
            let mut requests = MixRequests::new(self, area_bytes, worker.random_seed);
            let largest = self.size_mix.size_bytes_max();
            let mut verifier = CallVerifier::new(self.verify_writes, (&*system, worker), largest);
            let index = verifier
                .as_mut()
                .map(|one| one.add_file(Self::input_path(worker)));
            let mut moved_bytes = 0;
            while moved_bytes < worker.size_bytes {
                let MixRequest {
                    offset_bytes,
                    bytes,
                    is_write: write,
                } = requests.draw_request();
                // What is written must not be what was read.
                let (reading, writing) =
                    buffer.split_at_mut(self.size_mix.size_bytes_max() as usize);
                seek_to_offset(system, file, offset_bytes).await?;
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
                pause_for_think_time(system, worker.think_time).await?;
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
    fn input_path(worker: &Worker) -> String {
        worker.file_path("mix")
    }
}

struct MixRequests<'a> {
    random_mix: &'a RandomMix,
    area_bytes: u64,
    random: RandomDraws,
    last_offset_bytes: u64,
}

impl<'a> MixRequests<'a> {
    fn new(mix: &'a RandomMix, area_bytes: u64, seed: u64) -> Self {
        Self {
            random_mix: mix,
            area_bytes,
            random: RandomDraws::new(seed, REQUEST_STREAM),
            last_offset_bytes: area_bytes / 2,
        }
    }

    fn draw_request(&mut self) -> MixRequest {
        let bytes = self.random_mix.size_mix.size_bytes_at_weight(
            self.random
                .draw_below(self.random_mix.size_mix.weight_total()),
        );
        let write = self
            .random
            .draw_with_probability(self.random_mix.write_share);
        let room = self.area_bytes.saturating_sub(bytes);
        let (low, high) = if self
            .random
            .draw_with_probability(self.random_mix.local_request_share)
        {
            let reach = self.random_mix.local_range_bytes;
            let low = self.last_offset_bytes.saturating_sub(reach).min(room);
            (low, self.last_offset_bytes.saturating_add(reach).min(room))
        } else {
            (0, room)
        };
        let align = self.random_mix.align_bytes;
        let first = low.div_ceil(align);
        let slots = (high / align + 1).saturating_sub(first).max(1);
        let offset_bytes = (first + self.random.draw_below(slots)) * align;
        let offset_bytes = offset_bytes.min(room / align * align);
        self.last_offset_bytes = offset_bytes;
        MixRequest {
            offset_bytes,
            bytes,
            is_write: write,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(mix: &RandomMix, seed: u64, count: usize) -> Vec<MixRequest> {
        let mut requests = MixRequests::new(mix, mix.area_bytes, seed);
        (0..count).map(|_| requests.draw_request()).collect()
    }

    /// The distances between neighbours, in requests' offsets.
    fn distances(requests: &[MixRequest]) -> Vec<u64> {
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
        let share = |keep: &dyn Fn(&MixRequest) -> bool| {
            requests.iter().filter(|request| keep(request)).count() as f64 / requests.len() as f64
        };
        assert!((share(&|request| request.is_write) - 0.25).abs() < 0.02);
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
            local_request_share: 1.0,
            ..RandomMix::default()
        };
        let far = distances(&drawn(&mix, 7, 20_000))
            .into_iter()
            .max()
            .unwrap();
        assert!(far <= mix.local_range_bytes, "{far}");
    }

    #[test]
    fn the_seed_decides() {
        let mix = RandomMix::default();
        assert_eq!(drawn(&mix, 1, 100), drawn(&mix, 1, 100));
        assert_ne!(drawn(&mix, 1, 100), drawn(&mix, 2, 100));
    }
}
