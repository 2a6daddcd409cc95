use super::*;

const BYTES: Unit = Unit::Bytes {
    base: UnitBase::Inverted,
};
const SI: Unit = Unit::Bytes { base: UnitBase::Si };
const SECONDS: Unit = Unit::Time {
    default_us: 1_000_000,
};
const MICROSECONDS: Unit = Unit::Time { default_us: 1 };

fn value(text: &str, unit: Unit) -> Option<i128> {
    parse_strict(text, unit).map(|number| number.value)
}

#[test]
fn suffixes_are_powers_of_the_base() {
    for text in ["4k", "4K", "4kb", "4KB", "4ki", "0x1000"] {
        assert_eq!(value(text, BYTES), Some(4096), "{text}");
    }
    assert_eq!(value("4KiB", BYTES), Some(4000));
    assert_eq!(value("16Mib", BYTES), Some(16_000_000));
    assert_eq!(value("4KiB", SI), Some(4096));
    assert_eq!(value("4k", SI), Some(4000));
    assert_eq!(value("1p", BYTES), Some(1 << 50));
    assert_eq!(
        parse_strict("4KiB", BYTES).unwrap().suffix_surprise,
        Some(SuffixSurprise::BinaryUnit)
    );
    assert_eq!(
        parse_strict("4ki", BYTES).unwrap().suffix_surprise,
        Some(SuffixSurprise::KiWithoutB)
    );
    assert_eq!(parse_strict("4KiB", SI).unwrap().suffix_surprise, None);
}

#[test]
fn times_have_units_of_their_own() {
    assert_eq!(value("5m", SECONDS), Some(300_000_000));
    assert_eq!(value("5", SECONDS), Some(5_000_000));
    assert_eq!(value("5", MICROSECONDS), Some(5));
    assert_eq!(value("250MS", SECONDS), Some(250_000));
    assert_eq!(value("1d", SECONDS), Some(86_400_000_000));
    // fio takes the x for a unit that it does not know.
    assert_eq!(value("0x10", SECONDS), None);
    assert_eq!(parse_as_fio("0x10", SECONDS), Some(16));
}

#[test]
fn what_is_no_number_is_said_to_be_what_fio_makes_of_it() {
    let cases = [
        (" 4k", BYTES, Some(4)),
        ("1.5g", BYTES, Some(1)),
        ("1e6", BYTES, Some(1)),
        ("4x", BYTES, Some(4)),
        ("2*1024", BYTES, Some(2)),
        ("4kx", BYTES, Some(4096)),
        ("5min", SECONDS, Some(5)),
        ("k", BYTES, None),
        ("", BYTES, None),
        ("4z", BYTES, None),
        ("99999999999999999999", BYTES, None),
        ("9223372036854775807k", BYTES, Some(-1024)),
    ];
    for (text, unit, reads) in cases {
        assert_eq!(parse_strict(text, unit), None, "{text}");
        assert_eq!(parse_as_fio(text, unit), reads, "{text}");
    }
}

#[test]
fn where_both_read_they_agree() {
    for digits in ["0", "7", "-3", "1024", "123456789"] {
        for suffix in [
            "", "b", "k", "KB", "MiB", "gi", "T", "p", "us", "ms", "s", "m", "h", "d",
        ] {
            let text = format!("{digits}{suffix}");
            for unit in [BYTES, SI, SECONDS, MICROSECONDS] {
                let Some(number) = parse_strict(&text, unit) else {
                    continue;
                };
                let reads = parse_as_fio(&text, unit).map(i128::from);
                assert_eq!(Some(number.value), reads, "{text} in {unit:?}");
            }
        }
    }
}
