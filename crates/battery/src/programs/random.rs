//! Program `random`: requests at random offsets with several in flight, the usual test of a modern
//! storage device, in a closed loop or with arrivals by the clock.

use crate::load::area::{Area, AreaProgram, Places};
use crate::load::distribution::Distribution;
use crate::load::generator::{Choice, RandomRequests};
use crate::load::{AREA, Request, YesNo, field};
use crate::parameter::{Field, SizeMix, Value};
use crate::pattern::Entry;
use crate::program::gcd;
use crate::worker::Worker;

pub(crate) const PROGRAMS: &[Entry] = &[Entry {
    name: "random",
    does: "requests at random places, several under way, or arriving by the clock",
    files: AREA,
    pattern: || Box::new(AreaProgram::<Random>::of(4096)),
}];

#[derive(Clone, Debug)]
struct Random {
    distribution: Distribution,
    each_once: YesNo,
    align_bytes: u64,
}

impl Default for Random {
    fn default() -> Self {
        Self {
            distribution: Distribution::Uniform,
            each_once: YesNo::No,
            align_bytes: 0,
        }
    }
}

impl Places for Random {
    const MEANINGS: [&'static str; 2] =
        ["share of the requests that write", "where the area begins"];
    const PARTS: bool = false;

    fn fields(&mut self) -> Vec<Field<'_>> {
        vec![
            field(
                "distribution",
                "how often each block is asked for",
                Value::Distribution(&mut self.distribution),
            ),
            field(
                "each_once",
                "ask for each block once before any comes again",
                Value::Choice(&mut self.each_once),
            ),
            field(
                "align_bytes",
                "what every offset is a multiple of; 0: of the smallest block",
                Value::Bytes(&mut self.align_bytes, 0, 1 << 30),
            ),
        ]
    }

    fn step_bytes(&self, sizes: &SizeMix) -> u64 {
        match self.align_bytes {
            0 => sizes.sizes().fold(0, gcd),
            bytes => bytes,
        }
    }

    fn unfit(&self, area: &Area) -> Option<String> {
        if self.each_once == YesNo::No {
            return None;
        }
        if area.block_bytes.only() != Some(self.step_bytes(&area.block_bytes)) {
            return Some(
                "each_once=yes takes one block_bytes, and align_bytes of the same".to_owned(),
            );
        }
        (self.distribution != Distribution::Uniform)
            .then(|| "each_once=yes asks for all blocks equally often".to_owned())
    }

    fn requests<'a>(
        &'a self,
        area: &'a Area,
        bytes: u64,
        worker: &Worker,
    ) -> impl FnMut() -> Request + 'a {
        let choice = Choice {
            distribution: &self.distribution,
            each_once: self.each_once == YesNo::Yes,
            align_bytes: self.step_bytes(&area.block_bytes),
        };
        let place = (area.start_bytes, bytes);
        let mut requests = RandomRequests::new(area.mix(), &choice, place, worker.seed);
        move || requests.draw()
    }
}
