use super::*;
use proptest::prelude::*;

const EXPORT: Export = Export {
    size_bytes: 0x0102_0304,
    preferred_bytes: 4096,
    is_read_only: false,
    is_rotational: true,
};

/// Flags of a rotating drive without structured replies.
const ROTATIONAL_FLAGS: u16 = 0b1101_0101_1101;

/// A reply: its option, its type, and its data.
type Answer = (u32, u32, Vec<u8>);

fn answers(handshake: &mut Handshake, option: u32, data: &[u8]) -> (Vec<Answer>, Step) {
    let mut reply = Vec::new();
    let step = handshake.answer(option, data, &mut reply);
    let mut rest = reply.as_slice();
    let mut found = Vec::new();
    while !rest.is_empty() {
        let head = take(&mut rest, 20).expect("a whole head");
        assert_eq!(be64(head, 0), REPLY_MAGIC);
        let data = take(&mut rest, be32(head, 16) as usize).expect("all data");
        found.push((be32(head, 8), be32(head, 12), data.to_vec()));
    }
    (found, step)
}

fn kinds(found: &[Answer]) -> Vec<u32> {
    found.iter().map(|(_, kind, _)| *kind).collect()
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat()
}

fn go(name: &str) -> Vec<u8> {
    [text(name), vec![0, 1, 0, 3]].concat()
}

fn contexts(name: &str, queries: &[&str]) -> Vec<u8> {
    let count = (queries.len() as u32).to_be_bytes().to_vec();
    let queries = queries.iter().map(|query| text(query));
    [text(name), count]
        .into_iter()
        .chain(queries)
        .collect::<Vec<_>>()
        .concat()
}

#[test]
fn the_greeting_offers_the_fixed_newstyle() {
    assert_eq!(Handshake::greeting(), b"NBDMAGICIHAVEOPT\x00\x03");
    let mut handshake = Handshake::new(EXPORT);
    for (flags, step) in [(0, Step::Continue), (3, Step::Continue), (4, Step::Close)] {
        assert_eq!(handshake.take_client_flags(flags), step, "{flags}");
    }
}

#[test]
fn an_export_by_name_has_its_zeroes_unless_agreed() {
    for (flags, bytes) in [(1, 134), (3, 10)] {
        let mut handshake = Handshake::new(EXPORT);
        handshake.take_client_flags(flags);
        let mut reply = Vec::new();
        assert_eq!(handshake.answer(1, b"", &mut reply), Step::Transmit);
        assert_eq!(reply.len(), bytes);
        assert_eq!(be64(&reply, 0), EXPORT.size_bytes);
        assert_eq!(reply[8..10], ROTATIONAL_FLAGS.to_be_bytes());
        let mut none = Vec::new();
        assert_eq!(handshake.answer(1, b"other", &mut none), Step::Close);
        assert!(none.is_empty());
    }
}

#[test]
fn an_unknown_option_is_answered_and_the_next_one_works() {
    let mut handshake = Handshake::new(EXPORT);
    for option in [4, 5, 11, 0, u32::MAX] {
        let (found, step) = answers(&mut handshake, option, b"data");
        assert_eq!(
            (kinds(&found), step),
            (vec![ERROR_UNSUPPORTED], Step::Continue)
        );
    }
    let (found, step) = answers(&mut handshake, 7, &go(""));
    assert_eq!((kinds(&found), step), (vec![3, 3, 1], Step::Transmit));
}

#[test]
fn go_and_info_say_what_is_served() {
    for (option, step) in [(6, Step::Continue), (7, Step::Transmit)] {
        let mut handshake = Handshake::new(EXPORT);
        let (found, then) = answers(&mut handshake, option, &go(""));
        assert_eq!((kinds(&found), then), (vec![3, 3, 1], step));
        let flags = ROTATIONAL_FLAGS.to_be_bytes();
        assert_eq!(
            found[0].2,
            [0, 0, 0, 0, 0, 0, 1, 2, 3, 4, flags[0], flags[1]]
        );
        assert_eq!(found[1].2, [0, 3, 0, 0, 0, 1, 0, 0, 0x10, 0, 2, 0, 0, 0]);
    }
}

#[test]
fn an_unknown_export_leaves_the_connection() {
    let mut handshake = Handshake::new(EXPORT);
    let (found, step) = answers(&mut handshake, 7, &go("other"));
    assert_eq!((kinds(&found), step), (vec![ERROR_UNKNOWN], Step::Continue));
}

