use super::*;

const EXPORT: Export = Export {
    size_bytes: 1 << 20,
    preferred_bytes: 4096,
    is_read_only: false,
    is_rotational: false,
};

const ALL: Agreement = Agreement {
    has_structured_replies: true,
    has_allocation_context: true,
};

fn request(command: u16, flags: u16, offset: u64, bytes: u32) -> RequestHeader {
    RequestHeader {
        flags,
        command,
        cookie: 0x0102_0304_0506_0708,
        offset,
        bytes,
    }
}

#[test]
fn a_request_is_parsed_as_it_is_encoded() {
    let sent = request(6, 2, 4096, 512);
    let bytes = sent.encode();
    assert_eq!(bytes[..8], [0x25, 0x60, 0x95, 0x13, 0, 2, 0, 6]);
    assert_eq!(RequestHeader::parse(&bytes), Some(sent));
    let mut wrong = bytes;
    wrong[0] = 0;
    assert_eq!(RequestHeader::parse(&wrong), None);
}

/// Command, flags, offset, length, and the error; none where the request is carried out.
type Case = (u16, u16, u64, u32, Option<NbdError>);

const CASES: &[Case] = &[
    (0, 0, 0, 512, None),
    (0, 0, 0, 0, None),
    (0, 0, 1, 1, None),
    (0, 1, 0, 512, None),
    (0, 4, 0, 512, None),
    (0, 0, (1 << 20) - 1, 1, None),
    (0, 0, 1 << 20, 0, None),
    (0, 0, 1 << 20, 1, Some(NbdError::Invalid)),
    (0, 0, u64::MAX - 511, 4096, Some(NbdError::Invalid)),
    (0, 0, 0, PAYLOAD_BYTES_MAX + 1, Some(NbdError::Invalid)),
    (0, 2, 0, 512, Some(NbdError::Invalid)),
    (0, 8, 0, 512, Some(NbdError::Invalid)),
    (0, 1 << 15, 0, 512, Some(NbdError::Invalid)),
    (1, 0, 0, 512, None),
    (1, 1, 0, 512, None),
    (1, 4, 0, 512, Some(NbdError::Invalid)),
    (1, 0, 1 << 20, 512, Some(NbdError::NoSpace)),
    (1, 0, u64::MAX - 511, 4096, Some(NbdError::NoSpace)),
    (2, 0, 0, 0, None),
    (3, 0, 0, 0, None),
    (3, 1, 0, 0, None),
    (3, 0, u64::MAX, u32::MAX, None),
    (3, 2, 0, 0, Some(NbdError::Invalid)),
    (4, 0, 0, 4096, None),
    (4, 1, 0, 0, None),
    (4, 0, 1 << 20, 4096, Some(NbdError::Invalid)),
    (5, 0, 0, 1 << 20, None),
    (5, 0, 0, (1 << 20) + 1, Some(NbdError::Invalid)),
    (6, 0, 0, 1 << 20, None),
    (6, 0x13, 0, 4096, None),
    (6, 0, 1 << 20, 4096, Some(NbdError::NoSpace)),
    (6, 4, 0, 4096, Some(NbdError::Invalid)),
    (7, 0, 0, 4096, None),
    (7, 8, 0, 4096, None),
    (7, 0, 0, 0, Some(NbdError::Invalid)),
    (7, 2, 0, 4096, Some(NbdError::Invalid)),
    (7, 0, 1 << 20, 1, Some(NbdError::Invalid)),
    (8, 0, 0, 0, Some(NbdError::Invalid)),
    (u16::MAX, 0, 0, 0, Some(NbdError::Invalid)),
];

#[test]
fn requests_are_checked_against_the_limits() {
    for (command, flags, offset, bytes, error) in CASES.iter().copied() {
        let found = request(command, flags, offset, bytes).validate(&EXPORT, ALL);
        let case = format!("command {command}, flags {flags:#x}, {bytes} bytes at {offset}");
        assert_eq!(found.err(), error, "{case}");
    }
}

#[test]
fn a_read_only_drive_refuses_changes() {
    let export = Export {
        is_read_only: true,
        ..EXPORT
    };
    for (command, error) in [
        (0, None),
        (1, Some(NbdError::NotPermitted)),
        (3, None),
        (4, Some(NbdError::NotPermitted)),
        (6, Some(NbdError::NotPermitted)),
        (7, None),
    ] {
        let found = request(command, 0, 0, 512).validate(&export, ALL);
        assert_eq!(found.err(), error, "command {command}");
    }
}

#[test]
fn a_disk_has_no_trim_and_no_fast_zeroes() {
    let export = Export {
        is_rotational: true,
        ..EXPORT
    };
    let trim = request(4, 0, 0, 512).validate(&export, ALL);
    assert_eq!(trim, Err(NbdError::Invalid));
    let fast = request(6, 16, 0, 512).validate(&export, ALL);
    assert_eq!(fast, Err(NbdError::NotSupported));
    request(6, 0, 0, 512).validate(&export, ALL).unwrap();
}

#[test]
fn what_was_not_agreed_is_refused() {
    let none = Agreement::default();
    let found = request(0, 4, 0, 512).validate(&EXPORT, none);
    assert_eq!(found, Err(NbdError::Invalid));
    let found = request(7, 0, 0, 512).validate(&EXPORT, none);
    assert_eq!(found, Err(NbdError::Invalid));
}

fn of_simple(error: u8) -> Vec<u8> {
    [
        [0x67, 0x44, 0x66, 0x98, 0, 0, 0, error].as_slice(),
        &[1, 2, 3, 4, 5, 6, 7, 8],
    ]
    .concat()
}

#[test]
fn replies_have_the_bytes_of_the_protocol() {
    let write = request(1, 0, 0, 512);
    assert_eq!(Reply::done(&write).head, of_simple(0));
    assert_eq!(
        Reply::error(&write, ALL, NbdError::NoSpace).head,
        of_simple(28)
    );

    let read = request(0, 0, 0x1000, 2);
    let plain = Reply::data(&read, Agreement::default(), vec![7, 8]);
    assert_eq!((plain.head, plain.data), (of_simple(0), vec![7, 8]));
    let chunk = Reply::data(&read, ALL, vec![7, 8]);
    let head = [
        0x66, 0x8e, 0x33, 0xef, 0, 1, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0,
        0x10, 0,
    ];
    assert_eq!(
        (chunk.head.as_slice(), chunk.data.as_slice()),
        (&head[..], &[7, 8][..])
    );
    let empty = Reply::data(&request(0, 0, 0, 0), ALL, Vec::new());
    assert_eq!(empty.head[4..8], [0, 1, 0, 0]);

    let error = Reply::error(&read, ALL, NbdError::Invalid).head;
    assert_eq!(error[4..8], [0, 1, 0x80, 1]);
    assert_eq!(error[20..24], [0, 0, 0, 22]);
    let text_bytes = usize::from(be16(&error, 24));
    assert_eq!(be32(&error, 16) as usize, 6 + text_bytes);
    assert_eq!(error.len(), 26 + text_bytes);

    let extent = Extent {
        bytes: 4096,
        is_hole: true,
    };
    let status = Reply::extents(&request(7, 0, 0, 4096), &[extent]).head;
    assert_eq!(status[4..8], [0, 1, 0, 5]);
    assert_eq!(
        status[16..],
        [0, 0, 0, 12, 0, 0, 0, 1, 0, 0, 0x10, 0, 0, 0, 0, 3]
    );
}
