use super::*;
use crate::{JobEnvironment, JobFile};

fn job(options: &str) -> JobDefinition {
    let text = format!("[job]\n{}\n", options.replace(' ', "\n"));
    let parsed = JobFile::parse("job.fio", &text, &JobEnvironment::default());
    let mut parsed = parsed.unwrap_or_else(|errors| panic!("{options}: {errors}"));
    parsed.jobs.remove(0)
}

fn layout(options: &str) -> BlockLayout {
    BlockLayout::from_job(&job(&format!("rw=write size=1m {options}"))).expect("it verifies")
}

fn write(offset_bytes: u64, number: u16) -> BlockWrite {
    BlockWrite {
        offset_bytes,
        seed: SeedSequence::new(0x89, 1).next_seed(),
        time_ns: 1_000_000_007,
        worker_number: 1,
        write_number: number,
    }
}

fn exactly(write: BlockWrite) -> ExpectedBlock {
    ExpectedBlock {
        offset_bytes: write.offset_bytes,
        seed: Some(write.seed),
        write_number: Some(write.write_number),
        time_ns: Some(write.time_ns),
    }
}

fn kinds() -> Vec<String> {
    let names = Checksum::ALL
        .iter()
        .map(|checksum| format!("verify={}", checksum.name()));
    let others = [
        "verify=meta",
        "verify_pattern=0xdeadbeef",
        "verify=pattern verify_pattern=\"ab\"%o",
    ];
    names.chain(others.map(str::to_owned)).collect()
}

#[test]
fn seeds_are_those_of_fio() {
    let mut seeds = SeedSequence::new(0x89, 1);
    let drawn: Vec<u64> = (0..4).map(|_| seeds.next_seed()).collect();
    let of_fio = [
        46_386_204_153_304_124,
        9_852_480_210_356_360_750,
        4_726_550_845_720_924_880,
        1_763_778_943_062_938_676,
    ];
    assert_eq!(drawn, of_fio);
    assert_eq!(
        SeedSequence::new(0x89, 2).next_seed(),
        3_206_204_658_872_701_368
    );
}

#[test]
fn the_interval_is_what_fio_makes_of_it() {
    for (options, bytes) in [
        ("bs=4k", 0),
        ("bs=4k verify_interval=512", 512),
        ("bs=4k verify_interval=1000", 4096),
        ("bs=4k verify_interval=80", 4096),
        ("bs=4k verify_interval=8k", 4096),
        ("bsrange=4k-8k", 4096),
        ("bssplit=4k/50:6k/50", 2048),
    ] {
        let job = job(&format!("rw=write size=1m verify=crc32c {options}"));
        assert_eq!(header_interval_of_job(&job), bytes, "{options}");
    }
}

#[test]
fn a_block_is_found_as_it_was_written_and_stays_so() {
    for kind in kinds() {
        for shape in [
            "bs=4k",
            "bs=4k verify_interval=1k",
            "bs=4k verify_offset=512",
            "bs=1000",
        ] {
            let options = format!("{kind} {shape}");
            let layout = layout(&options);
            let bytes = job(&format!("rw=write {options} size=1m")).block_bytes_max() as usize;
            let mut block = vec![0; bytes];
            layout.fill_block(&mut block, write(8192, 3));
            let written = block.clone();
            assert_eq!(
                layout.verify_block(&mut block, exactly(write(8192, 3))),
                Ok(()),
                "{options}"
            );
            assert_eq!(block, written, "{options}");
        }
    }
}

/// Each byte in turn, in every kind: of a write that is known nothing stays unseen.
#[test]
fn every_flipped_bit_of_a_known_write_is_found_with_its_place() {
    for kind in kinds() {
        for shape in [
            "bs=512",
            "bs=1k verify_interval=512",
            "bs=1k verify_offset=256",
        ] {
            let options = format!("{kind} {shape}");
            let layout = layout(&options);
            let bytes = if shape == "bs=512" { 512 } else { 1024 };
            let mut block = vec![0; bytes];
            layout.fill_block(&mut block, write(4096, 3));
            let step = if shape == "bs=512" { 1 } else { 13 };
            for at in (0..bytes).step_by(step) {
                block[at] ^= 1 << (at % 8);
                let found = layout.verify_block(&mut block, exactly(write(4096, 3)));
                block[at] ^= 1 << (at % 8);
                let found = found.expect_err(&format!("{options}, byte {at}"));
                let place = match found.differing_byte {
                    Some(byte) => byte.offset_bytes == 4096 + at as u64,
                    None => (4096..=4096 + at as u64).contains(&found.offset_bytes),
                };
                assert!(place, "{options}, byte {at}: {found}");
                assert_ne!(found.expected, found.actual, "{options}, byte {at}");
            }
        }
    }
}

