//! Pairing of issue and completion events to numbered requests.

use super::requests::SECTOR_BYTES;
use diskperf_timeline::{DeviceEvent, DeviceOperation, DeviceRequest, DeviceStep, Nanoseconds};
use std::collections::{BTreeMap, VecDeque};

/// Block-layer event of a request, from a binary record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RequestEvent {
    pub(super) time: Nanoseconds,
    pub(super) request_step: RequestStep,
    /// Index of the device among the recorded ones.
    pub(super) device_index: u32,
    pub(super) rwbs_flags: RwbsFlags,
    pub(super) sector: u64,
    /// Length in sectors of 512 bytes; 0 if no data moves.
    pub(super) sector_count: u64,
    /// Errno of the completed request; 0 for success.
    pub(super) errno: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestStep {
    Issued,
    Requeued,
    Completed,
}

/// Meaning of the kernel's `rwbs` letters: the operation, and whether a process waits for the
/// request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RwbsFlags {
    pub(super) device_operation: DeviceOperation,
    pub(super) is_awaited: bool,
}

impl RwbsFlags {
    /// Parses letters such as `WFS` (the kernel's `blk_fill_rwbs`); `None` for driver-specific
    /// commands. A leading F requests a cache flush first.
    pub(super) fn parse_letters(letters: &[u8]) -> Option<Self> {
        let end = letters.iter().position(|letter| *letter == 0);
        let letters = &letters[..end.unwrap_or(letters.len())];
        let letters = match letters {
            [b'F', rest @ ..] if matches!(rest.first(), Some(b'R' | b'W' | b'F' | b'D' | b'N')) => {
                rest
            }
            all => all,
        };
        let (operation, how) = letters.split_first()?;
        let operation = match operation {
            b'R' => DeviceOperation::Read,
            b'W' if how.first() == Some(&b'Z') => DeviceOperation::WriteZeroes,
            b'W' => DeviceOperation::Write {
                fua: how.contains(&b'F'),
            },
            b'F' => DeviceOperation::Flush,
            b'D' => DeviceOperation::Discard,
            b'N' => DeviceOperation::WriteZeroes,
            _ => return None,
        };
        let is_ahead = how.contains(&b'A');
        let is_read = operation == DeviceOperation::Read;
        Some(Self {
            device_operation: operation,
            is_awaited: how.contains(&b'S') || is_read && !is_ahead,
        })
    }

    fn is_flush(self) -> bool {
        self.device_operation == DeviceOperation::Flush
    }
}

/// Requests in flight, which match issue events to completion events. Events arrive in order of
/// time.
#[derive(Debug, Default)]
pub(super) struct RequestMatcher {
    issued_count: u64,
    /// Requests in flight; those with the same key are in order of issue.
    in_flight: BTreeMap<RequestKey, VecDeque<UncompletedRequest>>,
}

/// Properties by which an event finds its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RequestKey {
    device_index: u32,
    is_flush: bool,
    /// First incomplete sector; 0 for a flush.
    first_sector: u64,
}

#[derive(Clone, Copy, Debug)]
struct UncompletedRequest {
    request_number: u64,
    remaining_sectors: u64,
    is_requeued: bool,
}

impl RequestMatcher {
    /// Processes a block event and returns the issue or completion of a request that it stands for,
    /// if any.
    pub(super) fn process_event(&mut self, event: &RequestEvent) -> Option<DeviceEvent> {
        let is_flush = event.rwbs_flags.is_flush();
        if !is_flush && event.sector_count == 0 {
            // The end of a write whose data was done before, or a command.
            return None;
        }
        let sector = if is_flush { 0 } else { event.sector };
        let key = RequestKey {
            device_index: event.device_index,
            is_flush,
            first_sector: sector,
        };
        match event.request_step {
            RequestStep::Issued => self.record_issue(key, event),
            RequestStep::Requeued => {
                let open = self.in_flight.get_mut(&key)?;
                open.iter_mut().find(|one| !one.is_requeued)?.is_requeued = true;
                None
            }
            RequestStep::Completed => self.record_completion(key, event),
        }
    }

    fn record_issue(&mut self, key: RequestKey, event: &RequestEvent) -> Option<DeviceEvent> {
        let open = self.in_flight.entry(key).or_default();
        if let Some(again) = open.iter_mut().find(|one| one.is_requeued) {
            again.is_requeued = false;
            return None;
        }
        let number = self.issued_count;
        self.issued_count += 1;
        let sectors = if key.is_flush { 0 } else { event.sector_count };
        open.push_back(UncompletedRequest {
            request_number: number,
            remaining_sectors: sectors,
            is_requeued: false,
        });
        Some(DeviceEvent {
            event_time: event.time,
            event_step: DeviceStep::Issued(DeviceRequest {
                request_number: number,
                device_index: event.device_index,
                operation: event.rwbs_flags.device_operation,
                is_awaited: event.rwbs_flags.is_awaited,
                offset_bytes: key.first_sector * SECTOR_BYTES,
                length_bytes: sectors * SECTOR_BYTES,
            }),
        })
    }

