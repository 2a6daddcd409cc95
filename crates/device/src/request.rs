//! I/O requests to storage devices, from the submission by software until software has reaped the
//! completion.

use diskperf_spans::{Nanoseconds, RequestTimeline as Spans, Stage};
use std::ops::{Index, IndexMut};

/// Operation of a request on a range of sectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operation {
    /// Read of a range of sectors.
    #[default]
    Read,
    /// Write of new contents to the sectors.
    Write {
        /// Force unit access: the write completes when the sectors are on the medium, not in a
        /// volatile cache.
        fua: bool,
    },
    /// Flush: makes all acknowledged writes of the whole device durable.
    Flush,
    /// Discard (trim): the device may drop the contents of the sectors.
    Discard,
    /// Write of zeroes to the sectors, without data from the host.
    WriteZeroes,
}

impl Operation {
    /// Returns a write without force unit access, or a read.
    pub fn from_direction(write: bool) -> Self {
        match write {
            true => Self::Write { fua: false },
            false => Self::Read,
        }
    }
}

/// Origin of a request, as far as software can tell the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum AccessHint {
    /// Raw I/O, which bypasses the buffer cache.
    #[default]
    Raw,
    /// File-system I/O in multiples of 4 KiB.
    FileWhole,
    /// File-system I/O whose size is not a multiple of 4 KiB.
    FilePart,
}

impl AccessHint {
    /// List of all hints about the origin of a request.
    pub const ALL: [Self; 3] = [Self::Raw, Self::FileWhole, Self::FilePart];

    /// Returns the hint for a transfer of the buffer cache with a given size in bytes.
    pub fn for_file(bytes: u32) -> Self {
        match bytes.is_multiple_of(4096) {
            true => Self::FileWhole,
            false => Self::FilePart,
        }
    }

    /// Returns the name of the hint in parameters.
    pub fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::FileWhole => "file",
            Self::FilePart => "file_part",
        }
    }
}

/// I/O request to a storage device.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Operation that the request performs on its sectors.
    pub operation: Operation,
    /// Index of the device that the request is for.
    pub device: usize,
    /// First sector, from the start of the device.
    pub sector: u64,
    /// Number of sectors of the request.
    pub sectors: u32,
    /// Origin of the request, as far as software can tell the device.
    pub hint: AccessHint,
    /// Time of the request by stage, without gaps since its submission.
    pub spans: Spans,
}

impl Request {
    /// Reports whether the request writes sectors to the medium.
    ///
    /// # Panics
    ///
    /// When the operation is neither a read nor a write, because a mechanism performs nothing else.
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

    /// Returns the end (exclusive) of the request's sectors.
    #[inline]
    pub fn end(&self) -> u64 {
        self.sector + u64::from(self.sectors)
    }

    /// Books the time since the last mark to `stage`, up to `until`.
    #[inline]
    pub fn book_stage(&mut self, stage: Stage, until: Nanoseconds) {
        self.spans.mark_stage(stage, until);
    }
}

/// Id of a request in flight. Use of an id after its completion was reaped panics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId {
    slot: u32,
    generation: u32,
}

impl RequestId {
    /// Returns the id of the first request in a slot.
    pub fn first_of_slot(place: u32) -> Self {
        Self {
            slot: place,
            generation: 0,
        }
    }

    /// Returns the slot of the request: a small number, reused after the completion.
    #[inline]
    pub fn slot(self) -> usize {
        self.slot as usize
    }
}

/// Table of all requests in flight.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    slots: Vec<RequestSlot>,
    free_slots: Vec<u32>,
}

#[derive(Clone, Debug)]
struct RequestSlot {
    /// Generation of the request in the slot, or of the next one if the slot is free.
    generation: u32,
    request: Request,
}

impl Requests {
    /// Adds a request that software submits, and returns its id.
    #[inline(always)]
    pub fn issue(&mut self, request: Request) -> RequestId {
        let Some(place) = self.free_slots.pop() else {
            let place = u32::try_from(self.slots.len()).expect("fewer than 2^32 requests");
            self.slots.push(RequestSlot {
                generation: 0,
                request,
            });
            return RequestId {
                slot: place,
                generation: 0,
            };
        };
        let slot = &mut self.slots[place as usize];
        slot.request = request;
        RequestId {
            slot: place,
            generation: slot.generation,
        }
    }

    /// Removes a completed request that software reaps.
    ///
    /// # Panics
    ///
    /// When the request was reaped before.
    #[inline(always)]
    pub fn take_request(&mut self, id: RequestId) -> Request {
        let request = std::mem::take(&mut self[id]);
        let slot = &mut self.slots[id.slot()];
        slot.generation = slot.generation.wrapping_add(1);
        self.free_slots.push(id.slot);
        request
    }

    /// Returns the number of requests in flight.
    pub fn under_way(&self) -> usize {
        self.slots.len() - self.free_slots.len()
    }
}

impl Index<RequestId> for Requests {
    type Output = Request;

    #[inline]
    fn index(&self, id: RequestId) -> &Request {
        let slot = &self.slots[id.slot()];
        assert!(slot.generation == id.generation, "{USED_AFTER_COMPLETION}");
        &slot.request
    }
}

impl IndexMut<RequestId> for Requests {
    #[inline]
    fn index_mut(&mut self, id: RequestId) -> &mut Request {
        let slot = &mut self.slots[id.slot()];
        assert!(slot.generation == id.generation, "{USED_AFTER_COMPLETION}");
        &mut slot.request
    }
}

const USED_AFTER_COMPLETION: &str = "a request was used after its completion had been taken";

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
        assert_eq!(requests.take_request(first).sector, 1);
        let third = requests.issue(reading(3));
        assert_eq!(third.slot(), first.slot());
        assert_ne!(third, first);
        assert_eq!((requests[second].sector, requests[third].sector), (2, 3));
        assert_eq!(requests.under_way(), 2);
    }

    #[test]
    #[should_panic(expected = "after its completion had been taken")]
    fn a_request_that_is_over_cannot_be_used() {
        let mut requests = Requests::default();
        let first = requests.issue(reading(1));
        requests.take_request(first);
        requests.issue(reading(2));
        requests[first].sectors = 7;
    }

    #[test]
    #[should_panic(expected = "after its completion had been taken")]
    fn a_completion_is_taken_once() {
        let mut requests = Requests::default();
        let first = requests.issue(reading(1));
        requests.take_request(first);
        requests.take_request(first);
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
