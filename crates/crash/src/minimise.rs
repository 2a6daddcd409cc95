//! Delta debugging: the smallest part of a failure's causes that suffices.

/// Returns a part of `causes` that still fails and of which no single cause can be left out, as
/// far as `tests_max` tests find it. `fails` tests a part. All causes together must fail.
///
/// # Errors
///
/// Returns the first error of `fails`.
pub fn minimise<E>(
    causes: &[usize],
    tests_max: usize,
    mut fails: impl FnMut(&[usize]) -> Result<bool, E>,
) -> Result<Vec<usize>, E> {
    let mut left = causes.to_vec();
    let mut tests = 0;
    if !left.is_empty() && fails(&[])? {
        return Ok(Vec::new());
    }
    let mut parts = 2;
    while left.len() > 1 {
        let size = left.len().div_ceil(parts);
        let mut smaller = None;
        // A part alone, then all but a part.
        'tried: for is_alone in [true, false] {
            // With two parts, all but one is the other alone.
            if !is_alone && parts == 2 {
                break;
            }
            for (number, part) in left.chunks(size).enumerate() {
                if tests == tests_max {
                    return Ok(left);
                }
                tests += 1;
                let candidate: Vec<usize> = match is_alone {
                    true => part.to_vec(),
                    false => {
                        let parts = left.chunks(size).enumerate();
                        let others = parts.filter(|(other, _)| *other != number);
                        others.flat_map(|(_, part)| part).copied().collect()
                    }
                };
                if fails(&candidate)? {
                    smaller = Some((candidate, is_alone));
                    break 'tried;
                }
            }
        }
        match smaller {
            Some((candidate, true)) => (left, parts) = (candidate, 2),
            Some((candidate, false)) => (left, parts) = (candidate, (parts - 1).max(2)),
            None if size == 1 => break,
            None => parts = (parts * 2).min(left.len()),
        }
    }
    Ok(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minimal(count: usize, fails: impl Fn(&[usize]) -> bool) -> Vec<usize> {
        let causes: Vec<usize> = (0..count).collect();
        minimise::<()>(&causes, 10_000, |part| Ok(fails(part))).unwrap()
    }

    #[test]
    fn causes_that_do_not_matter_are_left_out() {
        let has = |part: &[usize], cause| part.contains(&cause);
        assert_eq!(minimal(100, |part| has(part, 17)), [17]);
        assert_eq!(minimal(100, |part| has(part, 3) && has(part, 96)), [3, 96]);
        assert_eq!(minimal(1, |part| has(part, 0)), [0]);
        assert_eq!(minimal(7, |part| part.len() >= 5).len(), 5);
    }

    #[test]
    fn nothing_is_left_of_a_failure_without_causes() {
        assert_eq!(minimal(9, |_| true), [0; 0]);
    }

    #[test]
    fn the_number_of_tests_is_limited() {
        let causes: Vec<usize> = (0..1000).collect();
        let mut tests = 0;
        let left = minimise::<()>(&causes, 10, |part| {
            tests += 1;
            Ok(part.contains(&999))
        });
        assert!(left.unwrap().contains(&999));
        assert!(tests <= 11, "{tests}");
    }

    #[test]
    fn an_error_of_a_test_is_returned() {
        assert_eq!(minimise(&[1, 2], 10, |_| Err("broken")), Err("broken"));
    }
}
