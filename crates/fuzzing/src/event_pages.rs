//! Fuzz target for binary pages of the kernel's event buffer, preceded by the format descriptions
//! of their events.

use crate::FuzzTarget;
use diskperf_system::host::block_events::parse_pages;

/// Input for the page parser: a page description, three event descriptions and a page, separated by
/// zero bytes.
pub(crate) const EVENT_PAGES: FuzzTarget = FuzzTarget {
    name: "event_pages",
    make_body: || Box::new(parse_event_pages),
    make_seeds: page_seeds,
    keywords: &[
        "field:",
        "offset:",
        "size:",
        "commit;",
        "data;",
        "rwbs[10];",
        "nr_sector;",
        "common_type;",
        "ID: 7",
        "\0",
        "\n",
        ";",
        "4294967295",
    ],
};

const PAGE_FORMAT: &str = "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

fn parse_event_pages(bytes: &[u8]) {
    let mut parts = bytes.splitn(5, |byte| *byte == 0);
    let mut text = || String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let texts: [String; 4] = std::array::from_fn(|_| text());
    let page = parts.next().unwrap_or_default();
    if let Err(error) = parse_pages(texts.each_ref().map(String::as_str), page) {
        assert!(!error.is_empty());
    }
}

fn event_format(number: u32) -> String {
    let mut text = format!("ID: {number}\n");
    let fields = [
        ("unsigned short common_type", 0, 2),
        ("dev_t dev", 8, 4),
        ("sector_t sector", 16, 8),
        ("unsigned int nr_sector", 24, 4),
        ("int error", 28, 4),
        ("char rwbs[10]", 32, 10),
    ];
    for (name, offset, bytes) in fields {
        text += &format!("\tfield:{name};\toffset:{offset};\tsize:{bytes};\tsigned:0;\n");
    }
    text
}

/// Returns a page with one request, from issue to completion.
fn page_seeds() -> Vec<Vec<u8>> {
    let event = |kind: u16| {
        let mut event = vec![0; 44];
        event[..2].copy_from_slice(&kind.to_ne_bytes());
        event[8..12].copy_from_slice(&(254u32 << 20).to_ne_bytes());
        event[16..24].copy_from_slice(&4096u64.to_ne_bytes());
        event[24..28].copy_from_slice(&8u32.to_ne_bytes());
        event[32..34].copy_from_slice(b"WS");
        event
    };
    let mut data = Vec::new();
    for kind in [7, 9] {
        data.extend((11u32 | 1000 << 5).to_ne_bytes());
        data.extend(event(kind));
    }
    let mut bytes = PAGE_FORMAT.as_bytes().to_vec();
    for number in [7, 8, 9] {
        bytes.push(0);
        bytes.extend(event_format(number).as_bytes());
    }
    bytes.push(0);
    bytes.extend(5u64.to_ne_bytes());
    bytes.extend((data.len() as u64).to_ne_bytes());
    bytes.extend(data);
    vec![bytes]
}
