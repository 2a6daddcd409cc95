//! Requests: what software asks storage for, from the moment that it asks until it
//! has taken the completion.

use diskperf_spans::{Nanoseconds, Request as Spans, Stage};
use std::ops::{Index, IndexMut};

/// What is to be done with a range of sectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operation {
    /// Bring their contents.
    #[default]
    Read,
    /// Take new contents.
    Write {
        /// Force unit access: complete when the sectors are on the medium, not in
        /// a cache that loses them.
        fua: bool,
    },
    /// Put all that was acknowledged on the medium, of the whole device.
    Flush,
    /// Forget their contents.
    Discard,
    /// Make them zeroes, without data from the host.
    WriteZeroes,
}

impl Operation {
    /// A write as systems without force unit access ask for it, or a read.
    pub fn of(write: bool) -> Self {
        match write {
            true => Self::Write { fua: false },
            false => Self::Read,
        }
    }
}

/// What a request is for, as far as software can tell the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hint {
    /// Past the buffer cache.
    #[default]
    Raw,
    /// A file system's, in multiples of 4 KB.
    FileWhole,
    /// A file system's, otherwise.
    FilePart,
}

impl Hint {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Raw, Self::FileWhole, Self::FilePart];

    /// Of a transfer of the buffer cache.
    pub fn of_file(bytes: u32) -> Self {
        match bytes.is_multiple_of(4096) {
            true => Self::FileWhole,
            false => Self::FilePart,
        }
    }

    /// The name in parameters.
    pub fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::FileWhole => "file",
            Self::FilePart => "file_part",
        }
    }
}

/// One thing that storage is asked for.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// What is to be done.
    pub operation: Operation,
    /// The number of the device.
    pub device: usize,
    /// The first sector, from the start of the device.
    pub sector: u64,
    /// How many.
    pub sectors: u32,
    /// What for.
    pub hint: Hint,
    /// Its time, without gap from the issue on.
    pub spans: Spans,
}

impl Request {
    /// Whether sectors go to the medium.
    ///
    /// # Panics
    ///
    /// Of what moves no sectors: a mechanism reads and writes, and nothing else.
    #[inline]
    pub fn is_write(&self) -> bool {
        match self.operation {
            Operation::Read => false,
            Operation::Write { .. } => true,
            Operation::Flush | Operation::Discard | Operation::WriteZeroes => {
                panic!("a mechanism was asked for {:?}", self.operation)
            }
        }
    }

    /// The sector after its last one.
    #[inline]
    pub fn end(&self) -> u64 {
        self.sector + u64::from(self.sectors)
    }

    /// What has passed since the last mark went to `stage`.
    #[inline]
    pub fn mark(&mut self, stage: Stage, until: Nanoseconds) {
        self.spans.mark(stage, until);
    }
}

/// A request that is under way. Whoever keeps the id of one whose completion was
/// taken, and uses it, finds out by a panic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId {
    place: u32,
    generation: u32,
}

impl RequestId {
    /// The first request of a place.
    pub fn first(place: u32) -> Self {
        Self {
            place,
            generation: 0,
        }
    }

    /// Its place among all that are under way: small numbers, used again.
    #[inline]
    pub fn place(self) -> usize {
        self.place as usize
    }
}

/// All requests that are under way.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Slot {
    /// Of the request that is here, or of the one that comes next.
    generation: u32,
    request: Request,
}

impl Requests {
    /// Software asks for something.
    #[inline(always)]
    pub fn issue(&mut self, request: Request) -> RequestId {
        let Some(place) = self.free.pop() else {
            let place = u32::try_from(self.slots.len()).expect("fewer than 2^32 requests");
            self.slots.push(Slot {
                generation: 0,
                request,
            });
            return RequestId {
                place,
                generation: 0,
            };
        };
        let slot = &mut self.slots[place as usize];
        slot.request = request;
        RequestId {
            place,
            generation: slot.generation,
        }
    }

    /// Software takes the completion of a request, which is over.
    ///
    /// # Panics
    ///
    /// When that was taken before.
    #[inline(always)]
    pub fn take(&mut self, id: RequestId) -> Request {
        let request = std::mem::take(&mut self[id]);
        let slot = &mut self.slots[id.place()];
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(id.place);
        request
    }

    /// How many are under way.
    pub fn under_way(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

impl Index<RequestId> for Requests {
    type Output = Request;

    #[inline]
    fn index(&self, id: RequestId) -> &Request {
        let slot = &self.slots[id.place()];
        assert!(slot.generation == id.generation, "{OVER}");
        &slot.request
    }
}

impl IndexMut<RequestId> for Requests {
    #[inline]
    fn index_mut(&mut self, id: RequestId) -> &mut Request {
        let slot = &mut self.slots[id.place()];
        assert!(slot.generation == id.generation, "{OVER}");
        &mut slot.request
    }
}

const OVER: &str = "a request was used after its completion had been taken";

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(sector: u64) -> Request {
        Request {
            sector,
            sectors: 1,
            ..Request::default()
        }
    }

    #[test]
    fn a_place_is_used_again_and_its_id_is_not() {
        let mut requests = Requests::default();
        let first = requests.issue(reading(1));
        let second = requests.issue(reading(2));
        assert_eq!(requests.take(first).sector, 1);
        let third = requests.issue(reading(3));
        assert_eq!(third.place(), first.place());
        assert_ne!(third, first);
        assert_eq!((requests[second].sector, requests[third].sector), (2, 3));
        assert_eq!(requests.under_way(), 2);
    }

    #[test]
    #[should_panic(expected = "after its completion had been taken")]
    fn a_request_that_is_over_cannot_be_used() {
        let mut requests = Requests::default();
        let first = requests.issue(reading(1));
        requests.take(first);
        requests.issue(reading(2));
        requests[first].sectors = 7;
    }

    #[test]
    #[should_panic(expected = "after its completion had been taken")]
    fn a_completion_is_taken_once() {
        let mut requests = Requests::default();
        let first = requests.issue(reading(1));
        requests.take(first);
        requests.take(first);
    }

    #[test]
    #[should_panic(expected = "asked for Flush")]
    fn a_mechanism_does_not_flush() {
        let request = Request {
            operation: Operation::Flush,
            ..Request::default()
        };
        request.is_write();
    }
}
