use super::*;
use crate::number::UnitBase;

const BYTES: ExpressionGrammar = ExpressionGrammar::Fio(Unit::Bytes {
    base: UnitBase::Inverted,
});
const SECONDS: ExpressionGrammar = ExpressionGrammar::Fio(Unit::Time {
    default_us: 1_000_000,
});

#[test]
fn operators_bind_as_in_arithmetic() {
    let cases = [
        ("(2m+4k)", 2_101_248),
        ("(7%4)k", 3072),
        ("1+2*3", 7),
        ("(1+2)*3", 9),
        ("2^3^2", 512),
        ("10-2-3", 5),
        ("-4+10", 6),
        ("--4", 4),
        ("7/2", 3),
        ("( 0x10 + 1 )", 17),
        ("((1k))k", 1 << 20),
    ];
    for (text, value) in cases {
        assert_eq!(evaluate(text, BYTES), Ok(value), "{text}");
    }
}

#[test]
fn a_time_without_units_is_in_the_bare_one() {
    assert_eq!(evaluate("(2*30)", SECONDS), Ok(60_000_000));
    assert_eq!(evaluate("(2*30ms)", SECONDS), Ok(60_000));
}

#[test]
fn bc_knows_no_units() {
    assert_eq!(evaluate("2*4096", ExpressionGrammar::Arithmetic), Ok(8192));
    let fault = evaluate("2*4k", ExpressionGrammar::Arithmetic).unwrap_err();
    assert_eq!(
        (fault.span, fault.message.as_str()),
        (3..4, "`k` is no unit here")
    );
}

#[test]
fn a_fault_is_where_it_is() {
    let cases = [
        ("(1/0)", 1..4, "division by zero"),
        ("5%0", 0..3, "division by zero"),
        ("1.5*2", 1..2, "a whole number"),
        ("(1", 2..2, "`)`"),
        ("1)", 1..2, "an operator or the end"),
        ("", 0..0, "a number"),
        ("1+", 2..2, "a number"),
        ("9^99", 0..4, "beyond 64 bits"),
        ("2^-1", 2..3, "a number"),
        ("1é", 1..3, "an operator"),
    ];
    for (text, at, why) in cases {
        let fault = evaluate(text, BYTES).expect_err(text);
        assert_eq!(fault.span, at, "{text}: {}", fault.message);
        assert!(fault.message.starts_with(why), "{text}: {}", fault.message);
    }
    let deep = format!("{}1{}", "(".repeat(10_000), ")".repeat(10_000));
    assert!(evaluate(&deep, BYTES).is_err());
}
