//! Binary pages of the kernel's event ring buffer, as `trace_pipe_raw` provides them. Printing text
//! takes the kernel ten times as long (the kernel's documentation, trace/ring-buffer-design.rst,
//! and include/linux/ring_buffer.h).

/// Layout of a ring-buffer page: the positions of its fields, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RingBufferPageLayout {
    commit_field: RecordField,
    data_field: RecordField,
}

/// Position and size of a field within a binary record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordField {
    pub(super) offset_bytes: usize,
    pub(super) size_bytes: usize,
}

impl RecordField {
    /// Returns the field with a given name from a kernel description: `field:dev_t dev; offset:8;
    /// size:4; signed:0;`.
    pub(super) fn parse_field(name: &str, description: &str) -> Option<Self> {
        let line = description.lines().find(|line| {
            let declared = line.trim_start().strip_prefix("field:");
            let declared = declared.and_then(|rest| rest.split(';').next());
            let last = declared.and_then(|declared| declared.split_whitespace().next_back());
            last.is_some_and(|last| last.split('[').next() == Some(name))
        })?;
        let number = |what: &str| -> Option<usize> {
            let parts = line.split(';').map(str::trim);
            parts
                .filter_map(|part| part.strip_prefix(what))
                .next()?
                .parse()
                .ok()
        };
        let (offset, bytes) = (number("offset:")?, number("size:")?);
        // No description of a kernel has more, and sums stay small.
        (offset < 1 << 20 && bytes < 1 << 20).then_some(Self {
            offset_bytes: offset,
            size_bytes: bytes,
        })
    }

    /// Reads the field as an unsigned number of up to 8 bytes.
    pub(super) fn read_unsigned(self, record: &[u8]) -> Option<u64> {
        let bytes = self.bytes_of_field(record)?;
        let mut whole = [0; 8];
        let place = match cfg!(target_endian = "big") {
            true => whole.len().checked_sub(bytes.len())?,
            false => 0,
        };
        whole
            .get_mut(place..place + bytes.len())?
            .copy_from_slice(bytes);
        Some(u64::from_ne_bytes(whole))
    }

    pub(super) fn bytes_of_field(self, record: &[u8]) -> Option<&[u8]> {
        record.get(self.offset_bytes..self.offset_bytes + self.size_bytes)
    }
}

/// Mask of the byte count in a page's commit counter. The other bits say that events were lost
/// before the page.
const BYTE_COUNT_MASK: u64 = (1 << 27) - 1;

const KIND_PADDING: u32 = 29;
const KIND_TIME_EXTEND: u32 = 30;
const KIND_TIME_STAMP: u32 = 31;

/// Number of bits of the time difference in an event header.
const TIME_DELTA_BITS: u32 = 27;
/// Mask of the time bits that come from the page header, because an absolute time in an event has
/// only 59 bits.
const PAGE_TIME_MASK: u64 = 0xf8 << 56;

impl RingBufferPageLayout {
    /// Parses the layout of pages from the text of `events/header_page`.
    pub(super) fn parse_layout(description: &str) -> Option<Self> {
        Some(Self {
            commit_field: RecordField::parse_field("commit", description)?,
            data_field: RecordField::parse_field("data", description)?,
        })
    }

    pub(super) fn page_size_bytes(&self) -> usize {
        self.data_field.offset_bytes + self.data_field.size_bytes
    }

    /// Calls `handle` for each event of a page, with its time and data.
    ///
    /// # Errors
    ///
    /// Description of the defect, if the page is malformed.
    pub(super) fn for_each_event(
        &self,
        page: &[u8],
        mut handle: impl FnMut(u64, &[u8]),
    ) -> Result<(), &'static str> {
        let stamp = RecordField {
            offset_bytes: 0,
            size_bytes: 8,
        }
        .read_unsigned(page);
        let filled = self.commit_field.read_unsigned(page);
        let (Some(stamp), Some(filled)) = (stamp, filled) else {
            return Err("a page is too short");
        };
        let filled = (filled & BYTE_COUNT_MASK) as usize;
        let data = page.get(self.data_field.offset_bytes..).unwrap_or_default();
        let mut rest = data
            .get(..filled)
            .ok_or("the byte count of a page exceeds its size")?;
        let mut at = stamp;
        while let Some((head, behind)) = take_word(rest) {
            let (kind, delta) = (head & 31, u64::from(head >> 5));
            match kind {
                // Nothing follows.
                KIND_PADDING if delta == 0 => break,
                KIND_PADDING => {
                    let (bytes, _) = take_word(behind).ok_or(TRUNCATED_EVENT)?;
                    at = at.wrapping_add(delta);
                    rest = behind.get(bytes as usize..).ok_or(TRUNCATED_EVENT)?;
                }
                KIND_TIME_EXTEND | KIND_TIME_STAMP => {
                    let (high, behind) = take_word(behind).ok_or(TRUNCATED_EVENT)?;
                    let long = (u64::from(high) << TIME_DELTA_BITS) + delta;
                    at = match kind {
                        KIND_TIME_EXTEND => at.wrapping_add(long),
                        _ => (stamp & PAGE_TIME_MASK) | long,
                    };
                    rest = behind;
                }
                0 => {
                    let (bytes, _) = take_word(behind).ok_or(TRUNCATED_EVENT)?;
                    let bytes = (bytes as usize).next_multiple_of(4);
                    at = at.wrapping_add(delta);
                    handle(at, behind.get(4..bytes).ok_or(TRUNCATED_EVENT)?);
                    rest = &behind[bytes..];
                }
                words => {
                    let bytes = 4 * words as usize;
                    at = at.wrapping_add(delta);
                    handle(at, behind.get(..bytes).ok_or(TRUNCATED_EVENT)?);
                    rest = &behind[bytes..];
                }
            }
        }
        Ok(())
    }
}