/// A buffer of fio's with a pattern: filled once, it holds the header of the block before,
/// which the header of the next one changes places with.
#[test]
fn the_header_of_the_block_before_belongs_to_the_data_of_a_pattern() {
    for kind in Checksum::ALL.map(Checksum::name) {
        for pattern in ["0xfff", "\"ab\"%o"] {
            let options = format!("verify={kind} verify_pattern={pattern} bs=1k verify_offset=512");
            let layout = layout(&options);
            let (mut before, mut block) = (vec![0; 1024], vec![0; 1024]);
            layout.fill_block(&mut before, write(4096, 3));
            layout.fill_block(&mut block, write(8192, 4));
            let length = layout.header_bytes();
            let mut part = block.clone();
            layout.swap_header_bytes(&mut part);
            part[512..512 + length].copy_from_slice(&before[512..512 + length]);
            let header = BlockHeader::decode(part.first_chunk().expect("a header")).header;
            layout.write_header(&mut part, header);
            assert_eq!(
                part[..HEADER_BYTES],
                before[512..][..HEADER_BYTES],
                "{options}"
            );
            let expected = || exactly(write(8192, 4));
            assert_eq!(
                layout.verify_block(&mut part, expected()),
                Ok(()),
                "{options}"
            );
            // Nothing else is let pass: no byte outside of it, and none of a header that is
            // no longer one.
            let outside = (0..HEADER_BYTES).chain(length..1024);
            for at in outside.step_by(13) {
                part[at] ^= 4;
                let found = layout.verify_block(&mut part, expected());
                part[at] ^= 4;
                assert!(found.is_err(), "{options}, byte {at}");
            }
        }
    }
}

/// fio compares the pattern itself of the kinds without a checksum, and finds it damaged, too.
#[test]
fn the_header_of_the_block_before_is_damage_without_a_checksum() {
    for kind in ["verify=meta", ""] {
        let options = format!("{kind} verify_pattern=0xfff bs=1k verify_offset=512");
        let layout = layout(options.trim());
        let mut block = vec![0; 1024];
        layout.fill_block(&mut block, write(8192, 4));
        let (front, back) = block.split_at_mut(512);
        front[..HEADER_BYTES].copy_from_slice(&back[..HEADER_BYTES]);
        let found = layout.verify_block(&mut block, exactly(write(8192, 4)));
        assert!(found.is_err(), "{options}");
    }
}

#[test]
fn a_misplaced_and_a_stale_block_are_named_as_such() {
    for kind in kinds()
        .iter()
        .filter(|kind| !kind.contains("verify=pattern"))
    {
        let layout = layout(&format!("{kind} bs=4k"));
        let mut block = vec![0; 4096];
        layout.fill_block(&mut block, write(4096, 3));
        let elsewhere = layout
            .verify_block(&mut block, exactly(write(8192, 3)))
            .expect_err(kind);
        assert_eq!(elsewhere.block_field, BlockField::Offset, "{kind}");
        assert_eq!((&*elsewhere.expected, &*elsewhere.actual), ("8192", "4096"));
        let stale = layout
            .verify_block(&mut block, exactly(write(4096, 9)))
            .expect_err(kind);
        assert_eq!(stale.block_field, BlockField::Number, "{kind}");
        assert_eq!((&*stale.expected, &*stale.actual), ("9", "3"));
        let other = ExpectedBlock {
            seed: Some(7),
            ..exactly(write(4096, 3))
        };
        let found = layout.verify_block(&mut block, other).expect_err(kind);
        assert_eq!(found.block_field, BlockField::Seed, "{kind}");
        let later = ExpectedBlock {
            time_ns: Some(2_000_000_007),
            ..exactly(write(4096, 3))
        };
        let found = layout.verify_block(&mut block, later).expect_err(kind);
        assert_eq!(found.block_field, BlockField::Time, "{kind}");
        assert_eq!(
            (&*found.expected, &*found.actual),
            ("2000000007", "1000000007")
        );
    }
}

#[test]
fn headers_that_do_not_fit_are_refused_with_a_remedy_that_is_taken() {
    for (options, remedy) in [
        ("verify=sha512 bs=128", "verify=crc32c bs=128"),
        (
            "verify=crc32c bs=4k verify_offset=4090",
            "verify=crc32c bs=4k verify_offset=4052",
        ),
        (
            "verify=sha512 bs=4k verify_offset=64",
            "verify=sha512 bs=4k verify_offset=168",
        ),
        (
            "verify=pattern bs=4k",
            "verify=pattern bs=4k verify_pattern=1",
        ),
        (
            "verify=crc32c bssplit=4k/30:5k/30:6k/40",
            "verify=crc32c bssplit=4k/30:8k/70",
        ),
    ] {
        let text =
            |options: &str| format!("[job]\nrw=write\nsize=1m\n{}\n", options.replace(' ', "\n"));
        let parse = |options| JobFile::parse("job.fio", &text(options), &JobEnvironment::default());
        let refused = parse(options).expect_err(options).render(false);
        assert!(refused.contains("verify"), "{refused}");
        let taken = parse(remedy);
        assert!(taken.is_ok(), "{remedy}: {taken:?}");
    }
}