    /// Records the completion of a request, or of its first part. `None` for a request issued
    /// before the recording began.
    fn record_completion(&mut self, key: RequestKey, event: &RequestEvent) -> Option<DeviceEvent> {
        let open = self.in_flight.get_mut(&key)?;
        let one = open.pop_front()?;
        if open.is_empty() {
            self.in_flight.remove(&key);
        }
        let done = if key.is_flush { 0 } else { event.sector_count };
        if done < one.remaining_sectors {
            let rest = UncompletedRequest {
                remaining_sectors: one.remaining_sectors - done,
                ..one
            };
            let key = RequestKey {
                first_sector: key.first_sector + done,
                ..key
            };
            self.in_flight.entry(key).or_default().push_back(rest);
            return None;
        }
        Some(DeviceEvent {
            event_time: event.time,
            event_step: DeviceStep::Completed {
                number: one.request_number,
                errno: event.errno,
            },
        })
    }

    /// Forgets all requests in flight, since some of their completion events were lost.
    pub(super) fn discard_in_flight(&mut self) {
        self.in_flight.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list_device_steps(events: &[(u64, RequestStep, &str, u64, u64)]) -> Vec<(u64, DeviceStep)> {
        let mut pairs = RequestMatcher::default();
        let events = events
            .iter()
            .map(|(at, step, letters, sector, sectors)| RequestEvent {
                time: Nanoseconds(*at),
                request_step: *step,
                device_index: 0,
                rwbs_flags: RwbsFlags::parse_letters(letters.as_bytes()).expect("letters"),
                sector: *sector,
                sector_count: *sectors,
                errno: 0,
            });
        let told = events.filter_map(|event| pairs.process_event(&event));
        told.map(|event| (event.event_time.0, event.event_step))
            .collect()
    }

    fn ends(told: &[(u64, DeviceStep)]) -> Vec<(u64, u64)> {
        let end = |(at, step): &(u64, DeviceStep)| match step {
            DeviceStep::Completed { number, .. } => Some((*number, *at)),
            _ => None,
        };
        told.iter().filter_map(end).collect()
    }

    #[test]
    fn letters_say_what_is_asked_and_whether_somebody_waits() {
        let parsed = |letters: &str| {
            let parsed = RwbsFlags::parse_letters(letters.as_bytes())?;
            Some((parsed.device_operation, parsed.is_awaited))
        };
        use DeviceOperation as Op;
        for (letters, expected) in [
            ("R", Some((Op::Read, true))),
            ("RA", Some((Op::Read, false))),
            ("RSM", Some((Op::Read, true))),
            ("W", Some((Op::Write { fua: false }, false))),
            ("WS\0\0", Some((Op::Write { fua: false }, true))),
            ("WFS", Some((Op::Write { fua: true }, true))),
            ("FWFS", Some((Op::Write { fua: true }, true))),
            ("FWS", Some((Op::Write { fua: false }, true))),
            ("F", Some((Op::Flush, false))),
            ("FF", Some((Op::Flush, false))),
            ("D", Some((Op::Discard, false))),
            ("DE", Some((Op::Discard, false))),
            ("N", Some((Op::WriteZeroes, false))),
            ("WZS", Some((Op::WriteZeroes, true))),
            ("ZR", None),
            ("", None),
        ] {
            assert_eq!(parsed(letters), expected, "{letters}");
        }
    }

    #[test]
    fn a_request_that_is_requeued_is_issued_once_and_done_when_all_of_it_is() {
        let found = list_device_steps(&[
            (10, RequestStep::Issued, "W", 8, 16),
            (11, RequestStep::Requeued, "W", 8, 16),
            (15, RequestStep::Issued, "W", 8, 16),
            (20, RequestStep::Completed, "W", 8, 4),
            (21, RequestStep::Completed, "W", 12, 12),
        ]);
        assert_eq!(found.len(), 2);
        assert!(matches!(found[0], (10, DeviceStep::Issued(_))));
        assert_eq!(ends(&found), [(0, 21)]);
    }

    #[test]
    fn requests_for_the_same_place_end_in_their_order() {
        let found = list_device_steps(&[
            (10, RequestStep::Issued, "R", 8, 8),
            (11, RequestStep::Issued, "R", 8, 8),
            (20, RequestStep::Completed, "R", 8, 8),
            (25, RequestStep::Completed, "R", 8, 8),
        ]);
        assert_eq!(ends(&found), [(0, 20), (1, 25)]);
    }

    /// As Linux 6.18 tells a write with O_DSYNC on a device that has a cache and no FUA.
    #[test]
    fn a_write_that_is_flushed_behind_is_a_write_and_a_flush() {
        let found = list_device_steps(&[
            (10, RequestStep::Issued, "WS", 0, 16),
            (20, RequestStep::Completed, "WS", 0, 16),
            (21, RequestStep::Issued, "FF", u64::MAX, 0),
            (40, RequestStep::Completed, "FF", u64::MAX, 0),
            (41, RequestStep::Completed, "WS", 0, 0),
        ]);
        assert_eq!(found.len(), 4);
        assert_eq!(ends(&found), [(0, 20), (1, 40)]);
    }

    #[test]
    fn of_what_began_before_nothing_is_told() {
        let found = list_device_steps(&[
            (10, RequestStep::Completed, "R", 8, 8),
            (11, RequestStep::Requeued, "R", 8, 8),
            (12, RequestStep::Completed, "F", 0, 0),
        ]);
        assert!(found.is_empty());
    }
}