const TRUNCATED_EVENT: &str = "an event extends beyond the end of its page";

fn take_word(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (word, rest) = bytes.split_first_chunk()?;
    Some((u32::from_ne_bytes(*word), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a kernel describes its pages.
    const DESCRIPTION: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

    fn layout() -> RingBufferPageLayout {
        RingBufferPageLayout::parse_layout(DESCRIPTION).expect("a description")
    }

    fn page(stamp: u64, flags: u64, words: &[u32]) -> Vec<u8> {
        let mut page = stamp.to_ne_bytes().to_vec();
        page.extend(((4 * words.len() as u64) | flags).to_ne_bytes());
        page.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        page.resize(4096, 0xee);
        page
    }

    fn told(page: &[u8]) -> Result<Vec<(u64, Vec<u32>)>, &'static str> {
        let mut all = Vec::new();
        let words = |data: &[u8]| -> Vec<u32> {
            data.chunks(4)
                .filter_map(|four| Some(take_word(four)?.0))
                .collect()
        };
        layout().for_each_event(page, |at, data| all.push((at, words(data))))?;
        Ok(all)
    }

    fn head(kind: u32, delta: u32) -> u32 {
        kind | delta << 5
    }

    #[test]
    fn events_follow_each_other_in_time() {
        let page = page(
            1000,
            0,
            &[
                head(2, 5),
                7,
                8,
                head(KIND_TIME_EXTEND, 1),
                1,
                // A long one: its length counts itself.
                head(0, 3),
                12,
                9,
                10,
                // One that was taken back, of two words.
                head(KIND_PADDING, 4),
                8,
                0xdead,
                head(1, 0),
                11,
                head(KIND_TIME_STAMP, 17),
                2,
                head(1, 2),
                12,
                head(KIND_PADDING, 0),
                99,
            ],
        );
        let extended = 1005 + (1 << 27) + 1;
        let expected = [
            (1005, vec![7, 8]),
            (extended + 3, vec![9, 10]),
            (extended + 7, vec![11]),
            ((2 << 27) + 17 + 2, vec![12]),
        ];
        assert_eq!(told(&page), Ok(expected.to_vec()));
    }

    #[test]
    fn flags_of_missed_events_are_no_length() {
        let flags = 1 << 31 | 1 << 30;
        let page = page(5, flags, &[head(1, 1), 7]);
        assert_eq!(told(&page), Ok(vec![(6, vec![7])]));
    }

    #[test]
    fn what_is_no_page_is_refused() {
        for words in [
            &[head(3, 0), 1][..],
            &[head(0, 0), 4000],
            &[head(0, 0)],
            &[head(0, 0), 0],
            &[head(KIND_TIME_EXTEND, 0)],
            &[head(KIND_PADDING, 1), 1 << 30],
        ] {
            assert!(told(&page(0, 0, words)).is_err(), "{words:?}");
        }
        let mut long = page(0, 0, &[]);
        long[8..16].copy_from_slice(&5000u64.to_ne_bytes());
        assert!(told(&long).is_err());
        assert!(told(&[0; 12]).is_err());
    }

    #[test]
    fn fields_are_found_by_name() {
        let text = "format:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;\n\tfield:__data_loc char[] cmd;\toffset:60;\tsize:4;\tsigned:0;\n";
        let found = |name| {
            RecordField::parse_field(name, text).map(|field| (field.offset_bytes, field.size_bytes))
        };
        assert_eq!(found("rwbs"), Some((34, 10)));
        assert_eq!(found("cmd"), Some((60, 4)));
        assert_eq!(found("common_type"), Some((0, 2)));
        assert_eq!(found("type"), None);
    }
}