#[test]
fn malformed_options_are_invalid() {
    for (option, data) in [
        (3, &b"x"[..]),
        (8, b"x"),
        (6, b""),
        (6, b"\0\0\0\0"),
        (6, b"\0\0\0\0\0\x01\0"),
        (7, b"\xff\xff\xff\xff\0\0"),
        (7, b"\0\0\0\x05abc\0\0"),
        (9, b"\0\0\0\0"),
        (9, b"\0\0\0\0\0\0\0\x01\0\0\0\x09ab"),
        (9, b"\0\0\0\0\xff\xff\xff\xff"),
    ] {
        let mut handshake = Handshake::new(EXPORT);
        let (found, step) = answers(&mut handshake, option, data);
        let answer = (kinds(&found), step);
        assert_eq!(
            answer,
            (vec![ERROR_INVALID], Step::Continue),
            "{option} {data:?}"
        );
    }
}

#[test]
fn the_allocation_context_needs_structured_replies() {
    let mut handshake = Handshake::new(EXPORT);
    let select = contexts("", &["base:allocation"]);
    let (found, _) = answers(&mut handshake, 10, &select);
    assert_eq!(kinds(&found), [ERROR_INVALID]);
    let (found, _) = answers(&mut handshake, 8, b"");
    assert_eq!(kinds(&found), [1]);
    let (found, _) = answers(&mut handshake, 10, &select);
    assert_eq!(kinds(&found), [4, 1]);
    assert_eq!(found[0].2, b"\0\0\0\x01base:allocation");
    assert!(handshake.agreed().has_allocation_context);
    // What is selected last counts, even if it is nothing.
    let (found, _) = answers(&mut handshake, 10, &contexts("", &["other:thing"]));
    assert_eq!(kinds(&found), [1]);
    assert!(!handshake.agreed().has_allocation_context);
}

#[test]
fn contexts_are_listed() {
    let mut handshake = Handshake::new(EXPORT);
    for (queries, expected) in [
        (&[][..], &[4, 1][..]),
        (&["base:"], &[4, 1]),
        (&["base:allocation"], &[4, 1]),
        (&["qemu:"], &[1]),
    ] {
        let (found, _) = answers(&mut handshake, 9, &contexts("", queries));
        assert_eq!(kinds(&found), expected, "{queries:?}");
    }
    let (found, _) = answers(&mut handshake, 9, &contexts("other", &[]));
    assert_eq!(kinds(&found), [ERROR_UNKNOWN]);
}

#[test]
fn flags_say_what_the_drive_can_do() {
    let read_only = Export {
        is_read_only: true,
        is_rotational: false,
        ..EXPORT
    };
    let mut handshake = Handshake::new(read_only);
    answers(&mut handshake, 8, b"");
    let flags = handshake.export_flags();
    assert_eq!(flags & flags::READ_ONLY, flags::READ_ONLY);
    assert_eq!(flags & flags::DF, flags::DF);
    assert_eq!(flags & flags::TRIM, flags::TRIM);
    assert_eq!(flags & flags::ROTATIONAL, 0);
}

#[test]
fn an_option_is_listed_aborted_and_refused() {
    let mut handshake = Handshake::new(EXPORT);
    let (found, step) = answers(&mut handshake, 3, b"");
    assert_eq!((kinds(&found), step), (vec![2, 1], Step::Continue));
    assert_eq!(found[0].2, [0; 4]);
    let (found, step) = answers(&mut handshake, 2, b"");
    assert_eq!((kinds(&found), step), (vec![1], Step::Close));
    let mut reply = Vec::new();
    assert_eq!(Handshake::refuse_long(3, &mut reply), Step::Continue);
    assert_eq!(be32(&reply, 12), ERROR_TOO_BIG);
    reply.clear();
    assert_eq!(Handshake::refuse_ending(7, &mut reply), Step::Close);
    assert_eq!(be32(&reply, 12), ERROR_SHUT_DOWN);
}

proptest! {
    #[test]
    fn any_option_is_answered(option in 0_u32..12, data in prop::collection::vec(any::<u8>(), 0..64)) {
        let mut handshake = Handshake::new(EXPORT);
        handshake.answer(8, b"", &mut Vec::new());
        let mut reply = Vec::new();
        let step = handshake.answer(option, &data, &mut reply);
        prop_assert!(step == Step::Close || !reply.is_empty());
    }
}
